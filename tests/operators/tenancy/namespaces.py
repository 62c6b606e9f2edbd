"""Admission of Namespaces: a user's namespace belongs to the tenant of the user, and stays there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kubernetes.client import V1Namespace

from ocf.cluster import Cluster, ListOptions
from ocf.objects import Manifest
from ocf.runtime.admission import AdmissionRequest, Deny, Match, Operation, Webhook
from tests.operators.tenancy.model import API_VERSION, LABEL, Tenant

__all__ = ["NAMESPACE", "namespace_webhooks", "tenant_of", "tenants_of"]

NAMESPACE: Final = ("v1", "Namespace")
_OF: Final = "{0}.metadata.?labels['%s'].orValue('')" % LABEL  # noqa: UP031 (braces of format)
_CHANGED: Final = f"request.operation == 'CREATE' || {_OF.format('object')} != {_OF.format('oldObject')}"


def namespace_webhooks(administrators: Collection[str]) -> tuple[Webhook[V1Namespace], ...]:
    """Return the webhooks of Namespaces.

    Args:
        administrators: Groups whose members give any namespace to any tenant.
    """
    names = ", ".join(f"'{one}'" for one in administrators)
    conditions = {"no-administrators": f"!request.userInfo.groups.exists(group, group in [{names}])"}
    # The label can be changed through the subresources, too: https://github.com/golang/vulndb/issues/5043.
    guarded = Match(subresources=["", "status", "finalize"], conditions={**conditions, "changed": _CHANGED})
    created = Match(operations=[Operation.CREATE], conditions=conditions)
    return (
        Webhook.of(V1Namespace, mutating=[assign], name="assign", match=created),
        Webhook.of(V1Namespace, validating=[check], name="tenant", match=guarded),
    )


def tenant_of(namespace: Manifest | None) -> str:
    """Return the name of the tenant of a namespace; empty without one."""
    labels: Mapping[str, str] = ((namespace or {}).get("metadata") or {}).get("labels") or {}
    return labels.get(LABEL, "")


async def tenants_of(user: str, groups: Collection[str], cluster: Cluster) -> dict[str, Tenant]:
    """Return the tenants that a user owns, by name."""
    found = (await cluster.list(API_VERSION, Tenant.kind)).items
    tenants = [Tenant.model_validate(one) for one in found if "deletionTimestamp" not in one["metadata"]]
    return {one.metadata.name: one for one in tenants if one.is_owned_by(user, [*groups])}


async def assign(request: AdmissionRequest[V1Namespace], cluster: Cluster) -> Manifest | Deny | None:
    """Label a new namespace with the tenant of its user."""
    made = request.object
    if made is None or tenant_of(made):
        return None
    owned = await tenants_of(request.user.username, request.user.groups, cluster)
    if len(owned) > 1:
        return Deny(f"name one of your tenants in the label {LABEL}: {', '.join(sorted(owned))}", code=400)
    labels = {
        **(made["metadata"].get("labels") or {}),
        **dict.fromkeys([LABEL] if owned else [], next(iter(owned), "")),
    }
    return {**made, "metadata": {**made["metadata"], "labels": labels}} if owned else None


async def check(request: AdmissionRequest[V1Namespace], cluster: Cluster) -> Deny | None:
    """Reject a namespace that its user, or the tenant, may not have."""
    name, user = tenant_of(request.object), request.user.username
    if request.operation is not Operation.CREATE:
        return Deny(f"the label {LABEL} cannot be changed")
    if not name:
        return None
    tenant = (await tenants_of(user, request.user.groups, cluster)).get(name)
    if tenant is None:
        return Deny(f"{user} is no owner of a tenant {name}")
    if tenant.spec.cordoned:
        return Deny(f"tenant {name} is cordoned")
    most = tenant.spec.max_namespaces
    found = (await cluster.list(*NAMESPACE, ListOptions(label_selector=f"{LABEL}={name}"))).items
    if most is not None and len(found) >= most:
        return Deny(f"tenant {name} has {len(found)} namespaces, and may have {most}")
    return None
