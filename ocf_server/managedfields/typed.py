"""Manifests with their types: type checks, and the set of fields that a manifest contains.

Server-side apply checks an applied manifest strictly (undeclared fields, wrong JSON types and duplicate list items are
rejected), and its manager owns the fields that the manifest contains.
"""

import json
from typing import Any

from ocf.schema.builtin import ANYTHING, MISSING, Anything, ListType, MapType, Scalar, StructType, Type
from ocf_server.api.status_errors import go_text
from ocf_server.managedfields.fieldset import FieldSet, key_element, path_text, value_element

__all__ = ["ElementError", "deduce", "field_set", "is_granular", "item_element", "type_problems"]

_NUMBERS = frozenset({Scalar.INT32, Scalar.INT64, Scalar.NUMBER})
_TEXTS = frozenset({Scalar.TEXT, Scalar.BYTES})


class ElementError(ValueError):
    """An item of a keyed list or a set has no path element."""


def deduce(value: Any, kind: Anything) -> Scalar | ListType | MapType:
    """Return the type of a value without a declared type.

    Args:
        kind: Whether maps in it are granular.

    Returns:
        A type that matches the value; a null is treated as a map.
    """
    if isinstance(value, list):
        return _ANY_LIST
    if isinstance(value, dict) or value is None or value is MISSING:
        return _ANY_MAP[kind.atomic]
    return Scalar.INT_OR_TEXT


_ANY_LIST = ListType(ANYTHING, None)
_ANY_MAP = {True: MapType(ANYTHING, atomic=True), False: MapType(Anything(atomic=False), atomic=False)}


def is_granular(kind: Type) -> bool:
    """Return whether the fields or items of a value have separate owners."""
    if isinstance(kind, ListType):
        return kind.keys is not None
    return isinstance(kind, StructType | MapType) and not kind.atomic


def item_element(kind: ListType, item: Any) -> str:
    """Return the path element of an item of a keyed list or a set.

    Args:
        kind: Type of the list; not an atomic list.

    Raises:
        ElementError: If the item has no key, or its type cannot be an item of such a list.
    """
    if not kind.keys:
        if isinstance(item, dict | list) or item is None:
            shape = "a map type" if isinstance(item, dict) else "a list" if item is not None else "an explicit null"
            raise ElementError(f"associative list without keys has an element that's {shape}")
        return value_element(item)
    if not isinstance(item, dict):
        shape = "a null element" if item is None else "non-map elements"
        raise ElementError(f"associative list with keys may not have {shape}")
    fields = [(name, item.get(name, default)) for name, default in kind.keys]
    present = [(name, value) for name, value in fields if value is not MISSING]
    if not present:
        names = " ".join(f'"{name}"' for name, _ in kind.keys)
        raise ElementError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(present)


def type_problems(value: Any, kind: Type) -> list[str]:
    """Check the types of an applied manifest, or of a part of one.

    Returns:
        The errors, `<path>: <problem>`, with the texts of a real API server, whose order is random; empty if the
        manifest is valid.
    """
    problems: list[str] = []
    _check(value, kind, (), problems)
    return sorted(problems)


def _report(path: tuple[str, ...], problem: str, problems: list[str]) -> None:
    where = path_text(path)
    problems.append(f"{where}: {problem}" if where else problem)


def _check(value: Any, kind: Type, path: tuple[str, ...], problems: list[str]) -> None:
    if value is None:
        return
    if isinstance(kind, StructType):
        _check_struct(value, kind, path, problems)
    elif isinstance(kind, Scalar):
        problem = _scalar_problem(value, kind)
        if problem:
            _report(path, problem, problems)
    elif isinstance(kind, ListType):
        _check_list(value, kind, path, problems)
    elif isinstance(kind, MapType):
        if not isinstance(value, dict):
            _report(path, f"expected map, got {_go_value(value)}", problems)
            return
        for name, item in value.items():
            _check(item, kind.value, (*path, f"f:{name}"), problems)


def _check_struct(value: Any, kind: StructType, path: tuple[str, ...], problems: list[str]) -> None:
    if not isinstance(value, dict):
        _report(path, f"expected map, got {_go_value(value)}", problems)
        return
    fields, extra = kind.fields, kind.extra
    for name, item in value.items():
        field = fields.get(name)
        if field is None:
            if extra is None:
                _report((*path, f"f:{name}"), "field not declared in schema", problems)
        elif item.__class__ is not field.exact:
            _check(item, field.type, (*path, f"f:{name}"), problems)


def _check_list(value: Any, kind: ListType, path: tuple[str, ...], problems: list[str]) -> None:
    if not isinstance(value, list):
        _report(path, f"expected list, got {_go_value(value)}", problems)
        return
    seen = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if kind.keys is not None:
            try:
                element = item_element(kind, item)
            except ElementError as error:
                _report(path, f"element {index}: {error}", problems)
                return
            if element in seen:
                _report(path, f"duplicate entries for key {path_text([element])}", problems)
            seen.add(element)
        _check(item, kind.item, (*path, element), problems)


def _scalar_problem(value: Any, kind: Scalar) -> str:
    if kind in _TEXTS:
        shown = f"&value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        return "" if isinstance(value, str) else f"expected string, got {shown}"
    if kind in _NUMBERS:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if number else f"expected numeric (int or float), got {_go_type(value)}"
    if kind is Scalar.BOOLEAN:
        return "" if isinstance(value, bool) else f"expected boolean, got {_go_value(value)}"
    return f"expected any scalar, got {_go_value(value)}" if isinstance(value, dict | list) else ""


def _go_value(value: Any) -> str:
    """Return the text of a value in a message that prints it as a pointer of Go."""
    return f"&{{{go_text(value)}}}"


def _go_syntax(value: Any) -> str:
    """Return the text of a value in a message that prints it in Go syntax."""
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(name)}:{_go_syntax(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{inside}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    return "interface {}(nil)" if value is None else json.dumps(value, ensure_ascii=False)


def _go_type(value: Any) -> str:
    names = {
        str: "string",
        bool: "bool",
        int: "int64",
        float: "float64",
        dict: "map[string]interface {}",
        list: "[]interface {}",
    }
    return names.get(type(value), "<nil>")


def field_set(value: Any, kind: Type) -> FieldSet:
    """Return the fields that a manifest contains.

    Args:
        value: The manifest, or a part of one; it must match its type.

    Returns:
        The set: leaves, items of keyed lists and sets, empty maps, nulls, and undeclared fields.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> field_set({"spec": {"replicas": 3, "strategy": {}}}, struct("apps.v1.Deployment"))
        {'f:spec': {'f:replicas': {}, 'f:strategy': {}}}
    """
    return _node(value, kind) or {}


def _node(value: Any, kind: Type) -> FieldSet | None:
    """Return the node of a value: `{}` if it is in the set as a whole, None if no part of it is in the set."""
    if isinstance(kind, Anything):
        kind = deduce(value, kind)
    if isinstance(kind, Scalar) or not is_granular(kind):
        return {}
    if isinstance(kind, StructType):
        return _struct_node(value, kind) if value else None
    if isinstance(kind, MapType):
        return _map_node(value, kind) if value else None
    return _list_node(value, kind) if value else None


def _struct_node(value: Any, kind: StructType) -> FieldSet | None:
    out: FieldSet = {}
    fields = kind.fields
    for name, item in value.items():
        field = fields.get(name)
        if field is not None:
            type_ = field.type
            # The common case, inlined for speed: a scalar is in the set as a whole.
            node = {} if type_.__class__ is Scalar else _node(item, type_)
            itself = item is None or item == {}
        else:
            node = _node(item, kind.extra or ANYTHING)
            itself = True
        if itself:
            out["f:" + name] = _as_member(node)
        elif node is not None:
            out["f:" + name] = node
    return out or None


def _map_node(value: Any, kind: MapType) -> FieldSet | None:
    return {"f:" + name: _as_member(_node(item, kind.value)) for name, item in value.items()} or None


def _list_node(value: Any, kind: ListType) -> FieldSet | None:
    out: FieldSet = {}
    duplicates = set()
    for item in value:
        element = item_element(kind, item)
        if element in out:
            duplicates.add(element)
        out[element] = _as_member(_node(item, kind.item))
    for element in duplicates:
        out[element] = {}
    return out or None


def _as_member(node: FieldSet | None) -> FieldSet:
    return {".": {}, **node} if node else {}
