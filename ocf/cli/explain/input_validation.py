"""Checks of objects from files, limited to the fields that a sync reads.

In a cluster the API server has validated the objects; objects written by hand have not been validated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.autoscaling.api.decoders import (
    METADATA,
    Reader,
    anything,
    instant,
    integer,
    items,
    quantity,
    read_object,
    struct,
    text,
)
from ocf.cli.explain.metric_files import MEASUREMENTS
from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf.objects.paths import get_field

__all__ = ["check", "check_target", "entries"]


def entries(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the entries of a list of any kind, each with its kind, or the object itself if it is not a list."""
    kind = str(manifest.get("kind") or "")
    if not kind.endswith("List") or "items" not in manifest:
        yield manifest
        return
    _read(manifest, _LIST)
    for item in manifest["items"] or ():
        yield {"apiVersion": manifest.get("apiVersion"), "kind": kind.removesuffix("List"), **(item or {})}


def check(manifest: Manifest) -> None:
    """Reject an object that cannot be read later."""
    kind = manifest.get("kind")
    if kind in MEASUREMENTS:
        # Imported here as it is slow to load, and not needed for other kinds.
        from ocf.controllers.metrics_client.decoding import check_measurement

        check_measurement(manifest, str(kind))
    else:
        _read(manifest, _BY_KIND.get(str(kind), _OBJECT))
    settings = get_field(manifest, ("spec", "settings")) if kind == _OWN else None
    if settings is not None:
        # No later step would detect a misspelled field.
        read_object({"spec": {"settings": settings}}, struct(spec=struct(settings=_SETTINGS)), "", _OWN)


def check_target(manifest: Manifest) -> None:
    """Reject a workload that cannot be scaled, or from which no pods can be made."""
    _read(manifest, _WORKLOAD)


def _read(manifest: Manifest, reader: Reader) -> None:
    api_version, kind = str(manifest.get("apiVersion") or ""), str(manifest.get("kind") or "object")
    read_object(manifest, reader, api_version, kind, strict=False)


def _quantities(value: Any, path: str, problems: list[FieldProblem]) -> Any:
    names: dict[str, Reader] = dict.fromkeys(value, quantity) if isinstance(value, Mapping) else {}
    return struct(**names)(value, path, problems)


_OWN: Final = "HorizontalAutoscaler"
_INT32: Final = integer("int32")
_SETTINGS: Final = struct(
    syncPeriodSeconds=_INT32,
    tolerance=quantity,
    downscaleStabilizationSeconds=_INT32,
    cpuInitializationPeriodSeconds=_INT32,
    initialReadinessDelaySeconds=_INT32,
    scaleUpLimitFactor=quantity,
    scaleUpLimitMinimum=_INT32,
)
_ANY_OBJECT: Final[dict[str, Reader]] = {"apiVersion": text, "kind": text, "metadata": METADATA}
_OBJECT: Final = struct(**_ANY_OBJECT)
_LIST: Final = struct(apiVersion=text, kind=text, items=items(struct(), dict))
_RESOURCES: Final = struct(requests=_quantities)
_CONTAINERS: Final = items(struct(name=text, resources=_RESOURCES, restartPolicy=text), dict)
_POD_SPEC: Final = struct(
    containers=_CONTAINERS, initContainers=_CONTAINERS, resources=_RESOURCES, overhead=_quantities
)
_CONDITION: Final = struct(type=text, status=text, lastTransitionTime=instant)
_POD_STATUS: Final = struct(phase=text, startTime=instant, conditions=items(_CONDITION, dict))
_SIZE: Final = struct(replicas=_INT32)
_TEMPLATE: Final = struct(metadata=METADATA, spec=_POD_SPEC)
_WORKLOAD: Final = struct(
    **_ANY_OBJECT, spec=struct(replicas=_INT32, selector=anything, template=_TEMPLATE), status=_SIZE
)
_ABOUT: Final = struct(kind=text, name=text, namespace=text)
_EVENT: Final = struct(
    **_ANY_OBJECT,
    **dict.fromkeys(("involvedObject", "regarding"), _ABOUT),
    **dict.fromkeys(("type", "reason", "message", "note"), text),
    **dict.fromkeys(("count", "deprecatedCount"), _INT32),
    **dict.fromkeys(("lastTimestamp", "deprecatedLastTimestamp", "eventTime"), instant),
    series=struct(lastObservedTime=instant),
)
_BY_KIND: Final[Mapping[str, Reader]] = {
    "Pod": struct(**_ANY_OBJECT, spec=_POD_SPEC, status=_POD_STATUS),
    _OWN: struct(**_ANY_OBJECT, spec=struct(settings=struct()), status=struct()),
    "Event": _EVENT,
    "Scale": struct(**_ANY_OBJECT, spec=_SIZE, status=struct(replicas=_INT32, selector=text)),
}
