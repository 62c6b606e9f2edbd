"""`ocf new operator`: projects that pass their own checks, for a set of options that covers every pair of them."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.testing.envtest.fixtures import REQUIRE
from tests.once import TYPES, locked

ROOT: Final = Path(__file__).parents[3]
OPTIONS: Final = ("--cluster-scoped", "--webhooks", "--kopf", "--no-leader-election", "--autoscaling")
PROJECTS: Final = {
    "nothing": (False, False, False, False, False),
    "everything": (True, True, True, True, True),
    "town-operator": (True, True, True, False, False),
    "elastic": (True, False, False, True, True),
    "a-name-with-thirty-characters1": (False, True, False, True, False),
    "city": (False, False, True, False, True),
}
"""Name to which options are given; every pair of options has all four combinations."""
FILES: Final = {
    "Containerfile",
    "deploy/base/definition.yaml",
    "deploy/chart/Chart.yaml",
    "deploy/overlays/production/kustomization.yaml",
    "requirements/operator.lock",
    "tests/goldens/manifest.yaml",
}
"""Some of the files that every project has."""
FULL: Final = ("everything", "nothing")
"""Projects whose own tests and types are checked, too."""


def new(name: str, *arguments: str, code: int = 0) -> str:
    """Run `ocf new operator`; return what it prints, errors last."""
    done = CliRunner().invoke(app, ["new", "operator", name, *arguments])
    assert done.exit_code == code, done.output
    return done.stdout + done.stderr


def program(*command: str, cwd: Path, **environment: str) -> str:
    """Run a module of Python, which has to succeed, without real servers; return what it prints."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "RUFF_NO_CACHE": "true"}
    without_servers = {"XDG_CACHE_HOME": str(cwd), "KUBEBUILDER_ASSETS": "", REQUIRE: ""}
    done = subprocess.run(  # noqa: S603 (tools of the environment)
        [sys.executable, "-m", *command],
        cwd=cwd,
        env={**given, **without_servers, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def test_the_projects_cover_every_pair_of_options() -> None:
    for first, second in combinations(range(len(OPTIONS)), 2):
        seen = {(given[first], given[second]) for given in PROJECTS.values()}
        assert seen == set(product([True, False], repeat=2)), (OPTIONS[first], OPTIONS[second])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_projects_pass_their_own_checks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test, since writing the projects takes most of its time."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name, given in PROJECTS.items():
        new(name, *(option for option, wanted in zip(OPTIONS, given, strict=True) if wanted))

    assert sorted(path.name for path in folder.iterdir()) == sorted(PROJECTS), "nothing else is left"
    assert {name: missing for name in PROJECTS if (missing := FILES - files_of(folder / name))} == {}
    program("ruff", "check", ".", cwd=folder)
    program("ruff", "format", "--check", ".", cwd=folder)
    for name in FULL:
        with locked(TYPES):
            assert "Success" in program("mypy", "--cache-dir", str(TYPES), cwd=folder / name)
        passed = program("pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", cwd=folder / name)
        assert " passed, 1 skipped" in passed, "only the test on a real API server is skipped"


def files_of(folder: Path) -> set[str]:
    """Return the files of a project; none is a template or compiled code."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert not [path for path in found if "__pycache__" in path or path.endswith(".tmpl")]
    return found


def test_no_file_is_overwritten(folder: Path) -> None:
    (folder / "shop").mkdir()
    (folder / "shop" / "README.md").write_text("mine")
    (folder / "shop" / "pyproject.toml").write_text("mine")

    error = new("shop", code=2)

    assert error.strip() == (
        "error: shop has these files already, and none is overwritten: README.md, pyproject.toml; use another folder"
    )
    assert {path.name for path in (folder / "shop").iterdir()} == {"README.md", "pyproject.toml"}


def test_a_folder_with_other_files_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (folder / ".git").mkdir()

    assert "next:" in new("shop", "--directory=.")

    assert (folder / "shop" / "operator.py").exists()
    assert (folder / ".git").is_dir()
    assert not list(folder.glob(".ocf-new-*"))


def test_an_error_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that generates the manifests fails, here because it finds another package first."""
    (folder / "other" / "ocf").mkdir(parents=True)
    (folder / "other" / "ocf" / "__init__.py").write_text("raise SystemExit('broken')")
    monkeypatch.setenv("PYTHONPATH", str(folder / "other"))

    error = new("shop", code=2)

    assert error.strip() == "error: the project cannot be generated: broken"
    assert [path.name for path in folder.iterdir()] == ["other"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["Shop"], 'name: "Shop": a lowercase RFC 1123 label', id="name"),
        pytest.param(["yaml"], "which hides another package", id="installed package"),
        pytest.param(["shop", "--kind=shop"], "--kind: must be CamelCase", id="kind"),
    ],
)
def test_an_invalid_name_is_one_line(folder: Path, arguments: list[str], problem: str) -> None:
    error = new(*arguments, code=2)

    assert problem in error
    assert error.count("\n") == 1
    assert list(folder.iterdir()) == []
