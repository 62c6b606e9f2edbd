"""One suite, two clusters: what a `Cluster` has to answer, asked of the embedded one and of a real API server.

Every case is given a `Env`: a namespace of its own in one of the clusters. What is expected is written once. It is
what a real server (1.36.3) does; the embedded cluster has to do the same, or refuse: then the case is marked
`refused(what, instead)`, and does what it does inside of `with unless_refused:`.

A further implementation of the protocol is one more entry of `IMPLEMENTATIONS`, and the fixture that it names.
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
    EventType,
    ListOptions,
    ObjectList,
    PatchOptions,
    PatchType,
    Subresource,
    WatchEvent,
    WatchOptions,
)
from ocf.cluster.client import ApiServerCluster
from ocf.embedded import EmbeddedCluster
from ocf.errors import ApiError, BadRequestError, NotFoundError, TooManyRequestsError, api_error
from ocf.objects import Manifest, ObjectKey, load_document, load_documents
from ocf.testing.envtest import Controller, ControlPlane
from ocf.testing.plugin import RunControllers

HERE: Final = Path(__file__).parent
DEFINITIONS: Final = load_documents((HERE / "widgets.yaml").read_text(encoding="utf-8"))
TIMEOUT: Final = 60.0  # seconds in which a busy machine does what it does in a second otherwise
BRIEF: Final = 4.0  # seconds; a server sends a bookmark two seconds before a watch ends

SPARE: Final = 20  # namespaces

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
OF_THE_CLUSTER: Final = frozenset({"ClusterRole", "Gadget", "Namespace"})

_POD: Final = "metadata: {labels: {app: demo}}, spec: {containers: [{name: web, image: 'web:1'}]}"
_WORKLOAD: Final = f"spec: {{selector: {{matchLabels: {{app: demo}}}}, template: {{{_POD}}}}}"
SMALLEST: Final = {
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
    "PodDisruptionBudget": "spec: {minAvailable: 1, selector: {matchLabels: {app: demo}}}",
    "ReplicaSet": _WORKLOAD,
    "Role": "rules: []",
    "Service": "spec: {selector: {app: demo}, ports: [{port: 80}]}",
    "StatefulSet": _WORKLOAD,
    "Widget": "spec: {}",
}
"""What a kind needs to be taken at all; the others need nothing."""


@dataclass(frozen=True, slots=True)
class Env:
    """A namespace of a case's own.

    Args:
        cluster: The cluster.
        fast_bookmarks: The same cluster, with bookmarks that come soon.
        namespace: The namespace.
        may_reject: Whether the cluster may refuse what is marked so.
    """

    cluster: Cluster
    fast_bookmarks: Cluster
    namespace: str
    may_reject: bool

    def key(self, kind: str, name: str = "demo", *, api_version: str = "") -> ObjectKey:
        """Return the key of an object; what belongs to no namespace has ours in its name."""
        api_version = api_version or API_VERSIONS[kind]
        if kind in OF_THE_CLUSTER:
            return ObjectKey(api_version, kind, f"{self.namespace}-{name}")
        return ObjectKey(api_version, kind, name, self.namespace)

    def manifest(self, kind: str, body: str | None = "", name: str = "demo", *, api_version: str = "") -> Manifest:
        """Return an object.

        Args:
            kind: One of `API_VERSIONS`.
            body: The rest of it, as YAML; its metadata are added to ours. None takes the smallest that the kind needs.
            name: Its name.
            api_version: Another than the usual one.
        """
        key = self.key(kind, name, api_version=api_version)
        text = SMALLEST.get(kind, "") if body is None else body
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
        """Return the names of what a list answers with."""
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
            after: From which version on.
            everywhere: Whether in all namespaces.
            fast_bookmarks: Whether bookmarks shall come soon.
            **options: As of the verb.
        """
        cluster = self.fast_bookmarks if fast_bookmarks else self.cluster
        namespace = "" if everywhere or kind in OF_THE_CLUSTER else self.namespace
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
        """Wait until an object, None once it is gone, has come somewhere."""
        key = self.key(kind, name)
        page = await self.cluster.list(key.api_version, kind, ListOptions(namespace=key.namespace))
        if reached(next((item for item in page.items if item["metadata"]["name"] == key.name), None)):
            return
        async with asyncio.timeout(TIMEOUT), self.watch(kind, after=page.resource_version) as events:
            async for event in events:
                gone = event.type is EventType.DELETED
                if event.object["metadata"].get("name") == key.name and reached(None if gone else event.object):
                    return

    async def gone(self, kind: str, name: str = "demo") -> None:
        """Wait until an object is gone."""
        await self.until(kind, lambda live: live is None, name)

    async def forget(self) -> None:
        """Have a cluster that remembers everything forget what is past; a real one never knew its first versions."""
        if isinstance(self.cluster, EmbeddedCluster):
            self.cluster.compact()

    def plain(self, text: str) -> str:
        """Return a text of the server without what no two servers can share."""
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>", text)
        return text.replace(self.namespace, "<place>")

    @contextmanager
    def error(
        self,
        code: int,
        reason: str,
        message: str | None = None,
        *causes: str,
        kind: type[ApiError] | None = None,
    ) -> Iterator[None]:
        """Demand a refusal.

        Args:
            code: Its HTTP status.
            reason: Its reason.
            message: Its message; None where it holds what no two servers can share.
            *causes: Its causes, each `reason field: message`; in any order, and a server may tell one twice.
            kind: Its class; None for the one that goes with code and reason.
        """
        with pytest.raises(ApiError) as caught:
            yield
        error = caught.value
        found = {self.plain(f"{cause.reason} {cause.field}: {cause.message}") for cause in error.causes}
        assert (error.code, error.reason, found) == (code, reason, set(causes))
        assert isinstance(error, kind or type(api_error("", code=code, reason=reason)))
        if message is not None:
            assert self.plain(error.message) == message


def owners(manifest: Manifest) -> dict[str, set[str]]:
    """Return which manager owns which fields, as paths; the server's own spelling of keys is kept."""
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
    """Let all cases share the loop of the one client."""
    for item in items:
        if pytest_asyncio.is_async_test(item) and HERE in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


IMPLEMENTATIONS: Final = {"embedded": "embedded_server", "envtest": "real_server"}
"""What a `Cluster` may be, and the fixture of scope `session` that gives it twice: the second time with bookmarks that
come soon."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def embedded_server() -> tuple[Cluster, Cluster]:
    """Give one embedded cluster for all cases, as there is one server."""
    cluster = EmbeddedCluster(bookmark_every=1)
    for definition in DEFINITIONS:
        await cluster.create(definition, field_manager="author")
    return cluster, cluster


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_server(envtest_plane: ControlPlane) -> AsyncIterator[tuple[Cluster, Cluster]]:
    """Give two clients for all cases: a new one each would mean handshakes each."""
    async with (
        await envtest_plane.cluster() as server,
        await ApiServerCluster.connect(envtest_plane.kubeconfig, watch_timeout=BRIEF) as fast_bookmarks,
    ):
        for definition in DEFINITIONS:
            await server.create(definition, field_manager="author")
        async with asyncio.timeout(TIMEOUT):
            for definition in DEFINITIONS:
                await _served(server, definition["spec"]["names"]["kind"])
        yield server, fast_bookmarks


async def _served(server: Cluster, kind: str) -> None:
    """Wait until a kind is served, which is a moment after its definition is established."""
    while True:
        try:
            await server.list(WIDGET, kind)
        except (NotFoundError, TooManyRequestsError):  # the latter says that its storage is being made
            await asyncio.sleep(0.05)
        else:
            return


@pytest.fixture(params=IMPLEMENTATIONS)
def servers(request: pytest.FixtureRequest) -> tuple[Cluster, Cluster]:
    """Give one of the clusters; asked for outside of the loop, which its own fixture needs."""
    found: tuple[Cluster, Cluster] = request.getfixturevalue(IMPLEMENTATIONS[request.param])
    return found


@pytest.fixture(scope="session")
def spare() -> dict[Cluster, list[str]]:
    """Give the namespaces that wait for a case."""
    return defaultdict(list)


@pytest_asyncio.fixture(loop_scope="session")
async def env(servers: tuple[Cluster, Cluster], spare: dict[Cluster, list[str]]) -> Env:
    """Give a namespace of the case's own in one of the clusters."""
    server, fast_bookmarks = servers
    if not spare[server]:
        # Many at once, for making one is mostly waiting.
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "place-"}}
        made = await asyncio.gather(*(server.create(home, field_manager="author") for _ in range(SPARE)))
        spare[server].extend(each["metadata"]["name"] for each in made)
    return Env(server, fast_bookmarks, spare[server].pop(), may_reject=isinstance(server, EmbeddedCluster))


@pytest.fixture
def owned() -> Callable[[Manifest], dict[str, set[str]]]:
    """Give `owners`."""
    return owners


@pytest.fixture
def unless_refused(request: pytest.FixtureRequest, env: Env) -> AbstractContextManager[None]:
    """Demand that a cluster which may refuse does, in the words of the marker `refused`."""
    if not env.may_reject:
        return nullcontext()
    marker = request.node.get_closest_marker("refused")
    what, instead = marker.args
    text = f"the embedded cluster cannot {what}; {instead}"
    return _refusing(text)


@contextmanager
def _refusing(text: str) -> Iterator[None]:
    with pytest.raises(BadRequestError) as caught:
        yield
    assert caught.value.message == text


@pytest.fixture(scope="module")
def for_the_module() -> Iterator[ExitStack]:
    """Give a stack that ends with the module, for what its first case starts."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def started() -> set[str]:
    """Give the names of what has been put on that stack."""
    return set()


@pytest.fixture
def collecting(env: Env, request: pytest.FixtureRequest, for_the_module: ExitStack, started: set[str]) -> Env:
    """Give a place where garbage is collected and namespaces end."""
    if not env.may_reject and "controllers" not in started:
        # Asked for late, for without its program the cases on a real server are left out, and only those.
        run: RunControllers = request.getfixturevalue("envtest_controllers")
        for_the_module.enter_context(run(Controller.GARBAGE_COLLECTOR, Controller.NAMESPACE))
        started.add("controllers")
    return env
