"""On a real API server an operator with these privileges does all its work, and with one of them less it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import pytest
from pydantic import BaseModel

from ocf import component
from ocf.cluster import ListOptions, PatchOptions, PatchType, ServiceAccount, WatchOptions
from ocf.component import Component, finalize, reconciling
from ocf.editors import ObjectMetaEditor
from ocf.errors import ForbiddenError, NotFoundError, OcfError
from ocf.feature import BooleanGate, Mutation
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import BaseMutator, Edits, Handlers, Kind, StaticBuilder, configmap, deployment, hpa, pdb, secret
from ocf.primitives import networkpolicy as policy
from ocf.runtime.crds import CRDVersion, Preserve, crd
from ocf.runtime.events import broadcasting_events
from ocf.runtime.rbac import EVENTS, PolicyRule, policy_rules, roles
from ocf.testing.envtest import ControlPlane
from tests.support import eventually, until_granted

if TYPE_CHECKING:
    from pathlib import Path

    from kubernetes.client import V1PriorityClass

    from ocf.cluster import Cluster
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest.binaries import Programs

GROUP: Final = "rbac.example.com"
LABELS: Final = {"app": "web"}


class Shop(BaseModel):
    spec: Annotated[dict[str, Any], Preserve()] = {}
    status: Annotated[dict[str, Any] | None, Preserve()] = None


class PriorityMutator(BaseMutator):
    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")


PRIORITY: Kind[V1PriorityClass, PriorityMutator] = Kind(
    "scheduling.k8s.io/v1", "PriorityClass", "V1PriorityClass", PriorityMutator, cluster_scoped=True
)


class PriorityBuilder(StaticBuilder["V1PriorityClass", PriorityMutator]):
    def __init__(self, base: Manifest) -> None:
        super().__init__(base, PRIORITY, Handlers())


DEFINITION: Final = crd(GROUP, CRDVersion("v1", Shop))
MARKS: Final = frozenset({PolicyRule("", "endpoints", "list"), PolicyRule("", "nodes", "list", namespaced=False)})
"""Granted besides, one with each binding, to see when it is effective; nothing needs them."""


def manifest(api_version: str, kind: str, name: str, namespace: str = "", **content: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def shop(namespace: str) -> Manifest:
    return manifest(f"{GROUP}/v1", "Shop", "corner", namespace)


def workload(namespace: str) -> Manifest:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    spec = {"selector": {"matchLabels": LABELS}, "template": template}
    return manifest("apps/v1", "Deployment", "web", namespace, spec=spec)


def autoscaler(namespace: str) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3}
    return manifest("autoscaling/v2", "HorizontalPodAutoscaler", "web", namespace, spec=spec)


def budget(namespace: str) -> Manifest:
    return manifest("policy/v1", "PodDisruptionBudget", "old", namespace, spec={"minAvailable": 1})


def isolation(namespace: str) -> Manifest:
    return manifest("networking.k8s.io/v1", "NetworkPolicy", "kept", namespace, spec={"podSelector": {}})


def priority(namespace: str) -> Manifest:
    return manifest("scheduling.k8s.io/v1", "PriorityClass", namespace, value=5)


def web(namespace: str, *, on: bool = True, version: str = "1", suspended: bool = False) -> Component:
    """A component with something of everything that becomes of resources."""
    labelled: Mutation[deployment.Mutator] = Mutation(
        "labelled", lambda m: m.edit_object_metadata(lambda meta: meta.ensure_label("version", version))
    )
    credentials = manifest("v1", "Secret", "credentials", namespace)
    settings = manifest("v1", "ConfigMap", "settings", namespace, data={"a": "b"})
    return (
        component.Builder("web", condition_type="WebReady")
        .with_resource(secret.Builder(credentials).build(), read_only=True)
        .with_resource(configmap.Builder(settings).build(), unowned=True)
        .with_resource(deployment.Builder(workload(namespace)).with_mutation(labelled).build())
        .with_resource(hpa.Builder(autoscaler(namespace)).build())
        .with_resource(pdb.Builder(budget(namespace)).build(), delete_when=True)
        .with_resource(policy.Builder(isolation(namespace)).build(), orphan_when=True)
        .with_resource(PriorityBuilder(priority(namespace)).build())
        .with_feature_gate(BooleanGate(on))
        .suspend(suspended)
        .build()
    )


def needed(namespace: str, *, fixed: bool = False, enforced: bool = False) -> frozenset[PolicyRule]:
    return EVENTS | policy_rules(
        [web(namespace)],
        owner=ObjectKey.of(shop(namespace)),
        watches=[("v1", "Service")],
        definitions=[DEFINITION],
        fixed=fixed,
        enforced=enforced,
    )


@dataclass
class Env:
    """A namespace with the objects that exist before the operator starts, and its administrator."""

    admin: ApiServerCluster
    plane: ControlPlane
    namespace: str
    uids: dict[str, str] = field(default_factory=dict)

    async def set_up(self) -> None:
        owner = await self.admin.create(shop(self.namespace), field_manager="admin")
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {"name": "corner", "uid": owner["metadata"]["uid"], "controller": True}
        for one in (budget(self.namespace), isolation(self.namespace)):
            one["metadata"]["ownerReferences"] = [reference]
            await self.admin.create(one, field_manager="admin")
        for kind, name in (("Secret", "credentials"), ("Service", "other")):
            content = {} if kind == "Secret" else {"spec": {"ports": [{"port": 1}]}}
            await self.admin.create(manifest("v1", kind, name, self.namespace, **content), field_manager="admin")

    async def grant(self, granted: Iterable[PolicyRule]) -> Path:
        """Give a new user privileges, and return a kubeconfig for them."""
        user = f"system:serviceaccount:{self.namespace}:operator"
        account = ServiceAccount("operator", self.namespace)
        written = roles(granted, name=f"operator-{self.namespace}", account=account, namespaces=[self.namespace])
        for one in written:
            await self.admin.create(one, field_manager="admin")
        return await asyncio.to_thread(self.plane.kubeconfig_for, user, "system:serviceaccounts")

    async def tidy(self) -> None:
        for one in (shop(self.namespace), priority(self.namespace)):
            try:
                key = ObjectKey.of(one)
                patch = {"metadata": {"finalizers": None}}
                if key.kind == "Shop":
                    await self.admin.patch(key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="admin"))
                await self.admin.delete(key)
            except NotFoundError:
                continue


async def first(cluster: Cluster, api_version: str, kind: str, namespace: str) -> None:
    await cluster.list(api_version, kind, ListOptions(namespace=namespace))
    events = cluster.watch(api_version, kind, WatchOptions(resource_version="0", namespace=namespace))
    async for _ in events:
        break
    await events.aclose()  # type: ignore[attr-defined]  # every implementation gives a generator


def passes(namespace: str) -> Iterator[Component]:
    yield web(namespace)
    yield web(namespace, version="2")
    yield web(namespace, version="2", suspended=True)
    yield web(namespace, version="2")
    yield web(namespace, on=False)
    yield web(namespace)


async def live(env: Env, cluster: Cluster) -> None:
    """Go through the life of a component; raises what forbids a part of it."""
    namespace, owner = env.namespace, ObjectKey.of(shop(env.namespace))
    await first(cluster, owner.api_version, owner.kind, namespace)
    await first(cluster, "v1", "Service", namespace)
    async with broadcasting_events(cluster, controller=f"{GROUP}/operator") as events:
        for one in passes(namespace):
            async with reconciling(await cluster.get(owner), cluster, recorder=events) as context:
                await finalize(context, one)
                await one.reconcile(context)
            await events.flush()
    if events.dropped:
        raise ForbiddenError("an event was refused", code=403)
    await env.admin.delete(owner)
    async with reconciling(await cluster.get(owner), cluster) as context:
        assert await finalize(context, web(namespace)) is not None


def forbidden(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ForbiddenError):
        error = error.__cause__
    return error is not None


async def effective(cluster: Cluster, namespace: str) -> None:
    """Wait until the server knows the bindings, which it learns a moment after they are stored."""
    for one in sorted(MARKS):
        kind = {"endpoints": "Endpoints", "nodes": "Node"}[one.resource]
        options = ListOptions(namespace=namespace if one.namespaced else "")
        await eventually(partial(cluster.list, "v1", kind, options), lambda _: True, ignore=(ForbiddenError,))


async def attempt(
    admin: ApiServerCluster, plane: ControlPlane, without: PolicyRule | None = None, **more: bool
) -> OcfError | None:
    """Live a life with all privileges but one; return what went wrong."""
    with plane.namespace("rbac-") as namespace:
        env = Env(admin, plane, namespace)
        await env.set_up()
        granted = (needed(namespace, **more) - {without}) | MARKS
        async with await plane.cluster(await env.grant(granted)) as cluster:
            await effective(cluster, namespace)
            try:
                await live(env, cluster)
            except OcfError as error:
                return error
            finally:
                await env.tidy()
    return None


@pytest.mark.parametrize("fixed", [False, True])
async def test_nothing_is_forbidden(
    envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster, *, fixed: bool
) -> None:
    """Also where only objects of known names are allowed for: an apply that creates is judged by name, too."""
    await asyncio.to_thread(envtest_plane.install_crds, DEFINITION)

    assert await attempt(envtest_cluster, envtest_plane, fixed=fixed) is None


@pytest.mark.promise("rights", runs="each verb taken away, on a real API server")
async def test_every_privilege_is_needed(envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster) -> None:
    await asyncio.to_thread(envtest_plane.install_crds, DEFINITION)
    wanted = sorted(needed("any"))
    errors = [(one, await attempt(envtest_cluster, envtest_plane, without=one)) for one in wanted]

    assert [one for one, error in errors if not forbidden(error)] == []


async def test_where_owner_references_are_enforced_the_finalizers_are_needed(envtest_programs: Programs) -> None:
    arguments = {"enable-admission-plugins": "OwnerReferencesPermissionEnforcement"}
    async with ControlPlane(envtest_programs, server_arguments=arguments) as plane, await plane.cluster() as admin:
        await asyncio.to_thread(plane.install_crds, DEFINITION)

        assert forbidden(await attempt(admin, plane))
        assert await attempt(admin, plane, enforced=True) is None


class TestActingAsAnAccount:
    """An operator with its generated role, and an account with the rights of what its component writes."""

    def acting(self, namespace: str, **data: str) -> Component:
        settings = manifest("v1", "ConfigMap", "settings", namespace, data=data)
        account = ServiceAccount("deployer", namespace)
        made = component.Builder("web", condition_type="WebReady").with_resource(configmap.Builder(settings).build())
        return made.with_feature_gate(BooleanGate(bool(data))).acting_as(account).build()

    def operator_rules(self, namespace: str) -> frozenset[PolicyRule]:
        return policy_rules([self.acting(namespace)], owner=ObjectKey.of(shop(namespace)), definitions=[DEFINITION])

    async def grant_account(self, env: Env, *verbs: str) -> None:
        """Let the account read and write ConfigMaps; wait until the API server knows it."""
        account = ServiceAccount("deployer", env.namespace)
        rules = frozenset(PolicyRule("", "configmaps", verb) for verb in verbs)
        for one in roles(rules, name="deployer", account=account, namespaces=[env.namespace]):
            await env.admin.apply(one, field_manager="admin", force=True)
        await until_granted(
            env.admin, account.username, [PolicyRule("", "configmaps", verb, namespace=env.namespace) for verb in verbs]
        )

    async def reconcile(self, cluster: Cluster, one: Component, namespace: str) -> str:
        """Reconcile; return the message of the condition."""
        owner = ObjectKey.of(shop(namespace))
        try:
            async with reconciling(await cluster.get(owner), cluster) as context:
                await one.reconcile(context)
        except OcfError:
            pass
        conditions = (await cluster.get(owner))["status"]["conditions"]
        return str(next(each["message"] for each in conditions if each["type"] == "WebReady"))

    async def test_the_account_decides_what_may_be_written(
        self, envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster
    ) -> None:
        await asyncio.to_thread(envtest_plane.install_crds, DEFINITION)
        with envtest_plane.namespace("rbac-") as namespace:
            env, key = (
                Env(envtest_cluster, envtest_plane, namespace),
                ObjectKey("v1", "ConfigMap", "settings", namespace),
            )
            account = manifest("v1", "ServiceAccount", "deployer", namespace)
            await env.admin.create(account, field_manager="admin")
            await env.admin.create(shop(namespace), field_manager="admin")
            username = ServiceAccount("deployer", namespace).username
            kubeconfig = await env.grant(self.operator_rules(namespace) | MARKS)
            async with await envtest_plane.cluster(kubeconfig) as cluster:
                await effective(cluster, namespace)

                refused = await self.reconcile(cluster, self.acting(namespace, a="1"), namespace)
                assert f'User "{username}" cannot get resource "configmaps"' in refused
                assert '"resourceNames": ["settings"], "verbs": ["get"]} of a Role in the namespace' in refused

                await self.grant_account(env, "get", "create", "patch")
                assert "forbidden" not in await self.reconcile(cluster, self.acting(namespace, a="1"), namespace)
                assert (await env.admin.get(key))["data"] == {"a": "1"}
                refused = await self.reconcile(cluster, self.acting(namespace), namespace)
                assert f'User "{username}" cannot delete resource "configmaps"' in refused

                # The account is gone, and what is bound to its name still counts.
                await self.grant_account(env, "get", "create", "patch", "delete")
                await env.admin.delete(ObjectKey.of(account))
                assert "forbidden" not in await self.reconcile(cluster, self.acting(namespace), namespace)
                with pytest.raises(NotFoundError):
                    await env.admin.get(key)

    async def test_every_privilege_of_the_operator_is_needed(
        self, envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster
    ) -> None:
        """Those for its owner are needed by every operator; the others are only that to act as the account."""
        namespace = "any"
        others = {one for one in self.operator_rules(namespace) if one.resource not in ("shops", "shops/status")}
        assert others == {PolicyRule("", "serviceaccounts", "impersonate")}
        await asyncio.to_thread(envtest_plane.install_crds, DEFINITION)
        with envtest_plane.namespace("rbac-") as namespace:
            env = Env(envtest_cluster, envtest_plane, namespace)
            await env.admin.create(shop(namespace), field_manager="admin")
            await self.grant_account(env, "get", "create", "patch")
            kubeconfig = await env.grant((self.operator_rules(namespace) - others) | MARKS)
            async with await envtest_plane.cluster(kubeconfig) as cluster:
                await effective(cluster, namespace)
                refused = await self.reconcile(cluster, self.acting(namespace, a="1"), namespace)
        operator = ServiceAccount("operator", namespace).username
        assert f'User "{operator}" cannot impersonate resource "serviceaccounts"' in refused
        assert '"resources": ["serviceaccounts"], "resourceNames": ["deployer"], "verbs": ["impersonate"]}' in refused
