"""Fields of objects that any client may have written: a value of another type counts as absent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.conditions import time_problem, typed_conditions
from ocf.objects.manifest import split_api_version
from ocf.objects.timestamps import parse_time

__all__ = [
    "age",
    "condition",
    "conditions",
    "count",
    "created",
    "field",
    "flat",
    "generation",
    "group_kind",
    "instant",
    "mapping",
    "members",
    "one_line",
    "plural_count",
    "text",
    "time_of",
    "uid",
]

_LONGEST: Final = 300
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def field(value: Any, *path: str) -> Any:
    """Return a field of nested maps; None if it does not exist."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def mapping(value: Any, *path: str) -> Manifest:
    """Return a field that holds a map; an empty map for anything else."""
    found = field(value, *path)
    return found if isinstance(found, dict) else {}


def members(value: Any, *path: str) -> list[Manifest]:
    """Return the maps in a list; none for anything else."""
    found = field(value, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text(value: Any, *path: str) -> str:
    """Return a field that holds a text; an empty one for anything else."""
    found = field(value, *path)
    return found if isinstance(found, str) else ""


def count(value: Any, *path: str) -> int | None:
    """Return a field that holds a whole number; None for anything else."""
    found = field(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def instant(value: Any) -> datetime | None:
    """Return a time; None for anything else."""
    return None if time_problem(value) else parse_time(value)


def time_of(value: Any, *path: str) -> datetime | None:
    """Return a field that holds a time; None for anything else."""
    return instant(field(value, *path))


def created(live: Manifest) -> datetime | None:
    """Return when an object was created; None if that is not known."""
    return time_of(live, "metadata", "creationTimestamp")


def uid(live: Manifest) -> str:
    """Return the uid of an object; empty if it has none."""
    return text(live, "metadata", "uid")


def generation(live: Manifest) -> int:
    """Return the generation of an object; 0 if it has none."""
    return count(live, "metadata", "generation") or 0


def group_kind(live: Manifest) -> tuple[str, str]:
    """Return group and kind of an object."""
    return split_api_version(text(live, "apiVersion"))[0], text(live, "kind")


def conditions(live: Manifest) -> Iterator[Manifest]:
    """Yield the conditions of an object."""
    yield from typed_conditions(field(live, "status", "conditions"))


def condition(live: Manifest, *types: str) -> Manifest | None:
    """Return the condition of the first of some types that an object has; None if it has none of them."""
    found = {one["type"]: one for one in conditions(live)}
    return next((found[name] for name in types if name in found), None)


def flat(value: str) -> str:
    """Return a text on one line."""
    return " ".join(value.split())


def one_line(value: str) -> str:
    """Return a text of others on one line, without the end of a very long one."""
    line = flat(value)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def age(since: datetime, now: datetime) -> str:
    """Return how long ago something was, in the unit of which there are at least two.

    Example:
        >>> from datetime import UTC
        >>> noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
        >>> [age(noon - timedelta(seconds=each), noon) for each in (1, 119, 720, 7200, 200_000)]
        ['1 second', '119 seconds', '12 minutes', '2 hours', '2 days']
    """
    seconds = max(0, int((now - since) / timedelta(seconds=1)))
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return plural_count(seconds // size, unit)
    return plural_count(seconds, "second")


def plural_count(number: int, noun: str) -> str:
    """Return a number of things."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
