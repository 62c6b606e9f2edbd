"""Tenants with their users, on a server that authorizes requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import ManagerOptions, Operator
from ocf.runtime.rbac import PolicyRule, roles
from ocf.testing import LocalWebhooks, LoopClock, operator_cluster, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.operators import world
from tests.operators.tenancy.model import API_VERSION, LABEL, Tenant
from tests.operators.tenancy.operator import ACCOUNT, components_of, tenants

__all__ = ["MERGE", "Tenants", "User", "granted", "in_virtual_time", "key", "prepare", "refusal"]

MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
RBAC: Final = "rbac.authorization.k8s.io"


def key(name: str) -> ObjectKey:
    """Return the key of a tenant."""
    return ObjectKey(API_VERSION, Tenant.kind, name, "")


def granted(operator: Operator[Tenant], home: str = ACCOUNT.namespace) -> frozenset[PolicyRule]:
    """Return the rights that the operator in a namespace declares, for every field of a tenant."""
    spec = {
        "owners": [{"name": "alice"}],
        "quota": {"pods": "1"},
        "containerDefaults": {"cpu": "1"},
        "labels": {"a": "b"},
        "account": {"name": "deployer", "namespace": home},
        "objects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}],
    }
    example = Tenant.model_validate({"metadata": {"name": "example"}, "spec": spec})
    return operator.policy_rules(components_of(example, ["one"], {})) | ManagerOptions(listen=None).policy_rules(
        operator
    )


@dataclass(frozen=True)
class User:
    """A user of the cluster."""

    cluster: Cluster
    prefix: str = ""

    async def namespace(self, name: str, labels: Mapping[str, str] | None = None, *, dry_run: bool = False) -> Manifest:
        """Make a namespace."""
        metadata = {"name": f"{self.prefix}{name}", "labels": dict(labels or {})}
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        return await self.cluster.create(made, field_manager="user", dry_run=dry_run)

    async def move(self, namespace: str, tenant: str | None, subresource: Subresource | None = None) -> Manifest:
        """Change the tenant of a namespace; the API server does not patch the subresource finalize."""
        live = await self.cluster.get(ObjectKey("v1", "Namespace", namespace, ""))
        labels = {**live["metadata"]["labels"], LABEL: tenant}
        metadata = {**live["metadata"], "labels": {one: text for one, text in labels.items() if text is not None}}
        return await self.cluster.update({**live, "metadata": metadata}, field_manager="user", subresource=subresource)


@dataclass
class Tenants(world.World):
    """A cluster with tenants.

    Args:
        webhooks: The webhooks of the operator, in this process.
        home: The namespace of the operator.
    """

    webhooks: LocalWebhooks | None = None
    home: str = ACCOUNT.namespace

    def user(self, name: str, *groups: str) -> User:
        """Return a user, who may make namespaces."""
        return User(self.cluster.acting_as(name, groups=["users", *groups]), self.prefix)

    async def tenant(self, name: str, *owners: Manifest, **spec: Any) -> ObjectKey:
        """Create a tenant, of alice unless owners are given."""
        wanted = {"owners": [*owners] or [{"kind": "User", "name": "alice"}], **spec}
        await self.create(key(name), spec=wanted)
        return key(name)

    async def change(self, name: str, **spec: Any) -> None:
        """Change the spec of a tenant."""
        await self.edit(key(name), {"spec": spec})

    async def grant(self, account: str, namespace: str) -> None:
        """Give a user the rights of an administrator of a namespace."""
        subject = {"apiGroup": RBAC, "kind": "User", "name": account}
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "admin"}
        one = ObjectKey(f"{RBAC}/v1", "RoleBinding", "deployer", namespace)
        await self.create(one, roleRef=role, subjects=[subject])

    async def status(self, name: str) -> Manifest:
        """Return the status of a tenant."""
        status: Manifest = (await self.cluster.get(key(name)))["status"]
        return status

    async def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        """Return status and reason of the conditions of a tenant."""
        return {one["type"]: (one["status"], one["reason"]) for one in (await self.status(name))["conditions"]}


async def refusal(write: Awaitable[object]) -> str:
    """Return with which words the API server refuses a write; empty if it does not."""
    try:
        await write
    except ApiError as error:
        return error.message
    return ""


async def prepare(cluster: Cluster) -> None:
    """Let users make namespaces."""
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "create", "patch", "update", "delete"]}]
    rules += [
        {"apiGroups": [""], "resources": ["namespaces/status", "namespaces/finalize"], "verbs": ["patch", "update"]}
    ]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "namespaces"}, "rules": rules}
    binding = {
        **role,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "namespaces"},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "users"}],
    }
    del binding["rules"]
    for one in (role, binding):
        await cluster.apply(one, field_manager="admin")


def in_virtual_time(scenario: Callable[[Tenants], Awaitable[None]], *, operating: bool = True) -> None:
    """Run a scenario under the role of the operator, on a cluster in which time passes only while all wait."""

    async def run() -> None:
        clock = LoopClock()
        cluster = EmbeddedCluster(now=clock.now, authorization=True)
        operator = tenants()
        restricted = await operator_cluster(cluster, roles(granted(operator), name="tenancy", account=ACCOUNT))
        found = Tenants(cluster, clock=clock, account=restricted)
        await cluster.apply(Tenant.definition(), field_manager="admin")
        await prepare(cluster)
        found.webhooks = await LocalWebhooks.install(cluster, operator, namespace=ACCOUNT.namespace)
        async with found.operating(operator) if operating else nullcontext():
            await scenario(found)

    run_in_virtual_time(run())
