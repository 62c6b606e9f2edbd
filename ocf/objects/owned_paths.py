"""Places of fields in an object, in the form in which `managedFields` lists them.

A place is a sequence of keys of `fieldsV1`: `f:` and a name for a field, `k:` and its keys for an entry of a keyed
list, `v:` for a value of a set. Unlike a path with list positions, it stays valid when entries are inserted or sorted.
The functions need no schema: how a list or a map merges is read from the entries of the live object.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects.managed_fields import SELF, key_label, read_key
from ocf.objects.manifest import Manifest

__all__ = [
    "ABSENT",
    "OwnedPath",
    "declared_fields",
    "dropped_fields",
    "is_below",
    "owned_fields",
    "path_label",
    "undeclared_fields",
    "value_at",
    "with_value_at",
    "without_value_at",
]

OwnedPath: TypeAlias = tuple[str, ...]
"""Keys of `fieldsV1`, from the object inwards: `("f:spec", "f:containers", 'k:{"name":"app"}', "f:image")`."""

ABSENT: Final = object()
"""Value of a field that is not set; None is the JSON null."""


def path_label(path: OwnedPath) -> str:
    """Return a place as text, as in messages of the API server without quotes.

    Example:
        >>> path_label(("f:spec", "f:containers", 'k:{"name":"app"}', "f:image"))
        'spec.containers[name=app].image'
    """
    parts = (f".{part[2:]}" if part.startswith("f:") else f"[{key_label(read_key(part))}]" for part in path)
    return "".join(parts).removeprefix(".")


def is_below(path: OwnedPath, others: Collection[OwnedPath]) -> bool:
    """Return whether a place is one of several others, or lies in one of them."""
    return any(path[: len(other)] == other for other in others)


def value_at(value: Any, path: OwnedPath) -> Any:
    """Return the value at a place; `ABSENT` if there is none.

    Args:
        path: The place; an entry of a list matches if it has the same keys, or leaves some to be defaulted.
    """
    for part in path:
        # Nearly all parts are fields of an object; the rest takes several calls.
        is_field = value.__class__ is dict and part.startswith("f:")
        value = value.get(part[2:], ABSENT) if is_field else _child(value, part)
        if value is ABSENT:
            break
    return value


def with_value_at(manifest: Manifest, path: OwnedPath, value: Any) -> Manifest:
    """Return an object with a value at a place; missing parents, and entries with their keys, are created.

    Args:
        manifest: The object; it is not changed.
        path: The place, at least one key.

    Example:
        >>> with_value_at({}, ("f:containers", 'k:{"name":"app"}', "f:image"), "app:2")
        {'containers': [{'name': 'app', 'image': 'app:2'}]}
    """
    changed: Manifest = _set(manifest, path, value)
    return changed


def without_value_at(manifest: Manifest, path: OwnedPath) -> Manifest:
    """Return an object without the value at a place; its parents are kept, even if empty.

    Args:
        manifest: The object; it is not changed.
        path: The place, at least one key.

    Example:
        >>> without_value_at({"spec": {"replicas": 2, "paused": True}}, ("f:spec", "f:replicas"))
        {'spec': {'paused': True}}
    """
    if value_at(manifest, path) is ABSENT:
        return manifest
    parent = value_at(manifest, path[:-1])
    if isinstance(parent, Mapping):
        less: Any = {key: value for key, value in parent.items() if key != path[-1][2:]}
    else:
        gone = _child(parent, path[-1])
        less = [item for item in parent if item is not gone]
    return with_value_at(manifest, path[:-1], less) if len(path) > 1 else less


def owned_fields(fields: Manifest, above: OwnedPath = ()) -> Iterator[OwnedPath]:
    """Yield the innermost places that a `fieldsV1` lists.

    Args:
        fields: The `fieldsV1`, or a part of it.
    """
    for name, inner in fields.items():
        if name == SELF:
            continue
        deeper = list(owned_fields(inner, (*above, name)))
        yield from deeper or [(*above, name)]


def dropped_fields(fields: Manifest, desired: Any, above: OwnedPath = ()) -> Iterator[OwnedPath]:
    """Yield the innermost places that a `fieldsV1` lists and an object does not declare.

    Args:
        fields: The `fieldsV1` of a manager's last apply.
    """
    for name, inner in fields.items():
        if name == SELF:
            continue
        child = _child(desired, name)
        if child is ABSENT:
            yield from owned_fields({name: inner}, above)
        else:
            yield from dropped_fields(inner, child, (*above, name))


def declared_fields(fields: Manifest, desired: Any) -> Manifest:
    """Return the part of a `fieldsV1` that an object declares.

    Example:
        >>> declared_fields({"f:spec": {"f:replicas": {}, "f:strategy": {"f:type": {}}}}, {"spec": {"replicas": 2}})
        {'f:spec': {'f:replicas': {}}}
    """
    declared: Manifest = {}
    for name, inner in fields.items():
        child = desired if name == SELF else _child(desired, name)
        if child is not ABSENT:
            declared[name] = declared_fields(inner, child)
    return declared


def undeclared_fields(desired: Any, other: Any, fields: Manifest | None, above: OwnedPath = ()) -> Iterator[OwnedPath]:
    """Yield the innermost places that one object declares and another one does not.

    A map of which `fields` knows nothing merges by key, and a list as a whole, as in a custom resource without markers.
    An entry that a keyed list of the live object does not contain is left out.

    Args:
        other: The second object; `ABSENT` if it declares nothing here.
        fields: The union of the `fieldsV1` of the live object; None if no manager owns anything here.
    """
    structure = _structure(fields)
    if isinstance(desired, Mapping) and desired and structure in ("f:", None):
        for name, value in desired.items():
            step = f"f:{name}"
            yield from undeclared_fields(value, _child(other, step), (fields or {}).get(step), (*above, step))
    elif isinstance(desired, list) and structure == "k:":
        for step, inner in (fields or {}).items():
            item = _child(desired, step) if step != SELF else ABSENT
            if item is not ABSENT:
                yield from undeclared_fields(item, _child(other, step), inner, (*above, step))
    elif other is ABSENT and structure != "v:":
        yield above


def _structure(fields: Manifest | None) -> str | None:
    """Return how a value merges: `f:` and `k:` by key, `v:` as a set, empty as a whole; None if that is not known."""
    if fields is None:
        return None
    return next((name[:2] for name in fields if name != SELF), "")


def _child(value: Any, step: str) -> Any:
    if step.startswith("f:"):
        return value.get(step[2:], ABSENT) if isinstance(value, Mapping) else ABSENT
    if not isinstance(value, list):
        return ABSENT
    key = read_key(step)
    if step.startswith("v:"):
        return key if key in value else ABSENT
    # Of several that match because the server defaults their keys, prefer the one that has the most.
    matching = (item for item in value if _has_keys(item, key))
    return max(matching, key=lambda item: len(key.keys() & item.keys()), default=ABSENT)


def _has_keys(item: Any, key: Mapping[str, Any]) -> bool:
    return (
        isinstance(item, Mapping)
        and any(name in item for name in key)
        and all(item.get(name, wanted) == wanted for name, wanted in key.items())
    )


def _set(value: Any, path: OwnedPath, new: Any) -> Any:
    if not path:
        return new
    step, rest = path[0], path[1:]
    if step.startswith("f:"):
        fields = value if isinstance(value, Mapping) else {}
        return {**fields, step[2:]: _set(fields.get(step[2:]), rest, new)}
    items = value if isinstance(value, list) else []
    found = _child(items, step)
    if found is ABSENT:
        key = read_key(step)
        return [*items, _set(dict(key) if isinstance(key, Mapping) else key, rest, new)]
    return [_set(item, rest, new) if item is found else item for item in items]
