"""Printers of admission policies, API priority, devices, and attached volumes."""

from collections.abc import Callable
from typing import Any

from ocf.objects import Manifest
from ocf_server.http.printers.text import NONE, UNSET, AgeClock, Cells

__all__ = [
    "admission_policy",
    "attachment",
    "claim_of_devices",
    "flow_schema",
    "policy_binding",
    "precedence",
    "priority_level",
    "resource_slice",
]


def admission_policy(rules: str) -> Callable[[Manifest, AgeClock], Cells]:
    """Return a printer of admission policies."""

    def row(item: Manifest, clock: AgeClock) -> Cells:
        spec = item.get("spec") or {}
        kind = spec.get("paramKind")
        parameters = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET
        return [item["metadata"]["name"], len(spec.get(rules) or ()), parameters, clock.age(item)]

    return row


def policy_binding(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a binding of an admission policy."""
    spec = item.get("spec") or {}
    given = spec.get("paramRef") or {}
    parameters = f"{given.get('namespace') or '*'}/{given['name']}" if given.get("name") else UNSET
    return [item["metadata"]["name"], spec.get("policyName", ""), parameters, clock.age(item)]


def claim_of_devices(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a ResourceClaim."""
    status = item.get("status") or {}
    words = ["deleted"] if "deletionTimestamp" in item["metadata"] else []
    if status.get("allocation"):
        words += ["allocated", *(["reserved"] if status.get("reservedFor") else [])]
    return [item["metadata"]["name"], ",".join(words or ["pending"]), clock.age(item)]


def resource_slice(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a ResourceSlice."""
    spec = item.get("spec") or {}
    words = [spec.get("nodeName", ""), spec.get("driver", ""), (spec.get("pool") or {}).get("name", "")]
    return [item["metadata"]["name"], *words, clock.age(item)]


def flow_schema(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a FlowSchema."""
    spec = item.get("spec") or {}
    conditions = (item.get("status") or {}).get("conditions") or ()
    dangling = next((one.get("status", "") for one in conditions if one.get("type") == "Dangling"), "?")
    level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    method = (spec.get("distinguisherMethod") or {}).get("type", NONE)
    return [item["metadata"]["name"], level, spec.get("matchingPrecedence", 0), method, clock.age(item), dangling]


def precedence(item: Manifest) -> tuple[int, str]:
    """Return by what the rows of FlowSchemas are sorted: those that match first come first."""
    return (item.get("spec") or {}).get("matchingPrecedence", 0), item["metadata"]["name"]


def priority_level(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a PriorityLevelConfiguration."""
    spec = item.get("spec") or {}
    limited: dict[str, Any] = spec.get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    numbers = [queuing.get(field, NONE) for field in ("queues", "handSize", "queueLengthLimit")]
    shares = limited.get("nominalConcurrencyShares", NONE)
    return [item["metadata"]["name"], spec.get("type", ""), shares, *numbers, clock.age(item)]


def attachment(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a VolumeAttachment."""
    spec = item.get("spec") or {}
    words = [spec.get("attacher", ""), (spec.get("source") or {}).get("persistentVolumeName", "")]
    attached = bool((item.get("status") or {}).get("attached"))
    return [item["metadata"]["name"], *words, spec.get("nodeName", ""), attached, clock.age(item)]
