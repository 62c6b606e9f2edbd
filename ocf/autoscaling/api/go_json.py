"""Decoding of JSON into Go structs, as `encoding/json` does it.

The API server reads the annotations of autoscaling/v1 with it, which is more lenient than its decoder of objects: the
case of keys does not matter, unknown keys are ignored, a key that is given twice changes what the first one set, and
null leaves a value as it is. A value of a wrong type makes the whole text invalid.

A reader takes a value and what was read before for the same field. It returns the new value, None if there is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

from ocf.autoscaling.api.decoders import quantity
from ocf.errors import FieldProblem

__all__ = ["Reader", "amount", "int32", "items", "loads", "pointer", "string", "strings", "struct"]

Reader: TypeAlias = Callable[[Any, Any], Any]

_INTEGER: Final = re.compile(r"-?[0-9]+")
_INT32_END: Final = 2**31
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
# The only characters beyond ASCII that are equal to a letter of ASCII regardless of case.
_FOLDED: Final = str.maketrans({"\u017f": "s", "\u212a": "k"})


class _Number(str):
    """The text of a number; whether it is an integer depends on how it is written."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """The pairs of an object; keys may be given several times."""

    __slots__ = ()


def loads(text: str, reader: Reader) -> Any:
    """Decode a JSON text.

    Returns:
        The value; None if it is null.

    Example:
        >>> loads('{"NAME": "web", "Replicas": 3, "other": 5}', struct(name=string, replicas=pointer(int32)))
        {'name': 'web', 'replicas': 3}
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, parse_constant=_refuse
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return reader(value, None)


def _refuse(value: Any) -> NoReturn:
    raise ValueError(f"unexpected {value!r:.60}")


def struct(**fields: Reader) -> Reader:
    """Return the reader of a struct; a field that has its zero value and is not a pointer may be missing."""
    names = {name.lower(): name for name in fields}

    def read(value: Any, before: Any) -> Any:
        if value is None:
            return before
        if not isinstance(value, _Object):
            _refuse(value)
        found = dict(before or {})
        for key, item in value:
            name = names.get(key.translate(_FOLDED).lower())
            if name is None:
                continue
            read_item = fields[name](item, found.get(name))
            if read_item is None:
                found.pop(name, None)
            else:
                found[name] = read_item
        return found

    return read


def pointer(reader: Reader) -> Reader:
    """Return the reader of a pointer, which null removes."""
    return lambda value, before: None if value is None else reader(value, before)


def items(reader: Reader, zero: Callable[[], Any]) -> Reader:
    """Return the reader of a slice; null in it is the zero value."""

    def read(value: Any, _before: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, list) or isinstance(value, _Object):
            _refuse(value)
        return [zero() if item is None else reader(item, None) for item in value]

    return read


def strings(value: Any, before: Any) -> Any:
    """Read a map of strings; a null value is the empty string."""
    if value is None:
        return None
    if not isinstance(value, _Object):
        _refuse(value)
    return {**(before or {}), **{string(key, None): "" if item is None else string(item, None) for key, item in value}}


def string(value: Any, before: Any) -> Any:
    """Read a string; half of a surrogate pair becomes U+FFFD."""
    if value is None:
        return before
    if not isinstance(value, str) or isinstance(value, _Number):
        _refuse(value)
    return _SURROGATES.sub("\ufffd", value)


def int32(value: Any, before: Any) -> Any:
    """Read an integer of 32 bits; 1.0 and 1e3 are not integers."""
    if value is None:
        return before
    if not isinstance(value, _Number) or not _INTEGER.fullmatch(value):
        _refuse(value)
    # Python refuses to convert thousands of digits, with an error that is not ours.
    number = int(value) if len(value) < len(str(_INT32_END)) + 2 else _INT32_END
    if not -_INT32_END <= number < _INT32_END:
        _refuse(value)
    return number


def amount(value: Any, _before: Any) -> Any:
    """Read a quantity, a string or a number, in the API server's notation; null is 0."""
    problems: list[FieldProblem] = []
    if value is None:
        return "0"
    found = quantity(str(value), "", problems) if isinstance(value, str) else _refuse(value)
    return _refuse(value) if problems else found
