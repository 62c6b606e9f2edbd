"""A clock that a test sets forward, for controllers in this process and in others."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from ocf.concepts import SystemClock

__all__ = ["ShiftedClock"]


class ShiftedClock(SystemClock):
    """The clock of the operating system plus a shift, which is read from a file; not for leases, which it would end.

    Real servers cannot be set forward, but the deadlines of our controller can: a test waits until everything else has
    happened, and no deadline passes because the machine is slow.

    Args:
        file: The file with the shift in seconds; without one the shift is zero.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def now(self) -> datetime:
        return super().now() + self._shift

    def elapsed(self) -> timedelta:
        return super().elapsed() + self._shift

    def real_now(self) -> datetime:
        """Return the time of the operating system, as the real servers see it."""
        return super().now()

    def advance(self, by: timedelta) -> None:
        """Set the clock forward, in every process that reads the file."""
        shift = self._shift + by
        fresh = self._file.with_suffix(".new")
        fresh.write_text(str(shift.total_seconds()), encoding="ascii")
        fresh.replace(self._file)

    @property
    def _shift(self) -> timedelta:
        try:
            return timedelta(seconds=float(self._file.read_text(encoding="ascii")))
        except FileNotFoundError:
            return timedelta(0)
