"""Fields whose feature gate is off; the API server drops them before it validates an object.

Source: `dropDisabledFields` in `pkg/api/pod/util.go` and in the strategies of Kubernetes. Which gate a field has is in
`ocf.schema.releases`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource, ListType, MapType, StructType, Type

__all__ = ["drop_disabled_fields"]

_ITEMS: Final = "*"

_Places: TypeAlias = Mapping[str, "_Places | str"]
"""The disabled fields of a type: by name, the gate of the field, or the places below it; `*` for items and values."""


class _Found(NamedTuple):
    """A disabled field that has a value: the object with it, its name and gate, and the object around the first one."""

    owner: dict[str, Any]
    name: str
    gate: str
    around: dict[str, Any]


def drop_disabled_fields(new: Manifest, live: Manifest, resource: ApiResource) -> None:
    """Drop the fields of a built-in object whose gate is off, unless the stored object has fields of the gate.

    Args:
        new: The object; it is changed.
        live: The stored object; empty for a new one.
    """
    places = None if resource.custom else _places(resource.type, resource.release.closed_gates())
    if places is None:
        return
    found = [*filter(_is_dropped, _find(new, places, new))]
    used = {one.gate for one in _find(live, places, live) if _is_dropped(one)} if found and live else set()
    for one in found:
        if one.gate not in used:
            del one.owner[one.name]
            if rest := _RESTS.get(one.gate):
                rest(one)


def _is_dropped(found: _Found) -> bool:
    """Return whether a field goes with its gate; init containers that run beside the others are older than it."""
    is_sidecar = found.name == "restartPolicy" and found.owner["restartPolicy"] == "Always"
    return not (is_sidecar and any(found.owner is one for one in found.around.get("initContainers") or ()))


def _drop_empty_lifecycle(found: _Found) -> None:
    if not found.owner:
        del found.around["lifecycle"]


def _drop_volume(found: _Found) -> None:
    """Drop a volume without its source from the spec of a pod, with its mounts."""
    spec, name = found.around, found.owner.get("name")
    _set_rest(spec, "volumes", lambda volume: volume is found.owner)
    for containers in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(containers) or ():
            _set_rest(container, "volumeMounts", lambda mount: mount.get("name") == name)


def _set_rest(owner: dict[str, Any], field: str, is_gone: Callable[[Any], bool]) -> None:
    rest = [item for item in owner.pop(field, None) or () if not is_gone(item)]
    if rest:
        owner[field] = rest


_RESTS: Final[Mapping[str, Callable[[_Found], None]]] = {
    "ContainerStopSignals": _drop_empty_lifecycle,
    "ImageVolume": _drop_volume,
}
"""What else a drop of a field of a gate does."""


@cache
def _places(kind: StructType, closed: frozenset[str]) -> _Places | None:
    """Return the disabled fields of a kind; None if it has none."""
    return _below(kind, closed, ())


def _below(kind: Type, closed: frozenset[str], above: tuple[int, ...]) -> _Places | None:
    if isinstance(kind, ListType | MapType):
        items = _below(kind.item if isinstance(kind, ListType) else kind.value, closed, above)
        return None if items is None else {_ITEMS: items}
    # Some structs contain themselves; none of those has a gate.
    if not isinstance(kind, StructType) or id(kind.fields) in above:
        return None
    found: dict[str, _Places | str] = {}
    for name, field in kind.fields.items():
        below = field.gate if field.gate in closed else _below(field.type, closed, (*above, id(kind.fields)))
        if below:
            found[name] = below
    return found or None


def _find(value: Any, places: _Places, around: Any) -> Iterator[_Found]:
    for name, below in places.items():
        if name == _ITEMS:
            # An item stands in the object around its list.
            for item in value.values() if isinstance(value, dict) else value:
                if isinstance(item, dict) and not isinstance(below, str):
                    yield from _find(item, below, around)
            continue
        found = value.get(name)
        if isinstance(below, str):
            if name in value:
                yield _Found(value, name, below, around)
        elif found:
            yield from _find(found, below, value)
