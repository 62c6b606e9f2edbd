"""Text in cells of tables: ages, labels, shortened lists."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from ocf.objects import Manifest
from ocf.objects.timestamps import parse_time
from ocf_server.registry.selectors import selector_text

__all__ = [
    "NONE",
    "UNKNOWN",
    "UNSET",
    "AgeClock",
    "Cells",
    "Printer",
    "containers_of",
    "duration",
    "labels",
    "selector",
    "shortened",
]

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY

Cells: TypeAlias = list[Any]
"""The cells of a row, in the order of the columns."""

# Minimum duration in seconds, the unit it is shown in, and the smaller unit for the remainder (0 for none).
_STEPS: Final = (
    (8 * _YEAR, _YEAR, 0),
    (2 * _YEAR, _YEAR, _DAY),
    (8 * _DAY, _DAY, 0),
    (2 * _DAY, _DAY, _HOUR),
    (8 * _HOUR, _HOUR, 0),
    (3 * _HOUR, _HOUR, _MINUTE),
    (10 * _MINUTE, _MINUTE, 0),
    (2 * _MINUTE, _MINUTE, 1),
)
_NAMES: Final = {_YEAR: "y", _DAY: "d", _HOUR: "h", _MINUTE: "m", 1: "s"}


def duration(seconds: float) -> str:
    """Format a duration with at most two units.

    Example:
        >>> duration(90), duration(150), duration(3 * 3600 + 60), duration(50 * 3600)
        ('90s', '2m30s', '3h1m', '2d2h')
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    for least, unit, smaller in _STEPS:
        if whole >= least:
            rest = whole % unit // smaller if smaller else 0
            return f"{whole // unit}{_NAMES[unit]}" + (f"{rest}{_NAMES[smaller]}" if rest else "")
    return f"{max(0, whole)}s"


@dataclass(frozen=True, slots=True)
class AgeClock:
    """Formats ages.

    Args:
        now: The instant of the request; aware.
    """

    now: datetime

    def since(self, timestamp: str | None) -> str:
        """Return the time since a timestamp; `<unknown>` without a timestamp."""
        if not timestamp:
            return UNKNOWN
        return duration((self.now - parse_time(timestamp)).total_seconds())

    def age(self, item: Manifest) -> str:
        """Return the age of an object."""
        return self.since(item["metadata"].get("creationTimestamp"))


Printer: TypeAlias = Callable[[Manifest, AgeClock], Cells]
"""Returns the row of an object."""


def labels(found: Mapping[str, str] | None) -> str:
    """Format labels.

    Example:
        >>> labels({"b": "2", "a": "1"}), labels({})
        ('a=1,b=2', '<none>')
    """
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def selector(found: Mapping[str, Any] | None) -> str:
    """Format a label selector; `<none>` if it is missing or selects everything."""
    return selector_text(found) or NONE


def shortened(items: Sequence[str], most: int, *, joint: str = ",") -> str:
    """Format the start of a list, and the number of omitted items.

    Example:
        >>> shortened(["a", "b", "c"], 2)
        'a,b + 1 more...'
    """
    text = joint.join(items[:most])
    return f"{text} + {len(items) - most} more..." if len(items) > most else text


def containers_of(template: Mapping[str, Any]) -> tuple[str, str]:
    """Return names and images of the containers of a pod template."""
    found: Iterable[Mapping[str, Any]] = template.get("spec", {}).get("containers") or ()
    found = list(found)
    return ",".join(one.get("name", "") for one in found), ",".join(one.get("image", "") for one in found)
