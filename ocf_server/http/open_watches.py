"""Return of memory to the operating system after many watches have ended.

The C library keeps freed memory for later allocations, also that of the buffers of a thousand clients which were
disconnected long ago. It returns it on request only.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

__all__ = ["OpenWatches", "return_memory"]

_MANY: Final = 32
# Seconds after which the buffers of connections that were closed are freed.
_DELAY: Final = 1.0


def return_memory() -> None:
    """Return freed memory to the operating system, where the C library can."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _soon() -> None:
    asyncio.get_running_loop().call_later(_DELAY, return_memory)


@dataclass(slots=True)
class OpenWatches:
    """Number of open watches.

    Args:
        ended: Called each time when half of many watches have ended.

    Example:
        >>> from contextlib import ExitStack
        >>> watches = OpenWatches(lambda: print("half of them have ended"))
        >>> with ExitStack() as stack:
        ...     for _ in range(100):
        ...         stack.enter_context(watches.counted())
        half of them have ended
        half of them have ended
    """

    ended: Callable[[], None] = _soon
    _open: int = field(default=0, init=False)
    _most: int = field(default=0, init=False)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a watch as open while the block runs."""
        self._open += 1
        self._most = max(self._most, self._open)
        try:
            yield
        finally:
            self._open -= 1
            if self._most >= _MANY and self._open <= self._most // 2:
                self._most = self._open
                self.ended()
