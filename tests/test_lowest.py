"""The lowest versions that pyproject.toml allows are those that `make test-lowest` installs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT: Final = Path(__file__).parents[1]
LOCK: Final = ROOT / "requirements" / "lowest.lock"
ASYNCHRONOUS_THEN_ASYNCIO_RUN: Final = """
import asyncio, gc

async def test_asynchronous():
    await asyncio.sleep(0)

def test_asyncio_run():
    asyncio.run(asyncio.sleep(0))

def test_collection():
    gc.collect()
"""
PIN: Final = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)


def declared() -> list[Requirement]:
    """Return the requirements of the package and of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return [Requirement(text) for group in groups for text in group]


def locked() -> dict[str, set[Version]]:
    """Return the versions of each package in the lock; several where a marker decides."""
    pins: dict[str, set[Version]] = {}
    for name, version in PIN.findall(LOCK.read_text(encoding="utf-8")):
        pins.setdefault(canonicalize_name(name), set()).add(Version(version))
    return pins


@pytest.mark.parametrize("requirement", [pytest.param(found, id=str(found)) for found in declared()])
def test_the_lowest_version_is_the_one_that_is_tested(requirement: Requirement) -> None:
    lowest = [Version(bound.version) for bound in requirement.specifier if bound.operator == ">="]

    assert len(lowest) == 1, f"{requirement}: declare one lowest version, as in 'name>=1.2'"
    assert locked().get(canonicalize_name(requirement.name)) == {*lowest}, (
        f"requirements/lowest.lock differs from {requirement} in pyproject.toml: run `make lock-lowest`; "
        "if it still differs, another dependency demands more, so raise the bound to the version in the lock"
    )


def test_no_event_loop_is_left_to_the_garbage_collector(tmp_path: Path) -> None:
    module = tmp_path / "test_event_loops.py"
    module.write_text(ASYNCHRONOUS_THEN_ASYNCIO_RUN, encoding="utf-8")
    options: list[str | Path] = [
        "-c",
        ROOT / "pyproject.toml",
        "--rootdir",
        tmp_path,
        "-p",
        "tests.conftest",
        "-p",
        "no:randomly",
    ]
    run = subprocess.run(  # noqa: S603 (ours)
        [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", module],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout
