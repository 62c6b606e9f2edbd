"""An embedded cluster for the operator, and simulated Kubernetes controllers: an embedded cluster runs none.

The demo and the tests use this module; an operator in production does not need one. The operator reconciles with the
rights of the role that `ocf manifests` generates, so that a missing right fails here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from examples.web.operator import CONDITION, components, operator
from examples.web.shop import Shop
from ocf.cluster import ListOptions, PatchOptions, PatchType, ServiceAccount, Subresource
from ocf.component import finalize, reconcile_all, reconciling
from ocf.objects import ObjectKey
from ocf.runtime.rbac import PolicyRule, roles
from ocf.testing import operator_cluster
from ocf_server import EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ocf.cluster import Cluster
    from ocf.component import Result
    from ocf.objects import Manifest
    from ocf.testing import VirtualClock

__all__ = [
    "ACCOUNT",
    "AUTOSCALER",
    "CONNECTION",
    "DATABASE",
    "DEPLOYMENT",
    "EXPORTER",
    "NAMESPACE",
    "NEWEST",
    "RULES",
    "SECRET",
    "SHOP",
    "WEB",
    "change",
    "controllers",
    "give_password",
    "granted",
    "healthy_cluster",
    "new_cluster",
    "open_shop",
    "reconcile_shop",
    "reconcile_until_in_sync",
    "report",
    "scale",
]

NEWEST: Final = "2.3.0"
NAMESPACE: Final = "shop"
SHOP: Final = ObjectKey("example.com/v1", "Shop", "corner", NAMESPACE)
DATABASE: Final = ObjectKey("apps/v1", "StatefulSet", "corner-db", NAMESPACE)
WEB: Final = ObjectKey("apps/v1", "Deployment", "corner-web", NAMESPACE)
EXPORTER: Final = ObjectKey("apps/v1", "Deployment", "corner-exporter", NAMESPACE)
SECRET: Final = ObjectKey("v1", "Secret", "corner-password", NAMESPACE)
CONNECTION: Final = ObjectKey("v1", "ConfigMap", "corner-db", NAMESPACE)
AUTOSCALER: Final = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "corner-web", NAMESPACE)
ACCOUNT: Final = ServiceAccount(operator.name, operator.name)

DEPLOYMENT: Final = "Deployment"
STATEFUL_SET: Final = "StatefulSet"
HPA: Final = "HorizontalPodAutoscaler"


def _shop(version: str, *, exporter: bool) -> Manifest:
    return {
        "apiVersion": SHOP.api_version,
        "kind": SHOP.kind,
        "metadata": {"name": SHOP.name, "namespace": SHOP.namespace},
        "spec": {"version": version, "passwordSecret": SECRET.name, "exporter": exporter},
    }


def granted(rules: Iterable[PolicyRule]) -> list[Manifest]:
    """Return the role of the operator in the namespace of the shop, and its binding."""
    return roles(rules, name=operator.name, account=ACCOUNT, namespaces=[NAMESPACE])


RULES: Final = operator.policy_rules(components(Shop.model_validate(_shop(NEWEST, exporter=True))))
"""The rights of the operator."""


async def new_cluster(
    clock: VirtualClock, *, version: str = NEWEST, exporter: bool = False, rules: Iterable[PolicyRule] = RULES
) -> EmbeddedCluster:
    """Return a cluster that contains a shop and nothing else.

    Args:
        clock: Clock of the cluster.
        version: Version of the product.
        exporter: Whether the exporter is enabled.
        rules: The rights of the operator.
    """
    cluster = EmbeddedCluster(namespaces=[NAMESPACE], now=clock.now, authorization=True)
    await operator_cluster(cluster, granted(rules))
    await cluster.create(Shop.definition(), field_manager="user")
    await open_shop(cluster, version=version, exporter=exporter)
    return cluster


async def open_shop(cluster: Cluster, *, version: str = NEWEST, exporter: bool = False) -> None:
    """Create a shop, as the user does.

    Args:
        cluster: The cluster.
        version: Version of the product.
        exporter: Whether the exporter is enabled.
    """
    await cluster.create(_shop(version, exporter=exporter), field_manager="user")


async def healthy_cluster(
    clock: VirtualClock, *, version: str = NEWEST, exporter: bool = False, replicas: int = 5
) -> EmbeddedCluster:
    """Return a cluster with a shop whose components are all healthy.

    Args:
        clock: Clock of the cluster.
        version: Version of the product.
        exporter: Whether the exporter is enabled.
        replicas: Replica count that the autoscaler has set on the application.
    """
    cluster = await new_cluster(clock, version=version, exporter=exporter)
    await give_password(cluster)
    await reconcile_until_in_sync(cluster, clock)
    await scale(cluster, replicas)
    await reconcile_until_in_sync(cluster, clock)
    return cluster


async def reconcile_shop(cluster: Cluster, clock: VirtualClock) -> Sequence[Result]:
    """Reconcile the shop once, as the process of the operator does for an event, with the rights of its account.

    Args:
        cluster: The cluster.
        clock: Clock of the reconcile.

    Returns:
        The result of each component; empty if the shop is being deleted.
    """
    cluster = cluster.acting_as(ACCOUNT)
    owner = await cluster.get(SHOP)
    parts = components(Shop.model_validate(owner))
    async with reconciling(owner, cluster, clock=clock, operator=operator.name) as context:
        if await finalize(context, *parts) is not None:
            return ()
        try:
            return await reconcile_all(context, *parts)
        finally:
            context.aggregate(CONDITION, *parts)


async def reconcile_until_in_sync(cluster: Cluster, clock: VirtualClock) -> None:
    """Run the operator and the controllers until nothing changes any more.

    Args:
        cluster: The cluster.
        clock: Clock of the reconciles.
    """
    before: Manifest = {}
    while True:
        results = await reconcile_shop(cluster, clock)
        after = await cluster.get(SHOP)
        if after == before and not sum(result.writes for result in results):
            return
        before = after
        await controllers(cluster)


async def give_password(cluster: Cluster, name: str = SECRET.name) -> None:
    """Create the Secret, as the user does.

    Args:
        cluster: The cluster.
        name: Name of the Secret.
    """
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": {"password": "correct horse battery staple"},
    }
    await cluster.create(secret, field_manager="user")


async def change(cluster: Cluster, **spec: object) -> None:
    """Change the spec of the shop, as the user does.

    Args:
        cluster: The cluster.
        spec: Fields of the spec to set.
    """
    await cluster.patch(SHOP, {"spec": spec}, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))


async def scale(cluster: Cluster, replicas: int) -> None:
    """Scale the application, as the autoscaler does."""
    desired = {"spec": {"replicas": replicas}}
    part = Subresource.SCALE
    await cluster.patch(
        WEB, desired, PatchOptions(patch_type=PatchType.MERGE, field_manager="autoscaler", subresource=part)
    )


async def controllers(cluster: Cluster) -> None:
    """Report every object as healthy, as the controllers of Kubernetes eventually do."""
    for kind in (STATEFUL_SET, DEPLOYMENT, HPA):
        await report(cluster, kind)


async def report(cluster: Cluster, kind: str) -> None:
    """Report the objects of a kind as healthy, as its controller does.

    Args:
        cluster: The cluster.
        kind: The kind.
    """
    status = _STATUS[kind]
    for live in (await cluster.list(_API[kind], kind, ListOptions(namespace=NAMESPACE))).items:
        seen, part = {"status": status(live)}, Subresource.STATUS
        key = ObjectKey.of(live)
        await cluster.patch(
            key, seen, PatchOptions(patch_type=PatchType.MERGE, field_manager="controller", subresource=part)
        )


def _of_deployment(live: Manifest) -> Manifest:
    counts = dict.fromkeys(["replicas", "readyReplicas", "updatedReplicas"], live["spec"]["replicas"])
    return {"observedGeneration": live["metadata"]["generation"], **counts}


def _of_stateful_set(live: Manifest) -> Manifest:
    return {**_of_deployment(live), "currentRevision": "a", "updateRevision": "a"}


def _of_autoscaler(_live: Manifest) -> Manifest:
    return {"conditions": [{"type": "ScalingActive", "status": "True", "message": "the replica count was computed"}]}


_API: Final = {DEPLOYMENT: "apps/v1", STATEFUL_SET: "apps/v1", HPA: "autoscaling/v2"}
_STATUS: Final[dict[str, Callable[[Manifest], Manifest]]] = {
    DEPLOYMENT: _of_deployment,
    STATEFUL_SET: _of_stateful_set,
    HPA: _of_autoscaler,
}
