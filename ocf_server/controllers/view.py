"""What controllers read: the stored objects, the time, and the settings.

A view is always up to date, unlike the caches of the real controllers. So a controller sees its own writes in the next
reconcile and needs no expectations in order not to create an object twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ocf.objects import Manifest, format_time
from ocf_server.controllers.settings import ControllerSettings
from ocf_server.registry.registry import Registry
from ocf_server.registry.storage import Kind

__all__ = ["ANY", "API_VERSIONS", "ClusterView"]

ANY: Final = "*"
"""Stands for every kind in the watches of a controller."""

API_VERSIONS: Final[Mapping[str, str]] = {
    "ControllerRevision": "apps/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "EndpointSlice": "discovery.k8s.io/v1",
    "Job": "batch/v1",
    "Namespace": "v1",
    "Node": "v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "Pod": "v1",
    "PodDisruptionBudget": "policy/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "Service": "v1",
    "StatefulSet": "apps/v1",
    "StorageClass": "storage.k8s.io/v1",
    "ValidatingAdmissionPolicy": "admissionregistration.k8s.io/v1",
}
"""The version in which the controllers read and write each kind."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The objects of a cluster at one instant; they must not be changed.

    Args:
        registry: The registry with the objects.
        started: When the simulated kubelet first saw a pod in its present state, by uid.
        failures: The error of the last write that failed for an object, by uid.
    """

    registry: Registry
    settings: ControllerSettings
    now: datetime
    started: Mapping[str, datetime] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def timestamp(self) -> str:
        """The instant in the format of object timestamps."""
        return format_time(self.now)

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return an object; None if it does not exist."""
        resource = self.registry.resource(API_VERSIONS[kind], kind)
        return self.registry.read(resource, (namespace, name))

    def objects(self, kind: str, namespace: str = "") -> list[Manifest]:
        """Return the objects of a kind, of one namespace or of all, ordered by namespace and name."""
        resource = self.registry.resource(API_VERSIONS[kind], kind)
        home = (resource.group, kind)
        return [self.registry.shown(each, resource) for _, each in self.registry.store.objects(home, namespace)]

    def dependents(self, owner: Manifest, kind: str) -> Iterator[Manifest]:
        """Yield the objects of a kind that refer to an owner, ordered by name."""
        resource = self.registry.resource(API_VERSIONS[kind], kind)
        home: Kind = (resource.group, kind)
        for found, place in self.registry.store.dependents(owner["metadata"]["uid"]):
            if found == home:
                stored = self.registry.store.get(home, place)
                assert stored is not None  # noqa: S101 (the index and the objects change together)
                yield self.registry.shown(stored, resource)
