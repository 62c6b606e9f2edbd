"""Output and exit codes of `make envtest`."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from ocf.testing.envtest.binaries import Program
from ocf.testing.envtest.command import main, provide
from ocf.testing.envtest.versions import PINNED, Machine

if TYPE_CHECKING:
    from tests.testing.envtest.conftest import FakeGo, MakePrograms


class Run:
    """One run of the command and its output."""

    def __init__(self, environ: dict[str, str]) -> None:
        out, err = StringIO(), StringIO()
        self.code = provide(environ, Console(file=out), Console(file=err))
        self.out, self.err = out.getvalue(), err.getvalue()


def test_the_folder_in_the_cache_is_printed(tmp_path: Path, make_programs: MakePrograms) -> None:
    cache = tmp_path / ".cache" / "ocf" / "envtest" / PINNED.folder_name(Machine.here())
    make_programs(cache, Program)
    run = Run({"HOME": str(tmp_path)})
    assert (run.code, run.out, run.err) == (0, f"The programs of a control plane are in {cache} (cache).\n", "")


def test_missing_programs_are_printed(tmp_path: Path, make_programs: MakePrograms) -> None:
    make_programs(tmp_path, [Program.ETCD, Program.API_SERVER])
    run = Run({"KUBEBUILDER_ASSETS": str(tmp_path)})
    assert run.code == 0
    assert (
        "Missing: kube-controller-manager, kube-scheduler, kubectl, kwok; tests that need them are skipped." in run.out
    )


def test_programs_that_the_cache_lacks_are_built(
    tmp_path: Path, make_programs: MakePrograms, fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = make_programs(
        tmp_path / ".cache" / "ocf" / "envtest" / PINNED.folder_name(Machine.here()), set(Program) - {Program.KWOK}
    )
    path = f"{Path(fake_go.command).parent}:/usr/bin:/bin"
    monkeypatch.setenv("PATH", path)
    run = Run({"HOME": str(tmp_path), "PATH": path})
    assert (run.code, run.err) == (0, "")
    assert (cache / Program.KWOK).exists()
    assert "Missing" not in run.out


def test_a_wrong_folder_is_one_line(tmp_path: Path) -> None:
    run = Run({"KUBEBUILDER_ASSETS": str(tmp_path)})
    assert run.code == 1
    assert run.err.startswith(f"envtest: etcd is missing in {tmp_path} (KUBEBUILDER_ASSETS)")
    assert run.err.count("\n") == 1


def test_no_go_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    run = Run({"HOME": str(tmp_path), "PATH": str(tmp_path)})
    assert run.code == 1
    assert run.err.startswith("envtest: the programs need Go to be built, and `go` cannot be run; install it")
    assert run.err.count("\n") == 1


def test_an_interruption_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ocf.testing.envtest.build.build_programs", interrupted)
    run = Run({"HOME": str(tmp_path)})
    assert (run.code, run.err) == (130, "envtest: interrupted; unfinished files are removed\n")


def test_help_shows_the_versions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["--help"])
    assert raised.value.code == 0
    assert f"etcd {PINNED.etcd}" in capsys.readouterr().out
