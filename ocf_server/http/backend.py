"""The cluster behind the server, with an optional wrapper.

Every verb is called on `Backend.wrapped`: the embedded cluster or a wrapper around it that is also a `Cluster`, for
example one that injects faults, counts, or delays. Information that only the HTTP server needs (which kinds are served,
whether an object still exists after its delete) is read directly from the embedded cluster, without the wrapper and
without an entry in the request log.

The user, field validation and the receiver of warnings differ between requests, but the verbs of `Cluster`, which a
wrapper calls, have no parameters for them. So the embedded cluster takes them from the context of the request.

Without a wrapper, lists and watches share the objects of the store and their encodings. A wrapper gets copies, which it
may change.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from ocf.cluster.protocol import Cluster, ListOptions, ObjectList, WatchOptions
from ocf.errors import ApiError
from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource
from ocf_server.api.users import User
from ocf_server.api.write_options import FieldValidation, WriteOptions
from ocf_server.apiextensions import defined_kind, is_terminating
from ocf_server.cluster import EmbeddedCluster
from ocf_server.http.resource_catalog import RemoteVersion, ResourceCatalog, ServedResource, builtin_kinds, custom_kind
from ocf_server.http.responses import Event, ObjectEncoder, Serializer, StoredObjectEncoder
from ocf_server.registry.conversion_review import ConversionNeeded
from ocf_server.registry.registry import DEFINITION, Registry, kind_of

__all__ = ["Backend", "Wrap"]

Wrap: TypeAlias = Callable[[Cluster], Cluster]
"""Returns a wrapper around a cluster."""


@dataclass(slots=True)
class Backend:
    """A cluster with its wrapper.

    Args:
        wrapped: The cluster that requests are sent to: the embedded cluster or the current wrapper.
    """

    cluster: EmbeddedCluster
    wrapped: Cluster = field(init=False)
    _is_wrapped: bool = field(default=False, init=False, repr=False)
    _defined_at: int = field(default=-1, init=False, repr=False)
    _custom: tuple[ServedResource, ...] = field(default=(), init=False, repr=False)
    _entries: dict[tuple[int, str, bool], tuple[ApiResource, ServedResource]] = field(
        default_factory=dict, init=False, repr=False
    )
    _remote: tuple[RemoteVersion, ...] = field(default=(), init=False, repr=False)
    _catalog: ResourceCatalog | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.wrap(None)

    def wrap(self, wrap: Wrap | None) -> Cluster:
        """Replace the wrapper around the cluster.

        Args:
            wrap: Returns the wrapper for the cluster it is called with; None removes the wrapper.

        Returns:
            The cluster that requests are sent to from now on.
        """
        self.wrapped = self.cluster if wrap is None else wrap(self.cluster)
        self._is_wrapped = wrap is not None
        return self.wrapped

    def requested_by(self, user: User, warn: Callable[[str], None]) -> AbstractContextManager[None]:
        """Make the requests inside of the block, which are authorized, those of a user, whom warnings are sent to."""
        return self.cluster._checking_request(WriteOptions(user=user, warn=warn))  # noqa: SLF001 (as below)

    def checking(
        self, validation: FieldValidation, warn: Callable[[str], None], duplicates: Iterable[str], user: User
    ) -> AbstractContextManager[None]:
        """Apply the field validation of a request to writes inside the block.

        The arguments are those of `EmbeddedCluster.checking`, and the user of the request.
        """
        checks = WriteOptions(validation=validation, duplicates=tuple(duplicates), warn=warn, user=user)
        return self.cluster._checking_request(checks)  # noqa: SLF001 (this package is a part of the embedded cluster)

    async def list(
        self, kind: ServedResource, serializer: Serializer, options: ListOptions
    ) -> tuple[ObjectList, ObjectEncoder]:
        """Read one page of the objects of a kind.

        Returns:
            The page, and the encoder of its items; they must not be changed.
        """
        if self._is_wrapped:
            found = await self.wrapped.list(kind.api_version, kind.kind, options)
            return found, ObjectEncoder(kind, serializer)
        found = await self.cluster._page(kind.api_version, kind.kind, options)  # noqa: SLF001 (as for the registry)
        return found, StoredObjectEncoder.of(kind, serializer, self.registry)

    def watch(self, kind: ServedResource, options: WatchOptions) -> AsyncGenerator[Event, None]:
        """Report changes to the objects of a kind, without end.

        Returns:
            The events; their objects must not be changed.
        """
        watch = self.wrapped.watch if self._is_wrapped else self.cluster._changes  # noqa: SLF001 (as for the registry)
        return cast("AsyncGenerator[Event, None]", watch(kind.api_version, kind.kind, options))

    @property
    def registry(self) -> Registry:
        """The registry of the cluster."""
        return self.cluster._registry  # noqa: SLF001 (this package is a part of the embedded cluster)

    @property
    def version(self) -> int:
        """Resource version of the whole cluster."""
        return self.registry.store.version

    @property
    def oldest(self) -> int:
        """The oldest resource version at which a list can still be answered."""
        return self.registry.store.forgotten

    def catalog(self) -> ResourceCatalog:
        """Return the resources that are served now."""
        # Definitions change seldom, and discovery is asked for with nearly every client.
        changed = self.registry.store.changed_at(DEFINITION)
        if self._catalog is None or changed != self._defined_at:
            self._defined_at = changed
            custom = tuple(self._custom_kinds())
            if self._catalog is None or custom != self._custom:
                self._custom = custom
                builtin = filter(self._serves, builtin_kinds(self.registry.release))
                self._catalog = ResourceCatalog((*builtin, *custom), self._remote, self.registry.release)
        return self._catalog

    def _custom_kinds(self) -> Iterator[ServedResource]:
        resources = self.registry.custom_kinds()
        served = {(kind_of(resource), resource.version) for resource in resources}
        definitions = self.registry.store.objects(DEFINITION)
        ending = {defined_kind(definition) for _, definition in definitions if is_terminating(definition)}
        # Entries are made once: with each of many definitions, the catalog is made again.
        known, self._entries = self._entries, {}
        for resource in resources:
            home = kind_of(resource)
            version = resource.home[1] if resource.home else resource.version
            stored, is_ending = version if (home, version) in served else "", home in ending
            key = id(resource), stored, is_ending
            self._entries[key] = known.get(key) or (resource, custom_kind(resource, stored=stored, ending=is_ending))
            yield self._entries[key][1]

    def set_remote(self, versions: tuple[RemoteVersion, ...]) -> None:
        """Set the versions of aggregated API servers, which discovery lists."""
        if versions != self._remote:
            self._remote, self._catalog = versions, None

    def _serves(self, kind: ServedResource) -> bool:
        if not kind.is_stored:
            return True
        return self._resource(kind) is not None

    def stored(self, kind: ServedResource, namespace: str, name: str) -> Manifest | None:
        """Return a stored object, without an entry in the request log; the caller must not change it.

        An object that only a webhook could convert is in the version in which it is stored.
        """
        resource = self._resource(kind)
        found = None if resource is None else self.registry.store.get(kind_of(resource), (namespace, name))
        return None if resource is None or found is None else self._shown(found, resource)

    def deleted(self, kind: ServedResource, namespace: str, name: str, version: int) -> Manifest | None:
        """Return an object as its delete stored it, before the controllers changed it; None if the delete removed it.

        Args:
            version: The version of the cluster before the delete.
        """
        resource = self._resource(kind)
        if resource is None:
            return None
        # From the log of changes, because a controller may have removed the object within the same request.
        for change in self.registry.store.since(version):
            if (change.kind, change.place) == (kind_of(resource), (namespace, name)):
                if change.after is None:
                    return None
                if "deletionTimestamp" in change.after["metadata"]:
                    return self._shown(change.after, resource)
        return self.stored(kind, namespace, name)

    def _resource(self, kind: ServedResource) -> ApiResource | None:
        try:
            return self.registry.resource(kind.api_version, kind.kind)
        except ApiError:
            return None

    def _shown(self, stored: Manifest, resource: ApiResource) -> Manifest:
        try:
            return self.registry.shown(stored, resource)
        except ConversionNeeded:
            return stored
