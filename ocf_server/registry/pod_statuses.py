"""Status of Pods: what the API server keeps of the stored one, and what it warns of.

Source: `podStatusStrategy` in `pkg/registry/core/pod/strategy.go` of Kubernetes.
"""

from collections.abc import Iterator
from typing import Final

from ocf.objects import Manifest
from ocf_server.registry.disabled_fields import drop_disabled_status

__all__ = ["address_warnings", "prepare_status"]

_IPV6: Final = 6


def prepare_status(new: Manifest, live: Manifest) -> None:
    """Keep the quality of service and the observed generations that an update leaves out; drop disabled fields.

    Args:
        new: The Pod with the new status; it is changed.
        live: The stored Pod.
    """
    status, before = new.setdefault("status", {}), live.get("status", {})
    drop_disabled_status(status)
    for name in ("qosClass", "observedGeneration"):
        if not status.get(name) and before.get(name):
            status[name] = before[name]
    generations: dict[str, list[int]] = {}
    for condition in before.get("conditions") or ():
        generations.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        known = generations.get(condition.get("type", ""))
        generation = known.pop(0) if known else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def address_warnings(pod: Manifest) -> Iterator[str]:
    """Yield the warnings of valid addresses that are not in the canonical form.

    Args:
        pod: A Pod with a valid status.
    """
    # Imported here, because the server starts without the validation of addresses.
    from ocf_server.validation.addresses import parse_address

    for name in ("podIPs", "hostIPs"):
        for index, item in enumerate(pod.get("status", {}).get(name) or ()):
            address = parse_address(item["ip"])
            if address is not None and address.version == _IPV6 and str(address) != item["ip"]:
                form = f'IPv6 address "{item["ip"]}" should be in RFC 5952 canonical format ("{address}")'
                yield f"status.{name}[{index}].ip: {form}"
