"""Allocation of the cluster IPs of a Service, and its IP families.

Source: `initIPFamilyFields` and `allocClusterIPs` in `pkg/registry/core/service/storage/alloc.go` of Kubernetes, for a
cluster with IPv4 only.
"""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any, Final

from ocf.objects.field_errors import FieldError, invalid
from ocf_server.registry.storage import Storage
from ocf_server.validation.addresses import parse_address
from ocf_server.validation.service_addresses import cluster_address_errors, family_of

__all__ = ["allocate_addresses", "set_families"]

_RANGE: Final = IPv4Network("10.96.0.0/12")  # the default of kubeadm
_FAMILY: Final = "IPv4"
_EXTERNAL: Final = "ExternalName"
_NONE: Final = "None"
_SINGLE: Final = "SingleStack"
_POLICY: Final = "spec.ipFamilyPolicy"

_Spec = Mapping[str, Any]


def set_families(spec: dict[str, Any], before: _Spec | None) -> list[FieldError]:
    """Set the IP families of a Service and their policy.

    Args:
        spec: The spec; it is changed.
        before: The stored spec; None for a new Service.

    Returns:
        The errors of the addresses, the families and the policy; empty if they are valid.
    """
    if spec["type"] == _EXTERNAL or (before is not None and _is_unchanged(spec, before)):
        return []
    if spec.get("ipFamilyPolicy") is None:
        # The endpoints of a headless Service without a selector are unknown, so it gets both families.
        unknown = spec.get("clusterIP") == _NONE and not spec.get("selector")
        known = before.get("ipFamilyPolicy") if before else None
        spec["ipFamilyPolicy"] = known or ("RequireDualStack" if unknown else _SINGLE)
    errors = list(cluster_address_errors(spec, before))
    if errors:
        return errors
    errors = [*_policy_errors(spec, before), *_add_families(spec)]
    if errors:
        return errors
    if spec.get("clusterIP") == _NONE and not spec.get("selector"):
        families = spec["ipFamilies"] = list(spec.get("ipFamilies") or [_FAMILY])
        if len(families) == 1 and spec["ipFamilyPolicy"] != _SINGLE:
            families.append("IPv6" if families == ["IPv4"] else "IPv4")
        return []
    errors = list(_unconfigured_errors(spec))
    if not errors:
        spec["ipFamilies"] = spec.get("ipFamilies") or [_FAMILY]
    return errors


def _is_unchanged(spec: _Spec, before: _Spec) -> bool:
    """Return whether an update keeps the addresses of a Service that prefers two families."""
    names = ("type", "ipFamilyPolicy", "clusterIP", "clusterIPs", "ipFamilies")
    return spec.get("ipFamilyPolicy") == "PreferDualStack" and all(spec.get(name) == before.get(name) for name in names)


def _policy_errors(spec: dict[str, Any], before: _Spec | None) -> Iterator[FieldError]:
    policy = spec["ipFamilyPolicy"]
    for name, what, plural in (
        ("clusterIPs", "secondary cluster IP", "cluster IPs"),
        ("ipFamilies", "secondary IP family", "IP families"),
    ):
        values, known = spec.get(name) or [], (before or {}).get(name) or []
        if before is not None and policy == _SINGLE and values == known:
            spec[name] = values[:1]
        elif before is not None and policy != _SINGLE and values and len(values) < len(known):
            yield invalid(_POLICY, policy, f"must be 'SingleStack' to release the {what}", as_json=True)
        elif policy == _SINGLE and len(values) > 1:
            detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {plural} are specified"
            yield invalid(_POLICY, policy, detail, as_json=True)


def _add_families(spec: dict[str, Any]) -> Iterator[FieldError]:
    """Add the families of the addresses that have none."""
    addresses: list[str] = spec.get("clusterIPs") or []
    families: list[str] = list(spec.get("ipFamilies") or ())
    for index, address in enumerate(addresses):
        if address == _NONE:
            return
        if index >= len(families):
            if family_of(address) != _FAMILY:
                detail = f"{family_of(address)} is not configured on this cluster"
                yield invalid(f"spec.clusterIPs[{index}]", addresses, detail)
            else:
                families.append(_FAMILY)
    spec["ipFamilies"] = families


def _unconfigured_errors(spec: _Spec) -> Iterator[FieldError]:
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        yield invalid(_POLICY, spec["ipFamilyPolicy"], detail, as_json=True)
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family != _FAMILY:
            yield invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster", as_json=True)


def allocate_addresses(
    spec: dict[str, Any], before: _Spec | None, store: Storage, *, dry_run: bool
) -> list[FieldError]:
    """Allocate the cluster IP that a Service requests, or the first free one.

    Args:
        spec: The spec; it is changed.
        before: The stored spec, whose addresses are kept; None for a new Service.
        dry_run: Whether the Service is not stored; a requested address may belong to another Service then.

    Returns:
        The error of an address that cannot be allocated; empty if there is none.
    """
    addresses = spec.get("clusterIPs") or []
    if spec["type"] == _EXTERNAL or addresses[:1] == [_NONE]:
        return []
    # An address is allocated once; only a Service that had none gets one in an update.
    if before is not None and before["type"] != _EXTERNAL:
        return []
    taken = {
        address for _, service in store.objects(("", "Service")) for address in service["spec"].get("clusterIPs", ())
    }
    if not addresses or not addresses[0]:
        free = next(str(address) for address in _RANGE.hosts() if str(address) not in taken)
        spec["clusterIP"], spec["clusterIPs"] = free, [free, *addresses[1:]]
        return []
    if problem := _problem(addresses[0], set() if dry_run else taken):
        return [invalid("spec.clusterIPs", addresses, f"failed to allocate IP {addresses[0]}: {problem}")]
    return []


def _problem(text: str, taken: set[str]) -> str:
    address = parse_address(text)
    if address is None or address not in _RANGE:
        return f"the provided IP ({text}) is not in the valid range. The range of valid IPs is {_RANGE}"
    if address in (_RANGE.network_address, _RANGE.broadcast_address):
        return "the provided network does not match the current range"
    return "provided IP is already allocated" if str(address) in taken else ""
