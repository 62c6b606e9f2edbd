"""Asynchronous fixtures that work in every mode of pytest-asyncio, and with the plugin of anyio."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

__all__ = ["async_fixture"]


def async_fixture(function: Callable[..., AsyncIterator[Any]]) -> Any:
    """Return an asynchronous fixture: one of pytest-asyncio, which its strict mode requires, else a plain one."""
    try:
        from pytest_asyncio import fixture
    except ImportError:
        return pytest.fixture(function)
    return fixture(function)
