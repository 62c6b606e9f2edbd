"""An operator with these privileges writes its roles on a real API server; with one less it is forbidden."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.component import Component, reconciling
from ocf.errors import ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import clusterrole, role, rolebinding
from ocf.runtime.rbac import PolicyRule, policy_rules
from tests.runtime.rbac.test_server import DEFINITION, MARKS, Env, effective, shop

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest import ControlPlane

API: Final = "rbac.authorization.k8s.io"
READ_PODS: Final = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
METRICS: Final = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


FOREIGN: Final = "system:node-bootstrapper"
"""A role that every cluster has, with its rules from the start: those of `view` are set by a controller."""


def named(kind: str, name: str, namespace: str = "", **content: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": f"{API}/v1", "kind": kind, "metadata": metadata, **content}


def to(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": API, "kind": kind, "name": name}


def roles_of(namespace: str) -> Component:
    """Return a component with a role whose rules are known, one that needs `escalate`, and one that needs `bind`."""
    return (
        component.Builder("roles", condition_type="RolesReady")
        .with_resource(role.Builder(named("Role", "reader", namespace, rules=[READ_PODS])).build())
        .with_resource(
            rolebinding.Builder(named("RoleBinding", "own", namespace, roleRef=to("Role", "reader"))).build()
        )
        .with_resource(clusterrole.Builder(named("ClusterRole", namespace, rules=[METRICS])).build())
        .with_resource(
            rolebinding.Builder(named("RoleBinding", "foreign", namespace, roleRef=to("ClusterRole", FOREIGN))).build()
        )
        .build()
    )


def needed(namespace: str) -> frozenset[PolicyRule]:
    return policy_rules([roles_of(namespace)], owner=ObjectKey.of(shop(namespace)), definitions=[DEFINITION])


async def condition(
    admin: ApiServerCluster, plane: ControlPlane, without: PolicyRule | None = None
) -> tuple[str, str, str]:
    """Reconcile once with all privileges but one; return status, reason and message of the condition."""
    with plane.namespace("escalation-") as namespace:
        env = Env(admin, plane, namespace)
        await env.set_up()
        granted = needed(namespace)
        assert without is None or without in granted
        async with await plane.cluster(await env.grant((granted - {without}) | MARKS)) as cluster:
            await effective(cluster, namespace)
            owner = await cluster.get(ObjectKey.of(shop(namespace)))
            with nullcontext() if without is None else pytest.raises(ReconcileError):
                async with reconciling(owner, cluster) as context:
                    await roles_of(namespace).reconcile(context)
        (found,) = (await admin.get(ObjectKey.of(owner)))["status"]["conditions"]
        await env.tidy()
        if without is None:
            await admin.delete(ObjectKey(f"{API}/v1", "ClusterRole", namespace))
    return found["status"], found["reason"], found["message"]


async def test_an_operator_that_owns_roles_is_not_forbidden(
    envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster
) -> None:
    await asyncio.to_thread(envtest_plane.install_crds, DEFINITION)
    assert (await condition(envtest_cluster, envtest_plane))[:2] == ("True", "Healthy")


@pytest.mark.parametrize(
    ("without", "kind", "missing"),
    [
        pytest.param(
            PolicyRule("", "pods", "get"),
            "Role",
            '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
            id="what is granted",
        ),
        pytest.param(
            PolicyRule(API, "clusterroles", "escalate", namespaced=False),
            "ClusterRole",
            '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
            id="escalate",
        ),
        pytest.param(
            PolicyRule(API, "clusterroles", "bind", FOREIGN),
            "RoleBinding",
            'Resources:["certificatesigningrequests"]',
            id="bind",
        ),
    ],
)
async def test_without_it_the_condition_names_what_is_missing(
    envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster, without: PolicyRule, kind: str, missing: str
) -> None:
    await asyncio.to_thread(envtest_plane.install_crds, DEFINITION)
    status, reason, message = await condition(envtest_cluster, envtest_plane, without)
    assert (status, reason) == ("False", "Error")
    assert message.startswith(f"failed to apply resource {API}/v1/{kind}/")
    assert "is attempting to grant RBAC permissions not currently held" in message
    assert missing in message
