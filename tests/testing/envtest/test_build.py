"""Builds put all programs into the cache at once or none."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ocf.errors import ConfigError
from ocf.testing.envtest.binaries import Program, find_programs
from ocf.testing.envtest.build import build_programs

if TYPE_CHECKING:
    from tests.testing.envtest.conftest import FakeGo


class RecordedProgress:
    """Progress that records its calls, and raises at a given step."""

    def __init__(self, fail_in: str = "") -> None:
        self.steps: list[tuple[str, int]] = []
        self.said: list[str] = []
        self._fail_in = fail_in

    @contextmanager
    def step(self, what: str, packages: int = 0) -> Iterator[Callable[[str], None]]:
        if what == self._fail_in:
            raise KeyboardInterrupt
        self.steps.append((what, packages))
        yield lambda _: None

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "GOFLAGS": "-mod=vendor"}


def content(home: Path) -> set[str]:
    """Return the content of the cache without the lock."""
    return {file.name for file in (home / ".cache" / "ocf" / "envtest").glob("*")}


def test_all_programs_are_built_where_they_are_searched(
    environ: dict[str, str], tmp_path: Path, fake_go: FakeGo
) -> None:
    progress = RecordedProgress()
    programs = build_programs(environ, progress, go=fake_go.command)
    assert programs.missing == ()
    assert find_programs(environ) == programs
    assert content(tmp_path) - {".lock"} == {programs.folder.name}
    assert [what for what, _ in progress.steps if "building" in what] == [
        "etcd: building",
        "kube-apiserver: building",
        "kube-controller-manager: building",
        "kube-scheduler: building",
        "kubectl: building",
        "kwok: building",
    ]
    assert ("kubectl: building", 2) in progress.steps


def test_the_flags_of_the_user_do_not_reach_go(environ: dict[str, str], fake_go: FakeGo) -> None:
    build_programs(environ, RecordedProgress(), go=fake_go.command)
    assert {line.split(" ", 1)[1] for line in fake_go.commands} == {"-buildvcs=false"}


def test_existing_programs_are_not_built_again(environ: dict[str, str], fake_go: FakeGo) -> None:
    build_programs(environ, RecordedProgress(), go=fake_go.command)
    before = fake_go.commands
    build_programs(environ, RecordedProgress(), go=fake_go.command)
    assert fake_go.commands == before


@pytest.mark.parametrize("lost", [{Program.ETCD}, {Program.SCHEDULER, Program.KWOK}], ids=["one", "two"])
def test_only_missing_programs_are_built(lost: set[Program], environ: dict[str, str], fake_go: FakeGo) -> None:
    programs = build_programs(environ, RecordedProgress(), go=fake_go.command)
    kept = {each: programs.path(each).stat().st_ino for each in Program if each not in lost}
    for program in lost:
        programs.path(program).unlink()
    progress = RecordedProgress()
    assert build_programs(environ, progress, go=fake_go.command).missing == ()
    assert {what for what, _ in progress.steps if "building" in what} == {f"{each}: building" for each in lost}
    assert {each: programs.path(each).stat().st_ino for each in kept} == kept


def test_an_interrupted_addition_leaves_the_cache_as_it_was(
    environ: dict[str, str], tmp_path: Path, fake_go: FakeGo
) -> None:
    programs = build_programs(environ, RecordedProgress(), go=fake_go.command)
    for program in (Program.SCHEDULER, Program.KWOK):
        programs.path(program).unlink()
    with pytest.raises(KeyboardInterrupt):
        build_programs(environ, RecordedProgress(fail_in="kwok: building"), go=fake_go.command)
    assert programs.missing == (Program.SCHEDULER, Program.KWOK)
    assert content(tmp_path) - {".lock"} == {programs.folder.name}


@pytest.mark.parametrize("step", ["etcd: building", "kubectl: building", "kubectl: downloading its modules"])
def test_an_interrupted_build_leaves_nothing(
    step: str, environ: dict[str, str], tmp_path: Path, fake_go: FakeGo
) -> None:
    with pytest.raises(KeyboardInterrupt):
        build_programs(environ, RecordedProgress(fail_in=step), go=fake_go.command)
    assert content(tmp_path) <= {".lock"}


def test_a_failing_build_leaves_nothing_and_shows_the_output_of_go(
    environ: dict[str, str], tmp_path: Path, fake_go: FakeGo
) -> None:
    fake_go.write(build="echo 'a.go:1: no'; exit 1")
    with pytest.raises(ConfigError, match=r"go build failed with code 1:\na\.go:1: no"):
        build_programs(environ, RecordedProgress(), go=fake_go.command)
    assert content(tmp_path) <= {".lock"}


def test_a_program_that_does_not_run_is_not_kept(environ: dict[str, str], tmp_path: Path, fake_go: FakeGo) -> None:
    fake_go.write(build='while [ "$1" != -o ]; do shift; done; echo "not a program" > "$2"; exit 0')
    with pytest.raises(ConfigError, match="etcd was built, but does not run"):
        build_programs(environ, RecordedProgress(), go=fake_go.command)
    assert content(tmp_path) <= {".lock"}


def test_files_of_a_killed_build_are_removed(environ: dict[str, str], tmp_path: Path, fake_go: FakeGo) -> None:
    left = tmp_path / ".cache" / "ocf" / "envtest" / ".building-killed"
    (left / "programs").mkdir(parents=True)
    programs = build_programs(environ, RecordedProgress(), go=fake_go.command)
    assert content(tmp_path) - {".lock"} == {programs.folder.name}


def test_a_go_that_is_too_old_is_rejected_before_any_download(environ: dict[str, str], fake_go: FakeGo) -> None:
    fake_go.write(version="go1.25.1")
    with pytest.raises(ConfigError, match=r"need Go 1\.26 or newer to be built, and this one is 1\.25\.1"):
        build_programs(environ, RecordedProgress(), go=fake_go.command)
    assert [line.split()[0] for line in fake_go.commands] == ["env"]


def test_a_cache_that_cannot_be_created_is_an_error(tmp_path: Path, fake_go: FakeGo) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file/.*: Not a directory"):
        build_programs({"HOME": str(tmp_path / "file"), "PATH": "/bin"}, RecordedProgress(), go=fake_go.command)


def test_an_unsupported_system_is_an_error(
    environ: dict[str, str], fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(ConfigError, match="do not run on win32; use Linux or macOS"):
        build_programs(environ, RecordedProgress(), go=fake_go.command)


class SecondBuild(RecordedProgress):
    """Progress of the second of two builds, which ends the first one as soon as it reports that it waits."""

    def __init__(self, lock: Path) -> None:
        super().__init__()
        self._lock = lock
        self._first = lock.open("w")
        fcntl.flock(self._first, fcntl.LOCK_EX)

    def say(self, text: str) -> None:
        super().say(text)
        self._first.close()

    @contextmanager
    def step(self, what: str, packages: int = 0) -> Iterator[Callable[[str], None]]:
        with self._lock.open("w") as third, pytest.raises(BlockingIOError):
            fcntl.flock(third, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with super().step(what, packages) as see:
            yield see


def test_a_second_build_waits_for_the_first_and_keeps_others_out(
    environ: dict[str, str], tmp_path: Path, fake_go: FakeGo
) -> None:
    cache = tmp_path / ".cache" / "ocf" / "envtest"
    cache.mkdir(parents=True)
    progress = SecondBuild(cache / ".lock")
    build_programs(environ, progress, go=fake_go.command)
    assert progress.said == ["Another build is running; waiting for it to finish ..."]
    assert progress.steps
