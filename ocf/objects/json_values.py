"""JSON values: what a manifest may contain where it is sent to a cluster.

A request carries JSON. Whatever Python's encoder sends is accepted, and stored as the API server receives it: a tuple
as a list, a member of a `StrEnum` as its text, a key that is a number as a text. Whatever it cannot send is an error
with the field and the type.
"""

import json
import math
from collections.abc import Iterator
from typing import Any, Final

from ocf.errors import FieldProblem, ManifestError
from ocf.objects.paths import FieldPath, format_path

__all__ = ["encode_json", "to_json"]

# Without blanks, which the server would only skip. A manifest that contains itself ends in a RecursionError; to search
# for it would take a seventh of all encoding.
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False, allow_nan=False)
_SCALARS: Final = frozenset({str, int, bool, type(None)})
_SENDABLE: Final = (str, int, float, bool, type(None))


def encode_json(value: Any, subject: str, path: FieldPath = ()) -> str:
    """Return a value as JSON.

    Raises:
        ManifestError: If it contains something that JSON does not have; with every field.

    Example:
        >>> encode_json({"sizes": (1, 2)}, "Shop corner")
        '{"sizes":[1,2]}'
    """
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ManifestError(subject, _problems_of(value, path, error)) from None


def to_json(value: Any, subject: str, path: FieldPath = ()) -> Any:
    """Return a value as an API server would receive it.

    Args:
        value: The value; it is not changed.

    Returns:
        The value itself if it consists of the plain types of JSON; otherwise a copy that does.

    Raises:
        ManifestError: If it contains something that JSON does not have; with every field.

    Example:
        >>> to_json({"sizes": (1, 2), 3: "c"}, "Shop corner")
        {'sizes': [1, 2], '3': 'c'}
        >>> to_json({"names": {"a"}}, "Shop corner")
        Traceback (most recent call last):
        ocf.errors.ManifestError: Shop corner: names: a set is not a JSON value; write a list, for example sorted(value)
    """
    try:
        if _is_plain(value):
            return value
    except RecursionError as error:
        raise ManifestError(subject, _problems_of(value, path, error)) from None
    return json.loads(encode_json(value, subject, path))


def _is_plain(value: Any) -> bool:
    # Nearly every value is plain, and most are scalars: a call for each of them would take half of the time.
    kind = value.__class__
    if kind is dict:
        for key, item in value.items():
            if key.__class__ is not str or (item.__class__ not in _SCALARS and not _is_plain(item)):
                return False
        return True
    if kind is list:
        for item in value:  # noqa: SIM110 (a generator would take twice as long)
            if item.__class__ not in _SCALARS and not _is_plain(item):
                return False
        return True
    return kind in _SCALARS or (kind is float and math.isfinite(value))


def _problems_of(value: Any, path: FieldPath, error: Exception) -> list[FieldProblem]:
    if isinstance(error, RecursionError):
        return [FieldProblem(format_path(path), "contains itself, or has too many levels of maps and lists")]
    return list(_problems(value, path)) or [FieldProblem(format_path(path), f"is not a JSON value: {error}")]


def _problems(value: Any, path: FieldPath) -> Iterator[FieldProblem]:
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, _SENDABLE):
                yield from _problems(item, (*path, str(key)))
            else:
                detail = f"has a key of type {type(key).__name__}; a key must be a text"
                yield FieldProblem(format_path(path), detail)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _problems(item, (*path, place))
    elif isinstance(value, float) and not math.isfinite(value):
        yield FieldProblem(format_path(path), f"{value} is not a JSON number; write a finite number, a text, or null")
    elif not isinstance(value, _SENDABLE):
        yield FieldProblem(format_path(path), f"{_named(value)} is not a JSON value; write {_remedy(value)}")


def _named(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in {*'aeio'} else 'a'} {name}"


_REMEDIES: Final = {
    "date": "a text, for example value.isoformat()",
    "time": "a text, for example value.isoformat()",
    "datetime": "a text, for example ocf.objects.format_time(value)",
    "timedelta": "a text, or the number value.total_seconds()",
    "Decimal": "a text, for example str(value), or a number",
    "bytes": "a text, for example value.decode()",
    "bytearray": "a text, for example value.decode()",
    "set": "a list, for example sorted(value)",
    "frozenset": "a list, for example sorted(value)",
    "Enum": "its value, value.value",
    "BaseModel": "a dict, for example value.model_dump(mode='json', by_alias=True)",
    "Mapping": "a dict, for example dict(value)",
}
"""What to write in place of a value, by the name of its class or of a base class; names need no import of pydantic."""


def _remedy(value: object) -> str:
    named = (_REMEDIES[base.__name__] for base in type(value).__mro__ if base.__name__ in _REMEDIES)
    if hasattr(type(value), "__dataclass_fields__"):
        return "a dict, for example dataclasses.asdict(value)"
    return next(named, "a text, a number, a boolean, null, a list or a dict")
