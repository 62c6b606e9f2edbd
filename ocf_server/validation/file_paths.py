"""Validation of paths and modes of files in volumes.

Source: `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator
from typing import Final

from ocf.objects.field_errors import FieldError, invalid

__all__ = ["descending_path", "file_mode", "no_backsteps", "unreserved_path"]

_MODES: Final = range(0o1000)


def no_backsteps(value: str, path: str) -> Iterator[FieldError]:
    """Yield an error if a path contains the element `..`."""
    if ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def descending_path(value: str, path: str) -> Iterator[FieldError]:
    """Yield the errors of a path that has to be relative and stay below its directory."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    yield from no_backsteps(value, path)


def unreserved_path(value: str, path: str) -> Iterator[FieldError]:
    """Yield the errors of a path of a file that a volume creates, which reserves names that start with two dots."""
    yield from descending_path(value, path)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")


def file_mode(value: int | None, path: str) -> Iterator[FieldError]:
    """Yield an error if a number is not the mode of a file; a missing one is valid."""
    if value is not None and value not in _MODES:
        yield invalid(path, value, "must be a number between 0 and 0777 (octal), both inclusive")
