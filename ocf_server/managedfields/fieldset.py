"""Field sets in the format of `metadata.managedFields[].fieldsV1`.

A field set has the stored format: nested dicts whose keys are path elements, `f:<field>`, `k:<key fields as JSON>`,
`v:<value as JSON>`. It needs no parsing and no serialization, and two sets are equal if the dicts are equal.

A node `{}` is a field in the set. A node with children is in the set itself only if it has the child `.`. The root is
not a field: the root `{}` is the empty set.

Path elements are sorted (fields, then keys, then values); conflicts are reported in this order.
"""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from ocf.schema.builtin import DEDUCED, Anything, ListType, MapType, StructType, Type

__all__ = [
    "FieldSet",
    "contains",
    "difference",
    "insert",
    "intersection",
    "key_element",
    "path_text",
    "paths",
    "recursive_difference",
    "serialized",
    "subset",
    "union",
    "value_element",
    "with_named_fields",
]

FieldSet: TypeAlias = dict[str, Any]
"""A set of fields. Sets are shared, so a finished set is never changed."""

_SELF: Final = "."
_ESCAPES: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_encode_text: Final = json.JSONEncoder(ensure_ascii=False).encode


def _encode(value: Any) -> str:
    if isinstance(value, str):
        text = _encode_text(value)
        return text if text.isalnum() else text.translate(_ESCAPES)
    if isinstance(value, float) and value.is_integer():
        # 80 and 80.0 are the same number and need the same path element.
        value = int(value)
    return json.dumps(value, separators=(",", ":"))


def key_element(fields: Sequence[tuple[str, Any]]) -> str:
    """Return the path element of an item of a keyed list.

    Args:
        fields: Its key fields, sorted by name, with their values.

    Example:
        >>> key_element([("containerPort", 80), ("protocol", "TCP")])
        'k:{"containerPort":80,"protocol":"TCP"}'
    """
    return "k:{" + ",".join([f'"{name}":{_encode(value)}' for name, value in fields]) + "}"


def value_element(value: Any) -> str:
    """Return the path element of an item of a set.

    Example:
        >>> value_element("example.com/finalizer")
        'v:"example.com/finalizer"'
    """
    return "v:" + _encode(value)


def insert(fields: FieldSet, path: Sequence[str]) -> None:
    """Add a field to an unfinished set.

    Args:
        fields: The set; it is changed.
        path: Path elements from the root; an empty path adds nothing.
    """
    if not path:
        return
    node = fields
    for element in path[:-1]:
        child = node.get(element)
        if child is None:
            child = node[element] = {}
        elif not child:
            child[_SELF] = {}
        node = child
    last = node.get(path[-1])
    if last is None:
        node[path[-1]] = {}
    elif last:
        last[_SELF] = {}


def contains(fields: FieldSet, path: Sequence[str]) -> bool:
    """Return whether a field is in a set.

    Returns:
        Whether the set contains exactly this field; fields below or above it do not count.

    Example:
        >>> owned = {"f:spec": {"f:replicas": {}}}
        >>> contains(owned, ["f:spec", "f:replicas"]), contains(owned, ["f:spec"])
        (True, False)
    """
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node else None
        if node is None:
            return False
    return bool(path) and (not node or _SELF in node)


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields that are in at least one of two sets.

    Example:
        >>> union({"f:a": {}}, {"f:a": {"f:b": {}}})
        {'f:a': {'f:b': {}, '.': {}}}
    """
    if not right or left is right:
        return left
    if not left:
        return right
    out = dict(left)
    for element, node in right.items():
        known = out.get(element)
        out[element] = node if known is None else _union_node(known, node)
    return out


def _union_node(left: FieldSet, right: FieldSet) -> FieldSet:
    if left == right:
        return left
    if not left:
        return {**right, _SELF: {}}
    if not right:
        return {**left, _SELF: {}}
    return union(left, right)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields of the first set that are not in the second.

    Example:
        >>> difference({"f:a": {".": {}, "f:b": {}}}, {"f:a": {}})
        {'f:a': {'f:b': {}}}
    """
    return _subtract(left, right, recursive=False)


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields of the first set that are neither in the second nor below a field of the second.

    Example:
        >>> recursive_difference({"f:a": {"f:b": {}}, "f:c": {}}, {"f:a": {}})
        {'f:c': {}}
    """
    return _subtract(left, right, recursive=True)


def _subtract(left: FieldSet, right: FieldSet, *, recursive: bool) -> FieldSet:
    if not left or not right:
        return left
    out: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None:
            out[element] = node
        elif element != _SELF:
            rest = _subtract_node(node, other, recursive=recursive)
            if rest is not None:
                out[element] = rest
    return out


def _subtract_node(node: FieldSet, other: FieldSet, *, recursive: bool) -> FieldSet | None:
    gone = not other or _SELF in other
    if gone and (recursive or not node):
        return None
    if not node:
        return node
    # A node without children contains only itself, so as a subtrahend it removes only itself.
    rest = _subtract(node, other or {_SELF: {}}, recursive=recursive)
    if not rest:
        return None
    # A node that contains only itself is written as {}.
    return {} if len(rest) == 1 and _SELF in rest else rest


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields that are in both sets.

    Example:
        >>> intersection({"f:a": {}, "f:b": {}}, {"f:b": {}, "f:c": {}})
        {'f:b': {}}
    """
    out: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is not None:
            both = _intersect_node(node, other)
            if both is not None:
                out[element] = both
    return out


def _intersect_node(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if left == right:
        return left
    itself = (not left or _SELF in left) and (not right or _SELF in right)
    below = {key: node for key, node in intersection(left, right).items() if key != _SELF}
    if not below:
        return {} if itself else None
    return {_SELF: {}, **below} if itself else below


def subset(fields: FieldSet, element: str) -> FieldSet:
    """Return the fields of a set below a path element.

    Returns:
        The set of these fields, with paths that start below the element; empty if there are none.
    """
    node = fields.get(element)
    if not node:
        return {}
    return {key: child for key, child in node.items() if key != _SELF} if _SELF in node else dict(node)


def with_named_fields(fields: FieldSet, kind: Type) -> FieldSet:
    """Add every declared struct field that has fields below it in the set.

    Args:
        kind: Type of the value that the set describes.

    Returns:
        The set; it also contains the declared fields that have children.
    """
    out: FieldSet = {}
    for element, node in fields.items():
        if not node:
            out[element] = node
            continue
        below = with_named_fields(node, _type_below(kind, element))
        declared = isinstance(kind, StructType) and element.startswith("f:") and element[2:] in kind.fields
        out[element] = {_SELF: {}, **below} if declared and _SELF not in below else below
    return out


def _type_below(kind: Type, element: str) -> Type:
    if isinstance(kind, StructType) and element.startswith("f:"):
        field = kind.fields.get(element[2:])
        return field.type if field else kind.extra or DEDUCED
    if isinstance(kind, MapType):
        return kind.value
    if isinstance(kind, ListType):
        return kind.item
    return kind if isinstance(kind, Anything) else DEDUCED


@lru_cache(maxsize=4096)
def _rank(element: str) -> tuple[Any, ...]:
    """Return the sort key of a path element: fields by name, then keys by field, then values, numbers before texts.

    The element for the field itself comes first.
    """
    code, rest = element[0], element[2:]
    if code in "f.":
        return (0, rest)
    if code == "k":
        return (1, tuple((name, _value_rank(value)) for name, value in sorted(json.loads(rest).items())))
    return (2, _value_rank(json.loads(rest)))


def _value_rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, json.dumps(value))


def serialized(fields: FieldSet) -> FieldSet:
    """Return a set in the order in which an API server writes it: each field itself, then those below it by `_rank`.

    Returns:
        The same fields; the set itself if it is in that order.

    Example:
        >>> serialized({"f:spec": {"f:b": {}, "f:a": {}, ".": {}}})
        {'f:spec': {'.': {}, 'f:a': {}, 'f:b': {}}}
    """
    elements = list(fields)
    in_order = sorted(elements)
    # Names of fields come before all other elements; among themselves their order is that of the texts.
    if in_order and not in_order[-1].startswith("f:"):
        in_order.sort(key=_rank)
    written = {element: serialized(node) if (node := fields[element]) else node for element in in_order}
    unchanged = in_order == elements and all(written[element] is fields[element] for element in elements)
    return fields if unchanged else written


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the fields of a set.

    Yields:
        The path of each field: sorted, and the fields of a level before the fields below them.
    """
    elements = sorted((element for element in fields if element != _SELF), key=_rank)
    for element in elements:
        if not fields[element] or _SELF in fields[element]:
            yield (*prefix, element)
    for element in elements:
        if fields[element]:
            yield from paths(fields[element], (*prefix, element))


def path_text(path: Sequence[str]) -> str:
    """Return the text of a path in error messages.

    Example:
        >>> path_text(["f:spec", "f:containers", 'k:{"name":"web"}', "f:image"])
        '.spec.containers[name="web"].image'
    """
    return "".join(map(_element_text, path))


def _element_text(element: str) -> str:
    code, rest = element[0], element[2:]
    if code == "f":
        return f".{rest}"
    if code == "k":
        fields = json.loads(rest)
        return "[" + ",".join(f"{name}={_encode_text(fields[name])}" for name in sorted(fields)) + "]"
    return f"[={rest}]" if code == "v" else f"[{rest}]"
