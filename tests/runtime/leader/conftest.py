"""Fixtures for leader election in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from ocf.testing import LoopClock, run_in_virtual_time


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine in virtual time."""
    return run_in_virtual_time


@pytest.fixture
def new_clock() -> Callable[..., LoopClock]:
    """Return a clock with an offset."""

    def make(skew: timedelta = timedelta(0)) -> LoopClock:
        return LoopClock(skew=skew)

    return make
