"""Validation of the cluster IPs and IP families of a Service.

Source: `ValidateServiceClusterIPsRelatedFields`, `validateUpgradeDowngradeClusterIPs` and
`validateUpgradeDowngradeIPFamilies` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv6Address
from typing import Any, Final

from ocf.objects.field_errors import FieldError, duplicate, invalid, not_supported, required
from ocf_server.validation.addresses import address_errors, parse_address
from ocf_server.validation.fields import enumeration

__all__ = ["address_change_errors", "cluster_address_errors", "family_of", "is_headless"]

_EXTERNAL: Final = "ExternalName"
_NONE: Final = "None"
_IPS: Final = "spec.clusterIPs"
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_MOST_ADDRESSES: Final = 2
_FIXED: Final = "may not change once set"


def is_headless(spec: Mapping[str, Any]) -> bool:
    """Return whether a Service has no cluster IP on purpose."""
    return spec.get("clusterIPs") == [_NONE]


def family_of(address: str) -> str:
    """Return the IP family of an address; malformed ones count as IPv4, as in the API server."""
    return "IPv6" if isinstance(parse_address(address), IPv6Address) else "IPv4"


def cluster_address_errors(spec: Mapping[str, Any], before: Mapping[str, Any] | None) -> Iterator[FieldError]:
    """Yield the errors of the cluster IPs, the IP families and their policy.

    Args:
        before: The stored spec, whose addresses are not validated again; None for a new Service.
    """
    if spec.get("type") == _EXTERNAL:
        return
    addresses: Sequence[str] = spec.get("clusterIPs") or ()
    yield from _first_errors(spec.get("clusterIP", ""), addresses)
    yield from _family_errors(spec.get("ipFamilies") or ())
    yield from enumeration(spec.get("ipFamilyPolicy"), _POLICIES, "spec.ipFamilyPolicy")
    malformed = list(_malformed_errors(addresses, (before or {}).get("clusterIPs") or ()))
    yield from malformed
    if len(addresses) > _MOST_ADDRESSES:
        yield invalid(_IPS, addresses, "may only hold up to 2 values")
    if malformed:
        return
    if len(addresses) > 1 and not _is_dual(addresses):
        yield invalid(_IPS, addresses, "may specify no more than one IP for each IP family")
    if not is_headless(spec):
        for index, (address, family) in enumerate(zip(addresses, spec.get("ipFamilies") or (), strict=False)):
            if family in _FAMILIES and family_of(address) != family:
                detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                yield invalid(f"{_IPS}[{index}]", address, detail)


def _is_dual(addresses: Sequence[str]) -> bool:
    families = [family_of(address) for address in addresses]
    return len(set(families)) == len(families) == _MOST_ADDRESSES


def _first_errors(address: str, addresses: Sequence[str]) -> Iterator[FieldError]:
    if not address:
        if addresses:
            yield invalid(_IPS, addresses, "must be empty when `clusterIP` is not specified")
    elif not addresses:
        yield required(_IPS)
    elif addresses[0] != address:
        yield invalid(_IPS, addresses, "first value must match `clusterIP`")


def _family_errors(families: Sequence[str]) -> Iterator[FieldError]:
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            yield not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        if family in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", family)


def _malformed_errors(addresses: Sequence[str], known: Sequence[str]) -> Iterator[FieldError]:
    for index, address in enumerate(addresses):
        if index == 0 and address == _NONE:
            if len(addresses) > 1:
                yield invalid(_IPS, addresses, "'None' must be the first and only value")
        elif address not in known:
            yield from address_errors(address, f"{_IPS}[{index}]")


def address_change_errors(spec: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield the errors of an update that changes the first cluster IP or family, or drops the second one."""
    if _EXTERNAL in (spec.get("type"), before.get("type")):
        return
    headless, was_headless = is_headless(spec), is_headless(before)
    if headless and was_headless:
        return
    yield from _ip_change_errors(spec, spec.get("clusterIPs") or (), before.get("clusterIPs") or ())
    if not headless and not was_headless:
        yield from _family_change_errors(spec, before)


def _ip_change_errors(spec: Mapping[str, Any], new: Sequence[str], old: Sequence[str]) -> Iterator[FieldError]:
    shown = list(new) or None
    if len(new) == len(old):
        yield from (
            invalid(f"{_IPS}[{index}]", shown, _FIXED) for index, address in enumerate(old) if address != new[index]
        )
        return
    if not new:
        yield invalid(f"{_IPS}[0]", shown, "primary clusterIP can not be unset")
    if new and old and new[0] != old[0]:
        yield invalid(f"{_IPS}[0]", shown, _FIXED)
    if len(new) == 1 and len(old) > 1:
        yield from _release_errors(spec, "secondary clusterIP")


def _family_change_errors(spec: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[FieldError]:
    new, old = spec.get("ipFamilies") or (), before.get("ipFamilies") or ()
    path = "spec.ipFamilies[0]"
    if len(new) == len(old):
        yield from (invalid(path, new, _FIXED) for index, family in enumerate(old) if family != new[index])
        return
    if len(new) < len(old) and not spec.get("clusterIPs"):
        yield invalid(path, new or None, "primary ipFamily can not be unset")
    if new and old and new[0] != old[0]:
        # The API server shows the cluster IPs here.
        yield invalid(path, spec.get("clusterIPs"), _FIXED)
    if len(new) == 1 and len(old) > 1:
        yield from _release_errors(spec, "secondary ipFamily")


def _release_errors(spec: Mapping[str, Any], what: str) -> Iterator[FieldError]:
    policy = spec.get("ipFamilyPolicy")
    if policy != "SingleStack":
        detail = f"must be set to 'SingleStack' when releasing the {what}"
        yield invalid("spec.ipFamilyPolicy", policy, detail, as_json=True)
