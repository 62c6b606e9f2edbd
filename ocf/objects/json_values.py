"""JSON values: what a manifest may contain where it is sent to a cluster.

A request carries JSON. What Python's encoder sends is accepted, and stored as the API server receives it: a tuple as a
list, a member of a `StrEnum` as its text. What it cannot send is an error with the field and the type, and so is what
the API server cannot receive, or would receive as another value:

* A key that is not a text: `1` and `"1"` would be one key.
* A text with half of a surrogate pair, of which Go's decoder makes U+FFFD.
* A number beyond the range of a float64: the API server answers that it cannot decode the body (400).
"""

import json
import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ocf.errors import FieldProblem, ManifestError
from ocf.objects.paths import FieldPath, format_path

__all__ = ["encodable", "encode_json", "to_json"]

# Without blanks, which the server would only skip. A manifest that contains itself ends in a RecursionError; to search
# for it would take a seventh of all encoding.
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False, allow_nan=False)
_FEW: Final = frozenset({bool, type(None)})
_SENDABLE: Final = (str, int, float, bool, type(None))
_LARGEST: Final = int(sys.float_info.max)


def encodable(text: str) -> str:
    r"""Return a text that JSON can carry: half of a surrogate pair is written as an escape.

    Errors of Python have such characters where the name of a file is not UTF-8.

    Example:
        >>> print(encodable("cannot read a\udcff"))
        cannot read a\udcff
    """
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def encode_json(value: Any, subject: str, path: FieldPath = ()) -> str:
    """Return a value as JSON.

    Raises:
        ManifestError: If it contains something that JSON does not have; with every field.

    Example:
        >>> encode_json({"sizes": (1, 2)}, "Shop corner")
        '{"sizes":[1,2]}'
    """
    try:
        problems = [] if _is_plain(value) else [*_problems(value, path)]
        if not problems:
            return _ENCODER.encode(value)
    except Exception as error:  # noqa: BLE001 (of a class of the author's, such as a map that reads its items late)
        problems = _problems_of(path, error)
    raise ManifestError(subject, problems)


def to_json(value: Any, subject: str, path: FieldPath = ()) -> Any:
    """Return a value as an API server would receive it.

    Args:
        value: The value; it is not changed.

    Returns:
        The value itself if it consists of the plain types of JSON; otherwise a copy that does.

    Raises:
        ManifestError: If it contains something that JSON does not have; with every field.

    Example:
        >>> to_json({"sizes": (1, 2)}, "Shop corner")
        {'sizes': [1, 2]}
        >>> to_json({"names": {"a"}}, "Shop corner")
        Traceback (most recent call last):
        ocf.errors.ManifestError: Shop corner: names: a set is not a JSON value; write a list, for example sorted(value)
    """
    try:
        if _is_plain(value):
            return value
    except RecursionError as error:
        raise ManifestError(subject, _problems_of(path, error)) from None
    return json.loads(encode_json(value, subject, path))


def _is_plain(value: Any) -> bool:
    kind = value.__class__
    if kind is str:
        return _is_text(value)
    if kind is dict:
        return _are_texts(value) and _are_plain(value.values())
    if kind is list:
        return _are_plain(value)
    if kind is int:
        return bool(abs(value) <= _LARGEST)
    return kind in _FEW or (kind is float and math.isfinite(value))


# Nearly every value is plain, and most are short texts: a call for each of them would take half of the time.
def _are_plain(values: Iterable[Any]) -> bool:
    for item in values:
        if item.__class__ is str:
            if not item.isascii() and not _is_text(item):
                return False
        elif item.__class__ not in _FEW and not _is_plain(item):
            return False
    return True


def _are_texts(keys: Iterable[Any]) -> bool:
    for key in keys:  # noqa: SIM110 (a generator would take twice as long)
        if key.__class__ is not str or not (key.isascii() or _is_text(key)):
            return False
    return True


def _is_text(value: str) -> bool:
    """Return whether a text has no half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _problems_of(path: FieldPath, error: Exception) -> list[FieldProblem]:
    problem = "contains itself, or has too many levels of maps and lists"
    if not isinstance(error, RecursionError):
        problem = f"is not a JSON value: it raises {type(error).__name__}"
    return [FieldProblem(format_path(path), problem)]


def _problems(value: Any, path: FieldPath) -> Iterator[FieldProblem]:
    if isinstance(value, dict):
        for key, item in value.items():
            if problem := _key_problem(key):
                yield FieldProblem(format_path(path), problem)
            else:
                yield from _problems(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _problems(item, (*path, place))
    elif problem := _scalar_problem(value):
        yield FieldProblem(format_path(path), problem)


def _key_problem(key: object) -> str:
    if not isinstance(key, str):
        return f"has a key of type {type(key).__name__}; a key must be a text, for example str(key)"
    if not _is_text(key):
        return f"has the key {key!r}, which has half of a surrogate pair, so it is not a text of Unicode"
    return ""


def _scalar_problem(value: object) -> str:
    if isinstance(value, str):
        return "" if _is_text(value) else "a text with half of a surrogate pair is not a text of Unicode"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a JSON number; write a finite number, a text, or null"
    if isinstance(value, int) and abs(value) > _LARGEST:
        return f"an integer of {value.bit_length()} bits is beyond the largest number, {_LARGEST:.2g}; write a text"
    return "" if isinstance(value, _SENDABLE) else f"{_named(value)} is not a JSON value; write {_remedy(value)}"


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
