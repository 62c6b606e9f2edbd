"""The operator of tenants: what each of their namespaces has, and the admission that keeps tenants apart."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from ocf import component
from ocf.cluster import ListOptions, ServiceAccount
from ocf.component import Component, ReconcileContext, Writes
from ocf.objects import Manifest, Quantity
from ocf.primitives import networkpolicy, rolebinding, unstructured
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome
from tests.operators.tenancy.contents import content_webhooks, cordon
from tests.operators.tenancy.model import LABEL, Tenant
from tests.operators.tenancy.namespaces import NAMESPACE, namespace_webhooks

__all__ = ["ACCOUNT", "components_of", "tenants"]

ACCOUNT: Final = ServiceAccount("tenancy", "tenancy")
NAME: Final = "tenant"
_QUOTA: Final = ("v1", "ResourceQuota")
_RBAC: Final = "rbac.authorization.k8s.io"
_EXCEEDED: Final = "Exceeded"
_MADE: Final = [
    _QUOTA,
    ("v1", "LimitRange"),
    NAMESPACE,
    ("networking.k8s.io/v1", "NetworkPolicy"),
    (f"{_RBAC}/v1", "RoleBinding"),
]


def tenants(
    account: ServiceAccount = ACCOUNT, administrators: Collection[str] = ("system:masters",)
) -> Operator[Tenant]:
    """Return the operator.

    Args:
        account: The ServiceAccount of its process.
        administrators: Groups whose members give any namespace to any tenant.
    """
    return Operator(
        name="tenancy",
        owner=OwnerType.of(Tenant),
        components=components,
        report=report,
        published_conditions=["Ready"],
        abnormal_conditions=[_EXCEEDED],
        reads=[NAMESPACE, _QUOTA],
        owns=_MADE,
        webhooks=[*namespace_webhooks(administrators), *content_webhooks()],
        policies=[cordon(f"system:serviceaccount:{account.namespace}:{account.name}")],
    )


async def components(tenant: Tenant, context: ReconcileContext) -> Sequence[Component]:
    """Return what the namespaces of a tenant have."""
    options = ListOptions(label_selector=f"{LABEL}={tenant.metadata.name}")
    found = (await context.cluster.list(*NAMESPACE, options)).items
    staying = sorted(one["metadata"]["name"] for one in found if "deletionTimestamp" not in one["metadata"])
    quotas = await context.children.list(*_QUOTA) if tenant.spec.quota else []
    used = {one["metadata"]["namespace"]: (one.get("status") or {}).get("used") or {} for one in quotas}
    if not context.is_ending:
        context.status.update(namespaces=staying, size=len(staying))
        _show_exceeded(tenant, context, staying, used)
    return components_of(tenant, staying, used)


def components_of(
    tenant: Tenant, namespaces: Sequence[str], used: Mapping[str, Mapping[str, str]]
) -> Sequence[Component]:
    """Return what namespaces have.

    Args:
        namespaces: Those of the tenant, without those that end.
        used: What is used in each of them.
    """
    own = component.Builder("namespaces", owner=tenant.key, condition_type="NamespacesReady").with_prune(
        kinds=_MADE, while_blocked=True
    )
    for name in namespaces:
        for one in _objects(tenant, name, {each: used.get(each, {}) for each in namespaces if each != name}):
            own.with_resource(one, independent=True)
        if tenant.spec.labels:
            labelled = unstructured.StaticBuilder(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": tenant.spec.labels}},
                cluster_scoped=True,
            )
            own.with_resource(labelled, independent=True, writes=Writes.UPDATE_ONLY, ignore_if_absent=True)
    account = tenant.spec.account
    if account is None:
        return [own.build()]
    kinds = sorted({(one["apiVersion"], one["kind"]) for one in tenant.spec.objects})
    theirs = component.Builder("objects", owner=tenant.key, condition_type="ObjectsReady").with_prune(kinds=kinds)
    theirs.acting_as(ServiceAccount(account.name, account.namespace))
    for name in namespaces:
        for one in tenant.spec.objects:
            metadata = {**one["metadata"], "namespace": name}
            theirs.with_resource(unstructured.StaticBuilder({**one, "metadata": metadata}), independent=True)
    return [own.build(), theirs.build()]


def report(context: ReconcileContext, _: Tenant, outcome: ReconcileOutcome) -> None:
    """Name what has failed in each namespace."""
    context.aggregate("Ready", *outcome.components)
    failures: dict[str, list[str]] = {}
    for one in (each for outcomes in outcome.outcomes.values() for each in outcomes):
        if one.action == "Failed":
            parts = one.resource.split("/")
            failures.setdefault(parts[-2], []).append(f"{parts[-3]} {parts[-1]}: {one.detail}")
    context.status["failures"] = {name: "; ".join(sorted(texts)) for name, texts in sorted(failures.items())} or None


def _objects(tenant: Tenant, namespace: str, others: Mapping[str, Mapping[str, str]]) -> Iterator[Any]:
    """Yield the objects of a namespace.

    Args:
        others: What is used in the other namespaces.
    """
    metadata = {"name": NAME, "namespace": namespace}
    if tenant.spec.quota:
        hard = {name: str(_left(tenant, name, others)) for name in tenant.spec.quota}
        yield unstructured.StaticBuilder(_object(*_QUOTA, metadata, spec={"hard": hard}))
    if tenant.spec.container_defaults:
        limits = [{"type": "Container", "default": tenant.spec.container_defaults}]
        yield unstructured.StaticBuilder(_object("v1", "LimitRange", metadata, spec={"limits": limits}))
    peer = {"namespaceSelector": {"matchLabels": {LABEL: tenant.metadata.name}}}
    ingress = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [peer]}]}
    yield networkpolicy.Builder({"metadata": metadata, "spec": ingress})
    yield rolebinding.Builder(
        {
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"apiGroup": _RBAC, "kind": one.kind, "name": one.name} for one in tenant.spec.owners],
        }
    )


def _object(api_version: str, kind: str, metadata: Manifest, **content: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def _used(name: str, used: Mapping[str, Mapping[str, str]]) -> Quantity:
    return sum((Quantity.parse(one.get(name, 0)) for one in used.values()), Quantity.parse(0))


def _left(tenant: Tenant, name: str, others: Mapping[str, Mapping[str, str]]) -> Quantity:
    return max(Quantity.parse(tenant.spec.quota[name]) - _used(name, others), Quantity.parse(0))


def _show_exceeded(
    tenant: Tenant, context: ReconcileContext, namespaces: Sequence[str], used: Mapping[str, Mapping[str, str]]
) -> None:
    """Report what requests at the same moment got beyond the limits."""
    spec = tenant.spec
    here = {name: used.get(name, {}) for name in namespaces}
    sums = {name: (_used(name, here), Quantity.parse(most)) for name, most in spec.quota.items()}
    texts = [f"{total} of {most} {name}" for name, (total, most) in sorted(sums.items()) if total > most]
    if spec.max_namespaces is not None and len(namespaces) > spec.max_namespaces:
        texts.insert(0, f"{len(namespaces)} of {spec.max_namespaces} namespaces")
    if texts:
        context.set_condition(_EXCEEDED, status="True", reason="LimitExceeded", message=f"used are {', '.join(texts)}")
    else:
        context.remove_condition(_EXCEEDED)
