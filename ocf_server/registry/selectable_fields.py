"""Fields that field selectors support, by kind.

Every kind supports name and namespace, some kinds more. The list is that of a real API server with its exceptions: a
Namespace, for example, does not support `metadata.namespace`. Errors have the texts of a real API server.
Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/#list-of-supported-fields.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ocf.errors import ApiError
from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource
from ocf_server.api.status_errors import bad_request

__all__ = ["selectable"]

_Read: TypeAlias = Callable[[Manifest], str]

_PLACE: Final = ("metadata.name", "metadata.namespace")
_UNSUPPORTED: Final = "field label not supported: {}"

_POD: Final = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
)
_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT: Final = (
    *(f"involvedObject.{name}" for name in _ABOUT),
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_NEW_EVENT: Final = (*(f"regarding.{name}" for name in _ABOUT), "reason", "reportingController", "type")

_FIELDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Event"): (*_PLACE, *_EVENT),
    ("", "Namespace"): ("metadata.name", "status.phase"),
    ("", "Node"): ("metadata.name", "spec.unschedulable"),
    ("", "Pod"): (*_PLACE, *_POD),
    ("", "ReplicationController"): (*_PLACE, "status.replicas"),
    ("", "Secret"): (*_PLACE, "type"),
    ("", "Service"): (*_PLACE, "spec.clusterIP", "spec.type"),
    ("batch", "Job"): (*_PLACE, "status.successful"),
    ("certificates.k8s.io", "CertificateSigningRequest"): ("metadata.name", "spec.signerName"),
    ("events.k8s.io", "Event"): (*_PLACE, *_NEW_EVENT),
    ("resource.k8s.io", "ResourceSlice"): ("metadata.name", "spec.nodeName", "spec.driver"),
}
_MESSAGES: Final[Mapping[tuple[str, str], str]] = {
    ("batch", "Job"): 'field label "{}" not supported for Job',
    ("resource.k8s.io", "ResourceSlice"): "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
}
_NUMBERS: Final = frozenset({"status.replicas", "status.successful"})
_FLAGS: Final = frozenset({"spec.hostNetwork", "spec.unschedulable"})
_ALIASES: Final[Mapping[str, str]] = {"spec.host": "spec.nodeName", "status.successful": "status.succeeded"}


def selectable(resource: ApiResource, path: str) -> _Read:
    """Return a function that reads a selectable field.

    Args:
        resource: The kind, in the version of the request.

    Returns:
        A function that returns the value of the field, as text, for an object of that kind and version.

    Raises:
        BadRequestError: If the kind does not support the field in selectors.
    """
    key = (resource.group, resource.kind)
    known = _FIELDS.get(key)
    place = _PLACE if resource.namespaced or not resource.custom else _PLACE[:1]
    allowed = (*place, *resource.selectable) if known is None else known
    if key == ("", "Pod") and path == "spec.host":
        path = _ALIASES[path]
    if path not in allowed:
        raise _unsupported_field(resource, path, allowed)
    if path == "source":
        return _source
    names = _ALIASES.get(path, path).split(".")
    missing = "0" if path in _NUMBERS else "false" if path in _FLAGS else ""
    return lambda manifest: _text(manifest, names, missing)


def _unsupported_field(resource: ApiResource, path: str, allowed: tuple[str, ...]) -> ApiError:
    key = (resource.group, resource.kind)
    if key in _FIELDS:
        return bad_request(_MESSAGES.get(key, _UNSUPPORTED).format(path))
    if resource.custom:
        return bad_request(_UNSUPPORTED.format(path))
    names = ", ".join(f'"{name}"' for name in allowed)
    return bad_request(f'"{path}" is not a known field selector: only {names}')


def _text(manifest: Manifest, names: list[str], missing: str) -> str:
    value: Any = manifest
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return missing
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        # A real API server compares only the first of the addresses of a Pod.
        return str(value[0].get("ip", "")) if value and isinstance(value[0], dict) else missing
    return str(value)


def _source(manifest: Manifest) -> str:
    component = (manifest.get("source") or {}).get("component")
    return str(component or manifest.get("reportingComponent") or "")
