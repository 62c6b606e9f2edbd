"""`ocf new kind`: from definitions in files or a cluster to a kind in a project, whose tests pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.objects import Manifest, dump_document
from ocf_server import EmbeddedCluster

ROOT: Final = Path(__file__).parents[3]
CONDITIONS: Final = {
    "type": "array",
    "items": {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}},
}
FILES: Final = {
    "kinds/__init__.py",
    "kinds/cache/__init__.py",
    "kinds/cache/model.py",
    "tests/kinds/cache.yaml",
    "tests/kinds/goldens/cache.yaml",
    "tests/kinds/test_cache.py",
}


def definition(kind: str = "Cache", *, versions: tuple[str, ...] = ("v1",), ready: str = "", **spec: Any) -> Manifest:
    properties: dict[str, Any] = {"spec": {"type": "object", "properties": spec or {"size": {"type": "integer"}}}}
    if ready:
        properties["status"] = {"type": "object", "properties": {"conditions": CONDITIONS}}
    path = f'.status.conditions[?(@.type=="{ready}")].status'
    columns = [{"name": "Ready", "type": "string", "jsonPath": path}] if ready else []
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == versions[0],
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                    "additionalPrinterColumns": columns,
                }
                for name in versions
            ],
        },
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(*arguments: str, code: int = 0, given: str = "") -> str:
    """Run `ocf new kind`; return what it prints, errors last."""
    done = CliRunner().invoke(app, ["new", "kind", *arguments], input=given)
    assert done.exit_code == code, done.output
    return done.stdout + done.stderr


def written(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def run_tests(folder: Path) -> str:
    """Run the tests of a project in a process of its own; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "tests"]
    done = subprocess.run(  # noqa: S603 (ourselves)
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_the_tests_of_new_kinds_pass(folder: Path) -> None:
    manifests = [definition(ready="Working"), definition("Disk"), {"apiVersion": "v1", "kind": "List", "items": []}]
    text = "---\n".join(map(dump_document, manifests))

    printed = new("-", given=text)

    assert "kinds.cache: Cache of example.com/v1" in printed
    assert written(folder) == FILES | {path.replace("cache", "disk") for path in FILES}
    assert "10 passed" in run_tests(folder)


@pytest.mark.parametrize(
    ("manifests", "seen"),
    [
        pytest.param([{"kind": "Deployment"}], "crd.yaml: document 1 has Deployment", id="another kind"),
        pytest.param(
            [{"kind": "Pod"}, {"apiVersion": "v1", "kind": "List", "items": [{"kind": "Service"}, {"kind": "Job"}]}],
            "crd.yaml: document 1 has Pod; crd.yaml: document 2, items[0] has Service; "
            "crd.yaml: document 2, items[1] has Job",
            id="a list",
        ),
        pytest.param(
            [{"kind": "Pod"}] * 7,
            "; ".join(f"crd.yaml: document {number} has Pod" for number in range(1, 6)) + "; and 2 more",
            id="many",
        ),
        pytest.param(
            [{"apiVersion": "v1", "kind": "List", "items": []}], "the files have no objects", id="an empty list"
        ),
    ],
)
def test_files_without_a_definition_are_named(folder: Path, manifests: list[Manifest], seen: str) -> None:
    (folder / "crd.yaml").write_text("---\n".join(map(dump_document, manifests)))

    printed = new("crd.yaml", code=2)

    assert " ".join(printed.split()) == f"error: expected the manifest of a CustomResourceDefinition: {seen}"


def test_a_project_gets_the_kind_in_its_package(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("")
    (folder / "src" / "shop").mkdir(parents=True)
    (folder / "src" / "shop" / "__init__.py").write_text("raise RuntimeError\n")
    (folder / "crd.json").write_text(json.dumps(definition()))

    assert "shop.kinds.cache" in new("crd.json")
    assert (folder / "src/shop/kinds/cache/model.py").exists()
    assert (folder / "src/shop/__init__.py").read_text() == "raise RuntimeError\n"


@pytest.mark.parametrize("layout", ["", "src"])
def test_the_package_of_the_project_may_be_installed(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """In place, as `pip install -e` does; what is installed from elsewhere is another package."""
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: {"shopping": ["shopping"]})
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for root in (folder / layout, elsewhere):
        (root / "shopping").mkdir(parents=True)
        (root / "shopping" / "__init__.py").write_text("raise RuntimeError\n")
    text = dump_document(definition())

    with monkeypatch.context() as patch:
        patch.syspath_prepend(elsewhere)
        assert "which hides another package" in new("-", "--package=shopping.kinds", code=2, given=text)
    (folder / "pyproject.toml").write_text("")
    monkeypatch.syspath_prepend(folder / layout)
    assert "shopping.kinds.cache" in new("-", "--package=shopping.kinds", given=text)


def test_the_definition_of_a_cluster_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def cluster() -> AsyncIterator[EmbeddedCluster]:
        embedded = EmbeddedCluster()
        await embedded.create(definition(), field_manager="user")
        yield embedded

    async def connect(kubeconfig: str | None, context: str | None) -> Any:
        assert (kubeconfig, context) == (None, "there")
        return cluster()

    monkeypatch.setattr("ocf.cli.diff.connect", connect)

    new("--from-cluster", "caches.example.com", "--context", "there")

    assert written(folder) == FILES


def test_a_sample_is_used_without_what_the_api_server_sets(folder: Path) -> None:
    metadata = {"name": "web", "uid": "1", "resourceVersion": "7", "labels": {"a": "b"}}
    sample = {"apiVersion": "example.com/v1", "kind": "Cache", "metadata": metadata, "spec": {"size": 3}, "status": {}}
    (folder / "sample.yaml").write_text(dump_document(sample))

    new("-", "--sample", "sample.yaml", given=dump_document(definition()))

    kept = {**sample, "metadata": {"name": "web", "labels": {"a": "b"}, "namespace": "default"}}
    del kept["status"]
    assert (folder / "tests/kinds/cache.yaml").read_text() == dump_document(kept)


def test_nothing_is_overwritten_and_force_writes_the_models_only(folder: Path) -> None:
    new("-", given=dump_document(definition()))
    mine = [path for path in FILES if not path.endswith("model.py")]
    for path in mine:
        (folder / path).write_text("mine\n")

    error = new("-", code=2, given=dump_document(definition(color={"type": "string"})))
    assert "kinds/cache/model.py" in error
    assert "--force" in error
    assert "color" not in (folder / "kinds/cache/model.py").read_text()

    (folder / "kinds/cache/__init__.py").unlink()
    new("-", "--force", given=dump_document(definition(color={"type": "string"})))
    assert "color" in (folder / "kinds/cache/model.py").read_text()
    assert (folder / "kinds/cache/__init__.py").exists()
    assert {path for path in mine if (folder / path).read_text() == "mine\n"} == {*mine} - {"kinds/cache/__init__.py"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param(
            ["--ready=Healthy"],
            "--ready: kinds/cache/__init__.py exists and is kept, with 'Ready', not 'Healthy'; change it there",
            id="ready",
        ),
        pytest.param(
            ["--failing=Stalled"],
            "--failing: kinds/cache/__init__.py exists and is kept, with '', not 'Stalled'",
            id="failing",
        ),
        pytest.param(
            ["--sample=sample.yaml"],
            "--sample: tests/kinds/cache.yaml exists and is kept, with another object",
            id="sample",
        ),
        pytest.param(
            ["--version=v2"],
            "kinds/cache/__init__.py exists and is kept, with example.com/v1, and the models are of example.com/v2",
            id="version",
        ),
    ],
)
def test_an_option_that_a_kept_file_would_make_void_is_an_error(folder: Path, options: list[str], problem: str) -> None:
    """A run with --force and fewer options than before must not leave two files that disagree.

    https://github.com/kubernetes-sigs/kubebuilder/issues/5936, https://github.com/kubernetes-sigs/kubebuilder/issues/1845.
    """
    text = dump_document(definition(versions=("v1", "v2"), ready="Ready"))
    sample = {"apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "web"}, "spec": {"size": 3}}
    new("-", "--version=v1", given=text)
    (folder / "sample.yaml").write_text(dump_document(sample))
    before = {path: (folder / path).read_text() for path in FILES}

    same = [] if "--version=v2" in options else ["--version=v1"]
    error = new("-", "--force", *same, *options, code=2, given=text)

    assert problem in error
    assert error.count("\n") == 1
    assert {path: (folder / path).read_text() for path in FILES} == before


def test_the_same_options_again_are_no_error(folder: Path) -> None:
    text = dump_document(definition(ready="Ready"))
    sample = {"apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "web"}, "spec": {"size": 3}}
    (folder / "sample.yaml").write_text(dump_document(sample))
    options = ("--ready=Healthy", "--failing=Stalled", "--sample=sample.yaml")
    new("-", *options, given=text)

    assert "wrote 1 files" in new("-", "--force", *options, given=text)


def test_a_status_that_the_user_has_written_is_not_that_of_the_option(folder: Path) -> None:
    new("-", given=dump_document(definition(ready="Ready")))
    declaration = folder / "kinds/cache/__init__.py"
    declaration.write_text(declaration.read_text().replace("ConditionStatus(", "MyStatus("))

    error = new("-", "--force", "--ready=Ready", code=2, given=dump_document(definition(ready="Ready")))

    assert "--ready: kinds/cache/__init__.py exists and is kept, with a status of its own, not 'Ready'" in error


def test_two_kinds_that_would_be_one_module_are_an_error(folder: Path) -> None:
    other = definition("CACHE")
    other["spec"]["group"] = "other.example.com"
    text = f"{dump_document(definition())}---\n{dump_document(other)}"

    error = new("-", code=2, given=text)

    assert "Cache of example.com and CACHE of other.example.com would both be the module cache; pass one" in error
    assert written(folder) == set()
    assert "kinds.cache: CACHE of other.example.com/v1" in new("-", "--kind=CACHE", given=text)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param([], "example.com/v1", id="highest stable version"),
        pytest.param(["--version=v2beta1"], "example.com/v2beta1", id="version of the option"),
    ],
)
def test_the_version(folder: Path, options: list[str], expected: str) -> None:
    assert folder.is_dir()
    text = dump_document(definition(versions=("v1beta1", "v1", "v2beta1")))

    assert f"Cache of {expected}\n" in new("-", *options, given=text)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param([], "--from-cluster", id="nothing named"),
        pytest.param(["missing.yaml"], "missing.yaml", id="file that does not exist"),
        pytest.param(["-", "--kind=Disk"], "--kind: Disk is not among the definitions: Cache", id="kind"),
        pytest.param(
            ["-", "--version=v2"], "--version: CustomResourceDefinition caches.example.com serves v1", id="version"
        ),
        pytest.param(["-", "--package=a-b"], "--package: must be a package of Python", id="package"),
        pytest.param(["-", "--package=json"], "which hides a module of Python's standard", id="standard library"),
        pytest.param(["-", "--package=email.kinds"], "in the package email, which hides", id="in the standard library"),
        pytest.param(["-", "--package=ocf"], "which hides another package", id="ocf"),
        pytest.param(["-", "--package=pydantic.x"], "in the package pydantic, which hides another", id="installed"),
        pytest.param(["-", "--package=match.kinds"], "which is a keyword of Python", id="keyword"),
        pytest.param(["-", "--failing=Stalled"], "--failing: has no effect, because the definition", id="failing"),
        pytest.param(["-", "--context=test"], "--context: has no effect without --from-cluster", id="context"),
        pytest.param(["-", "--kubeconfig=x"], "--kubeconfig: has no effect without --from-cluster", id="kubeconfig"),
        pytest.param(["-", "--sample=crd.yaml"], "--sample: expected a Cache of example.com/v1", id="sample"),
    ],
)
def test_an_error_is_one_line_and_writes_nothing(folder: Path, arguments: list[str], problem: str) -> None:
    (folder / "crd.yaml").write_text(dump_document(definition()))

    error = new(*arguments, code=2, given=dump_document(definition()))

    assert problem in error
    assert error.count("\n") == 1
    assert written(folder) == {"crd.yaml"}


def test_a_sample_that_the_schema_rejects_is_an_error(folder: Path) -> None:
    sample = {"apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "web"}, "spec": {"size": "big"}}
    (folder / "sample.yaml").write_text(dump_document(sample))

    error = new("-", "--sample=sample.yaml", code=2, given=dump_document(definition()))

    assert "the sample is not valid: Cache: spec.size: Invalid value" in error
    assert "must be of type integer" in error
    assert "Traceback" not in error
    assert written(folder) == {"sample.yaml"}


def test_nothing_is_executed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A definition may come from anybody, so neither its code nor the package around it is imported."""
    (folder / "pyproject.toml").write_text("")
    (folder / "shop" / "kinds").mkdir(parents=True)
    for path in ("shop/__init__.py", "shop/kinds/__init__.py", "sitecustomize.py"):
        (folder / path).write_text("open('executed', 'w')\n")
    monkeypatch.setattr("subprocess.run", lambda *_args, **_options: pytest.fail("a process was started"))
    before = set(sys.modules)

    assert "shop.kinds.cache" in new("-", given=dump_document(definition()))

    assert not (folder / "executed").exists()
    assert not [name for name in set(sys.modules) - before if name.startswith("shop")]


def test_a_definition_that_injects_code_is_an_error(folder: Path) -> None:
    hostile = definition()
    hostile["spec"]["group"] = 'example.com")\nopen("executed", "w")\n("'

    error = new("-", code=2, given=dump_document(hostile))

    assert "CustomResourceDefinition of Cache: spec.group:" in error
    assert not written(folder)
