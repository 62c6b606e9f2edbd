"""The `Cluster` protocol: the verbs over manifests, their options, and their results.

The verbs are those of the Kubernetes API (https://kubernetes.io/docs/reference/using-api/api-concepts/). Every
implementation raises `ocf.errors.ApiError` or one of its subclasses and nothing else. It never changes a manifest that
it is given, and what it returns belongs to the caller.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Protocol

from ocf.cluster.apply_cache import ApplyCache
from ocf.cluster.impersonation import NO_EXTRA, Impersonation, ServiceAccount
from ocf.cluster.indexes import IndexKey
from ocf.errors import ExpiredError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.owner_references import controller_of, owner_uids

__all__ = [
    "DEFAULT_DELETE_OPTIONS",
    "DEFAULT_LIST_OPTIONS",
    "Cluster",
    "DeleteOptions",
    "EventType",
    "ListOptions",
    "ObjectList",
    "PatchOptions",
    "PatchType",
    "Preconditions",
    "Propagation",
    "SelectionChangedError",
    "Subresource",
    "WatchEvent",
    "WatchOptions",
    "as_user",
]


class Subresource(StrEnum):
    """A part of an object, or an action on it, that has its own endpoint."""

    STATUS = "status"
    SCALE = "scale"
    EVICTION = "eviction"
    """Eviction of a pod, which disruption budgets may reject with 429; it can only be created."""
    BINDING = "binding"
    """Assignment of a pod to a node; it can only be created."""
    TOKEN = "token"  # noqa: S105 (a name)
    """A token of a service account, as a TokenRequest; it can only be created."""
    EPHEMERAL_CONTAINERS = "ephemeralcontainers"
    """The ephemeral containers of a pod, which can only be added."""
    RESIZE = "resize"
    """The resources of the containers of a pod."""
    FINALIZE = "finalize"
    """The finalizers in the spec of a namespace; it can only be updated."""
    APPROVAL = "approval"
    """The conditions of a certificate signing request, with its approval."""

    @property
    def shows_object(self) -> bool:
        """Whether requests for it send and return the object itself; otherwise a Scale, a Status, or a TokenRequest."""
        return self not in (Subresource.SCALE, Subresource.EVICTION, Subresource.BINDING, Subresource.TOKEN)


class PatchType(StrEnum):
    """The format of a patch; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC_MERGE = "application/strategic-merge-patch+json"


class Propagation(StrEnum):
    """The propagation policy of a delete: what happens to the dependents, which name the object as their owner."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class EventType(StrEnum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class Preconditions:
    """Conditions on the live object; a delete is rejected unless they are met.

    Args:
        uid: Its uid; None does not check it.
        resource_version: Its resourceVersion; None does not check it.
    """

    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """Options of `Cluster.list`: which objects of a kind, and how many of them.

    Args:
        namespace: Only objects of this namespace; empty for all namespaces.
        label_selector: A label selector in its text form, as in
            https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/; empty for all objects.
        field_selector: A field selector. Every kind can be selected by `metadata.name` and `metadata.namespace`, some
            kinds also by the fields listed in
            https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/.
        shard_selector: A shard selector, the text of `ocf.objects.ShardSelector`; empty for all objects. An API server
            that does not know it, or whose gate is off, ignores it: then the list has no `shard_selector` of its own.
        controller: Only objects whose controller, in their owner references, has this uid; empty for all objects. No
            selector of the API server can select them: a cache has an index of them, and any other cluster lists what
            the other options select. A page may have fewer objects than `limit` then, or none.
        owner: As `controller`, for objects that refer to this uid in any owner reference.
        index: As `controller`, for objects that have this key in an index of the author's, `Index.at`; None for all.
        metadata_only: Whether `metadata` suffices. A cache may hold no more of an object; any other cluster returns it
            as a whole.
        limit: The maximum number of objects in the page; 0 requests one page with all objects.
        continue_token: The token of the previous page; empty for the first page. All pages are of the resource version
            of the first one.
    """

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    shard_selector: str = ""
    controller: str = ""
    owner: str = ""
    index: IndexKey | None = None
    metadata_only: bool = False
    limit: int = 0
    continue_token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """Options of `Cluster.watch`: where the watch starts, and which objects of a kind it reports.

    Args:
        resource_version: The version after which the watch starts: that of a list or of the last event. Empty starts
            with the present objects as `ADDED`.
        namespace: As in `ListOptions`.
        label_selector: As in `ListOptions`. An object that begins to match is reported as `ADDED`, one that ceases to
            match as `DELETED`.
        field_selector: As `label_selector`.
        shard_selector: As in `ListOptions`.
        timeout: Seconds after which the watch ends, after a bookmark two seconds before; None leaves the end to the
            cluster.
    """

    resource_version: str
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    shard_selector: str = ""
    timeout: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchOptions:
    """Options of `Cluster.patch`.

    Args:
        patch_type: The format of the patch. A custom resource does not accept a strategic merge patch.
        field_manager: The name that owns the changed fields, at most 128 bytes, printable.
        subresource: The part of the object to patch; None patches the object itself.
        dry_run: Return what would be stored, without storing it.
    """

    patch_type: PatchType
    field_manager: str
    subresource: Subresource | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """Options of `Cluster.delete`.

    Args:
        preconditions: Conditions on the live object; None deletes it in any case.
        propagation: What happens to its dependents; None takes the default of the kind.
        grace_period_seconds: Seconds until a pod on a node is killed; None takes what the pod says, 0 deletes it at
            once, without the kubelet. Other kinds ignore it.
        dry_run: Check whether the delete would be accepted, without deleting.
    """

    preconditions: Preconditions | None = None
    propagation: Propagation | None = None
    grace_period_seconds: int | None = None
    dry_run: bool = False


DEFAULT_LIST_OPTIONS: Final = ListOptions()
"""All objects of a kind, in all namespaces and in one page."""

DEFAULT_DELETE_OPTIONS: Final = DeleteOptions()
"""A delete without preconditions, with the propagation that is the kind's default."""


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list.

    Args:
        items: The objects, each with `apiVersion` and `kind`, ordered by namespace and name.
        resource_version: Where a watch that follows this list starts.
        continue_token: The token that requests the next page; empty on the last page.
        remaining_item_count: Number of objects after this page; None on the last page, and where the API server does
            not count them, as with selectors.
        shard_selector: The shard selector by which the API server has selected the items; empty if it has not.
    """

    items: tuple[Manifest, ...]
    resource_version: str
    continue_token: str = ""
    remaining_item_count: int | None = None
    shard_selector: str = ""

    def selected_by(self, options: ListOptions) -> ObjectList:
        """Return the page with only the objects that no selector of the API server can select.

        Args:
            options: Their controller, their owner, and their key in an index.

        Example:
            >>> shop = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "corner", "uid": "1"}
            >>> controlled = {"metadata": {"name": "a", "ownerReferences": [shop | {"controller": True}]}}
            >>> owned = {"metadata": {"name": "b", "ownerReferences": [shop]}}
            >>> page = ObjectList((controlled, owned, {"metadata": {"name": "c"}}), "7")
            >>> for options in (ListOptions(controller="1"), ListOptions(owner="1")):
            ...     print([live["metadata"]["name"] for live in page.selected_by(options).items])
            ['a']
            ['a', 'b']
        """
        controller, owner, index = options.controller, options.owner, options.index
        if not (controller or owner or index):
            return self
        items: Iterable[Manifest] = self.items
        if controller:
            references = ((live, controller_of(live)) for live in items)
            items = [live for live, found in references if found is not None and found.uid == controller]
        if owner:
            items = [live for live in items if owner in owner_uids(live)]
        if index is not None:
            items = [live for live in items if index.selects(live)]
        # The number of objects that remain is that of all of them.
        return replace(self, items=tuple(items), remaining_item_count=None)


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch.

    Args:
        type: What happened.
        object: The object after it happened; a bookmark has only kind, apiVersion and resourceVersion.
        old: For a modification, the object as it was reported before, if that is known; a watch of the server does not
            report it, subscriptions to a cache do.
    """

    type: EventType
    object: Manifest
    old: Manifest | None = None


class SelectionChangedError(ExpiredError):
    """A wrapper of a cluster, which narrows lists and watches, selects other objects now: list and watch again."""


class Cluster(Protocol):
    """The verbs of the Kubernetes API over manifests.

    Every verb raises `ocf.errors.ApiError`, by the class of the error. These parameters mean the same in each verb:

    * `field_manager`: the name that owns the fields that are written, at most 128 bytes, printable;
    * `subresource`: the part of the object to read or write; None is the object itself. A Scale, an Eviction and a
      Binding do not say which object they are for: they are sent under the apiVersion, kind and name of that object,
      with `spec.replicas`, `deleteOptions` or `target`;
    * `dry_run`: return what would be stored, without storing it.
    """

    @property
    def apply_cache(self) -> ApplyCache:
        """Results of writes, shared by all reconciles; losing it costs one write for each affected object."""
        ...

    def acting_as(
        self,
        user: str | ServiceAccount,
        *,
        groups: Sequence[str] = (),
        uid: str = "",
        extra: Mapping[str, Sequence[str]] = NO_EXTRA,
    ) -> Cluster:
        """Return this cluster with another user: the API server authorizes its requests as those of that user.

        It shares connections, caches and logs with this one, which goes on with its own user, and it ends with this
        one. What a cache answers is read with the rights of the process. A cluster that acts as a user already, also by
        its kubeconfig, is that of the new user instead: nothing of the former one is sent, and the user who
        authenticates needs the right to impersonate the new one.

        Args:
            user: Name of the user, or a service account. Whether a service account exists is not checked: what is bound
                to its name counts.
            groups: Groups of the user. The API server adds `system:authenticated`, and those of a service account if no
                groups are given.
            uid: UID of the user; empty for none.
            extra: Further attributes of the user, with their values.

        Raises:
            ConfigError: If the user has no name, no account can have the name of the service account, or a value cannot
                be sent in a header.
        """
        ...

    async def is_namespaced(self, api_version: str, kind: str) -> bool:
        """Return whether the objects of a kind are in namespaces; False for a cluster-scoped kind.

        Args:
            api_version: Group and version.

        Raises:
            ApiError: By class; `NotFoundError` when the cluster does not serve the kind.
        """
        ...

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale.

        Args:
            key: The object.
            subresource: The part to read.

        Raises:
            ApiError: By class; `NotFoundError` when the object, the kind or the subresource does not exist.
        """
        ...

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read the objects of a kind.

        Args:
            api_version: Group and version.
            options: Which objects, and how many of them.

        Returns:
            A page of objects.

        Raises:
            ApiError: By class; `ExpiredError` when the continue token is too old.
        """
        ...

    def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncIterator[WatchEvent]:
        """Report what happens to the objects of a kind, until the caller closes the watch or the server ends it.

        Args:
            api_version: Group and version.
            options: Where the watch starts, and which objects it reports.

        Returns:
            The events in order, bookmarks included.

        Raises:
            ApiError: By class; `ExpiredError` when the resource version is too old: list and watch again.
        """
        ...

    async def apply(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        force: bool = False,
        subresource: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        """Create or change an object by server-side apply.

        Args:
            manifest: The fields to own.
            field_manager: As of the class.
            force: Take fields from other field managers instead of failing.
            subresource: As of the class.
            dry_run: As of the class.

        Returns:
            The object, or its Scale, as stored.

        Raises:
            ApiError: By class; without `force`, `ConflictError`, whose causes name field manager and field.
        """
        ...

    async def create(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        subresource: Subresource | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Manifest:
        """Create an object, evict a pod, or bind a pod to a node.

        Args:
            manifest: The object; `generateName` may take the place of its name.
            field_manager: As of the class.
            subresource: As of the class; `EVICTION` and `BINDING` are for pods.
            dry_run: As of the class.
            strict: Whether a field that the API server does not know is an error, as in an apply. Otherwise it is left
                out.

        Returns:
            The object as stored; a Status for a subresource.

        Raises:
            ApiError: By class; `AlreadyExistsError` when the name is taken, `TooManyRequestsError` when a disruption
                budget does not allow the eviction now, `ConflictError` when the pod is bound already.
        """
        ...

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace an object, its status, or its Scale.

        Args:
            manifest: The object.
            field_manager: As of the class.
            subresource: As of the class.
            dry_run: As of the class.

        Returns:
            The object, or its Scale, as stored.

        Raises:
            ApiError: By class; `ConflictError` when a `resourceVersion` in the manifest is not the live one.
        """
        ...

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        """Change parts of an object, of its status, or of its Scale.

        Args:
            key: The object.
            patch: A list of operations for `PatchType.JSON`, an object for the other types.
            options: The type of the patch, and how to write.

        Returns:
            The object, or its Scale, as stored.

        Raises:
            ApiError: By class; `InvalidError` when the patch cannot be applied, or a `test` operation fails.
        """
        ...

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        """Delete an object.

        It returns when the request is accepted. Finalizers can keep the object beyond that.

        Args:
            key: The object.
            options: The conditions of the delete, and what happens to the dependents.

        Raises:
            ApiError: By class; `NotFoundError` when the object does not exist, `ConflictError` when a precondition is
                not met.
        """
        ...


def as_user(cluster: Cluster, user: Impersonation) -> Cluster:
    """Return a cluster that acts as a user."""
    return cluster.acting_as(user.user, groups=user.groups, uid=user.uid, extra=user.extra)
