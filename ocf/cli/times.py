"""Durations and instants in the options of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta

__all__ = ["parsed_instant", "positive_duration"]


def positive_duration(option: str, text: str) -> timedelta:
    """Return a duration of the command line.

    Args:
        text: Its value, in Go's format.
    """
    from ocf.errors import ConfigError
    from ocf.objects.durations import parse_duration

    try:
        found = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"{option} {error}") from None
    if not found:
        raise ConfigError(f"{option} must be more than 0s, got {text!r}")
    return found


def parsed_instant(option: str, text: str, now: datetime) -> datetime:
    """Return an instant of the command line."""
    from ocf.errors import ConfigError
    from ocf.objects.durations import parse_duration
    from ocf.objects.timestamps import parse_rfc3339

    try:
        return parse_rfc3339(text)
    except ValueError:
        pass
    try:
        return now - parse_duration(text)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{option} must be a time such as 2026-01-31T12:00:00Z, or a duration before now such as 2h, got {text!r}"
        ) from None
