"""Kinds of well-known projects: their code imports, keeps objects as they are, builds, and passes the linters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.objects import Manifest, write_model
from ocf.scaffold import KindOptions, OperatorProject, render_kind, render_operator
from ocf.scaffold.foreign_kind import KindFiles
from ocf.scaffold.foreign_kind.sample import minimal_sample
from tests.once import TYPES, locked
from tests.scaffold.foreign_kind.corpus import PAGE, Case, cases, table
from tests.scaffold.foreign_kind.extremes import EXTREME

ROOT: Final = Path(__file__).parents[3]
PACKAGE: Final = "recorded_kinds"


@cache
def rendered(number: int) -> KindFiles:
    return render_kind(cases()[number].kind, KindOptions(package=PACKAGE))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Write all kinds into one project, whose packages can be imported."""
    folder = tmp_path_factory.mktemp("kinds")
    settings = render_operator(OperatorProject(name=PACKAGE.replace("_", "-")), requirement="ocf", locks={})
    texts = {"pyproject.toml": settings["pyproject.toml"], f"{PACKAGE}/__init__.py": '"""Kinds."""\n'}
    for made in (*map(rendered, range(len(cases()))), render_kind(EXTREME, KindOptions(package=PACKAGE))):
        texts |= made.texts
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def placed(manifest: Manifest, case: Case) -> Manifest:
    """Return an object with the name and the namespace that a manifest of an operator has."""
    place = {} if case.kind.cluster_scoped else {"namespace": "default"}
    metadata = {"name": "sample", **place, **manifest["metadata"]}
    return {**manifest, "metadata": {name: value for name, value in metadata.items() if name != "generateName"}}


def test_there_are_many_definitions_with_distinct_kinds() -> None:
    assert len({case.project for case in cases()}) >= 25
    assert len({rendered(number).module for number in range(len(cases()))}) == len(cases())


def test_the_page_lists_the_definitions() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("number", range(len(cases())), ids=lambda number: str(cases()[number]))
def test_objects_are_kept_as_they_are(number: int, project: Path) -> None:
    assert project.is_dir()
    case, made = cases()[number], rendered(number)
    package: Any = import_module(made.module)
    model: Any = getattr(import_module(f"{made.module}.model"), made.class_name)

    for manifest in [placed(each, case) for each in (*case.samples, minimal_sample(case.kind))]:
        assert write_model(model.model_validate(manifest)) == manifest
        assert package.Builder(manifest).build().render() == manifest


def program(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "RUFF_NO_CACHE": "true"}
    return subprocess.run(  # noqa: S603 (tools of the environment)
        [sys.executable, "-m", *command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["ruff", "check", "--output-format=concise", "."], id="lint"),
        pytest.param(["ruff", "format", "--diff", "."], id="format"),
        pytest.param(["mypy", f"--cache-dir={TYPES}"], id="types"),
    ],
)
def test_the_code_passes_the_checks_of_new_projects(command: list[str], project: Path) -> None:
    with locked(TYPES) if command[0] == "mypy" else nullcontext():
        done = program(*command, cwd=project)

    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
