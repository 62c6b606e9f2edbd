"""The embedded cluster: the verbs of `ocf.cluster.Cluster` over an in-process API server."""

import random
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from ocf.cluster.embedded import lifecycle, subresources, writes
from ocf.cluster.embedded.collector import Collector
from ocf.cluster.embedded.core import Core, kind_of
from ocf.cluster.embedded.failures import expired, method_not_allowed
from ocf.cluster.embedded.managers import APPLY, UPDATE
from ocf.cluster.embedded.paging import read_token, write_token
from ocf.cluster.embedded.requests import Request, RequestLog, Verb
from ocf.cluster.embedded.schema import CustomKind, custom_resource
from ocf.cluster.embedded.selectors import Predicate, field_predicate, label_predicate
from ocf.cluster.embedded.store import Store
from ocf.cluster.embedded.watching import Scope, follow, read_version
from ocf.cluster.memory import WriteMemory
from ocf.cluster.protocol import (
    ObjectList,
    PatchType,
    Preconditions,
    Propagation,
    Subresource,
    WatchEvent,
)
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey, copy_json

__all__ = ["EmbeddedCluster"]

_FIRST_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


def _system_clock() -> datetime:
    return datetime.now(UTC)


class EmbeddedCluster:
    """A Kubernetes API server inside the process.

    It keeps what operators depend on as a real API server keeps it; see the package for what it leaves out. All state
    is in the object; two clusters share nothing.

    Args:
        kinds: The user's own kinds.
        namespaces: Namespaces to create, besides `default` and those of the system.
        now: The clock; returns an aware instant. It stamps objects and managed fields.
        history: How many changes watches and paged lists can look back.
        bookmark_every: After how many changes that do not concern a watch it gets a bookmark.
        collect: Collect garbage and end namespaces at the end of every write; otherwise only `settle` does.
        seed: Where uids and generated names start; the same seed and the same requests give the same ones.

    Example:
        >>> import asyncio
        >>> async def scale() -> int:
        ...     cluster = EmbeddedCluster(namespaces=("shop",))
        ...     web = {
        ...         "apiVersion": "apps/v1",
        ...         "kind": "Deployment",
        ...         "metadata": {"name": "web", "namespace": "shop"},
        ...         "spec": {
        ...             "selector": {"matchLabels": {"app": "web"}},
        ...             "template": {
        ...                 "metadata": {"labels": {"app": "web"}},
        ...                 "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        ...             },
        ...         },
        ...     }
        ...     stored = await cluster.apply(web, field_manager="demo")
        ...     return stored["spec"]["replicas"]
        >>> asyncio.run(scale())
        1
    """

    def __init__(
        self,
        *,
        kinds: Iterable[CustomKind] = (),
        namespaces: Iterable[str] = (),
        now: Callable[[], datetime] = _system_clock,
        history: int = 10_000,
        bookmark_every: int = 100,
        collect: bool = True,
        seed: int = 0,
    ) -> None:
        custom = {(kind.group, kind.version, kind.kind): custom_resource(kind) for kind in kinds}
        # Chance is injected as a seed: what a test sees must not depend on when it runs.
        self._core = Core(Store(history), custom, now, random.Random(seed))  # noqa: S311 (names, no secrets)
        self._collector = Collector(self._core)
        self._bookmark_every = bookmark_every
        self._collects = collect
        self._memory = WriteMemory()
        self.requests = RequestLog()
        """What was asked of the cluster; `requests.clear()` starts anew."""
        for name in (*_FIRST_NAMESPACES, *namespaces):
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            writes.create(self._core, manifest, field_manager="kube-apiserver", dry_run=False)

    @property
    def memory(self) -> WriteMemory:
        """What must outlive a pass; losing it costs one write per affected object."""
        return self._memory

    @property
    def resource_version(self) -> str:
        """The version of the cluster as a whole: where a watch of what comes next starts."""
        return str(self._core.store.version)

    async def settle(self) -> None:
        """Collect garbage and end namespaces now."""
        self._collector.run()

    def compact(self) -> None:
        """Forget the history, so that watches and paged lists from before end in `ExpiredError`."""
        self._core.store.forget()

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale.

        Args:
            key: The object.
            subresource: The part to read.

        Returns:
            The object; it is the caller's.

        Raises:
            ApiError: By class; `NotFoundError` when there is no such object, kind or subresource.
        """
        with self._recorded(_about(Verb.GET, key, subresource)):
            resource = self._core.resource(key.api_version, key.kind)
            writes.demand_subresource(resource, key.name, subresource)
            found = self._core.find(resource, key)
            if subresource is Subresource.SCALE:
                return subresources.scale_of(found, resource)
            return self._core.store.copy(kind_of(resource), (key.namespace, key.name), found)

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
        """Read one page of the objects of a kind.

        Args:
            api_version: Group and version.
            kind: Kind.
            namespace: Of this namespace; empty for all.
            label_selector: As in https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/.
            field_selector: `metadata.name` and `metadata.namespace`.
            limit: At most so many; 0 asks for one page with everything.
            continue_token: The token of the page before; all pages are of the version of the first.

        Returns:
            The page, in order of namespace and name.

        Raises:
            ApiError: By class; `ExpiredError` when the continue token is too old.
        """
        with self._recorded(Request(Verb.LIST, api_version, kind, namespace)):
            resource = self._core.resource(api_version, kind)
            selects = _selection(label_selector, field_selector)
            store = self._core.store
            if continue_token:
                version, last = read_token(continue_token)
                if version < store.forgotten:
                    raise expired("The provided continue parameter is too old to display a consistent list result.")
                found = [item for item in store.at(version, kind_of(resource), namespace) if item[0] > last]
            else:
                version = store.version
                found = store.objects(kind_of(resource), namespace)
            found = [item for item in found if selects(item[1])]
            page = found[:limit] if limit > 0 else found
            token = write_token(version, page[-1][0]) if len(page) < len(found) else ""
            return ObjectList(tuple(copy_json(manifest) for _, manifest in page), str(version), token)

    async def watch(
        self,
        api_version: str,
        kind: str,
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncGenerator[WatchEvent, None]:
        """Report what happens after a resource version, without end.

        Nothing is held for a consumer between two events, so one that stops iterating leaves nothing behind.

        Args:
            api_version: Group and version.
            kind: Kind.
            resource_version: Of a list or of the last event; empty or `0` starts with the present objects as `ADDED`.
            namespace: Of this namespace; empty for all.
            label_selector: As for `list`. An object that begins to match is `ADDED`, one that ceases to is `DELETED`.
            field_selector: As for `list`.

        Yields:
            Events in order, bookmarks included.

        Raises:
            ApiError: By class; `ExpiredError` when `resource_version` is too old: list and watch anew.
        """
        with self._recorded(Request(Verb.WATCH, api_version, kind, namespace)):
            resource = self._core.resource(api_version, kind)
            if "watch" not in resource.verbs:
                raise method_not_allowed()
            scope = Scope(resource, namespace, _selection(label_selector, field_selector))
            version = read_version(resource_version)
        async for event in follow(self._core.store, scope, version, bookmark_every=self._bookmark_every):
            yield event

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
            manifest: The fields to own. For a Scale: apiVersion, kind and name of the scaled object, and
                `spec.replicas`.
            field_manager: Who owns them, at most 128 bytes.
            force: Take fields from other managers instead of failing.
            subresource: The part to write.
            dry_run: Only say what would be stored.

        Returns:
            The object, or its Scale, as stored; it is the caller's.

        Raises:
            ApiError: By class; `ConflictError` names managers and fields.
        """
        request = _of(Verb.APPLY, manifest, subresource, field_manager, dry_run=dry_run)
        with self._recorded(request):
            writes.demand_manager(field_manager, operation=APPLY)
            if subresource is Subresource.SCALE:
                key, scale = subresources.addressed(manifest)
                return subresources.apply_scale(
                    self._core, key, scale, field_manager=field_manager, force=force, dry_run=dry_run
                )
            stored = writes.apply(
                self._core,
                manifest,
                field_manager=field_manager,
                force=force,
                subresource=subresource,
                dry_run=dry_run,
            )
            copied: Manifest = copy_json(stored)
            return copied

    async def create(self, manifest: Manifest, *, field_manager: str, dry_run: bool = False) -> Manifest:
        """Create an object.

        Args:
            manifest: The object; with `generateName` in the place of a name the cluster makes one up.
            field_manager: Who owns its fields.
            dry_run: Only say what would be stored.

        Returns:
            The object as stored; it is the caller's.

        Raises:
            ApiError: By class; `AlreadyExistsError` when the name is taken.
        """
        with self._recorded(_of(Verb.CREATE, manifest, None, field_manager, dry_run=dry_run)):
            writes.demand_manager(field_manager, operation=UPDATE)
            stored = writes.create(self._core, manifest, field_manager=field_manager, dry_run=dry_run)
            copied: Manifest = copy_json(stored)
            return copied

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace an object, its status, or its Scale.

        Args:
            manifest: The object. For a Scale: apiVersion, kind and name of the scaled object, and `spec.replicas`.
            field_manager: Who owns what changes.
            subresource: The part to write.
            dry_run: Only say what would be stored.

        Returns:
            The object, or its Scale, as stored; it is the caller's.

        Raises:
            ApiError: By class; `ConflictError` when a `resourceVersion` in the manifest is not the live one.
        """
        with self._recorded(_of(Verb.UPDATE, manifest, subresource, field_manager, dry_run=dry_run)):
            writes.demand_manager(field_manager, operation=UPDATE)
            if subresource is Subresource.SCALE:
                key, scale = subresources.addressed(manifest)
                return subresources.update_scale(self._core, key, scale, field_manager=field_manager, dry_run=dry_run)
            stored = writes.update(
                self._core, manifest, field_manager=field_manager, subresource=subresource, dry_run=dry_run
            )
            copied: Manifest = copy_json(stored)
            return copied

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
        """Change parts of an object, of its status, or of its Scale.

        Args:
            key: The object.
            patch: The patch.
            patch_type: How it is read; a strategic merge patch is refused.
            field_manager: Who owns what changes.
            subresource: The part to write.
            dry_run: Only say what would be stored.

        Returns:
            The object, or its Scale, as stored; it is the caller's.

        Raises:
            ApiError: By class; `InvalidError` when the patch cannot be applied.
        """
        request = replace(_about(Verb.PATCH, key, subresource), field_manager=field_manager, dry_run=dry_run)
        with self._recorded(request):
            writes.demand_manager(field_manager, operation=UPDATE)
            if subresource is Subresource.SCALE:
                return subresources.patch_scale(
                    self._core, key, patch, patch_type=patch_type, field_manager=field_manager, dry_run=dry_run
                )
            stored = writes.patch(
                self._core,
                key,
                patch,
                patch_type=patch_type,
                field_manager=field_manager,
                subresource=subresource,
                dry_run=dry_run,
            )
            copied: Manifest = copy_json(stored)
            return copied

    async def delete(
        self,
        key: ObjectKey,
        *,
        preconditions: Preconditions | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete an object.

        Args:
            key: The object.
            preconditions: What must still hold of it.
            propagation: What becomes of its dependents; None leaves it to the kind.
            dry_run: Only say whether it could be done.

        Raises:
            ApiError: By class; `NotFoundError` when it is not there, `ConflictError` when a precondition does not hold.
        """
        with self._recorded(replace(_about(Verb.DELETE, key, None), dry_run=dry_run)):
            resource = self._core.resource(key.api_version, key.kind)
            live = self._core.find(resource, key)
            lifecycle.delete(
                self._core, resource, live, preconditions=preconditions, propagation=propagation, dry_run=dry_run
            )

    @contextmanager
    def _recorded(self, request: Request) -> Iterator[None]:
        """Write a request to the log, with what came of it, and collect garbage after a write."""
        before = self._core.store.version
        try:
            yield
        except ApiError as error:
            self.requests.record(replace(request, code=error.code))
            raise
        changed = self._core.store.version != before
        self.requests.record(replace(request, changed=True) if changed else request)
        if self._collects and not request.verb.is_read:
            self._collector.run()


def _about(verb: Verb, key: ObjectKey, subresource: Subresource | None) -> Request:
    return Request(verb, key.api_version, key.kind, key.namespace, key.name, subresource)


def _of(
    verb: Verb, manifest: Manifest, subresource: Subresource | None, field_manager: str, *, dry_run: bool
) -> Request:
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return Request(
        verb,
        str(manifest.get("apiVersion") or ""),
        str(manifest.get("kind") or ""),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or metadata.get("generateName") or ""),
        subresource,
        field_manager,
        dry_run,
    )


def _selection(label_selector: str, field_selector: str) -> Predicate:
    predicates = [found for found in (label_predicate(label_selector), field_predicate(field_selector)) if found]
    return lambda manifest: all(predicate(manifest) for predicate in predicates)
