"""Work that is done once per test run: the first process that needs the result computes it for all processes."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

__all__ = ["TYPES", "locked", "once", "run_folder"]

TYPES: Final = Path(__file__).parents[1] / ".mypy_cache" / "projects"
"""The cache of mypy for new projects, kept between runs: without it one check takes most of a minute.

mypy then analyses the client of Kubernetes, so a test holds the lock while it runs mypy: the next one finds it done.
"""


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder that all processes of the test run share."""
    folder = factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between the processes of the test run inside the block; the lock is a file beside the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def once(path: Path, compute: Callable[[], Any]) -> Any:
    """Return the content of a JSON file; if the file does not exist, compute and write it.

    Args:
        path: The file, in the folder of the test run.
        compute: Returns JSON.
    """
    with locked(path):
        if not path.exists():
            path.write_text(json.dumps(compute()), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))
