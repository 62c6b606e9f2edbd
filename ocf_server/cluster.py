"""The embedded cluster: the verbs of `ocf.cluster.Cluster`, served by an in-process API server."""

import asyncio
import copy
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar

from ocf.cluster.apply_cache import ApplyCache
from ocf.cluster.impersonation import NO_EXTRA, Impersonation, ServiceAccount
from ocf.cluster.protocol import (
    DEFAULT_DELETE_OPTIONS,
    DEFAULT_LIST_OPTIONS,
    DeleteOptions,
    ListOptions,
    ObjectList,
    PatchOptions,
    Subresource,
    WatchEvent,
    WatchOptions,
)
from ocf.cluster.request_log import Request, RequestLog, Verb
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.builtin import CustomKind
from ocf.schema.releases import Release
from ocf_server.admission.dispatcher import Dispatcher
from ocf_server.api.requests import attributes_of, received, request_for_key, request_for_manifest
from ocf_server.api.status_errors import method_not_allowed
from ocf_server.api.users import ADMINISTRATOR, impersonated
from ocf_server.api.webhook_client import AdmissionClient, HttpAdmissionClient
from ocf_server.api.write_options import FieldValidation, WarningLog, WriteOptions, require_manager
from ocf_server.apiextensions import custom_resource
from ocf_server.controllers.crd_names import NamesAcceptedController
from ocf_server.controllers.garbage_collector import GarbageCollector
from ocf_server.controllers.runner import Controllers
from ocf_server.controllers.settings import ControllerSettings
from ocf_server.registry import created_parts, verbs
from ocf_server.registry.conversion import ConversionWebhooks
from ocf_server.registry.impersonation import authorize
from ocf_server.registry.pages import BATCH, read_page, selected_by
from ocf_server.registry.pending_write import PendingWrite, run_without_admission
from ocf_server.registry.registry import Registry, kind_of
from ocf_server.registry.request_checks import require_subresource
from ocf_server.registry.scale import apply_scale, patch_scale, scale_of, update_scale
from ocf_server.registry.start import start
from ocf_server.registry.storage import Storage
from ocf_server.watch import StoredEvent, WatchSelector, follow, read_version

__all__ = ["EmbeddedCluster"]

Result = TypeVar("Result")


def _system_clock() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _Outcome:
    """Outcome of a request, for the request log."""

    changed: bool = False


class EmbeddedCluster:
    """A Kubernetes API server inside the process.

    It behaves like a real API server where operators depend on it; the package docstring lists what it leaves out. All
    state is in this object; two clusters share nothing.

    Args:
        kinds: Custom kinds to serve without a CustomResourceDefinition.
        namespaces: Namespaces to create, besides `default` and those of the system.
        now: The clock; returns an aware instant. Used for timestamps of objects and managed fields.
        history: Number of past changes that watches and paged lists can use.
        bookmark_every: Number of changes outside the scope of a watch after which the watch gets a bookmark.
        collect: Collect garbage and finish deleted namespaces after every write; otherwise only `collect_garbage` does.
        system_objects: Begin with the objects that an API server makes, such as the Service `default/kubernetes`.
        seed: Seed of uids and generated names; the same seed and the same requests give the same values.
        admission: Client that calls admission webhooks; None calls them over HTTPS.
        authorization: Authorize every request by the roles and bindings in the cluster, as a real API server does with
            `--authorization-mode=RBAC`. The cluster itself is that of an administrator, who may do everything;
            `acting_as` returns that of others.
        kubernetes_version: The release that it behaves as, such as `1.33`; empty for the newest one that it knows.
        feature_gates: Feature gates with other values than the release gives them.

    Raises:
        ConfigError: If the release or a gate is not known.

    Example:
        >>> import asyncio
        >>> async def scale() -> int:
        ...     cluster = EmbeddedCluster(namespaces=("shop",))
        ...     labels, container = {"app": "web"}, {"name": "web", "image": "web:1"}
        ...     template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        ...     web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
        ...     web["spec"] = {"selector": {"matchLabels": labels}, "template": template}
        ...     stored = await cluster.apply(web, field_manager="demo")
        ...     return stored["spec"]["replicas"]
        >>> asyncio.run(scale())
        1
    """

    def __init__(  # noqa: PLR0913 (settings, each with a default)
        self,
        *,
        kinds: Iterable[CustomKind] = (),
        namespaces: Iterable[str] = (),
        now: Callable[[], datetime] = _system_clock,
        history: int = 10_000,
        bookmark_every: int = 100,
        collect: bool = True,
        seed: int = 0,
        admission: AdmissionClient | None = None,
        authorization: bool = False,
        system_objects: bool = False,
        kubernetes_version: str = "",
        feature_gates: Mapping[str, bool] = MappingProxyType({}),
    ) -> None:
        release = Release.of(kubernetes_version, feature_gates)
        custom = {(kind.group, kind.version, kind.kind): custom_resource(kind) for kind in kinds}
        generator = random.Random(seed)  # noqa: S311 (names, no secrets, and reproducible)
        self._registry = Registry(Storage(history), custom, now, generator, release=release)
        self._collector = GarbageCollector(self._registry)
        self.admission: Final = admission or HttpAdmissionClient()
        """The client that calls webhooks."""
        self._call_webhooks_of(self._registry)
        self._checks = WriteOptions(warn=WarningLog())
        self._names_controller = NamesAcceptedController(self._registry)
        self._bookmark_every = bookmark_every
        self._collects, self._sharded_lists = collect, release.enabled("ShardedListAndWatch")
        self._apply_cache = ApplyCache()
        self._sender = ADMINISTRATOR
        self.requests = RequestLog()
        """Log of all requests to the cluster; `requests.clear()` empties it."""
        self.authorization = authorization
        """Whether requests are authorized."""
        start(self._registry, namespaces, authorization=authorization, system_objects=system_objects)

    @property
    def apply_cache(self) -> ApplyCache:
        """Apply results that outlive a reconcile; losing them costs one write per affected object."""
        return self._apply_cache

    @property
    def resource_version(self) -> str:
        """Resource version of the whole cluster; a watch that starts here reports all later changes."""
        return str(self._registry.store.version)

    def clone(self) -> "EmbeddedCluster":
        """Return an independent cluster in the present state of this one, so that many tests can share a preparation.

        It has the same clock, and the same seed at the same point; its request log is empty. It costs far less than the
        requests that led to the state, because the objects are shared.

        Example:
            >>> import asyncio
            >>> prepared = EmbeddedCluster(namespaces=("shop",))
            >>> shop = ObjectKey("v1", "Namespace", "shop")
            >>> asyncio.run(prepared.clone().delete(shop))
            >>> asyncio.run(prepared.get(shop))["status"]["phase"]
            'Active'
        """
        clone = copy.copy(self)
        clone._separate()  # noqa: SLF001 (an instance of this class)
        return clone

    def _separate(self) -> None:
        """Replace what this copy of a cluster shares with the original and a request may change."""
        registry = self._registry = self._registry.clone()
        self._collector = self._collector.clone(registry)
        self._call_webhooks_of(registry)
        self._names_controller = self._names_controller.clone(registry)
        self._apply_cache = copy.deepcopy(self._apply_cache)
        self.requests = RequestLog()

    def _call_webhooks_of(self, registry: Registry) -> None:
        self._conversions = ConversionWebhooks(registry.conversions, registry.new_uid, self.admission)
        self._dispatcher = Dispatcher(registry, self.admission, self._conversions)

    def checking(
        self,
        validation: FieldValidation,
        *,
        warn: Callable[[str], None] | None = None,
        duplicates: Iterable[str] = (),
    ) -> "EmbeddedCluster":
        """Return a view of this cluster with other field validation for its writes.

        Args:
            validation: Handling of undeclared fields.
            warn: Called with every warning that an API server would send with its response.
            duplicates: Fields that occur more than once in the request body; only the caller that parsed it knows them.

        Returns:
            A view of the same cluster, with the same objects and the same log.
        """
        view = copy.copy(self)
        checks = replace(self._checks, validation=validation, duplicates=tuple(duplicates))
        view._checks = checks if warn is None else replace(checks, warn=warn)  # noqa: SLF001 (an instance of this class)
        return view

    def acting_as(
        self,
        user: str | ServiceAccount,
        *,
        groups: Sequence[str] = (),
        uid: str = "",
        extra: Mapping[str, Sequence[str]] = NO_EXTRA,
    ) -> "EmbeddedCluster":
        """Return this cluster with another user, whom admission, access reviews and authorization see.

        It is impersonation, as of every `Cluster`: with `authorization`, the user who authenticates needs the right to
        impersonate. The administrator, whose cluster it is at first, has it; for others see `authenticated_as`.

        Example:
            >>> import asyncio
            >>> cluster = EmbeddedCluster(authorization=True)
            >>> asyncio.run(cluster.acting_as("alice").get(ObjectKey("v1", "Node", "one")))
            Traceback (most recent call last):
            ...
            ocf.errors.ForbiddenError: nodes "one" is forbidden: User "alice" cannot get resource "nodes" in API group \
"" at the cluster scope; allow it with the rule {"apiGroups": [""], "resources": ["nodes"], "resourceNames": ["one"], \
"verbs": ["get"]} of a ClusterRole that is bound to this user, as printed by kubectl create clusterrole get-nodes \
--verb=get --resource=nodes --resource-name=one --dry-run=client --output=yaml
        """
        acting, view = Impersonation.of(user, groups, uid, extra), copy.copy(self)
        view._checks = replace(self._checks, user=impersonated(acting))  # noqa: SLF001 (an instance of this class)
        view._apply_cache = self._apply_cache.acting_as(acting.key)  # noqa: SLF001 (as above)
        return view

    def authenticated_as(self, user: str | ServiceAccount, *, groups: Sequence[str] = ()) -> "EmbeddedCluster":
        """Return this cluster as a client with the credentials of a user has it, who needs rights to act as others.

        Args:
            user: Name of the user, or a service account.
            groups: Groups of the user; the API server adds `system:authenticated`, and those of a service account.
        """
        view = self.acting_as(user, groups=groups)
        view._sender = view._checks.user  # noqa: SLF001 (an instance of this class)
        return view

    @contextmanager
    def _checking_request(self, checks: WriteOptions) -> Iterator[None]:
        """Check the writes inside of the block in this way, also those of a wrapper, for the HTTP server."""
        token = _REQUEST.set((self, checks))
        try:
            yield
        finally:
            _REQUEST.reset(token)

    def controllers(self, settings: ControllerSettings | None = None) -> "Controllers":
        """Return the built-in controllers of this cluster, which simulate those of Kubernetes, with nodes and kubelets.

        They do nothing until their `run` or `settle` is awaited. Their requests are not in the log of this cluster.

        Args:
            settings: Which controllers, how many nodes, and the delays of pods; None for the defaults.
        """
        view = copy.copy(self)
        view.requests, view._sender = RequestLog(), ADMINISTRATOR  # noqa: SLF001 (an instance of this class)
        view._checks = WriteOptions()  # noqa: SLF001 (as above)
        return Controllers(view, self._registry, settings or ControllerSettings())

    async def restore(self, manifests: Iterable[Manifest]) -> None:
        """Store objects as another API server has returned them: with uid, status, owner references and managed fields.

        Nothing is validated, and neither admission nor a controller sees them. An object that exists is replaced.

        Args:
            manifests: The objects; what only a server sets, such as the uid, is made up where it is missing.

        Raises:
            NotFoundError: If a kind is not served.
            BadRequestError: If an object has no name, or a value of a wrong JSON type.

        Example:
            >>> import asyncio
            >>> cluster = EmbeddedCluster()
            >>> settings = {"apiVersion": "v1", "kind": "ConfigMap"}
            >>> settings["metadata"] = {"name": "settings", "namespace": "default", "uid": "1"}
            >>> asyncio.run(cluster.restore([settings]))
            >>> asyncio.run(cluster.get(ObjectKey.of(settings)))["metadata"]["uid"]
            '1'
        """
        for manifest in manifests:
            verbs.restore(self._registry, received(manifest, manifest))

    async def collect_garbage(self) -> None:
        """Collect garbage and finish the deletion of namespaces now."""
        self._collector.run()

    def compact(self) -> None:
        """Drop the history, so that older watches and paged lists fail with `ExpiredError`."""
        self._registry.store.forget()

    async def is_namespaced(self, api_version: str, kind: str) -> bool:
        """Return whether the objects of a kind are in namespaces."""
        return self._registry.resource(api_version, kind).namespaced

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale."""
        with self._recording(request_for_key(Verb.GET, key, subresource)):
            resource = self._registry.resource(key.api_version, key.kind)
            require_subresource(resource, key.name, subresource)
            found = await self._conversions.ready(lambda: self._registry.find(resource, key))
            if subresource is Subresource.SCALE:
                return scale_of(found, resource)
            return self._registry.copy(found)

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read one page of the objects of a kind."""
        found = await self._page(api_version, kind, options)
        page = found.selected_by(options)
        resource = self._registry.resource(api_version, kind)
        items: list[Manifest] = []
        for stored in page.items:
            items.append(self._registry.copy(self._registry.shown(stored, resource)))
            # A long list must not hold up the other tasks.
            if not len(items) % BATCH:
                await asyncio.sleep(0)
        return replace(page, items=tuple(items))

    async def _page(self, api_version: str, kind: str, options: ListOptions) -> ObjectList:
        """Read one page; its items are those of the store, and must not be changed."""
        with self._recording(Request(Verb.LIST, api_version, kind, options.namespace), options.field_selector):
            resource = self._registry.resource(api_version, kind)
            if not self._registry.has_converter(resource):
                return await read_page(self._registry, resource, options, sharded=self._sharded_lists)
            if options.label_selector or options.field_selector:
                # Selectors read the requested version, so all objects are converted, and not only those of the page.
                every = [stored for _, stored in self._registry.store.objects(kind_of(resource), options.namespace)]
                await self._conversions.ready(lambda: self._registry.require_converted(resource, every))
            page = await read_page(self._registry, resource, options, sharded=self._sharded_lists)
            await self._conversions.ready(lambda: self._registry.require_converted(resource, page.items))
            return page

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """Report changes to the objects of a kind, until the timeout of the options.

        No resources are held between two events, so a caller may stop iterating at any time. The resource version `0`
        means the same as an empty one.
        """
        async with aclosing(self._changes(api_version, kind, options)) as changes:
            async for change in changes:
                yield WatchEvent(change.type, change.copied())

    async def _changes(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[StoredEvent, None]:
        """Report changes as `watch` does, with the objects of the store, which must not be changed."""
        with self._recording(Request(Verb.WATCH, api_version, kind, options.namespace), options.field_selector):
            resource = self._registry.resource(api_version, kind)
            if "watch" not in resource.verbs:
                raise method_not_allowed()
            selects, _ = selected_by(resource, options, sharded=self._sharded_lists)
            ready = self._conversions.ready if self._registry.has_converter(resource) else None
            scope = WatchSelector(self._registry, resource, options.namespace, selects, ready)
            version = read_version(options.resource_version)
        events = follow(scope, version, bookmark_every=self._bookmark_every, seconds=options.timeout)
        async with aclosing(events):
            async for event in events:
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
        """Apply an object by server-side apply."""
        options = self._options(field_manager, subresource, dry_run=dry_run, force=force)
        manifest = received(manifest, manifest)
        with self._recording(request_for_manifest(Verb.APPLY, manifest, options)) as outcome:
            require_manager(field_manager, "PatchOptions", is_apply=True)
            write = apply_scale if subresource is Subresource.SCALE else verbs.apply
            return self._registry.copy(await self._write(lambda: write(self._registry, manifest, options), outcome))

    async def create(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        subresource: Subresource | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Manifest:
        """Create an object, or what a subresource creates, such as an eviction of a pod.

        The cluster generates a name if only `generateName` is set.
        """
        options = self._options(field_manager, subresource, dry_run=dry_run)
        if strict:
            options = replace(options, validation=FieldValidation.STRICT)
        manifest = received(manifest, manifest)
        with self._recording(request_for_manifest(Verb.CREATE, manifest, options)) as outcome:
            require_manager(field_manager, "CreateOptions")
            if subresource is not None:
                return await self._write(lambda: created_parts.create(self._registry, manifest, options), outcome)
            return self._registry.copy(
                await self._write(lambda: verbs.create(self._registry, manifest, options), outcome)
            )

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace an object, its status, or its Scale."""
        options = self._options(field_manager, subresource, dry_run=dry_run)
        manifest = received(manifest, manifest)
        with self._recording(request_for_manifest(Verb.UPDATE, manifest, options)) as outcome:
            require_manager(field_manager, "UpdateOptions")
            write = update_scale if subresource is Subresource.SCALE else verbs.update
            return self._registry.copy(await self._write(lambda: write(self._registry, manifest, options), outcome))

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        """Patch an object, its status, or its Scale."""
        patch_type, manager, subresource = options.patch_type, options.field_manager, options.subresource
        checks = self._options(manager, subresource, dry_run=options.dry_run)
        patch = received(patch, key)
        request = replace(request_for_key(Verb.PATCH, key, subresource), field_manager=manager, dry_run=options.dry_run)
        with self._recording(request) as outcome:
            require_manager(manager, "PatchOptions")
            write = patch_scale if subresource is Subresource.SCALE else verbs.patch
            return self._registry.copy(
                await self._write(lambda: write(self._registry, key, patch, patch_type, checks), outcome)
            )

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        """Delete an object."""
        checks = self._options("", None, dry_run=options.dry_run)
        with self._recording(replace(request_for_key(Verb.DELETE, key, None), dry_run=options.dry_run)) as outcome:
            await self._write(lambda: verbs.delete(self._registry, key, options, checks), outcome)

    def _options(
        self, field_manager: str, subresource: Subresource | None, *, dry_run: bool, force: bool = False
    ) -> WriteOptions:
        given = self._request() or self._checks
        return WriteOptions(
            field_manager, force, subresource, dry_run, given.validation, given.duplicates, given.warn, given.user
        )

    def _request(self) -> WriteOptions | None:
        """Return the options of the request of the HTTP server that is being handled; None if there is none."""
        request = _REQUEST.get()
        return request[1] if request is not None and request[0] is self else None

    def _authorize(self, request: Request, selector: str) -> None:
        """Raise ForbiddenError if the user may not make a request; the HTTP server has checked its own."""
        if self._registry.rbac is not None and self._request() is None:
            resource = self._registry.resource(request.api_version, request.kind)
            attributes = attributes_of(request, resource, selector)
            authorize(self._registry.rbac, self._checks.user, attributes, by=self._sender)

    async def _write(self, plan: Callable[[], PendingWrite[Result]], outcome: _Outcome) -> Result:
        """Run a write, with admission if webhooks or policies are configured."""
        if self._registry.has_admission() or self._registry.has_converters():
            # A webhook in this process makes requests of its own.
            token = _REQUEST.set(None)
            try:
                result, outcome.changed = await self._dispatcher.run(plan)
            finally:
                _REQUEST.reset(token)
            return result
        before = self._registry.store.version
        result = run_without_admission(plan())
        outcome.changed = self._registry.store.version != before
        return result

    @contextmanager
    def _recording(self, request: Request, selector: str = "") -> Iterator[_Outcome]:
        """Authorize a request and log it with its outcome; after a write, run the controllers."""
        outcome, user = _Outcome(), (self._request() or self._checks).user
        if user is not ADMINISTRATOR:
            request = replace(request, user=user.username)
        try:
            self._authorize(request, selector)
            yield outcome
        except ApiError as error:
            self.requests.record(replace(request, code=error.code))
            raise
        self.requests.record(replace(request, changed=True) if outcome.changed else request)
        if not request.verb.is_read:
            self._run_controllers()

    def _run_controllers(self) -> None:
        """Run the simulated controllers."""
        self._names_controller.run()
        # Definitions are finished by an API server itself.
        self._collector.run() if self._collects else self._collector.finish_definitions()
        # The names of a definition that is gone are free.
        self._names_controller.run()


_REQUEST: Final[ContextVar[tuple[EmbeddedCluster, WriteOptions] | None]] = ContextVar("request", default=None)
