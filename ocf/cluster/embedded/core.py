"""What all parts of an embedded server share: the kinds, the store, the clock, and where names and uids come from."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from ocf.cluster.embedded.decoding import decode, format_time
from ocf.cluster.embedded.failures import bad_request, forbidden, no_such_resource, not_found, unsupported
from ocf.cluster.embedded.schema import Resource, builtin_resource, struct
from ocf.cluster.embedded.store import Kind, Place, Store
from ocf.errors import StatusCause
from ocf.objects import Manifest, ObjectKey, copy_json, split_api_version

__all__ = ["Core", "bare", "decoded", "kind_of", "place_of"]

_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_PREFIX: Final = 58

_REFUSED: Final = {
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"): (
        "serve CustomResourceDefinitions",
        "register the kind: EmbeddedCluster(kinds=[CustomKind(group, version, kind)])",
    ),
    ("apiregistration.k8s.io", "v1", "APIService"): ("aggregate other servers", "register their kinds as CustomKind"),
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): ("convert between versions", "use autoscaling/v2"),
    ("events.k8s.io", "v1", "Event"): ("convert between versions", "use the Event of v1"),
}


def kind_of(resource: Resource) -> Kind:
    """Return how the store calls a kind."""
    return resource.group, resource.kind


def place_of(manifest: Manifest) -> Place:
    """Return where an object is stored."""
    metadata = manifest["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def bare(manifest: Manifest) -> Manifest:
    """Return an object without its managed fields, sharing everything else."""
    metadata = {key: value for key, value in manifest.get("metadata", {}).items() if key != "managedFields"}
    return {**manifest, "metadata": metadata}


@dataclass(slots=True)
class Core:
    """The state of an embedded server.

    Args:
        store: The objects.
        custom: The user's kinds, by group, version and kind.
        now: The clock; aware UTC.
        random: Where uids and generated names come from.
    """

    store: Store
    custom: dict[tuple[str, str, str], Resource]
    now: Callable[[], datetime]
    random: random.Random
    _empty: dict[tuple[str, str, str], Manifest] = field(default_factory=dict, init=False, repr=False)
    _known: dict[tuple[str, str], Resource] = field(default_factory=dict, init=False, repr=False)

    def resource(self, api_version: str, kind: str) -> Resource:
        """Look a kind up.

        Args:
            api_version: Group and version.
            kind: Kind.

        Returns:
            The kind as it is served.

        Raises:
            NotFoundError: If it is not served.
            BadRequestError: If a real server would serve it and this one cannot.
        """
        known = self._known.get((api_version, kind))
        if known is None:
            known = self._known[api_version, kind] = self._look_up(api_version, kind)
        return known

    def _look_up(self, api_version: str, kind: str) -> Resource:
        group, version = split_api_version(api_version)
        key = (group, version, kind)
        if key in _REFUSED and key not in self.custom:
            raise unsupported(*_REFUSED[key])
        resource = self.custom.get(key) or builtin_resource(group, version, kind)
        if resource is None:
            raise no_such_resource()
        return resource

    def timestamp(self) -> str:
        """Return the time as objects write it."""
        return format_time(self.now())

    def new_uid(self) -> str:
        """Return a uid that no object had."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def generate_name(self, prefix: str) -> str:
        """Append a random suffix to a prefix, which is cut if need be."""
        return prefix[:_LONGEST_PREFIX] + "".join(self.random.choices(_SUFFIX_LETTERS, k=5))

    def empty(self, resource: Resource) -> Manifest:
        """Return an object of a kind before anything is written; it must not be changed."""
        key = (resource.group, resource.version, resource.kind)
        if key not in self._empty:
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            self._empty[key] = head if resource.custom else decode(head, resource.type)
        return self._empty[key]

    def find(self, resource: Resource, key: ObjectKey) -> Manifest:
        """Return the stored object of a key.

        Raises:
            NotFoundError: If it does not exist.
        """
        if bool(key.namespace) is not resource.namespaced:
            raise bad_request(_scope_problem(resource, key.namespace))
        found = self.store.get(kind_of(resource), (key.namespace, key.name))
        if found is None:
            raise not_found(resource.group_resource, key.name)
        return found

    def demand_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        """Refuse to create something where there is no namespace, or one that is going away.

        Raises:
            NotFoundError: If the namespace does not exist.
            ForbiddenError: If it is being deleted.
        """
        if not resource.namespaced:
            return
        if not namespace:
            raise bad_request(_scope_problem(resource, namespace))
        home = self.store.get(("", "Namespace"), ("", namespace))
        if home is None:
            raise not_found("namespaces", namespace)
        if "deletionTimestamp" in home["metadata"]:
            cause = StatusCause(
                "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
            )
            problem = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(resource.group_resource, name, problem, [cause])


def _scope_problem(resource: Resource, namespace: str) -> str:
    if namespace:
        return f'{resource.kind} is cluster-scoped: no namespace may be given, got "{namespace}"'
    return f"{resource.kind} is namespaced: an empty namespace may not be set when a resource name is provided"


def decoded(manifest: Manifest, resource: Resource) -> Manifest:
    """Return an object as the server would hold it, not yet defaulted; it shares nothing with the given one.

    Raises:
        DecodeError: If a value is of a wrong JSON type.
    """
    if not resource.custom:
        return decode(manifest, resource.type)
    out: dict[str, Any] = copy_json(manifest)
    out["metadata"] = decode(out.get("metadata") or {}, struct("meta.v1.ObjectMeta"))
    return out
