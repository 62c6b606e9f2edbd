"""Fixtures of the tests of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reader import ROOT, Reader, environment_of


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Give a reader with an empty folder beside a clone."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "ocf").symlink_to(ROOT)
    reader = Reader(tmp_path / "empty", environment_of(tmp_path))
    yield reader
    reader.leave()
