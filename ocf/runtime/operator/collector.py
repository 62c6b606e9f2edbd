"""Settings of the garbage collector for the process of an operator.

A reconcile allocates many short-lived values, few of them in cycles; reference counts free the rest. With the defaults
of Python the collector runs every 700 allocations and traverses the modules, models and the cache again and again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["seldom_collecting"]

_YOUNG: Final = 10_000
"""Allocations beyond deallocations after which the youngest generation is collected."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Collect garbage seldom in the block, and never traverse what was imported before it.

    A larger threshold that the program has set is kept, and so is a collector that is disabled.

    Source of the semantics: https://docs.python.org/3/library/gc.html#gc.freeze

    Example:
        >>> import gc
        >>> before = gc.get_threshold()
        >>> with seldom_collecting():
        ...     gc.get_freeze_count() > 0, gc.get_threshold()[0] >= 10_000
        (True, True)
        >>> gc.get_threshold() == before
        True
    """
    young, *older = threshold = gc.get_threshold()
    # A threshold of 0 disables the collector.
    gc.set_threshold(max(young, _YOUNG) if young else 0, *older)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)
