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
from ocf.scaffold import OperatorProject, render_operator
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
LINES: Final = {"everything": 300, "nothing": 200}
"""The most lines of Python that a project has, tests included: its author has to read all of them."""
BREAKS: Final = [
    pytest.param("operator.py", ".suspend(owner.spec.suspended)", ".suspend(False)", id="no suspension"),
    pytest.param("operator.py", ".with_prune()", "", id="no pruning"),
    pytest.param("operator.py", '">= 1.1.0"', '">= 1.0.0"', id="another version gate"),
    pytest.param("operator.py", "{owner.spec.greeting}", "{owner.spec.version}", id="another text"),
    pytest.param("operator.py", '"maxReplicas": owner.spec.max_replicas', '"maxReplicas": 0', id="another range"),
    pytest.param("operator.py", "gated_by=scaled", "gated_by=BooleanGate(True)", id="an autoscaler for all"),
    pytest.param("operator.py", '"name": owner.metadata.name}', '"name": "other"}', id="a name of nothing"),
    pytest.param("model.py", 'default="1.1.0"', "default=1.1", id="a default of another type"),
    pytest.param("../deploy/base/roles.yaml", "  - services\n", "  - endpoints\n", id="a right is missing"),
    pytest.param("admission.py", ") < Version", ") > Version", id="upgrades are rejected"),
    pytest.param("admission.py", "owner.spec.greeting or f", "f", id="no greeting of the user"),
]


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


@pytest.mark.long
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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with all options, whose tests pass."""
    made = tmp_path_factory.mktemp("new") / "everything"
    options = [option for option, wanted in zip(OPTIONS, PROJECTS[made.name], strict=True) if wanted]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        new(made.name, *options, f"--directory={made}")
    return made


@pytest.mark.long
@pytest.mark.parametrize(("file", "code", "wrong"), BREAKS)
def test_the_tests_of_a_project_find_a_fault_of_its_code(project: Path, file: str, code: str, wrong: str) -> None:
    """Authors delete tests that run nothing of theirs, or are misled by them.

    Reported as https://github.com/kubernetes-sigs/kubebuilder/issues/823 and
    https://github.com/kubernetes-sigs/kubebuilder/issues/1935.
    """
    path = project / project.name / file
    right = path.read_text(encoding="utf-8")
    assert code in right
    try:
        path.write_text(right.replace(code, wrong), encoding="utf-8")
        with pytest.raises(AssertionError, match=r"^pytest (.|\n)*(failed|error)"):
            program("pytest", "-qx", "-p", "no:cacheprovider", "-p", "no:xdist", cwd=project)
    finally:
        path.write_text(right, encoding="utf-8")


@pytest.mark.parametrize("name", LINES)
def test_a_project_is_short(name: str) -> None:
    full = name == "everything"
    project = OperatorProject(name=name, cluster_scoped=full, webhooks=full, kopf=full, autoscaling=full)
    files = render_operator(project, requirement="ocf", locks={})

    lines = sum(text.count("\n") for path, text in files.items() if path.endswith(".py"))
    assert 0 < lines <= LINES[name]


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
