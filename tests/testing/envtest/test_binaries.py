"""Programs are found in the folder that the environment names, else in the cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ocf.errors import ConfigError
from ocf.testing.envtest.binaries import Program, Programs, find_programs
from ocf.testing.envtest.versions import PINNED, Machine

if TYPE_CHECKING:
    from tests.testing.envtest.conftest import MakePrograms

MACHINE = Machine("linux", "amd64")
ASSETS = (Program.ETCD, Program.API_SERVER, Program.KUBECTL)  # the programs that setup-envtest installs


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / ".cache" / "ocf" / "envtest" / PINNED.folder_name(MACHINE)


def test_no_programs_are_found(environ: dict[str, str]) -> None:
    assert find_programs(environ, machine=MACHINE) is None


def test_programs_in_the_cache_are_found(environ: dict[str, str], cache: Path, make_programs: MakePrograms) -> None:
    make_programs(cache, Program)
    assert find_programs(environ, machine=MACHINE) == Programs(cache, "cache")


def test_the_environment_has_precedence_over_the_cache(
    environ: dict[str, str], cache: Path, tmp_path: Path, make_programs: MakePrograms
) -> None:
    make_programs(cache, Program)
    named = make_programs(tmp_path / "named", ASSETS)
    found = find_programs({**environ, "KUBEBUILDER_ASSETS": str(named)}, machine=MACHINE)
    assert found is not None
    assert found == Programs(named, "KUBEBUILDER_ASSETS")
    assert found.missing == (Program.CONTROLLER_MANAGER, Program.SCHEDULER, Program.KWOK)


def test_an_empty_variable_counts_as_unset(environ: dict[str, str], cache: Path, make_programs: MakePrograms) -> None:
    make_programs(cache, Program)
    found = find_programs({**environ, "KUBEBUILDER_ASSETS": ""}, machine=MACHINE)
    assert found == Programs(cache, "cache")


def test_a_relative_folder_is_made_absolute(
    environ: dict[str, str], tmp_path: Path, make_programs: MakePrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test may change the working directory before it runs a program."""
    make_programs(tmp_path / "named", ASSETS)
    monkeypatch.chdir(tmp_path)
    assert find_programs({**environ, "KUBEBUILDER_ASSETS": "named"}) == Programs(
        tmp_path / "named", "KUBEBUILDER_ASSETS"
    )


@pytest.mark.parametrize("absent", [Program.ETCD, Program.API_SERVER])
def test_a_cache_without_a_server_is_not_used(
    absent: Program, environ: dict[str, str], cache: Path, make_programs: MakePrograms
) -> None:
    make_programs(cache, set(Program) - {absent})
    assert find_programs(environ, machine=MACHINE) is None


@pytest.mark.parametrize("absent", sorted(set(Program) - {Program.ETCD, Program.API_SERVER}))
def test_a_cache_without_another_program_is_used_and_says_how_to_add_it(
    absent: Program, environ: dict[str, str], cache: Path, make_programs: MakePrograms
) -> None:
    make_programs(cache, set(Program) - {absent})
    found = find_programs(environ, machine=MACHINE)
    assert found is not None
    assert found.missing == (absent,)
    with pytest.raises(ConfigError, match=rf"{absent} is missing in .* \(cache\); run `make envtest` .* adds it"):
        found.path(absent)


def test_the_cache_of_another_machine_is_not_used(
    environ: dict[str, str], cache: Path, make_programs: MakePrograms
) -> None:
    make_programs(cache, Program)
    assert find_programs(environ, machine=Machine("linux", "arm64")) is None


@pytest.mark.parametrize("absent", [Program.ETCD, Program.API_SERVER])
def test_a_named_folder_without_a_server_is_an_error_whatever_the_cache_has(
    absent: Program, environ: dict[str, str], cache: Path, tmp_path: Path, make_programs: MakePrograms
) -> None:
    make_programs(cache, Program)
    named = make_programs(tmp_path / "named", set(Program) - {absent})
    with pytest.raises(ConfigError) as raised:
        find_programs({**environ, "KUBEBUILDER_ASSETS": str(named)}, machine=MACHINE)
    assert str(raised.value) == (
        f"{absent} is missing in {named} (KUBEBUILDER_ASSETS); "
        "let KUBEBUILDER_ASSETS name a folder with etcd and kube-apiserver, or unset it and run "
        "`make envtest` (outside of a checkout `python -m ocf.testing.envtest`)"
    )


def test_a_file_that_cannot_be_executed_is_missing(tmp_path: Path, make_programs: MakePrograms) -> None:
    make_programs(tmp_path, Program)
    (tmp_path / Program.KUBECTL).chmod(0o644)
    assert Programs(tmp_path, "cache").missing == (Program.KUBECTL,)


def test_a_missing_controller_manager_says_how_to_install_it(tmp_path: Path, make_programs: MakePrograms) -> None:
    programs = Programs(make_programs(tmp_path, ASSETS), "KUBEBUILDER_ASSETS")
    with pytest.raises(ConfigError, match=r"unset KUBEBUILDER_ASSETS and run `make envtest` \(.*\), which installs it"):
        programs.path(Program.CONTROLLER_MANAGER)
