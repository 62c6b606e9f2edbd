"""Fields whose feature gate is off; the API server drops them before it validates an object.

Source: `dropDisabledFields` in `pkg/api/pod/util.go` and in the strategies of Kubernetes. Which gate a field has is in
`ocf.schema.releases`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource, ListType, MapType, StructType, Type

__all__ = ["drop_disabled_fields"]

_ITEMS: Final = "*"

_Places: TypeAlias = Mapping[str, "_Places | str"]
"""The disabled fields of a type: by name, the gate of the field, or the places below it; `*` for items and values."""

_CREATES_ONLY: Final = frozenset({"JobManagedBy"})
"""Gates whose fields only a create drops: an update of the field is invalid."""
_SEPARATE: Final = frozenset(
    {
        "CoordinatedLeaderElection",
        "JobBackoffLimitPerIndex",
        "MutableCSINodeAllocatableCount",
        "NodeInclusionPolicyInPodTopologySpread",
        "RecoverVolumeExpansionFailure",
        "VolumeAttributesClass",
    }
)
"""Gates of which a stored field keeps itself alone."""
_STATUS_FOLLOWS_SPEC: Final = frozenset(
    {"DynamicResourceAllocation", "InPlacePodVerticalScaling", "RecursiveReadOnlyMounts", "SupplementalGroupsPolicy"}
)
"""Gates of which only fields in the spec of a stored pod keep fields, those in its status too."""
_POD_STATUSES: Final = re.compile(r"status\.\w+Statuses\b")
_OF_PARTS: Final[Mapping[str, Callable[[str], bool]]] = {
    "jobTemplate": lambda gate: gate.startswith("Job"),
    "volumeClaimTemplate": lambda _: True,
    "volumeClaimTemplates": lambda _: True,
}
"""The gates whose fields are kept in a part of an object: of templates, only those of pods are dropped."""


class _Found(NamedTuple):
    """A disabled field that has a value: the object with it, its name and gate, and the place of the field.

    Args:
        around: The objects around the one with the field, outermost first.
    """

    owner: dict[str, Any]
    name: str
    gate: str
    around: tuple[dict[str, Any], ...]
    place: str


def drop_disabled_fields(new: Manifest, live: Manifest, resource: ApiResource) -> None:
    """Drop the fields of a built-in object whose gate is off, unless the stored object has fields of the gate.

    Args:
        new: The object; it is changed.
        live: The stored object; empty for a new one.
    """
    closed = resource.release.closed_gates()
    places = None if resource.custom else _places(resource.type, closed)
    if places is None:
        if _TOLERANCE in closed and (resource.api_version, resource.kind) == _OLD_AUTOSCALER:
            _drop_tolerance(new, live)
        return
    found = [*filter(_is_dropped, _find(new, places))]
    used = {_use(one) for one in _find(live, places) if _is_used(one)} if found and live else set()
    for one in found:
        if _use(one) not in used and not (live and one.gate in _CREATES_ONLY):
            _DROPS.get(one.gate, _drop)(one)


def _use(found: _Found) -> tuple[str, str]:
    """Return what a stored field and a new one have in common if the stored one keeps the new one."""
    return found.gate, found.place if found.gate in _SEPARATE else ""


def _is_used(found: _Found) -> bool:
    """Return whether a stored field keeps the fields of its gate."""
    if found.gate == "PodLevelResources":
        resources = found.owner[found.name] or {}
        return bool(resources.get("requests") or resources.get("limits"))
    if found.gate == "CrossNamespaceVolumeDataSource":
        return True
    in_status = found.gate in _STATUS_FOLLOWS_SPEC and _POD_STATUSES.match(found.place)
    return not in_status and _is_dropped(found)


def _is_dropped(found: _Found) -> bool:
    """Return whether a field goes with its gate, whatever its value."""
    if found.name == "restartPolicy":
        # Init containers that run beside the others are older than the gate.
        is_sidecar = found.owner["restartPolicy"] == "Always"
        return not (is_sidecar and any(found.owner is one for one in found.around[-1].get("initContainers") or ()))
    if found.name == "dataSourceRef":
        return bool((found.owner["dataSourceRef"] or {}).get("namespace"))
    return found.name != "procMount" or found.owner["procMount"] != _DEFAULT_MOUNT


def _drop(found: _Found) -> None:
    del found.owner[found.name]


def _drop_stop_signal(found: _Found) -> None:
    _drop(found)
    if not found.owner:
        del found.around[-1]["lifecycle"]


def _drop_sleep(found: _Found) -> None:
    """Drop the action of a hook, and the hook and the lifecycle if they have nothing else."""
    _drop(found)
    *_, container, lifecycle = found.around
    if not found.owner:
        for hook in [name for name, value in lifecycle.items() if value is found.owner]:
            del lifecycle[hook]
    if not lifecycle:
        del container["lifecycle"]


def _drop_volume(found: _Found) -> None:
    """Drop a volume from the spec of a pod, with its mounts."""
    spec, name = found.around[-1], found.owner.get("name")
    _set_rest(spec, "volumes", lambda volume: volume is found.owner)
    for containers in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(containers) or ():
            _set_rest(container, "volumeMounts", lambda mount: mount.get("name") == name)


def _set_rest(owner: dict[str, Any], field: str, is_gone: Callable[[Any], bool]) -> None:
    rest = [item for item in owner.pop(field, None) or () if not is_gone(item)]
    if rest:
        owner[field] = rest


_DEFAULT_MOUNT: Final = "Default"


def _set_default_mount(found: _Found) -> None:
    found.owner[found.name] = _DEFAULT_MOUNT


_DROPS: Final[Mapping[str, Callable[[_Found], None]]] = {
    "ContainerStopSignals": _drop_stop_signal,
    "ImageVolume": _drop_volume,
    "PodLifecycleSleepAction": _drop_sleep,
    "ProcMountType": _set_default_mount,
}
"""What takes the place of the drop of the field alone."""

_TOLERANCE: Final = "HPAConfigurableTolerance"
_OLD_AUTOSCALER: Final = ("autoscaling/v1", "HorizontalPodAutoscaler")


def _drop_tolerance(new: Manifest, live: Manifest) -> None:
    """Drop the tolerances from the annotation that an autoscaler of autoscaling/v1 has in place of its behavior."""
    from ocf.autoscaling.api.v1_conversion import to_v1, to_v2

    full = to_v2(new, defaults=False)
    if _tolerant(full) and not (live and _tolerant(to_v2(live, defaults=False))):
        for rules in _tolerant(full):
            del rules["tolerance"]
        new["metadata"]["annotations"] = to_v1(full)["metadata"]["annotations"]


def _tolerant(autoscaler: Manifest) -> list[dict[str, Any]]:
    """Return the scaling rules of an autoscaler of autoscaling/v2 that have a tolerance."""
    behavior = autoscaler["spec"].get("behavior") or {}
    return [rules for rules in behavior.values() if rules and rules.get("tolerance") is not None]


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
        kept = _OF_PARTS.get(name)
        inside = closed if kept is None else frozenset(gate for gate in closed if not kept(gate))
        below = field.gate if field.gate in closed else _below(field.type, inside, (*above, id(kind.fields)))
        if below:
            found[name] = below
    return found or None


def _find(value: Any, places: _Places, around: tuple[dict[str, Any], ...] = (), place: str = "") -> Iterator[_Found]:
    for name, below in places.items():
        if name == _ITEMS:
            # An item stands in the object around its list.
            for item in value.values() if isinstance(value, dict) else value:
                if isinstance(item, dict) and not isinstance(below, str):
                    yield from _find(item, below, around, place)
            continue
        found = value.get(name)
        path = f"{place}.{name}" if place else name
        if isinstance(below, str):
            if name in value:
                yield _Found(value, name, below, around, path)
        elif found:
            yield from _find(found, below, (*around, value) if isinstance(value, dict) else around, path)
