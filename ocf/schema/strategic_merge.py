"""Strategic merge patch: a merge patch that merges lists by the keys of their items.

`kubectl edit`, `kubectl patch` and `kubectl rollout restart` send it for built-in kinds. The table of types declares
which lists merge, and by which key. The keys differ from those of server-side apply: the ports of a container merge by
`containerPort` here, and by port and protocol there. A patch may contain directives:

* `$patch: replace | delete | merge` in a map or in an item of a list;
* `$deleteFromPrimitiveList/<list>`: values to remove from a list of scalars;
* `$setElementOrder/<list>`: the order of the items;
* `$retainKeys`: the keys of a map to keep; all others are removed.

Source: https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md,
and recorded responses of a real API server for cases that the document does not describe.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from ocf.objects import copy_json
from ocf.objects.json_equality import equal_json
from ocf.schema.builtin import DEDUCED, ListType, MapType, StructType, Type

__all__ = ["MalformedPatchError", "PatchError", "strategic_patch"]

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"


class PatchError(ValueError):
    """A patch cannot be applied to a document; the text is that of a real API server, where it shows one.

    Args:
        text: The text, with `%s` in place of each value.
        values: Values of the document and the patch, which may be confidential.

    Attributes:
        path: The names of the fields from the document to the one that cannot be merged.
    """

    def __init__(self, text: str, *values: object) -> None:
        super().__init__(text)
        self.values: Final = values
        self.path: Final[list[str]] = []


class MalformedPatchError(PatchError):
    """A directive is malformed; the API server responds with a bad request."""


def strategic_patch(document: Any, patch: Any, kind: Type) -> Any:
    """Apply a strategic merge patch.

    Args:
        document: The object; it is not changed.
        patch: The patch; it is not changed.

    Returns:
        The patched object, which shares nothing with either.

    Raises:
        MalformedPatchError: If a directive is malformed.
        PatchError: If the patch cannot be applied.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> pod = {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}
        >>> strategic_patch(pod, {"containers": [{"name": "b", "image": "b:2"}]}, struct("core.v1.PodSpec"))
        {'containers': [{'name': 'a', 'image': 'a:1'}, {'name': 'b', 'image': 'b:2'}]}
    """
    return _merge_maps(copy_json(document), copy_json(patch), kind)


def _merge_maps(live: dict[str, Any], patch: dict[str, Any], kind: Type) -> dict[str, Any]:
    if _PATCH in patch:
        return _apply_map_directive(patch)
    _retain(live, patch)
    _reorder(live, patch, kind)
    for key, value in patch.items():
        name = key.removeprefix(_DELETE_FROM)
        if key != name:
            if isinstance(live.get(name), list):
                live[name] = [item for item in live[name] if not _contains(item, _listed(value))]
        elif value is None:
            live.pop(name, None)
        else:
            _set(live, name, value, kind)
    return live


def _apply_map_directive(patch: dict[str, Any]) -> dict[str, Any]:
    directive = patch[_PATCH]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _PATCH}
    if directive == "delete":
        return {}
    raise PatchError("unknown patch type: %s in map: %s", directive, patch)


def _set(live: dict[str, Any], name: str, value: Any, kind: Type) -> None:
    known = live.get(name)
    below = _type_of(kind, name)
    try:
        if isinstance(known, dict) and isinstance(value, dict):
            live[name] = _merge_maps(known, value, below)
            return
        if isinstance(known, list) and isinstance(value, list):
            live[name] = _merge_lists(known, value, below)
            return
    except PatchError as error:
        error.path.insert(0, name)
        raise
    kept = _without_directives(_without_nulls(value) if name not in live or known is None else value)
    if _is_directive(kept):
        live.pop(name, None)
    else:
        live[name] = kept


def _type_of(kind: Type, name: str) -> Type:
    if isinstance(kind, StructType):
        known = kind.fields.get(name)
        return known.type if known else DEDUCED
    return kind.value if isinstance(kind, MapType) else DEDUCED


def _retain(live: dict[str, Any], patch: dict[str, Any]) -> None:
    if _RETAIN not in patch:
        return
    names = patch.pop(_RETAIN)
    if not isinstance(names, list):
        raise MalformedPatchError("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith((_DELETE_FROM, _ORDER)) and key not in names:
            raise MalformedPatchError("invalid patch format of retainKeys")
    for key in [key for key in live if key not in names]:
        del live[key]


def _reorder(live: dict[str, Any], patch: dict[str, Any], kind: Type) -> None:
    """Merge and sort every list that has a `$setElementOrder` directive in the patch."""
    for directive in [key for key in patch if key.startswith(_ORDER)]:
        order = _listed(patch.pop(directive))
        name = directive.removeprefix(_ORDER)
        below = _type_of(kind, name)
        merge_key = below.patch_key if isinstance(below, ListType) and below.patch_key else ""
        before, change = live.get(name), patch.pop(name, None)
        if before is None and change is None:
            continue
        known = _listed(before) if before is not None else []
        wanted = _listed(change) if change is not None else []
        _require_order(wanted, order, merge_key)
        if before is None:
            merged = _without_directives(wanted)
        elif change is None:
            merged = known
        else:
            merged = _merge_lists(copy_json(known), wanted, below)
        live[name] = _ordered(merged, order, known, _identity(merge_key))


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        shape = {dict: "map[string]interface {}", str: "string", bool: "bool", int: "int64", float: "float64"}
        raise PatchError(f"expected a []interface {{}}, but received a {shape.get(type(value), '%!s(<nil>)')}")
    return value


def _require_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """Raise PatchError if the items of a patch are not in the order of its `$setElementOrder` directive."""
    if not patch or not order:
        return
    identity = _identity(merge_key)
    rest = iter(order)
    for item in patch:
        if isinstance(item, dict) and _PATCH in item:
            continue
        if not any(identity(item) == identity(other) for other in rest):
            text = "The order in patch list:\n%s\n doesn't match $setElementOrder list:\n%s\n"
            raise PatchError(text, patch, order)


def _identity(merge_key: str) -> Callable[[Any], Any]:
    """Return a function that identifies the items of a list: by the value of the merge key, or by the whole item."""

    def identity(item: Any) -> Any:
        if not merge_key:
            return item
        if not isinstance(item, dict):
            raise PatchError(f"expected a map[string]interface {{}}, but received a {_go_kind(item)}")
        if merge_key not in item:
            raise PatchError(f"map: %s does not contain declared merge key: {merge_key}", item)
        return item[merge_key]

    return identity


def _go_kind(value: Any) -> str:
    return {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}.get(
        type(value), "%!s(<nil>)"
    )


def _merge_lists(live: list[Any], patch: list[Any], kind: Type) -> list[Any]:
    if not isinstance(kind, ListType) or kind.patch_key is None:
        return patch
    if not live and not patch:
        return live
    shapes = {_go_kind(item) if not isinstance(item, dict) else "map" for item in (*live, *patch)}
    if len(shapes) > 1:
        raise PatchError("list element types are not identical: [%s %s]", live, patch)
    if "[]interface {}" in shapes:
        raise PatchError("lists of lists are not supported")
    identity = _identity(kind.patch_key)
    if shapes != {"map"}:
        return _ordered(_distinct([*live, *patch]), patch, live, lambda item: item)
    if not kind.patch_key:
        raise PatchError("cannot merge lists without merge key")
    live, patch = _apply_item_directives(live, patch, kind.patch_key)
    before = list(live)
    for item in patch:
        wanted = identity(item)
        place = next((index for index, known in enumerate(live) if known.get(kind.patch_key) == wanted), None)
        if place is None:
            live.append(item)
        else:
            live[place] = _merge_maps(live[place], item, kind.item)
    return _ordered(live, patch, before, identity)


def _apply_item_directives(live: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Apply the directives among the items of a patch; return the live items and the ordinary items of the patch."""
    ordinary = [item for item in patch if _PATCH not in item]
    replaced = False
    for item in patch:
        directive = item.get(_PATCH)
        if directive == "delete":
            if merge_key not in item:
                raise PatchError(f"map: %s does not contain declared merge key: {merge_key}", item)
            live = [known for known in live if known.get(merge_key) != item[merge_key]]
        elif directive == "replace":
            replaced = True
        elif directive == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch")
        elif directive is not None:
            raise PatchError("unknown patch type: %s in map: %s", directive, item)
    return (ordinary, []) if replaced else (live, ordinary)


def _distinct(items: Iterable[Any]) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if not _contains(item, out):
            out.append(item)
    return out


def _contains(item: Any, items: list[Any]) -> bool:
    return any(equal_json(item, other) for other in items)


def _ordered(items: list[Any], order: list[Any], live: list[Any], identity: Callable[[Any], Any]) -> list[Any]:
    """Sort the items that an order contains by that order, and insert the others at their position in the live list."""
    ranks, places = [identity(item) for item in order], [identity(item) for item in live]
    named = [item for item in items if identity(item) in ranks]
    others = [item for item in items if identity(item) not in ranks]
    named.sort(key=lambda item: ranks.index(identity(item)))
    others.sort(key=lambda item: places.index(identity(item)) if identity(item) in places else -1)
    out: list[Any] = []
    while named and others:
        first, second = identity(others[0]), identity(named[0])
        earlier = first in places and second in places and places.index(first) < places.index(second)
        out.append(others.pop(0) if earlier else named.pop(0))
    return out + others + named


_DIRECTIVE: Final = object()
"""Marker for a map that consists only of a directive."""


def _is_directive(value: Any) -> bool:
    return value is _DIRECTIVE


def _without_directives(value: Any) -> Any:
    """Drop the maps with a directive from a new value, which has no live value to which they could apply."""
    if isinstance(value, dict):
        if _PATCH in value:
            return _DIRECTIVE
        kept = {name: _without_directives(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if not _is_directive(item)}
    if isinstance(value, list):
        return [item for item in map(_without_directives, value) if not _is_directive(item)]
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
