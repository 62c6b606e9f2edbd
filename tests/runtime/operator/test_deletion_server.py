"""Clean-up on deletion on a real API server, with the privileges that the declaration asks for and no others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import pytest_asyncio

from ocf import component
from ocf.cluster import PatchOptions, PatchType, ServiceAccount
from ocf.component import CleanupPending, Component, DeletionOrder, ReconcileContext
from ocf.component.owner_deletion import SKIP_CLEANUP, external_finalizer
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, deployment
from ocf.runtime.crds import CRDVersion, crd
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.runtime.rbac import roles
from ocf.runtime.workqueue import FixedDelay
from ocf.testing.envtest import ControllerName
from tests.support import eventually, until_granted

from .conftest import SECOND, Shop, shop

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.fixtures import RunControllers

HOLD: Final = "example.com/hold"
# Tests share the server, and no other test uses this kind.
DEFINITION: Final = crd("deletion.example.com", CRDVersion("v1", Shop))


def components(owner: Shop) -> Component:
    namespace = owner.metadata.namespace
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    named = {"name": "web", "namespace": namespace}
    workload: Manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named}
    workload["spec"] = {"selector": {"matchLabels": labels}, "template": template}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"motto": owner.spec.motto}}
    builder = component.Builder("web", condition_type="WebReady").with_resource(configmap.Builder(settings).build())
    return builder.with_resource(deployment.Builder(workload).build()).build()


class Databases:
    """Databases outside of the cluster.

    Attributes:
        calls: Number of calls of `drop`.
        dropped: Whether `drop` has succeeded.
        hanging: Whether `drop` hangs.
        failing: Whether `drop` fails.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.dropped = self.hanging = self.failing = False
        self.before_drop: Callable[[], Awaitable[object]] | None = None

    async def drop(self, _: Shop, __: ReconcileContext, ___: Cluster) -> CleanupPending | None:
        self.calls += 1
        if self.before_drop is not None:
            await self.before_drop()
        if self.hanging:
            await asyncio.sleep(1e6)
        if self.failing:
            raise RuntimeError("no connection")
        if self.calls == 1:
            return CleanupPending(SECOND / 10, "the database is being dropped")
        self.dropped = True
        return None


def operator(databases: Databases | None, **more: Any) -> Operator[Shop]:
    return Operator(
        name="shops",
        owner=OwnerType.of(Shop, DEFINITION),
        components=components,
        on_delete=databases.drop if databases is not None else None,
        rate_limiter=FixedDelay(SECOND / 10),
        **more,
    )


@dataclass
class Env:
    """A shop on the server, and an account with the privileges of an operator."""

    plane: ControlPlane
    namespace: str
    admin: ApiServerCluster

    @property
    def owner(self) -> ObjectKey:
        return ObjectKey("deletion.example.com/v1", "Shop", "corner", self.namespace)

    @property
    def workload(self) -> ObjectKey:
        return ObjectKey("apps/v1", "Deployment", "web", self.namespace)

    async def create(self) -> None:
        manifest = shop()
        manifest["apiVersion"] = self.owner.api_version
        manifest["metadata"]["namespace"] = self.owner.namespace
        await self.admin.create(manifest, field_manager="kubectl")

    async def exists(self, key: ObjectKey) -> bool:
        try:
            await self.admin.get(key)
        except NotFoundError:
            return False
        return True

    async def finalizers(self) -> list[str]:
        found: list[str] = (await self.admin.get(self.owner))["metadata"].get("finalizers", [])
        return found

    async def condition(self) -> tuple[str, str]:
        """Return type and reason of the condition of the clean-up."""
        conditions = (await self.admin.get(self.owner)).get("status", {}).get("conditions", [])
        found = [one for one in conditions if one["type"] == "shops/CleanedUp"]
        return (found[0]["status"], found[0]["reason"]) if found else ("", "")

    async def kubectl(self, *arguments: str) -> str:
        return await asyncio.to_thread(self.plane.kubectl, f"--namespace={self.namespace}", *arguments)

    async def delete(self) -> str:
        """Delete the shop as a user does, and wait until it is gone."""
        return await self.kubectl("delete", "shops.deletion.example.com", "corner", "--wait", "--timeout=600s")

    @asynccontextmanager
    async def operating(self, declared: Operator[Shop], **rights: Any) -> AsyncIterator[None]:
        """Run an operator with the privileges of its declaration."""
        kubeconfig = await self._account(declared, **rights)
        options = ManagerOptions(listen=None, namespaces=[self.namespace])
        async with await self.plane.cluster(kubeconfig) as cluster, running(cluster, declared, options=options):
            yield

    async def _account(self, declared: Operator[Shop], **rights: Any) -> Path:
        namespace = self.namespace
        any_shop = Shop.model_validate({"metadata": {"name": "a", "namespace": "a"}})
        granted = declared.policy_rules([components(any_shop)], **rights)
        account = ServiceAccount("shops", namespace)
        for one in roles(granted, name="shops", account=account, namespaces=[namespace]):
            await self.admin.apply(one, field_manager="admin")
        user = f"system:serviceaccount:{namespace}:shops"
        await until_granted(self.admin, user, granted, namespace=namespace)
        return await asyncio.to_thread(self.plane.kubeconfig_for, user)


@pytest_asyncio.fixture
async def env(envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster) -> AsyncIterator[Env]:
    await asyncio.to_thread(envtest_plane.install_crds, DEFINITION)
    with envtest_plane.namespace("deletion-") as namespace:
        yield Env(envtest_plane, namespace, envtest_cluster)


@pytest.mark.promise("on-delete", runs="on a real API server, deleted by kubectl")
@pytest.mark.promise("rights", runs="clean-up on deletion on a real API server")
async def test_kubectl_returns_when_everything_is_cleaned_up(env: Env, caplog: pytest.LogCaptureFixture) -> None:
    databases = Databases()
    async with env.operating(operator(databases)):
        await env.create()
        await eventually(lambda: env.exists(env.workload))
        assert await env.finalizers() == [external_finalizer("shops")]
        assert "deleted" in await env.delete()
        assert databases.dropped
        assert databases.calls == 2
        assert not await env.exists(env.owner)
    assert "forbidden" not in caplog.text.lower()


@pytest.mark.promise("on-delete-fails", runs="a clean-up that waits, on a real API server")
async def test_a_clean_up_that_waits_is_in_the_condition(env: Env) -> None:
    tables = ["orders", "guests"]

    async def drop(*_: object) -> CleanupPending | None:
        return CleanupPending(SECOND / 10, f"{len(tables)} tables left") if tables else None

    async with env.operating(replace(operator(None), on_delete=drop)):
        await env.create()
        await eventually(lambda: env.exists(env.workload))
        await env.admin.delete(env.owner)

        async def shown() -> dict[str, Any]:
            conditions = (await env.admin.get(env.owner)).get("status", {}).get("conditions", [])
            return next((one for one in conditions if one["type"] == "shops/CleanedUp"), {})

        waiting = await eventually(shown)
        assert (waiting["status"], waiting["reason"]) == ("False", "CleanupPending")
        assert waiting["message"] == "2 tables left"
        tables.pop()
        await eventually(shown, lambda found: found["message"] == "1 tables left")
        tables.clear()
        await env.kubectl("wait", "--for=delete", "shops.deletion.example.com/corner", "--timeout=600s")


@pytest.mark.promise("on-delete", runs="a process that is killed in the middle, on a real API server")
async def test_a_process_that_is_killed_in_the_middle_is_followed_by_one_that_cleans_up(env: Env) -> None:
    """Meanwhile kubectl waits."""
    first, second = Databases(), Databases()
    first.hanging = True

    async def run() -> None:
        async with env.operating(operator(first)):
            await asyncio.sleep(1e6)

    process = asyncio.create_task(run())
    await env.create()
    await eventually(lambda: env.exists(env.workload))
    deleting = asyncio.create_task(env.delete())

    async def is_hanging() -> bool:
        return first.calls == 1

    await eventually(is_hanging)
    process.cancel()
    await asyncio.gather(process, return_exceptions=True)
    assert await env.finalizers() == [external_finalizer("shops")]
    assert not deleting.done()
    async with env.operating(operator(second)):
        assert "deleted" in await deleting
    assert second.dropped


async def test_switched_off_it_holds_nothing(env: Env, caplog: pytest.LogCaptureFixture) -> None:
    """Owners that are being deleted included; it takes a privilege that the declaration alone does not ask for."""
    databases = Databases()
    databases.failing = True
    async with env.operating(operator(databases)):
        await env.create()
        await eventually(lambda: env.exists(env.workload))
        await env.admin.delete(env.owner)

        async def failed() -> bool:
            return await env.condition() == ("False", "Error")

        await eventually(failed)
        assert await env.finalizers() == [external_finalizer("shops")]
    async with env.operating(operator(None), removes_finalizer=True):
        await env.kubectl("wait", "--for=delete", "shops.deletion.example.com/corner", "--timeout=600s")
    assert not databases.dropped
    assert "forbidden" not in caplog.text.lower()


@pytest.mark.promise("on-delete-fails", runs="the annotation, set by kubectl on a real API server")
async def test_the_annotation_releases_an_owner_whose_clean_up_fails(env: Env) -> None:
    databases = Databases()
    databases.failing = True
    async with env.operating(operator(databases)):
        await env.create()
        await eventually(lambda: env.exists(env.workload))
        await env.admin.delete(env.owner)

        async def failed() -> bool:
            return await env.condition() == ("False", "Error")

        await eventually(failed)
        await env.kubectl("annotate", "shops.deletion.example.com", "corner", f"{SKIP_CLEANUP}=true")
        await env.kubectl("wait", "--for=delete", "shops.deletion.example.com/corner", "--timeout=600s")

        async def posted() -> bool:
            return "CleanupSkipped" in await env.kubectl(
                "get", "events.v1.events.k8s.io", "--output=jsonpath={..reason}"
            )

        await eventually(posted)
    assert not databases.dropped


async def test_components_first_deletes_their_pods_before_on_delete_is_called(
    env: Env, envtest_controllers: RunControllers, caplog: pytest.LogCaptureFixture
) -> None:
    databases = Databases()
    left: list[int] = []

    async def count() -> None:
        pods = await env.admin.list("v1", "Pod")
        left.append(len([one for one in pods.items if one["metadata"]["namespace"] == env.namespace]))
        left.append(int(await env.exists(env.workload)))

    databases.before_drop = count
    declared = replace(operator(databases), deletion_order=DeletionOrder.COMPONENTS_FIRST)
    names = (ControllerName.DEPLOYMENT, ControllerName.REPLICA_SET, ControllerName.GARBAGE_COLLECTOR)
    with envtest_controllers(*names):
        async with env.operating(declared):
            await env.create()

            async def has_pods() -> bool:
                pods = (await env.admin.list("v1", "Pod")).items
                return any(one["metadata"]["namespace"] == env.namespace for one in pods)

            await eventually(has_pods)
            await env.delete()
    assert databases.dropped
    assert left[:2] == [0, 0]
    assert "forbidden" not in caplog.text.lower()


async def test_an_owner_held_by_another_finalizer_is_reconciled_until_it_is_gone(env: Env) -> None:
    async def report(context: ReconcileContext, *_: object) -> None:
        if context.is_ending and HOLD in context.owner["metadata"]["finalizers"]:
            patch = {"metadata": {"finalizers": None}}
            options = PatchOptions(patch_type=PatchType.MERGE, field_manager="author")
            await env.admin.patch(env.owner, patch, options)

    async with env.operating(replace(operator(None), report=report)):
        await env.create()
        await env.admin.patch(
            env.owner,
            {"metadata": {"finalizers": [HOLD]}},
            PatchOptions(patch_type=PatchType.MERGE, field_manager="author"),
        )
        await eventually(lambda: env.exists(env.workload))
        await env.delete()


@pytest.mark.promise("held-objects", runs="2 kinds of deletion on a real API server, with its controllers")
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("foreground", id="in the foreground"),
        pytest.param("namespace", id="with its namespace"),
    ],
)
async def test_the_clean_up_finds_what_is_held_for_it(env: Env, envtest_controllers: RunControllers, how: str) -> None:
    databases = Databases()
    settings = ObjectKey("v1", "ConfigMap", "web", env.namespace)
    found: list[bool] = []

    def holding(owner: Shop) -> Component:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": env.namespace}}
        resource = configmap.Builder({**made, "data": {"motto": owner.spec.motto}}).build()
        new = component.Builder("web", condition_type="WebReady")
        return new.with_resource(resource, held_for_cleanup=True).build()

    async def look() -> None:
        found.append(await env.exists(settings))

    databases.before_drop = look
    declared = replace(operator(databases), components=holding)
    options = ManagerOptions(listen=None, namespaces=[env.namespace])
    # A role in the namespace would go before the owner, and with it the rights of the operator.
    controllers = (ControllerName.GARBAGE_COLLECTOR, ControllerName.NAMESPACE)
    with envtest_controllers(*controllers):
        async with running(env.admin, declared, options=options):
            await env.create()
            await eventually(lambda: env.exists(settings))
            if how == "foreground":
                await env.kubectl(
                    "delete", "shops.deletion.example.com", "corner", "--cascade=foreground", "--wait=false"
                )
            else:
                await env.kubectl("delete", "namespace", env.namespace, "--wait=false")

            async def gone() -> bool:
                return not await env.exists(env.owner) and not await env.exists(settings)

            # The namespace controller may work through the namespaces of earlier tests first.
            await eventually(gone)
            assert databases.dropped
            assert found == [True, True]


async def test_the_command_of_the_page_releases_an_object_without_an_operator(
    env: Env, envtest_controllers: RunControllers
) -> None:
    """Its owner was orphaning, and a user has removed the finalizers of the owner."""
    settings = ObjectKey("v1", "ConfigMap", "web", env.namespace)

    def holding(owner: Shop) -> Component:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": env.namespace}}
        resource = configmap.Builder({**made, "data": {"motto": owner.spec.motto}})
        return component.Builder("web").with_resource(resource, held_for_cleanup=True).build()

    async def metadata() -> Manifest:
        found: Manifest = (await env.admin.get(settings))["metadata"]
        return found

    declared = replace(operator(Databases()), components=holding)
    async with running(env.admin, declared, options=ManagerOptions(listen=None, namespaces=[env.namespace])):
        await env.create()
        await eventually(lambda: env.exists(settings))
    with envtest_controllers(ControllerName.GARBAGE_COLLECTOR):
        shop = ("shops.deletion.example.com", "corner")
        await env.kubectl("delete", *shop, "--cascade=orphan", "--wait=false")
        await eventually(metadata, lambda found: not found.get("ownerReferences"))
        await env.kubectl("patch", *shop, "--type=merge", '--patch={"metadata": {"finalizers": null}}')
    assert not await env.exists(env.owner)
    await env.kubectl("delete", "configmap", "web", "--wait=false")
    assert (await metadata())["finalizers"] == ["shops.ocf.dev/held-for-cleanup"]
    page = (Path(__file__).parents[3] / "docs" / "operators" / "deletion.md").read_text(encoding="utf-8")
    command = re.search(r"`kubectl patch secret corner-login (--type=\S+) (--patch=)'(.*?)'`", page)
    assert command is not None
    await env.kubectl("patch", "configmap", "web", command[1], f"{command[2]}{command[3]}")
    assert not await env.exists(settings)


@pytest.mark.promise("owner-deleted", runs="an owner reference whose repair waits, on a real API server")
async def test_an_object_without_its_owner_reference_is_deleted_with_the_owner(
    env: Env, envtest_controllers: RunControllers, caplog: pytest.LogCaptureFixture
) -> None:
    """The garbage collector does not know it; the operator needs no more privileges than for an apply."""
    settings = ObjectKey("v1", "ConfigMap", "web", env.namespace)
    no_reference = {"metadata": {"ownerReferences": None}}

    async def has_reference() -> bool:
        return bool((await env.admin.get(settings))["metadata"].get("ownerReferences"))

    with envtest_controllers(ControllerName.GARBAGE_COLLECTOR):
        async with env.operating(operator(None)):
            await env.create()
            await eventually(lambda: env.exists(env.workload))
            for number in range(11):
                if number:
                    await eventually(has_reference)
                await env.admin.patch(
                    settings, no_reference, PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl-edit")
                )
            await env.delete()

            async def is_gone() -> bool:
                return not await env.exists(settings)

            await eventually(is_gone)
    assert "forbidden" not in caplog.text.lower()


@pytest.mark.promise("orphaned", runs="kubectl delete --cascade=orphan on a real API server")
@pytest.mark.parametrize("held", [False, True], ids=["no finalizer", "held by on_delete"])
async def test_what_kubectl_orphans_stays(env: Env, envtest_controllers: RunControllers, *, held: bool) -> None:
    """Until another owner, which is deleted after that, is gone with its objects."""
    settings = ObjectKey("v1", "ConfigMap", "web", env.namespace)
    with envtest_controllers(ControllerName.GARBAGE_COLLECTOR):
        async with env.operating(operator(Databases() if held else None)):
            await env.create()
            await eventually(lambda: env.exists(env.workload))
            before = await env.admin.get(settings)
            await env.kubectl(
                "delete", "shops.deletion.example.com", "corner", "--cascade=orphan", "--wait", "--timeout=600s"
            )

            async def is_orphaned() -> bool:
                return not (await env.admin.get(settings))["metadata"].get("ownerReferences")

            await eventually(is_orphaned)
            await env.create()

            async def is_adopted() -> bool:
                return not await is_orphaned()

            await eventually(is_adopted)
            assert (await env.admin.get(settings))["metadata"]["uid"] == before["metadata"]["uid"]
