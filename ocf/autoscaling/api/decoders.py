"""Readers, the parts of a decoder: one per type of the API, combined as the API combines its types.

A reader takes a value that is not null and its path. It returns the value as the struct of the API server holds it, and
appends problems to a list, so that all of them are reported at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

from ocf.errors import FieldProblem, ManifestError, QuantityError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, Quantity, copy_json
from ocf.objects.suggestions import nearest

__all__ = [
    "METADATA",
    "REFERENCE",
    "Reader",
    "boolean",
    "instant",
    "integer",
    "items",
    "parse_quantity",
    "quantity",
    "read_object",
    "struct",
    "text",
    "texts",
    "to_manifest",
]

_LONGEST_SHOWN: Final = 60
_INT_BITS: Final = {"int32": 31, "int64": 63}

Reader: TypeAlias = Callable[[Any, str, list[FieldProblem]], Any]
"""Reads a value that is not null at a path, and appends problems to the list."""

_INVALID: Final = object()
_UNKNOWN_FIELD: Final = "unknown field"
_NOTHING: Final[Mapping[str, str]] = {}


def to_manifest(value: object) -> Any:
    """Return the manifest of a model of the client; any other value unchanged."""
    if isinstance(value, Mapping) or not hasattr(value, "model_dump"):
        return value
    from ocf.objects import write_model

    return write_model(cast("BaseModel", value))


def read_object(value: object, reader: Reader, api_version: str, kind: str, *, strict: bool = True) -> Manifest:
    """Decode an object of one kind.

    Args:
        value: A manifest; it is not changed.
        api_version: The required `apiVersion`; the field may be missing.
        kind: The required `kind`; the field may be missing.
        strict: Whether unknown fields are rejected; otherwise they are dropped.
    """
    problems: list[FieldProblem] = []
    value = to_manifest(value)
    found = reader(value, "", problems) if value is not None else _reject(value, "", "a map", problems)
    if found is not _INVALID:
        problems += [
            FieldProblem(field, f"must be {expected}, not {_describe(found[field])}")
            for field, expected in (("apiVersion", api_version), ("kind", kind))
            if found.get(field) and found[field] != expected
        ]
    if not strict:
        problems = [problem for problem in problems if not problem.detail.startswith(_UNKNOWN_FIELD)]
    if problems:
        raise ManifestError(kind + _object_name(value), problems)
    manifest: Manifest = found
    return manifest


def _object_name(value: object) -> str:
    metadata = value.get("metadata") if isinstance(value, Mapping) else None
    if not isinstance(metadata, Mapping):
        return ""
    parts = [metadata.get("namespace"), metadata.get("name")]
    name = "/".join(part for part in parts if isinstance(part, str) and part)
    return f" {name}" if name else ""


def struct(instead: Mapping[str, str] = _NOTHING, /, **fields: Reader) -> Reader:
    """Return the reader of a map with known fields; null fields are dropped.

    Args:
        instead: What to write in place of a field of another version; `{}` in it is the value.
    """

    def read(value: Any, path: str, problems: list[FieldProblem]) -> Any:
        if value.__class__ is not dict and not isinstance(value, Mapping):
            return _reject(value, path, "a map", problems)
        found = {}
        for name, item in value.items():
            reader = fields.get(name) if name.__class__ is str else None
            if reader is None:
                problem = _moved(item, instead[name]) if name in instead else _unknown(name, fields)
                problems.append(FieldProblem(_child(path, name), problem))
            elif item is not None:
                read_item = reader(item, f"{path}.{name}" if path else name, problems)
                if read_item is not _INVALID:
                    found[name] = read_item
        return found

    return read


def items(reader: Reader, empty: Callable[[], Any]) -> Reader:
    """Return the reader of a list; a null item becomes the empty value."""

    def read(value: Any, path: str, problems: list[FieldProblem]) -> Any:
        if not isinstance(value, list):
            return _reject(value, path, "a list", problems)
        return [
            empty() if item is None else reader(item, f"{path}[{position}]", problems)
            for position, item in enumerate(value)
        ]

    return read


def texts(value: Any, path: str, problems: list[FieldProblem]) -> Any:
    """Read a map from texts to texts; a null value becomes the empty text."""
    if not isinstance(value, Mapping):
        return _reject(value, path, "a map", problems)
    return {
        name: "" if item is None else text(item, f"{path}.{name}", problems)
        for name, item in value.items()
        if text(name, path, problems) is not _INVALID
    }


def text(value: Any, path: str, problems: list[FieldProblem]) -> Any:
    """Read a text."""
    return value if isinstance(value, str) else _reject(value, path, "a text", problems)


def integer(kind: str) -> Reader:
    """Return the reader of an integer of 32 or 64 bits."""
    end = 1 << _INT_BITS[kind]
    expected = f"an integer from {-end} to {end - 1}"

    def read(value: Any, path: str, problems: list[FieldProblem]) -> Any:
        # Not `isinstance`: True is an int in Python, and the API server rejects it as a number.
        if value.__class__ is int and -end <= value < end:
            return value
        return _reject(value, path, expected, problems)

    return read


@lru_cache(maxsize=1024)
def parse_quantity(text: str) -> Quantity:
    """Parse a quantity, with a cache: decoding and validation parse the same texts."""
    return Quantity.parse(text)


def boolean(value: Any, path: str, problems: list[FieldProblem]) -> Any:
    """Read true or false."""
    return value if isinstance(value, bool) else _reject(value, path, "true or false", problems)


def quantity(value: Any, path: str, problems: list[FieldProblem]) -> Any:
    """Read a quantity, a text or a number, in the API server's notation; it accepts blanks around a text."""
    try:
        return _canonical(value.strip(_BLANKS)) if isinstance(value, str) else str(Quantity.parse(value))
    except QuantityError as error:
        problems.append(FieldProblem(path, str(error)))
        return _INVALID


@lru_cache(maxsize=1024)
def _canonical(text: str) -> str:
    return str(Quantity.parse(text))


# Blanks that JSON does not escape; the API server strips them before it resolves escapes.
_BLANKS: Final = " \u0085\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def instant(value: Any, path: str, problems: list[FieldProblem]) -> Any:
    """Read a time of RFC 3339; the result is in whole seconds of UTC."""
    from ocf.objects.timestamps import format_time, parse_rfc3339

    if isinstance(value, str):
        with contextlib.suppress(ValueError, OverflowError):
            # Since Go 1.17 its parser accepts a comma before the fraction.
            return format_time(parse_rfc3339(value, comma=True))
    return _reject(value, path, "a time like 2026-01-31T12:00:00Z", problems)


def anything(value: Any, _path: str, _problems: list[FieldProblem]) -> Any:
    """Read any value."""
    return copy_json(value)


def _reject(value: Any, path: str, expected: str, problems: list[FieldProblem]) -> Any:
    problems.append(FieldProblem(path, f"must be {expected}, not {_describe(value)}"))
    return _INVALID


def _describe(value: Any) -> str:
    if isinstance(value, Mapping | list | tuple):
        return "a map" if isinstance(value, Mapping) else "a list"
    # The text of such an integer takes long, and Python refuses it beyond 4 300 digits.
    if isinstance(value, int) and value.bit_length() > _LONGEST_SHOWN * 3:
        return "a huge integer"
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"


def _child(path: str, name: object) -> str:
    shown = name if isinstance(name, str) and len(name) <= _LONGEST_SHOWN else _describe(name)
    return f"{path}.{shown}" if path else str(shown)


def _moved(value: Any, instead: str) -> str:
    shown = "…" if isinstance(value, Mapping | list) or len(str(value)) > _LONGEST_SHOWN else str(value)
    return f"{_UNKNOWN_FIELD}, {instead.replace('{}', shown)}"


def _unknown(name: object, fields: Mapping[str, Reader]) -> str:
    found = nearest(str(name)[:_LONGEST_SHOWN], fields)
    return f'{_UNKNOWN_FIELD}, did you mean "{found}"?' if found else _UNKNOWN_FIELD


def _fields_of_metadata() -> Iterator[tuple[str, Reader]]:
    yield from dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), text).items()
    yield from (("generation", _INT64), ("deletionGracePeriodSeconds", _INT64))
    yield from (("creationTimestamp", instant), ("deletionTimestamp", instant))
    yield from (("labels", texts), ("annotations", texts), ("finalizers", items(text, str)))
    yield "ownerReferences", items(_OWNER, dict)
    yield "managedFields", items(_MANAGED, dict)


_INT32: Final = integer("int32")
_INT64: Final = integer("int64")
_OWNER: Final = struct(apiVersion=text, kind=text, name=text, uid=text, controller=boolean, blockOwnerDeletion=boolean)
_MANAGED: Final = struct(
    manager=text,
    operation=text,
    apiVersion=text,
    time=instant,
    fieldsType=text,
    fieldsV1=anything,
    subresource=text,
)
METADATA: Final = struct(**dict(_fields_of_metadata()))
"""The reader of `metadata` of any object."""
REFERENCE: Final = struct(
    {"namespace": "remove it: the object is always in the namespace of the HorizontalPodAutoscaler"},
    kind=text,
    name=text,
    apiVersion=text,
)
"""The reader of a scale target and of a described object, which have the same fields in all versions."""
