"""Fixtures of the tests of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reader import Reader, reader_in


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Give a reader with an empty folder beside a clone."""
    reader = reader_in(tmp_path)
    yield reader
    reader.leave()
