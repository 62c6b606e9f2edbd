"""Comparison of a value as it is sent with the value as the API server stores it.

The API server adds defaults, drops empty values, and writes quantities in their canonical form. A value that only
differs in this from the stored one would be stored in the same way again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ocf.errors import QuantityError
from ocf.objects import Quantity
from ocf.objects.json_equality import equal_json
from ocf.schema.builtin import ANYTHING, MISSING, EmptyValue, Field, ListType, MapType, Scalar, StructType, Type

__all__ = ["is_dropped", "is_empty_part", "is_stored_as", "type_at"]


def type_at(kind: Type, path: Sequence[str | int]) -> Type:
    """Return the type of a field; `ANYTHING` if it is not declared.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> type_at(struct("core.v1.PodSpec"), ("containers", 0, "image"))
        <Scalar.TEXT: 's'>
    """
    for part in path:
        match kind:
            case StructType():
                kind = _type_of(kind, str(part))
            case ListType():
                kind = kind.item
            case MapType():
                kind = kind.value
            case _:
                return ANYTHING
    return kind


def is_stored_as(sent: Any, stored: Any, kind: Type) -> bool:
    """Return whether the API server stores a value as another one.

    Args:
        kind: Its type; of a value of type `Anything` nothing is known, so it must be equal.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> selector = struct("core.v1.ObjectFieldSelector")
        >>> is_stored_as({"fieldPath": "metadata.name"}, {"apiVersion": "v1", "fieldPath": "metadata.name"}, selector)
        True
        >>> is_stored_as({"fieldPath": "metadata.name"}, {"apiVersion": "v2", "fieldPath": "metadata.name"}, selector)
        False
    """
    match kind:
        case StructType() if isinstance(sent, dict) and isinstance(stored, dict):
            return all(_is_field_stored(kind, name, sent, stored) for name in sent.keys() | stored.keys())
        case MapType() if isinstance(sent, dict) and isinstance(stored, dict):
            return sent.keys() == stored.keys() and all(
                is_stored_as(value, stored[name], kind.value) for name, value in sent.items()
            )
        case ListType() if isinstance(sent, list) and isinstance(stored, list):
            return len(sent) == len(stored) and all(map(is_stored_as, sent, stored, [kind.item] * len(sent)))
        case Scalar.QUANTITY if isinstance(sent, str) and isinstance(stored, str):
            return sent == stored or _same_quantity(sent, stored)
        case _:
            return equal_json(sent, stored)


def is_dropped(sent: Any, kind: Type, name: str) -> bool:
    """Return whether the API server does not store a field that is sent.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> pod = struct("core.v1.PodSpec")
        >>> is_dropped([], pod, "tolerations"), is_dropped(0, pod, "priority")
        (True, False)
    """
    declared = kind.fields.get(name) if isinstance(kind, StructType) else None
    return sent is None or (declared is not None and declared.presence is EmptyValue.DROP_EMPTY and not sent)


def is_empty_part(sent: Any, stored: Any, kind: Type) -> bool:
    """Return whether an empty value is sent for one that is merged entry by entry, so that it changes nothing."""
    match kind:
        case StructType() | MapType():
            return sent == {} and isinstance(stored, dict) and not kind.atomic
        case ListType():
            return sent == [] and isinstance(stored, list) and kind.keys is not None
        case _:
            return False


def _is_field_stored(kind: StructType, name: str, sent: dict[str, Any], stored: dict[str, Any]) -> bool:
    declared = kind.fields.get(name)
    if name not in stored:
        return is_dropped(sent[name], kind, name)
    if sent.get(name) is not None:
        return is_stored_as(sent[name], stored[name], _type_of(kind, name))
    return stored[name] is None or (declared is not None and _is_default(stored[name], declared))


def _is_default(stored: Any, declared: Field) -> bool:
    """Return whether a value is what the API server stores for a field that is not sent."""
    if declared.default is not MISSING:
        return is_stored_as(declared.default, stored, declared.type)
    if declared.presence is not EmptyValue.ALWAYS:
        return False
    if isinstance(declared.type, StructType):
        return is_stored_as({}, stored, declared.type)
    return not stored or (declared.type is Scalar.QUANTITY and is_stored_as("0", stored, declared.type))


def _type_of(kind: StructType, name: str) -> Type:
    declared = kind.fields.get(name)
    return declared.type if declared is not None else kind.extra or ANYTHING


def _same_quantity(sent: str, stored: str) -> bool:
    try:
        return Quantity.parse(sent) == Quantity.parse(stored)
    except QuantityError:
        return False
