"""Fixtures of the tests of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reader import Reader, environment_of


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Give a reader with an empty folder."""
    (tmp_path / "home").mkdir()
    reader = Reader(tmp_path / "home", environment_of(tmp_path))
    yield reader
    reader.leave()
