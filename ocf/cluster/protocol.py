"""What a cluster can do for us: a few verbs over manifests, and how they fail.

The verbs are those of the Kubernetes API (https://kubernetes.io/docs/reference/using-api/api-concepts/). An
implementation raises `ocf.errors.ApiError` and its subclasses and nothing else; it never changes a manifest it is
given, and what it returns belongs to the caller.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from ocf.cluster.apply_cache import ApplyCache
from ocf.objects import Manifest, ObjectKey

__all__ = [
    "Cluster",
    "EventType",
    "ObjectList",
    "PatchType",
    "Preconditions",
    "Propagation",
    "Subresource",
    "WatchEvent",
]


class Subresource(StrEnum):
    """A part of an object with an endpoint of its own."""

    STATUS = "status"
    SCALE = "scale"


class PatchType(StrEnum):
    """How a patch is read; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC_MERGE = "application/strategic-merge-patch+json"


class Propagation(StrEnum):
    """What a delete does to the objects that name the deleted one as owner."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class EventType(StrEnum):
    """What a watch reports."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must still hold of the live object for a delete to happen.

    Args:
        uid: Its uid; None does not ask.
        resource_version: Its resourceVersion; None does not ask.
    """

    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list.

    Args:
        items: The objects, each with `apiVersion` and `kind`, ordered by namespace and name.
        resource_version: Where a watch that follows this list starts.
        continue_token: What the next call needs to go on; empty on the last page.
    """

    items: tuple[Manifest, ...]
    resource_version: str
    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch.

    Args:
        type: What happened.
        object: The object after it happened; of a bookmark only kind, apiVersion and resourceVersion.
    """

    type: EventType
    object: Manifest


class Cluster(Protocol):
    """Where objects live.

    Every verb raises `ocf.errors.ApiError` (by class: see the tree there). `field_manager` is a name of at most 128
    characters. With `dry_run` the answer is what would have been stored, and nothing is.
    """

    @property
    def apply_cache(self) -> ApplyCache:
        """What must outlive a pass; losing it costs one write per affected object."""
        ...

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale."""
        ...

    async def list(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """Read the objects of a kind, of one namespace or (empty) of all; `limit` 0 asks for everything at once."""
        ...

    def watch(
        self,
        api_version: str,
        kind: str,
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        """Report what happens after `resource_version`, until closed; raises `ExpiredError` when that is too old."""
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
        """Server-side apply: create or change; `ConflictError` names manager and field where `force` is off."""
        ...

    async def create(self, manifest: Manifest, *, field_manager: str, dry_run: bool = False) -> Manifest:
        """Create; `AlreadyExistsError` when the name is taken."""
        ...

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace the whole object, or its status, or its Scale; a `resourceVersion` in it must be the live one.

        A Scale does not say whose it is: it is sent under the apiVersion and kind of the object that it scales.
        """
        ...

    async def patch(
        self,
        key: ObjectKey,
        patch: Any,
        *,
        patch_type: PatchType,
        field_manager: str,
        subresource: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        """Change parts of an object, or of its status or Scale."""
        ...

    async def delete(
        self,
        key: ObjectKey,
        *,
        preconditions: Preconditions | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete; returns when the request is accepted, which finalizers may make earlier than the object's end."""
        ...
