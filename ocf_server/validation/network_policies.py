"""Validation of NetworkPolicies.

Source: `ValidateNetworkPolicySpec` in `pkg/apis/networking/validation/validation.go` of Kubernetes.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, forbidden, invalid, required
from ocf_server.validation.addresses import Network, network_errors, parse_network
from ocf_server.validation.fields import each_problem, enumeration, label_selector, port_name, port_number
from ocf_server.validation.metadata import metadata_errors, metadata_update_errors
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_DIRECTIONS: Final = {"ingress": "from", "egress": "to"}
_TYPES: Final = ("Ingress", "Egress")


def _policy_errors(policy: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(policy["metadata"])
    yield from _spec_errors(policy["spec"], ())


def _policy_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    yield from _spec_errors(new["spec"], set(_networks(old["spec"])))


def _networks(spec: Mapping[str, Any]) -> Iterator[str]:
    for direction, peers in _DIRECTIONS.items():
        for rule in spec.get(direction) or ():
            for peer in rule.get(peers) or ():
                if block := peer.get("ipBlock"):
                    yield from (block.get("cidr", ""), *(block.get("except") or ()))


def _spec_errors(spec: Mapping[str, Any], accepted: Collection[str]) -> Iterator[FieldError]:
    """Yield the errors of a spec; `accepted` are CIDRs of the stored policy, which are not validated again."""
    yield from label_selector(spec.get("podSelector") or {}, "spec.podSelector")
    for direction, peers in _DIRECTIONS.items():
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for at, port in enumerate(rule.get("ports") or ()):
                yield from _port_errors(port, f"{path}.ports[{at}]")
            for at, peer in enumerate(rule.get(peers) or ()):
                yield from _peer_errors(peer, f"{path}.{peers}[{at}]", accepted)
    types = spec.get("policyTypes") or ()
    if len(types) > len(_TYPES):
        yield invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, each in enumerate(types):
        yield from enumeration(each, _TYPES, f"spec.policyTypes[{index}]")


def _port_errors(entry: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    port, last = entry.get("port"), entry.get("endPort")
    yield from enumeration(entry.get("protocol"), _PROTOCOLS, f"{path}.protocol")
    if isinstance(port, int):
        yield from port_number(port, f"{path}.port")
        if last is not None:
            if last < port:
                # The API server shows the first port here.
                yield invalid(f"{path}.endPort", port, "must be greater than or equal to `port`")
            yield from port_number(last, f"{path}.endPort")
        return
    if last is not None:
        problem = "`port` is not specified" if port is None else "`port` is non-numeric"
        yield invalid(f"{path}.endPort", last, f"may not be specified when {problem}")
    if port is not None:
        yield from each_problem(port_name, port, f"{path}.port")


def _peer_errors(peer: Mapping[str, Any], path: str, accepted: Collection[str]) -> Iterator[FieldError]:
    given = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    for name in given:
        if name == "ipBlock":
            yield from _block_errors(peer[name], f"{path}.{name}", accepted)
        else:
            yield from label_selector(peer[name], f"{path}.{name}")
    if not given:
        yield required(path, "must specify a peer")
    elif len(given) > 1 and "ipBlock" in given:
        yield forbidden(path, "may not specify both ipBlock and another peer")


def _block_errors(block: Mapping[str, Any], path: str, accepted: Collection[str]) -> Iterator[FieldError]:
    text = block.get("cidr", "")
    if not text:
        yield required(f"{path}.cidr")
        return
    if text not in accepted:
        yield from network_errors(text, f"{path}.cidr")
    network = parse_network(text)
    if network is None:
        return
    for index, each in enumerate(block.get("except") or ()):
        place = f"{path}.except[{index}]"
        if each not in accepted:
            yield from network_errors(each, place)
        exception = parse_network(each)
        if exception is not None and not _is_strict_subset(exception, network):
            yield invalid(place, each, "must be a strict subset of `cidr`")


def _is_strict_subset(inner: Network, outer: Network) -> bool:
    return inner.network_address in outer and inner.prefixlen > outer.prefixlen


VALIDATIONS: Final = {"NetworkPolicy.networking.k8s.io": Validation(_policy_errors, _policy_update_errors)}
