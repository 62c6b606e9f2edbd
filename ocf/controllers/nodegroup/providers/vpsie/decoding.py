"""Values out of responses of the VPSie API."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from ocf.controllers.nodegroup.providers.vpsie.settings import FieldNames, VPSieSettings
from ocf.errors import ProviderUnavailableError, QuantityError
from ocf.nodegroups import InstanceType, Machine, MachineState, Offering
from ocf.objects import Quantity, parse_time

__all__ = ["GroupEntry", "instance_types", "read_groups", "read_workers", "worker_identifier"]

# The mean: 365 days of 24 hours, over 12.
_HOURS_PER_MONTH: Final = 730
_MOST_PODS: Final = "110"  # default of the kubelet
_STATES: Final = {
    "failed": MachineState.FAILED,
    "error": MachineState.FAILED,
    "deleting": MachineState.DELETING,
    "terminating": MachineState.DELETING,
    "pending": MachineState.PENDING,
    "provisioning": MachineState.PENDING,
    "creating": MachineState.PENDING,
}

GroupEntry = tuple[int, str, str]
"""A group of workers at VPSie: its numeric id, its name, and the id of its size."""


def instance_types(offers: Mapping[str, object], fields: FieldNames) -> list[InstanceType]:
    """Return the sizes of all datacenters, each with one offering per datacenter, sorted by name."""
    found: dict[str, InstanceType] = {}
    for datacenter, response in offers.items():
        for offer in _entries(response, f"offers of {datacenter}"):
            offering = Offering(datacenter, _hourly_price(offer, fields))
            known = found.get(_text(offer, ("id",)))
            there = known.offerings if known else ()
            size = _instance_type(offer, fields, (*there, offering))
            found[size.name] = size
    return [found[name] for name in sorted(found)]


def read_workers(cluster: object, settings: VPSieSettings) -> list[Machine]:
    """Return the workers of a cluster, sorted by host name; nodes of its control plane are left out.

    A worker is identified by its host name, because not every response has its identifier.
    """
    return sorted((_machine(entry, settings) for entry in _workers(cluster, settings)), key=lambda each: each.id)


def worker_identifier(cluster: object, host_name: str, settings: VPSieSettings) -> str | None:
    """Return the identifier of a worker, by which it is deleted; empty if the response lacks it, None without worker.

    Args:
        host_name: The host name of the worker; case does not count.
    """
    for entry in _workers(cluster, settings):
        if _text(entry, settings.fields.host_name).lower() == host_name.lower():
            return _text(entry, settings.fields.identifier)
    return None


def read_groups(response: object) -> list[GroupEntry]:
    """Return the groups of workers that exist and are not deleted."""
    return [
        (int(entry["id"]), _text(entry, ("group_name",)), _text(entry, ("boxsize_id",)))
        for entry in _entries(response, "groups of workers")
        if str(entry.get("id", "")).isdigit() and str(entry.get("is_deleted", 0)) in {"0", "False"}
    ]


def _workers(cluster: object, settings: VPSieSettings) -> list[Mapping[str, Any]]:
    if not isinstance(cluster, Mapping):
        raise ProviderUnavailableError(f"cluster {settings.cluster}: expected an object, got {type(cluster).__name__}")
    for name in settings.fields.workers:
        if name in cluster:
            found = _entries(cluster[name], f"cluster {settings.cluster}, {name}")
            break
    else:
        # An answer without the list must not be read as a cluster without workers.
        names = ", ".join(settings.fields.workers)
        raise ProviderUnavailableError(f"cluster {settings.cluster}: the response has none of {names}")
    return [
        entry
        for entry in found
        if _text(entry, settings.fields.host_name)
        and _text(entry, settings.fields.role).lower() not in settings.manager_roles
    ]


def _machine(entry: Mapping[str, Any], settings: VPSieSettings) -> Machine:
    fields = settings.fields
    host_name = _text(entry, fields.host_name).lower()
    status = _text(entry, ("status",)).lower()
    address = _text(entry, fields.address)
    state = _STATES.get(status, MachineState.RUNNING)  # an empty status is that of a running worker
    return Machine(
        id=host_name,
        state=state,
        node_name=host_name,
        addresses=(address,) if address else (),
        created_at=_time(_text(entry, fields.created)),
        problem=f"VPSie reports the status {status!r}" if state is MachineState.FAILED else "",
    )


def _instance_type(offer: Mapping[str, Any], fields: FieldNames, offerings: tuple[Offering, ...]) -> InstanceType:
    name = _text(offer, ("id",))
    try:
        capacity = {
            "cpu": Quantity.parse(_text(offer, ("cpu",))),
            "memory": Quantity.parse(f"{_text(offer, ('ram',))}Mi"),
            "ephemeral-storage": Quantity.parse(f"{_text(offer, fields.disk) or 0}Gi"),
            "pods": Quantity.parse(_MOST_PODS),
        }
    except QuantityError as error:
        return InstanceType(name, {}, problem=f"offer {name}: {error}")
    return InstanceType(name, capacity, offerings=offerings)


def _hourly_price(offer: Mapping[str, Any], fields: FieldNames) -> float:
    try:
        hourly = float(_text(offer, fields.hourly_price) or 0)
        return hourly or float(_text(offer, fields.monthly_price) or 0) / _HOURS_PER_MONTH
    except ValueError as error:
        raise ProviderUnavailableError(f"offer {_text(offer, ('id',))}: the price is not a number") from error


def _entries(response: object, what: str) -> list[Mapping[str, Any]]:
    if not isinstance(response, list) or not all(isinstance(entry, Mapping) for entry in response):
        raise ProviderUnavailableError(f"{what}: expected a list of objects, got {type(response).__name__}")
    return response


def _text(entry: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the first field that is present and not empty, as a text."""
    for name in names:
        value = entry.get(name)
        if value is not None and value != "":
            return str(value)
    return ""


def _time(text: str) -> datetime | None:
    try:
        return parse_time(text)
    except ValueError:
        return None
