"""`ocf new operator`: projects that pass their own checks, for a set of options that covers every pair of them."""

from __future__ import annotations

import json
import os
import re
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
BREAKS: Final = {
    "no suspension": ("operator.py", ".suspend(owner.spec.suspended)", ".suspend(False)"),
    "no pruning": ("operator.py", ".with_prune()", ""),
    "another version gate": ("operator.py", '">= 1.1.0"', '">= 1.0.0"'),
    "another text": ("operator.py", "{owner.spec.greeting}", "{owner.spec.version}"),
    "another range": ("operator.py", '"maxReplicas": owner.spec.max_replicas', '"maxReplicas": 0'),
    "an autoscaler for all": ("operator.py", "gated_by=scaled", "gated_by=BooleanGate(True)"),
    "a name of nothing": ("operator.py", '"name": owner.metadata.name}', '"name": "other"}'),
    "a default of another type": ("model.py", 'default="1.1.0"', "default=1.1"),
    "a right is missing": ("../deploy/base/roles.yaml", "  - services\n", "  - endpoints\n"),
    "upgrades are rejected": ("admission.py", ") < Version", ") > Version"),
    "no greeting of the user": ("admission.py", "owner.spec.greeting or f", "f"),
}
"""Fault to the file of the package, the code and what it is replaced with."""


def new(name: str, *arguments: str, code: int = 0) -> str:
    """Run `ocf new operator`; return what it prints, errors last."""
    done = CliRunner().invoke(app, ["new", "operator", name, *arguments])
    assert done.exit_code == code, done.output
    return done.stdout + done.stderr


def python(*arguments: str, cwd: Path, stdin: str = "", **environment: str) -> str:
    """Run Python, which has to succeed, without real servers; return what it prints."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "RUFF_NO_CACHE": "true"}
    without_servers = {"XDG_CACHE_HOME": str(cwd), "KUBEBUILDER_ASSETS": "", REQUIRE: ""}
    done = subprocess.run(  # noqa: S603 (tools of the environment)
        [sys.executable, *arguments],
        cwd=cwd,
        env={**given, **without_servers, **environment},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout


def program(*command: str, cwd: Path, **environment: str) -> str:
    """Run a module of Python as `python` does."""
    return python("-m", *command, cwd=cwd, **environment)


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


GROWN: Final = {
    "from ocf.component import Builder, Component\n": (
        "from ocf.cluster import Cluster\nfrom ocf.component import Builder, Component, ReconcileContext\n"
    ),
    "import configmap, deployment, service": "import configmap, deployment, ingress, pvc, service",
    "import Operator, OwnerType": "import Operator, OwnerType, ReconcileOutcome",
    "def components(owner: Shop) -> Component:\n": """\
def components(owner: Shop) -> list[Component]:
    return [web(owner), storage(owner)]


def storage(owner: Shop) -> Component:
    backend = {"service": {"name": owner.metadata.name, "port": {"name": "http"}}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return (
        Builder("storage", owner=owner.key, condition_type="StorageReady")
        .with_resource(pvc.Builder({"spec": claim}))
        .with_resource(ingress.Builder({"spec": {"defaultBackend": backend}}))
        .build()
    )


def report(context: ReconcileContext, owner: Shop, outcome: ReconcileOutcome) -> None:
    context.aggregate("Ready", *components(owner))


async def on_delete(owner: Shop, context: ReconcileContext, cluster: Cluster) -> None:
    print("goodbye to", owner.metadata.name, "which was served by this operator")


def web(owner: Shop) -> Component:
""",
    'Builder("web", owner=owner.key)': 'Builder("web", owner=owner.key, condition_type="WebReady")',
    "    components=components,\n": "    components=components,\n    report=report,\n    on_delete=on_delete,\n",
}
"""What an author adds first: a second component with a claim and an Ingress, a report, a function for the deletion."""


@pytest.mark.long
def test_a_project_that_has_grown_passes_its_checks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tests wait for no address and no volume, and its linter has no objection to parameters that hooks need."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    new("shop")
    project = folder / "shop"
    path = project / "shop" / "operator.py"
    text = path.read_text("utf-8")
    for before, after in GROWN.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    path.write_text(text, "utf-8")

    program("ruff", "check", ".", cwd=project)
    program("ruff", "format", "--check", ".", cwd=project)
    with locked(TYPES):
        assert "Success" in program("mypy", "--cache-dir", str(TYPES), cwd=project)
    options = ("--owner=samples", "--replicas=2", "--directory=deploy")
    python("-c", "from ocf.cli import main; main()", "manifests", "shop", *options, cwd=project)
    tests = ("pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    assert " passed, 1 skipped" in program(*tests, "--ocf-update-goldens", cwd=project)


FORKING: Final = """
import json, os, sys
from pathlib import Path

import kopf, kubernetes.client.models, ocf.cluster.client, ocf.runtime.admission, ocf_server
import ocf.testing.envtest.fixtures, ocf.testing.plugin
import pytest

found = {}
for name, (file, wrong) in json.load(sys.stdin).items():
    path, log = Path(file), Path(f"{name}.log")
    right = path.read_text(encoding="utf-8")
    path.write_text(wrong, encoding="utf-8")
    if not (child := os.fork()):
        out = os.open(log, os.O_CREAT | os.O_WRONLY)
        os.dup2(out, 1), os.dup2(out, 2)
        try:
            # Which of the modules pytest would have rewritten is of no interest.
            ignored = ["-W", "ignore:Module already imported"]
            status = int(pytest.main(["-qx", "-p", "no:cacheprovider", "-p", "no:xdist", *ignored]))
            sys.stdout.flush()
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    found[name] = (os.waitstatus_to_exitcode(ended), log.read_text(encoding="utf-8"))
    path.write_text(right, encoding="utf-8")
print(json.dumps(found))
"""
"""Runs the tests of a project once for each change of a file, in forks of a process that has imported what they need.

A process of its own imports for twice as long as its tests run.
"""


@pytest.mark.long
def test_the_tests_of_a_project_find_a_fault_of_its_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Authors delete tests that run nothing of theirs, or are misled by them.

    Reported as https://github.com/kubernetes-sigs/kubebuilder/issues/823 and
    https://github.com/kubernetes-sigs/kubebuilder/issues/1935.
    """
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    new("everything", *(option for option, wanted in zip(OPTIONS, PROJECTS["everything"], strict=True) if wanted))
    project = folder / "everything"
    changes = {"no fault": ("everything/operator.py", (project / "everything" / "operator.py").read_text("utf-8"))}
    for name, (file, code, wrong) in BREAKS.items():
        right = (project / "everything" / file).read_text("utf-8")
        assert code in right, name
        changes[name] = (f"everything/{file}", right.replace(code, wrong))

    found = json.loads(python("-c", FORKING, cwd=project, stdin=json.dumps(changes)))
    status, printed = found.pop("no fault")
    assert (status, " passed, 1 skipped" in printed) == (0, True), printed
    # Tests that fail, or modules that cannot be imported.
    missed = {
        name: each for name, each in found.items() if each[0] not in (1, 2) or not re.search("failed|error", each[1])
    }
    assert (missed, found.keys()) == ({}, BREAKS.keys())


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


def test_an_option_without_its_packages_writes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written could not run, and its lock files would not name what it lacks."""
    monkeypatch.setattr("ocf.scaffold.locked_versions.missing", lambda _: ["kopf"])

    error = new("shop", "--kopf", code=2)

    assert error.strip() == "error: --kopf needs kopf: install it with pip install 'ocf[kopf]'"
    assert list(folder.iterdir()) == []


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
