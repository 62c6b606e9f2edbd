"""Durations in the format of the Kubernetes API, `1h30m`, as `timedelta`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

__all__ = ["GO_DURATION_PATTERN", "GoDuration"]

GO_DURATION_PATTERN: Final = r"^(0|([0-9]{1,9}(\.[0-9]{1,9})?(h|ms|m|s|us|µs|ns)){1,8})$"
"""Pattern of the durations that are read; Go's `time.ParseDuration` reads more digits and parts, and a sign."""


def _read(value: object) -> object:
    # Imported on first use: few models have durations.
    from ocf.objects.durations import parse_duration

    found = parse_duration(value) if isinstance(value, str) else value
    if not isinstance(found, timedelta):
        raise ValueError(f"must be a duration like 1m30s, not {value!r}")  # noqa: TRY004 (pydantic reports ValueError)
    if found < timedelta(0):
        raise ValueError(f"must not be negative, got {found}")
    return found


def _write(value: timedelta) -> str:
    from ocf.objects.durations import format_duration

    return format_duration(value)


GoDuration: TypeAlias = Annotated[
    timedelta,
    BeforeValidator(_read),
    PlainSerializer(_write, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": GO_DURATION_PATTERN}),
]
"""A duration such as `1h30m`, not negative, as built-in kinds write it; in Python a `timedelta` of whole microseconds.

Source: https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#Duration.

Example:
    >>> from pydantic import BaseModel
    >>> class Backup(BaseModel):
    ...     keep: GoDuration
    >>> Backup.model_validate({"keep": "1h30m"}).keep
    datetime.timedelta(seconds=5400)
    >>> Backup(keep=timedelta(minutes=2)).model_dump_json()
    '{"keep":"2m0s"}'
"""
