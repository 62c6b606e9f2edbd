"""What creates and updates of some kinds add to the objects, and keep of them.

The functions follow the registry strategies of a real API server.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf_server.api.users import ADMINISTRATOR
from ocf_server.apiextensions.crd_status import remember_stored, start_status
from ocf_server.registry.claim_sources import set_sources
from ocf_server.registry.disabled_fields import LEASE, drop_election_fields
from ocf_server.registry.job_selector import generate_selector
from ocf_server.registry.pod_resizes import qos_class
from ocf_server.registry.pod_statuses import address_warnings, prepare_status

__all__ = [
    "CERTIFICATE_REQUEST",
    "CLAIM",
    "DEFINITION",
    "FIXED_PARTS",
    "PREPARE_CREATE",
    "PREPARE_STATUS",
    "PREPARE_UPDATE",
    "STATUS_WARNINGS",
]

CLAIM: Final = ("", "PersistentVolumeClaim")
DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
CERTIFICATE_REQUEST: Final = ("certificates.k8s.io", "CertificateSigningRequest")


def _finalizers(live: Manifest) -> dict[str, Any]:
    return {"finalizers": live["spec"].get("finalizers", [])}


def _whole_spec(live: Manifest) -> dict[str, Any]:
    spec: dict[str, Any] = live["spec"]
    return spec


def _set_quality_of_service(pod: Manifest) -> None:
    if "status" in pod:
        pod["status"]["qosClass"] = qos_class(pod["spec"])


def _set_requestor(request: Manifest) -> None:
    # The server has one user.
    request["spec"] = {**request["spec"], "username": ADMINISTRATOR.username, "groups": [*ADMINISTRATOR.groups]}


def _add_finalizer(namespace: Manifest) -> None:
    finalizers = namespace["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


PREPARE_CREATE: Final[Mapping[tuple[str, str], Callable[[Manifest], None]]] = {
    ("", "Namespace"): _add_finalizer,
    ("", "Pod"): _set_quality_of_service,
    ("batch", "Job"): generate_selector,
    CERTIFICATE_REQUEST: _set_requestor,
    CLAIM: lambda claim: set_sources(claim, {}),
    DEFINITION: start_status,
}
"""What a create adds to an object of a kind."""


PREPARE_UPDATE: Final[Mapping[tuple[str, str], Callable[[Manifest, Manifest], None]]] = {
    LEASE: drop_election_fields,
    CLAIM: lambda claim, live: set_sources(claim, live["spec"]),
    DEFINITION: lambda definition, _: remember_stored(definition),
}
"""What an update adds to an object of a kind, from the new and the live object."""


PREPARE_STATUS: Final[Mapping[tuple[str, str], Callable[[Manifest, Manifest], None]]] = {("", "Pod"): prepare_status}
"""What an update of the status adds to an object of a kind, from the new and the live object."""


STATUS_WARNINGS: Final[Mapping[tuple[str, str], Callable[[Manifest], Iterator[str]]]] = {("", "Pod"): address_warnings}
"""Warnings of a valid update of the status."""


FIXED_PARTS: Final[Mapping[tuple[str, str], Callable[[Manifest], dict[str, Any]]]] = {
    ("", "Namespace"): _finalizers,
    CERTIFICATE_REQUEST: _whole_spec,
}
"""Fields of the spec that an update of the object itself does not change."""
