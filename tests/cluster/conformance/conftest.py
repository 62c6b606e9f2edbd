"""Conformance tests of the `Cluster` protocol, run against the embedded cluster and a real API server.

Every test gets an `Env`: a separate namespace in one of the clusters. The expectations are those of a real API server
(1.36.3). The embedded cluster must do the same or reject the request: then the test has the marker
`refused(what, instead)` and sends its requests inside of `with unless_refused:`.

To test another implementation of the protocol, add an entry to `IMPLEMENTATIONS` and the fixture that it names.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, aclosing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import pytest
import pytest_asyncio

from ocf.cluster import (
    Cluster,
    DeleteOptions,
    ListOptions,
    ObjectList,
    PatchOptions,
    PatchType,
    Subresource,
    WatchEvent,
    WatchOptions,
)
from ocf.cluster.client import ApiServerCluster
from ocf.cluster.protocol import EventType
from ocf.errors import ApiError, BadRequestError, NotFoundError, TooManyRequestsError, api_error
from ocf.objects import Manifest, ObjectKey, load_document
from ocf.objects.documents import load_documents
from ocf.testing.envtest import ControllerName, ControlPlane
from ocf.testing.plugin import RunControllers
from ocf_server import EmbeddedCluster
from tests.support import eventually, is_in

HERE: Final = Path(__file__).parent
DEFINITIONS: Final = load_documents((HERE / "widgets.yaml").read_text(encoding="utf-8"))
TIMEOUT: Final = 600.0  # seconds; a busy machine may take that long for what usually takes one
WATCH_TIMEOUT: Final = 4.0  # seconds; a server sends a bookmark two seconds before a watch ends

NAMESPACES_PER_BATCH: Final = 20  # namespaces

WIDGET: Final = "conformance.example.com/v1"
API_VERSIONS: Final = {
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "ConfigMap": "v1",
    "CronJob": "batch/v1",
    "Deployment": "apps/v1",
    "Gadget": WIDGET,
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Job": "batch/v1",
    "Lease": "coordination.k8s.io/v1",
    "Namespace": "v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "Node": "v1",
    "Pod": "v1",
    "PodDisruptionBudget": "policy/v1",
    "ReplicaSet": "apps/v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "Secret": "v1",
    "Service": "v1",
    "ServiceAccount": "v1",
    "StatefulSet": "apps/v1",
    "Widget": WIDGET,
}
"""The kinds that cases speak of by their names alone."""
CLUSTER_SCOPED: Final = frozenset({"ClusterRole", "Gadget", "Namespace", "Node"})

_POD: Final = "metadata: {labels: {app: demo}}, spec: {containers: [{name: web, image: 'web:1'}]}"
_WORKLOAD: Final = f"spec: {{selector: {{matchLabels: {{app: demo}}}}, template: {{{_POD}}}}}"
MINIMAL_BODIES: Final = {
    "ClusterRole": "rules: []",
    "CronJob": (
        "spec: {schedule: '0 3 * * *', jobTemplate: {spec: {template: {spec: "
        "{restartPolicy: Never, containers: [{name: job, image: 'job:1'}]}}}}}"
    ),
    "Deployment": _WORKLOAD,
    "HorizontalPodAutoscaler": (
        "spec: {maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: demo}}"
    ),
    "NetworkPolicy": "spec: {podSelector: {}}",
    "Pod": f"{{{_POD}}}",
    "PodDisruptionBudget": "spec: {minAvailable: 1, selector: {matchLabels: {app: demo}}}",
    "ReplicaSet": _WORKLOAD,
    "Role": "rules: []",
    "Service": "spec: {selector: {app: demo}, ports: [{port: 80}]}",
    "StatefulSet": _WORKLOAD,
    "Widget": "spec: {}",
}
"""The body that a kind needs to be valid; other kinds need none."""


@dataclass(frozen=True, slots=True)
class Env:
    """A cluster and a namespace for one test.

    Args:
        cluster: The cluster.
        fast_bookmarks: The same cluster, with frequent bookmarks.
        namespace: The namespace.
        may_reject: Whether the cluster may reject requests of tests with the marker `refused`.
    """

    cluster: Cluster
    fast_bookmarks: Cluster
    namespace: str
    may_reject: bool

    def key(self, kind: str, name: str = "demo", *, api_version: str = "") -> ObjectKey:
        """Return the key of an object; the name of a cluster-scoped object contains the namespace."""
        api_version = api_version or API_VERSIONS[kind]
        if kind in CLUSTER_SCOPED:
            return ObjectKey(api_version, kind, f"{self.namespace}-{name}")
        return ObjectKey(api_version, kind, name, self.namespace)

    def manifest(self, kind: str, body: str | None = "", name: str = "demo", *, api_version: str = "") -> Manifest:
        """Return an object.

        Args:
            kind: One of `API_VERSIONS`.
            body: The other fields, as YAML; its metadata are merged. None takes the minimal body of the kind.
            name: Its name.
            api_version: The apiVersion; empty takes that of `API_VERSIONS`.
        """
        key = self.key(kind, name, api_version=api_version)
        text = MINIMAL_BODIES.get(kind, "") if body is None else body
        content = load_document(text) if text else {}
        home = {"namespace": key.namespace} if key.namespace else {}
        metadata = {"name": key.name, **home, **content.pop("metadata", {})}
        return {"apiVersion": key.api_version, "kind": kind, "metadata": metadata, **content}

    async def get(self, kind: str, name: str = "demo", *, part: Subresource | None = None) -> Manifest:
        return await self.cluster.get(self.key(kind, name), subresource=part)

    async def page(self, kind: str, **options: Any) -> ObjectList:
        """Return a page of a list."""
        return await self.cluster.list(API_VERSIONS[kind], kind, ListOptions(namespace=self.namespace, **options))

    async def names(self, kind: str, **options: Any) -> list[str]:
        """Return the names of the listed objects."""
        return [item["metadata"]["name"] for item in (await self.page(kind, **options)).items]

    async def create(
        self, kind: str, body: str | None = None, name: str = "demo", *, by: str = "author", dry_run: bool = False
    ) -> Manifest:
        return await self.cluster.create(self.manifest(kind, body, name), field_manager=by, dry_run=dry_run)

    async def apply(
        self,
        by: str,
        kind: str,
        body: str | None = None,
        name: str = "demo",
        *,
        force: bool = False,
        part: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        return await self.cluster.apply(
            self.manifest(kind, body, name), field_manager=by, force=force, subresource=part, dry_run=dry_run
        )

    async def act(
        self, part: Subresource, body: str = "", name: str = "demo", *, kind: str = "Pod", dry_run: bool = False
    ) -> Manifest:
        """Evict a pod, or bind it; `body` has the other fields of the Eviction or the Binding, as YAML."""
        manifest = self.manifest(kind, body, name)
        return await self.cluster.create(manifest, field_manager="author", subresource=part, dry_run=dry_run)

    async def update(
        self, manifest: Manifest, *, by: str = "author", part: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        return await self.cluster.update(manifest, field_manager=by, subresource=part, dry_run=dry_run)

    async def merge(
        self,
        kind: str,
        patch: str,
        name: str = "demo",
        *,
        by: str = "author",
        part: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        """Send a merge patch, written as YAML."""
        body = load_document(patch)
        return await self.patch(kind, body, name, by=by, part=part, dry_run=dry_run)

    async def patch(
        self,
        kind: str,
        patch: Any,
        name: str = "demo",
        *,
        patch_type: PatchType = PatchType.MERGE,
        by: str = "author",
        part: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        return await self.cluster.patch(
            self.key(kind, name),
            patch,
            PatchOptions(patch_type=patch_type, field_manager=by, subresource=part, dry_run=dry_run),
        )

    async def delete(self, kind: str, name: str = "demo", **options: Any) -> None:
        await self.cluster.delete(self.key(kind, name), DeleteOptions(**options))

    async def exists(self, kind: str, name: str = "demo") -> bool:
        try:
            await self.get(kind, name)
        except NotFoundError:
            return False
        return True

    def watch(
        self, kind: str, *, after: str, everywhere: bool = False, fast_bookmarks: bool = False, **options: Any
    ) -> aclosing[AsyncGenerator[WatchEvent, None]]:
        """Open a watch for the length of a block.

        Args:
            kind: What is watched.
            after: The version after which the watch starts.
            everywhere: Whether in all namespaces.
            fast_bookmarks: Whether bookmarks are frequent.
            **options: The other fields of `WatchOptions`.
        """
        cluster = self.fast_bookmarks if fast_bookmarks else self.cluster
        namespace = "" if everywhere or kind in CLUSTER_SCOPED else self.namespace
        wanted = WatchOptions(resource_version=after, namespace=namespace, **options)
        watch = cluster.watch(API_VERSIONS[kind], kind, wanted)
        return aclosing(cast("AsyncGenerator[WatchEvent, None]", watch))

    async def events(self, kind: str, *, after: str, count: int, **options: Any) -> list[WatchEvent]:
        """Return the next events of a watch, without bookmarks."""
        seen: list[WatchEvent] = []
        async with asyncio.timeout(TIMEOUT), self.watch(kind, after=after, **options) as events:
            async for event in events:
                if event.type is not EventType.BOOKMARK:
                    seen.append(event)
                if len(seen) == count:
                    break
        return seen

    async def until(self, kind: str, reached: Callable[[Manifest | None], bool], name: str = "demo") -> None:
        """Wait until an object (None when it is deleted) meets a condition."""
        await self._until(self.key(kind, name), reached)

    async def ending(self, key: ObjectKey) -> None:
        """Wait until an object, which may be in another namespace, is being deleted."""
        await self._until(key, lambda live: live is not None and "deletionTimestamp" in live["metadata"])

    async def release(self, key: ObjectKey) -> None:
        """Remove the finalizers of an object, which may be in another namespace."""
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="author")
        await self.cluster.patch(key, {"metadata": {"finalizers": None}}, options)

    async def _until(self, key: ObjectKey, reached: Callable[[Manifest | None], bool]) -> None:
        kind = key.kind
        page = await self.cluster.list(key.api_version, kind, ListOptions(namespace=key.namespace))
        if reached(next((item for item in page.items if item["metadata"]["name"] == key.name), None)):
            return
        wanted = WatchOptions(resource_version=page.resource_version, namespace=key.namespace)
        watch = cast("AsyncGenerator[WatchEvent, None]", self.cluster.watch(key.api_version, kind, wanted))
        async with asyncio.timeout(TIMEOUT), aclosing(watch) as events:
            async for event in events:
                gone = event.type is EventType.DELETED
                if event.object["metadata"].get("name") == key.name and reached(None if gone else event.object):
                    return

    async def gone(self, kind: str, name: str = "demo") -> None:
        """Wait until an object is deleted."""
        await self.until(kind, lambda live: live is None, name)

    async def forget(self) -> None:
        """Drop the history of an embedded cluster; a real one has compacted its first versions."""
        if isinstance(self.cluster, EmbeddedCluster):
            self.cluster.compact()

    def plain(self, text: str) -> str:
        """Return a text of the server without the values that differ between servers."""
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>", text)
        return text.replace(self.namespace, "<namespace>")

    @contextmanager
    def error(
        self,
        code: int,
        reason: str,
        message: str | None = None,
        *causes: str,
        kind: type[ApiError] | None = None,
    ) -> Iterator[pytest.ExceptionInfo[ApiError]]:
        """Check that a request fails; the error is that of the yielded information.

        Args:
            code: The HTTP status.
            reason: The reason.
            message: The message; None does not check it, where it differs between servers.
            *causes: The causes, each `reason field: message`; in any order, and a server may repeat one.
            kind: The class of the error; None for the class of code and reason.
        """
        with pytest.raises(ApiError) as caught:
            yield caught
        error = caught.value
        found = {self.plain(f"{cause.reason} {cause.field}: {cause.message}") for cause in error.causes}
        assert (error.code, error.reason, found) == (code, reason, set(causes))
        assert isinstance(error, kind or type(api_error("", code=code, reason=reason)))
        if message is not None:
            assert self.plain(error.message) == message


def owners(manifest: Manifest) -> dict[str, set[str]]:
    """Return the fields of each manager, as paths in the spelling of the server."""
    return {
        f"{entry['manager']} {entry['operation']}{' ' + entry['subresource'] if 'subresource' in entry else ''}": {
            *_paths(entry["fieldsV1"], "")
        }
        for entry in manifest["metadata"].get("managedFields", [])
    }


def _paths(fields: dict[str, Any], before: str) -> Iterator[str]:
    for name, below in fields.items():
        path = before if name == "." else f"{before}.{name[2:]}" if name[0] == "f" else f"{before}[{name}]"
        if name == "." or not below:
            yield path.removeprefix(".")
        yield from _paths(below, path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let all tests share the event loop of the client."""
    for item in items:
        if pytest_asyncio.is_async_test(item) and is_in(item, HERE):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


IMPLEMENTATIONS: Final = {"embedded": "embedded_server", "envtest": "real_server"}
"""What a `Cluster` may be, and the fixture of scope `session` that gives it twice: the second time with bookmarks that
come soon."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def embedded_server() -> tuple[Cluster, Cluster]:
    """Return one embedded cluster for all tests, as there is one real server."""
    cluster = EmbeddedCluster(bookmark_every=1)
    for definition in DEFINITIONS:
        await cluster.create(definition, field_manager="author")
    return cluster, cluster


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_server(envtest_plane: ControlPlane) -> AsyncIterator[tuple[Cluster, Cluster]]:
    """Return two clients for all tests; a new client for each test would cost a handshake each."""
    async with (
        await envtest_plane.cluster() as server,
        await ApiServerCluster.connect(envtest_plane.kubeconfig, watch_timeout=WATCH_TIMEOUT) as fast_bookmarks,
    ):
        for definition in DEFINITIONS:
            await server.create(definition, field_manager="author")
        for definition in DEFINITIONS:
            await _served(server, definition["spec"]["names"]["kind"])
        yield server, fast_bookmarks


async def _served(server: Cluster, kind: str) -> None:
    """Wait until a kind is served, shortly after its definition is established."""
    # TooManyRequests means that its storage is being created.
    ignore = (NotFoundError, TooManyRequestsError)
    await eventually(lambda: server.list(WIDGET, kind), lambda _: True, ignore=ignore)


@pytest.fixture(params=IMPLEMENTATIONS)
def servers(request: pytest.FixtureRequest) -> tuple[Cluster, Cluster]:
    """Return one of the clusters; requested outside of the event loop, which its fixture needs."""
    found: tuple[Cluster, Cluster] = request.getfixturevalue(IMPLEMENTATIONS[request.param])
    return found


@pytest.fixture(scope="session")
def unused_namespaces() -> dict[Cluster, list[str]]:
    """Return the namespaces that no test uses yet."""
    return defaultdict(list)


@pytest_asyncio.fixture(loop_scope="session")
async def env(servers: tuple[Cluster, Cluster], unused_namespaces: dict[Cluster, list[str]]) -> Env:
    """Return a separate namespace in one of the clusters."""
    server, fast_bookmarks = servers
    if not unused_namespaces[server]:
        # Many at once, because creating one is mostly waiting.
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "conformance-"}}
        made = await asyncio.gather(*(server.create(home, field_manager="author") for _ in range(NAMESPACES_PER_BATCH)))
        unused_namespaces[server].extend(each["metadata"]["name"] for each in made)
    return Env(server, fast_bookmarks, unused_namespaces[server].pop(), may_reject=isinstance(server, EmbeddedCluster))


@pytest.fixture
def owned() -> Callable[[Manifest], dict[str, set[str]]]:
    """Return `owners`."""
    return owners


@pytest.fixture
def unless_refused(request: pytest.FixtureRequest, env: Env) -> AbstractContextManager[None]:
    """Check that a cluster that may reject the request does, with the message of the marker `refused`."""
    if not env.may_reject:
        return nullcontext()
    marker = request.node.get_closest_marker("refused")
    what, instead = marker.args
    text = f"the embedded cluster cannot {what}; {instead}"
    return _rejecting(text)


@contextmanager
def _rejecting(text: str) -> Iterator[None]:
    with pytest.raises(BadRequestError) as caught:
        yield
    assert caught.value.message == text


@pytest.fixture(scope="module")
def module_stack() -> Iterator[ExitStack]:
    """Return an exit stack of the module, for processes that its first test starts."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def started() -> set[str]:
    """Return the names of the processes on that stack."""
    return set()


@pytest.fixture
def collecting(env: Env, request: pytest.FixtureRequest, module_stack: ExitStack, started: set[str]) -> Env:
    """Return an environment with a garbage collector and a namespace controller."""
    if not env.may_reject and "controllers" not in started:
        # Requested late: without its program only the tests on a real server are skipped.
        run: RunControllers = request.getfixturevalue("envtest_controllers")
        module_stack.enter_context(run(ControllerName.GARBAGE_COLLECTOR, ControllerName.NAMESPACE))
        started.add("controllers")
    return env
