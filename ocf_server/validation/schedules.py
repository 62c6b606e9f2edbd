"""Validation of the schedules and time zones of CronJobs.

Source: the parser of `github.com/robfig/cron/v3`, and `validateScheduleFormat` and `validateTimeZone` in
`pkg/apis/batch/validation/validation.go` of Kubernetes.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from ocf.objects.durations import parse_duration
from ocf.objects.field_errors import FieldError, invalid
from ocf.objects.go_strings import go_quoted

__all__ = ["schedule_errors", "schedule_problem", "time_zone_errors"]

_DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY: Final = "@every "
_ZONES: Final = ("TZ=", "CRON_TZ=")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_is_number: Final = re.compile("[+-]?[0-9]+").fullmatch
_is_zone_part: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch
_INT64: Final = range(-(2**63), 2**63)


class _Bounds(NamedTuple):
    """The numbers that a field of a schedule accepts, and their names."""

    lowest: int
    highest: int
    names: Mapping[str, int]


_FIELDS: Final = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class _ScheduleError(ValueError):
    """A schedule is malformed; with the message of the parser."""


def schedule_problem(schedule: str) -> str:
    """Return the problem of a schedule in the words of the API server; empty if it is valid.

    Args:
        schedule: Minute, hour, day of month, month and day of week; or a descriptor such as `@daily`.

    Example:
        >>> schedule_problem("*/5 * * * mon-fri"), schedule_problem("60 * * * *")
        ('', 'end of range (60) above maximum (59): 60')
    """
    try:
        _parse(schedule)
    except _ScheduleError as error:
        return str(error)
    return ""


def _parse(schedule: str) -> None:
    if schedule.startswith(_ZONES):
        schedule = _without_zone(schedule)
    if schedule.startswith("@"):
        _parse_descriptor(schedule)
        return
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        found = " ".join(fields)
        raise _ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{found}]")
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for expression in field.split(","):
            if expression:
                _parse_range(expression, bounds)


def _without_zone(schedule: str) -> str:
    start, blank, rest = schedule.partition(" ")
    if not blank:
        raise _ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    zone = start.partition("=")[2]
    if not _is_known(zone):
        raise _ScheduleError(f"provided bad location {zone}: unknown time zone {zone}")
    return rest.strip()


def _parse_descriptor(descriptor: str) -> None:
    if descriptor.startswith(_EVERY):
        text = descriptor.removeprefix(_EVERY)
        try:
            parse_duration(text.lstrip("+-") if text[:1] in ("+", "-") else text)
        except ValueError:
            detail = f'time: invalid duration "{text}"'
            raise _ScheduleError(f"failed to parse duration {descriptor}: {detail}") from None
    elif descriptor not in _DESCRIPTORS:
        raise _ScheduleError(f"unrecognized descriptor: {descriptor}")


def _parse_range(expression: str, bounds: _Bounds) -> None:
    ends, *steps = expression.split("/")
    start, *others = ends.split("-")
    if start in ("*", "?"):
        low, high = bounds.lowest, bounds.highest
    else:
        low = high = _number_or_name(start, bounds.names)
        if len(others) > 1:
            raise _ScheduleError(f"too many hyphens: {expression}")
        if others:
            high = _number_or_name(others[0], bounds.names)
    step = 1
    if len(steps) > 1:
        raise _ScheduleError(f"too many slashes: {expression}")
    if steps:
        step = _number(steps[0])
        high = high if others else bounds.highest
    _require_order(expression, low, high, bounds)
    if not step:
        raise _ScheduleError(f"step of range should be a positive number: {expression}")


def _require_order(expression: str, low: int, high: int, bounds: _Bounds) -> None:
    if low < bounds.lowest:
        raise _ScheduleError(f"beginning of range ({low}) below minimum ({bounds.lowest}): {expression}")
    if high > bounds.highest:
        raise _ScheduleError(f"end of range ({high}) above maximum ({bounds.highest}): {expression}")
    if low > high:
        raise _ScheduleError(f"beginning of range ({low}) beyond end of range ({high}): {expression}")


def _number_or_name(text: str, names: Mapping[str, int]) -> int:
    known = names.get(text.lower())
    return _number(text) if known is None else known


def _number(text: str) -> int:
    shown = f"strconv.Atoi: parsing {go_quoted(text)}"
    if not _is_number(text):
        raise _ScheduleError(f"failed to parse int from {text}: {shown}: invalid syntax")
    if int(text) not in _INT64:
        raise _ScheduleError(f"failed to parse int from {text}: {shown}: value out of range")
    if int(text) < 0:
        raise _ScheduleError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def schedule_errors(schedule: str, zone: str | None, path: str, *, zone_allowed: bool = False) -> Iterator[FieldError]:
    """Yield the errors of a schedule.

    Args:
        zone: The time zone of the CronJob; None for none.
        zone_allowed: Whether the schedule may contain a time zone, because the stored one does.
    """
    problem = schedule_problem(schedule)
    if problem:
        yield invalid(path, schedule, problem)
    if "TZ" not in schedule:
        return
    if not zone_allowed:
        yield invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif zone is not None:
        yield invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def time_zone_errors(zone: str | None, path: str) -> Iterator[FieldError]:
    """Yield the errors of a time zone; a missing one is valid."""
    if zone is None:
        return
    if not zone:
        yield invalid(path, zone, "timeZone must be nil or non-empty string", as_json=True)
        return
    parts = zone.split("/")
    if any(part in (".", "..") or part.startswith("-") or not _is_zone_part(part) for part in parts):
        yield invalid(path, zone, f"unknown time zone {zone}", as_json=True)
        return
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(path, zone, detail, as_json=True)
    if zone != "Local" and not _is_known(zone):
        yield invalid(path, zone, f"unknown time zone {zone}", as_json=True)


@cache
def _has_zones() -> bool:
    return bool(available_timezones())


def _is_known(zone: str) -> bool:
    """Return whether a time zone exists; any does on a machine without a database of time zones."""
    if zone in ("", "UTC", "Local") or not _has_zones():
        return True
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
