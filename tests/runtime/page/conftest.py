from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ocf.runtime.page.process import Page
from tests.runtime.operator.conftest import run_test

__all__ = ["run_test"]


@pytest.fixture
def unserved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no socket, which virtual time cannot wait for; all else of the page is there."""

    @asynccontextmanager
    async def nothing(*_: Any) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(Page, "serving", nothing)
