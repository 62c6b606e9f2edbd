"""On a real API server: with exactly its rules no request is forbidden, and without any one of them some are."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.autoscaling.algorithm import Settings
from ocf.cluster import (
    Cluster,
    InterceptingCluster,
    ListOptions,
    PatchOptions,
    PatchType,
    Request,
    ServiceAccount,
    WatchEvent,
    WatchOptions,
)
from ocf.controllers.hpa import NAME, HpaController, HpaControllerOptions, Mode, cluster_role
from ocf.controllers.hpa.crd import definition
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.controllers.hpa.reporter import COMPONENT
from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.controllers.process import leader_runner
from ocf.errors import ConfigError, ForbiddenError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import Lease
from ocf.runtime.rbac import PolicyRule, roles
from ocf.testing import FaultyCluster, faults
from ocf.testing.metrics_stub import MetricsStub
from tests.support import until_granted

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.concepts import Recorder
    from ocf.testing.plugin import Envtest

KINDS: Final = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicationController": "v1",
}
_DENIED: Final = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')


class RecordingForbidden(InterceptingCluster):
    """A cluster that records forbidden requests."""

    def __init__(self, cluster: ApiServerCluster) -> None:
        super().__init__(cluster)
        self._server = cluster
        self.denied: set[tuple[str, str, str]] = set()

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        del request
        with self._noting():
            return await send()

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        events = super().watch(api_version, kind, options)
        try:
            with self._noting():
                async for event in events:
                    yield event
        finally:
            await events.aclose()

    async def read_path(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, most_bytes: int | None = None
    ) -> Manifest:
        with self._noting():
            return await self._server.read_path(path, query, most_bytes=most_bytes)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except ForbiddenError as error:
            self.denied.update(_DENIED.findall(error.message))
            raise

    def denies(self, privilege: PolicyRule) -> bool:
        """Return whether a request was forbidden for lack of this rule."""
        return any(
            (verb, group) == (privilege.verb, privilege.group) and privilege.resource in ("*", resource)
            for verb, resource, group in self.denied
        )


def workload(kind: str, namespace: str) -> Manifest:
    labels = {"app": kind.lower()}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    selector = labels if kind == "ReplicationController" else {"matchLabels": labels}
    spec: Manifest = {"replicas": 1, "selector": selector, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = "web"
    metadata = {"name": kind.lower(), "namespace": namespace}
    return {"apiVersion": KINDS[kind], "kind": kind, "metadata": metadata, "spec": spec}


def autoscaler(kind: tuple[str, str], name: str, namespace: str, target: Manifest, **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    wanted = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": wanted | spec}


def measured() -> list[Manifest]:
    average = {"type": "AverageValue", "averageValue": "1"}
    return [
        {"type": "Resource", "resource": {"name": "cpu", "target": average}},
        {"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": average}},
        {"type": "External", "external": {"metric": {"name": "queue"}, "target": average}},
    ]


class Env:
    """A namespace in which the controller needs each of its rules."""

    def __init__(self, envtest: Envtest, admin: ApiServerCluster, kind: tuple[str, str]) -> None:
        self.envtest, self.admin, self.kind = envtest, admin, kind
        self.namespace = envtest.namespace
        self.workloads = [workload(kind, self.namespace) for kind in KINDS]

    async def set_up(self) -> None:
        await asyncio.to_thread(self.envtest.plane.install_crds, definition())
        for each in self.workloads:
            await self.admin.create(each, field_manager="admin")
            name, target = each["metadata"]["name"], {"apiVersion": each["apiVersion"], "kind": each["kind"]}
            made = autoscaler(self.kind, name, self.namespace, {**target, "name": name})
            if each["kind"] == "ReplicationController":
                made["spec"]["scaleTargetRef"]["apiVersion"] = "v1"
            await self.admin.create(made, field_manager="admin")
        web = workload("Deployment", self.namespace)
        web["metadata"]["name"], web["spec"]["replicas"] = "measured", 2
        await self.admin.create(web, field_manager="admin")
        for name, spec in (("measured", {"metrics": measured()}), ("absent", {})):
            target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
            await self.admin.create(autoscaler(self.kind, name, self.namespace, target, **spec), field_manager="admin")

    async def reset(self) -> None:
        for each in self.workloads:
            patch = {"spec": {"replicas": 1}}
            await self.admin.patch(
                ObjectKey.of(each), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="admin")
            )
        with suppress(NotFoundError):
            await self.admin.delete(ObjectKey("coordination.k8s.io/v1", "Lease", NAME, self.namespace))

    async def done(self) -> bool:
        """Return whether all workloads are scaled, and an event has a series."""
        counts = [(await self.admin.get(ObjectKey.of(each)))["spec"]["replicas"] for each in self.workloads]
        events = (await self.admin.list("events.k8s.io/v1", "Event", ListOptions(namespace=self.namespace))).items
        absent = [one for one in events if one["regarding"]["name"] == "absent"]
        return counts == [2] * len(counts) and any(one.get("series") for one in absent)

    async def grant(self, name: str, granted: Collection[PolicyRule]) -> ApiServerCluster:
        """Create a user with these rules, and open a cluster as that user, once the server has read them."""
        account = ServiceAccount(f"{name}-{self.namespace[-5:]}", "ops")
        user = f"system:serviceaccount:{account.namespace}:{account.name}"
        for one in roles(granted, name=account.name, account=account):
            await self.admin.create(one, field_manager="admin")
        kubeconfig = await asyncio.to_thread(self.envtest.plane.kubeconfig_for, user, "system:serviceaccounts")
        cluster = await self.envtest.plane.cluster(kubeconfig)
        await until_granted(self.admin, user, granted)
        return cluster


async def live(env: Env, cluster: RecordingForbidden, mode: Mode, ended: Callable[[], Awaitable[bool]]) -> None:
    """Run the controller until a condition holds; a conflict per kind makes it read Scales again."""
    conflicts = [faults.conflict(kind=kind, subresource="scale") for kind in KINDS] if mode.writes else []
    where = FaultyCluster(cluster, conflicts)
    settings = Settings(sync_period=timedelta(milliseconds=100))

    def make(fenced: Cluster, events: Recorder | None) -> HpaController:
        options = HpaControllerOptions(mode=mode, settings=settings, take_over=mode is Mode.REPLACE)
        return HpaController(fenced, RESTMetricsClient(cluster), options=options, events=events, reader=cluster)

    stopped = asyncio.Event()
    lease = Lease(NAME, env.namespace) if mode.writes else None
    runner = leader_runner(where, make, component=COMPONENT if mode.writes else "", lease=lease, stopped=stopped)
    task = asyncio.create_task(runner.run())
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(600):
                while not (task.done() or await ended()):  # noqa: ASYNC110 (another process)
                    await asyncio.sleep(0.02)
    finally:
        stopped.set()
        with suppress(ConfigError):
            await task


@pytest.fixture
async def stub(envtest: Envtest) -> AsyncIterator[MetricsStub]:
    async with MetricsStub(envtest.plane) as found:
        yield found


def in_groups(privileges: Collection[PolicyRule]) -> dict[str, set[PolicyRule]]:
    """Group the rules that can be missing in the same run; without list, watch is never requested."""
    found: dict[str, set[PolicyRule]] = {}
    for one in privileges:
        lists = one.verb == "list" and one.resource in ("pods", "horizontalautoscalers", "horizontalpodautoscalers")
        alone = (lists and "metrics" not in one.group) or one.group in ("coordination.k8s.io", "events.k8s.io")
        part = one.resource.partition("/")[2] or one.resource if alone else one.resource.partition("/")[2]
        family = "metrics" if "metrics" in one.group else f"{one.verb} {part}"
        found.setdefault(f"{family} {one.group}" if alone else family, set()).add(one)
    return found


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        pytest.param(Mode.OWN_KIND, OWN, id="own kind"),
        pytest.param(Mode.REPLACE, BUILT_IN, id="replace"),
        pytest.param(Mode.DRY_RUN, BUILT_IN, id="dry run"),
    ],
)
async def test_it_needs_exactly_the_rules_of_its_role(
    envtest: Envtest, envtest_cluster: ApiServerCluster, stub: MetricsStub, mode: Mode, kind: tuple[str, str]
) -> None:
    env = Env(envtest, envtest_cluster, kind)
    await env.set_up()
    needed = cluster_role(mode, lease_namespace=env.namespace if mode.writes else "")

    async with await env.grant("whole", needed) as opened:
        whole = RecordingForbidden(opened)

        async def complete() -> bool:
            groups = {one.path.split("/")[2] for one in stub.queries if env.namespace in one.path}
            return len(groups) == 3 and (not mode.writes or await env.done())

        await live(env, whole, mode, complete)
        assert whole.denied == set()
        assert await complete()
    for number, (family, missing) in enumerate(sorted(in_groups(needed).items())):
        await env.reset()
        async with await env.grant(f"less-{number}", needed - missing) as opened:
            less = RecordingForbidden(opened)

            async def noticed(less: RecordingForbidden = less, missing: set[PolicyRule] = missing) -> bool:
                return all(map(less.denies, missing))

            await live(env, less, mode, noticed)
            unneeded = [str(one) for one in missing if not less.denies(one)]
            assert unneeded == [], family
