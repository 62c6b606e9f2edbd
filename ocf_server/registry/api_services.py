"""APIServices: their validation, and the addresses of their services.

Source: kube-aggregator of Kubernetes 1.36 (validation, remote_available_controller). There is no service network: a
Service with endpoints is reached at the address of a ready endpoint.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf.objects.name_validation import dns_1035_label, dns_subdomain
from ocf_server.api.status_errors import go_json
from ocf_server.registry.storage import Storage

__all__ = ["API_SERVICE", "UnavailableError", "address", "api_service_problems"]

API_SERVICE: Final = ("apiregistration.k8s.io", "APIService")
_SERVICE: Final = ("", "Service")
_SLICE: Final = ("discovery.k8s.io", "EndpointSlice")
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_MOST: Final = {"groupPriorityMinimum": 20000, "versionPriority": 1000}
_LAST_PORT: Final = 65535


class UnavailableError(Exception):
    """A service that cannot be reached.

    Args:
        reason: Reason of the condition `Available`.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _invalid(path: str, value: Any, problem: str) -> FieldProblem:
    return FieldProblem(path, f"Invalid value: {go_json(value)}: {problem}")


def api_service_problems(manifest: Manifest) -> Iterator[FieldProblem]:
    """Yield what is invalid in an APIService."""
    spec = manifest["spec"]
    group, version = spec.get("group") or "", spec.get("version") or ""
    wanted, name = f"{version}.{group}", manifest["metadata"].get("name") or ""
    if name != wanted:
        yield _invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"')
    if not group and version != "v1":
        yield FieldProblem("spec.group", "Required value: only v1 may have an empty group and it better be legacy kube")
    if group:
        yield from (_invalid("spec.group", group, problem) for problem in dns_subdomain(group))
    yield from (_invalid("spec.version", version, problem) for problem in dns_1035_label(version))
    for field, most in _MOST.items():
        value = spec.get(field) or 0
        if not 0 < value <= most:
            yield _invalid(f"spec.{field}", value, f"must be positive and less than {most}")
    yield from _service_problems(spec)


def _service_problems(spec: Mapping[str, Any]) -> Iterator[FieldProblem]:
    service, bundle, insecure = spec.get("service"), spec.get("caBundle"), spec.get("insecureSkipTLSVerify")
    if service is None:
        if bundle:
            yield _invalid(
                "spec.caBundle", f"{len(bundle) * 3 // 4} bytes", "local APIServices may not have a caBundle"
            )
        if insecure:
            yield _invalid(
                "spec.insecureSkipTLSVerify", insecure, "local APIServices may not have insecureSkipTLSVerify"
            )
        return
    for field in ("namespace", "name"):
        if not service.get(field):
            yield FieldProblem(f"spec.service.{field}", "Required value")
    port = service.get("port", 443)
    if not 0 < port <= _LAST_PORT:
        problem = "port is not valid: must be between 1 and 65535, inclusive"
        yield _invalid("spec.service.port", port, problem)
    if insecure and bundle:
        yield _invalid("spec.insecureSkipTLSVerify", insecure, "may not be true if caBundle is present")


def address(store: Storage, service: Mapping[str, Any]) -> tuple[str, int]:
    """Return host and port of the service of an APIService.

    Args:
        service: The reference, with namespace, name and port.

    Returns:
        Host and port: those of an external name, or of the first ready endpoint.

    Raises:
        UnavailableError: If the service does not exist, does not listen on the port, or has no ready endpoint.

    Example:
        >>> address(Storage(10), {"namespace": "shop", "name": "metrics", "port": 443})
        Traceback (most recent call last):
        ...
        ocf_server.registry.api_services.UnavailableError: service/metrics in "shop" is not present
    """
    namespace, name, port = service["namespace"], service["name"], service.get("port", 443)
    found = store.get(_SERVICE, (namespace, name))
    what = f'service/{name} in "{namespace}"'
    if found is None:
        raise UnavailableError("ServiceNotFound", f"{what} is not present")
    if found["spec"].get("type") == "ExternalName":
        return found["spec"]["externalName"], port
    ports = [one for one in found["spec"].get("ports") or () if one["port"] == port]
    if not ports:
        raise UnavailableError("ServicePortError", f"{what} is not listening on port {port}")
    slices = [
        one
        for _, one in store.objects(_SLICE, namespace)
        if (one["metadata"].get("labels") or {}).get(_SERVICE_NAME) == name
    ]
    if not slices:
        raise UnavailableError("EndpointsNotFound", f"cannot find endpointslices for {what}")
    wanted = ports[0].get("name") or ""
    # The first ready endpoint and not a random one, so that a test sees the same each time.
    for one in slices:
        for host, target in _ready(one, wanted):
            return host, target
    message = f'endpointslices for {what} have no addresses with port name "{wanted}"'
    raise UnavailableError("MissingEndpoints", message)


def _ready(endpoints: Manifest, port: str) -> Iterator[tuple[str, int]]:
    """Yield the address of each ready endpoint that listens on a port."""
    for target in endpoints.get("ports") or ():
        if (target.get("name") or "") != port or not target.get("port"):
            continue
        for endpoint in endpoints.get("endpoints") or ():
            # An unknown readiness counts as ready (EndpointConditions).
            if (endpoint.get("conditions") or {}).get("ready", True):
                yield from ((host, target["port"]) for host in endpoint.get("addresses") or ())
