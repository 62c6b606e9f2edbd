"""APIServices of the groups that the server itself serves.

A real API server creates those of built-in groups when it starts, and those of custom groups when a definition is
established (`pkg/controlplane/apiserver/aggregator.go` and `crdregistration_controller.go` of Kubernetes 1.36). Here
they are created at the first request for APIServices, since most clusters have none.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from ocf.errors import ApiError
from ocf.objects import Manifest
from ocf_server.api.write_options import WriteOptions
from ocf_server.http.backend import Backend
from ocf_server.http.resource_catalog import CUSTOM_PRIORITIES
from ocf_server.registry import generic_store, verbs
from ocf_server.registry.api_services import API_SERVICE
from ocf_server.registry.pending_write import run_without_admission

__all__ = ["LocalApiServices"]

_LABEL: Final = "kube-aggregator.kubernetes.io/automanaged"
_MANAGER: Final = "kube-apiserver"
_API_VERSION: Final = "apiregistration.k8s.io/v1"
_PRIORITIES: Final = {
    ("", "v1"): (18000, 1),
    ("admissionregistration.k8s.io", "v1"): (16700, 15),
    ("apiextensions.k8s.io", "v1"): (16700, 15),
    ("apps", "v1"): (17800, 15),
    ("authentication.k8s.io", "v1"): (17700, 15),
    ("authorization.k8s.io", "v1"): (17600, 15),
    ("autoscaling", "v1"): (17500, 15),
    ("autoscaling", "v2"): (17500, 30),
    ("batch", "v1"): (17400, 15),
    ("certificates.k8s.io", "v1"): (17300, 15),
    ("coordination.k8s.io", "v1"): (16500, 15),
    ("discovery.k8s.io", "v1"): (16200, 15),
    ("events.k8s.io", "v1"): (17750, 15),
    ("flowcontrol.apiserver.k8s.io", "v1"): (16100, 21),
    ("networking.k8s.io", "v1"): (17200, 15),
    ("node.k8s.io", "v1"): (16300, 15),
    ("policy", "v1"): (17100, 15),
    ("rbac.authorization.k8s.io", "v1"): (17000, 15),
    ("resource.k8s.io", "v1"): (16200, 21),
    ("scheduling.k8s.io", "v1"): (16600, 15),
    ("storage.k8s.io", "v1"): (16800, 15),
}
"""Priorities of built-in versions: of the group, and of the version in the group."""


class LocalApiServices:
    """Registers the versions of a server as APIServices."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._is_started = False

    def update(self) -> None:
        """Create the APIServices of the versions that are served, and delete those of custom versions that are not.

        APIServices of built-in versions are created once; those that a client deletes are not created again.
        """
        custom = dict.fromkeys((kind.group, kind.version) for kind in self._backend.catalog().kinds if kind.custom)
        wanted = {_name(*version): _api_service(*version, *CUSTOM_PRIORITIES, managed="true") for version in custom}
        if not self._is_started:
            self._is_started = True
            wanted |= {
                _name(*version): _api_service(*version, *priorities, managed="onstart")
                for version, priorities in _PRIORITIES.items()
            }
        stored = {name: manifest for (_, name), manifest in self._backend.registry.store.objects(API_SERVICE)}
        for name in _outdated(stored, custom):
            self._delete(stored[name])
        for name, manifest in sorted(wanted.items()):
            if name not in stored:
                self._create(manifest)

    def _create(self, manifest: Manifest) -> None:
        with suppress(ApiError):  # a client has registered the version itself
            run_without_admission(verbs.create(self._backend.registry, manifest, WriteOptions(_MANAGER)))

    def _delete(self, manifest: Manifest) -> None:
        registry = self._backend.registry
        resource = registry.resource(_API_VERSION, "APIService")
        run_without_admission(generic_store.delete(registry, resource, manifest, WriteOptions()))


def _name(group: str, version: str) -> str:
    return f"{version}.{group}"


def _outdated(stored: dict[str, Manifest], custom: dict[tuple[str, str], None]) -> Iterator[str]:
    names = {_name(*version) for version in custom}
    for name, manifest in stored.items():
        if name not in names and (manifest["metadata"].get("labels") or {}).get(_LABEL) == "true":
            yield name


def _api_service(group: str, version: str, minimum: int, priority: int, *, managed: str) -> Manifest:
    spec = {"group": group, "version": version, "groupPriorityMinimum": minimum, "versionPriority": priority}
    return {
        "apiVersion": _API_VERSION,
        "kind": "APIService",
        "metadata": {"name": _name(group, version), "labels": {_LABEL: managed}},
        "spec": {key: value for key, value in spec.items() if value != ""},
    }
