"""EndpointSlice controller.

Source: pkg/controller/endpointslice and k8s.io/endpointslice of Kubernetes 1.36. Addresses are IPv4, and there are no
topology hints.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.json_equality import equal_json
from ocf.objects.selectors import LabelSelector
from ocf_server.controllers.actions import Action, Outcome, create, delete, update
from ocf_server.controllers.ownership import controlled, controller_reference, is_deleted
from ocf_server.controllers.pods import is_finished, is_ready
from ocf_server.controllers.view import ClusterView

__all__ = ["reconcile_service"]

# The default of `--max-endpoints-per-slice`.
_MOST: Final = 100
_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_SERVICE: Final = "kubernetes.io/service-name"
_HEADLESS: Final = "service.kubernetes.io/headless"
_ZONE: Final = "topology.kubernetes.io/zone"


def reconcile_service(view: ClusterView, service: Manifest) -> Outcome:
    """Write the addresses of the pods that a Service selects into its EndpointSlices."""
    spec = service["spec"]
    if not spec.get("selector") or spec.get("type") == "ExternalName" or is_deleted(service):
        return Outcome()
    selector = LabelSelector.of({"matchLabels": spec["selector"]})
    by_ports: dict[tuple[tuple[tuple[str, Any], ...], ...], list[Manifest]] = {}
    for pod in view.objects("Pod", service["metadata"]["namespace"]):
        if not selector.matches(pod["metadata"].get("labels") or {}) or not _is_included(pod):
            continue
        # Pods of several numbers for one named port need a slice for each, as a slice has its ports once for all
        # endpoints.
        key = tuple(tuple(sorted(port.items())) for port in _ports(service, pod))
        by_ports.setdefault(key, []).append(_endpoint(view, service, pod))
    wanted = [
        ([dict(port) for port in ports], endpoints[first : first + _MOST])
        for ports, endpoints in sorted(by_ports.items())
        for first in range(0, len(endpoints), _MOST)
    ]
    # A Service without pods has one slice without endpoints and ports.
    return Outcome(tuple(_writes(view, service, wanted or [([], [])])))


def _writes(view: ClusterView, service: Manifest, wanted: list[tuple[list[Any], list[Manifest]]]) -> Iterator[Action]:
    existing = [each for each in controlled(view, service, "EndpointSlice") if not is_deleted(each)]
    for index, (ports, endpoints) in enumerate(wanted):
        labels = _labels(service)
        if index >= len(existing):
            yield create(_slice(service, labels, ports, endpoints))
            continue
        live = existing[index]
        metadata = {**live["metadata"], "labels": labels}
        changed = {**live, "metadata": metadata, "ports": ports or None, "endpoints": endpoints}
        same = equal_json(live.get("endpoints") or [], endpoints) and equal_json(live.get("ports") or [], ports)
        if not same or live["metadata"].get("labels") != labels:
            yield update(changed)
    yield from map(delete, existing[len(wanted) :])


def _slice(service: Manifest, labels: Mapping[str, str], ports: list[Any], endpoints: list[Manifest]) -> Manifest:
    metadata = service["metadata"]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [controller_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports or None,
    }


def _labels(service: Manifest) -> dict[str, str]:
    headless = {_HEADLESS: ""} if service["spec"].get("clusterIP") == "None" else {}
    given = {
        name: value
        for name, value in (service["metadata"].get("labels") or {}).items()
        if name not in (_MANAGED_BY, _SERVICE, _HEADLESS)
    }
    name = service["metadata"]["name"]
    return {**given, **headless, _MANAGED_BY: "endpointslice-controller.k8s.io", _SERVICE: name}


def _is_included(pod: Manifest) -> bool:
    return bool(pod["status"].get("podIP")) and not is_finished(pod)


def _endpoint(view: ClusterView, service: Manifest, pod: Manifest) -> Manifest:
    metadata, node = pod["metadata"], pod["spec"].get("nodeName")
    serving, terminating = is_ready(pod), is_deleted(pod)
    publish = bool(service["spec"].get("publishNotReadyAddresses"))
    ready = publish or (serving and not terminating)
    found = view.get("Node", "", node) if node else None
    zone = (found["metadata"].get("labels") or {}).get(_ZONE) if found else None
    hostname = pod["spec"].get("hostname")
    named = hostname and pod["spec"].get("subdomain") == service["metadata"]["name"]
    return {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        **({"hostname": hostname} if named else {}),
        "targetRef": {
            "kind": "Pod",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
        **({"nodeName": node} if node else {}),
        **({"zone": zone} if zone else {}),
    }


def _ports(service: Manifest, pod: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the ports of a Service as numbers of a pod; a named port that the pod lacks is left out."""
    for port in service["spec"].get("ports") or ():
        target, protocol = port.get("targetPort", port["port"]), port.get("protocol", "TCP")
        number = target if isinstance(target, int) else _named(pod, target, protocol)
        if number is not None:
            application = {"appProtocol": port["appProtocol"]} if port.get("appProtocol") else {}
            yield {"name": port.get("name", ""), "port": number, "protocol": protocol, **application}


def _named(pod: Manifest, name: str, protocol: str) -> int | None:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("name") == name and port.get("protocol", "TCP") == protocol:
                found: int = port["containerPort"]
                return found
    return None
