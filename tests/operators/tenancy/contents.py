"""Admission of what is in the namespaces of tenants."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from kubernetes.client import V1PersistentVolumeClaim, V1Pod

from ocf.cluster import Cluster
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import (
    AdmissionRequest,
    Deny,
    FieldError,
    Match,
    Operation,
    Parameters,
    Policy,
    Validation,
    Webhook,
    forbidden,
)
from tests.operators.tenancy.model import API_VERSION, LABEL, Tenant
from tests.operators.tenancy.namespaces import NAMESPACE, tenant_of

__all__ = ["content_webhooks", "cordon"]

_TENANTS: Final = {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]}
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_DEFAULT_REGISTRY: Final = "docker.io"


def content_webhooks() -> tuple[Webhook[V1Pod] | Webhook[V1PersistentVolumeClaim], ...]:
    """Return the webhooks of Pods and PersistentVolumeClaims in the namespaces of tenants."""
    created = Match(operations=[Operation.CREATE], namespaces=_TENANTS)
    pods = Match(subresources=["", "ephemeralcontainers"], namespaces=_TENANTS)
    return (
        Webhook.of(V1Pod, mutating=[place], name="nodes", match=created),
        Webhook.of(V1Pod, validating=[check_pod], name="tenant", match=pods),
        Webhook.of(V1PersistentVolumeClaim, validating=[check_claim], name="tenant", match=created),
    )


def cordon(operator: str) -> Policy:
    """Return the policy by which nothing is created or changed in the namespaces of a cordoned tenant.

    Args:
        operator: The user of the operator, who may; and so may the account of the tenant, with which it writes.
    """
    account = "'system:serviceaccount:' + params.spec.account.namespace + ':' + params.spec.account.name"
    allowed = (
        f"params.metadata.name != namespaceObject.metadata.labels['{LABEL}']",
        "!params.spec.?cordoned.orValue(false)",
        f"(has(params.spec.account) && request.userInfo.username == {account})",
    )
    return Policy(
        name="tenancy-cordon",
        group="*",
        version="*",
        plural="*",
        validations=[Validation(" || ".join(allowed), "the tenant is cordoned", reason="Forbidden")],
        match=Match(
            scope="Namespaced",
            namespaces=_TENANTS,
            everywhere=False,
            conditions={
                "others": f"request.userInfo.username != '{operator}'",
                "objects-that-stay": "!object.?metadata.?deletionTimestamp.hasValue()",
                "no-events": "request.resource.resource != 'events'",
            },
        ),
        parameters=Parameters(api_version=API_VERSION, kind=Tenant.kind, selector={}, missing="Allow"),
    )


async def _tenant(
    request: AdmissionRequest[V1Pod] | AdmissionRequest[V1PersistentVolumeClaim], cluster: Cluster
) -> Tenant | None:
    """Return the tenant of a request; None without one, and for an object that ends."""
    if request.is_being_deleted:
        return None
    try:
        namespace = await cluster.get(ObjectKey(*NAMESPACE, request.namespace, ""))
        name = tenant_of(namespace)
        return Tenant.model_validate(await cluster.get(ObjectKey(API_VERSION, Tenant.kind, name, ""))) if name else None
    except NotFoundError:
        return None


async def place(request: AdmissionRequest[V1Pod], cluster: Cluster) -> Manifest | Deny | None:
    """Select the nodes of the tenant."""
    tenant, pod = await _tenant(request, cluster), request.object
    if tenant is None or pod is None:
        return None
    wanted, given = tenant.spec.node_selector, pod["spec"].get("nodeSelector") or {}
    others = sorted(key for key in wanted if given.get(key, wanted[key]) != wanted[key])
    if others:
        return Deny(
            f"pods of tenant {tenant.metadata.name} run on nodes with {wanted}, got another {', '.join(others)}"
        )
    return {**pod, "spec": {**pod["spec"], "nodeSelector": {**given, **wanted}}} if wanted else None


async def check_pod(request: AdmissionRequest[V1Pod], cluster: Cluster) -> list[FieldError]:
    """Check the images and the priority class of a pod."""
    tenant, pod = await _tenant(request, cluster), request.object
    if tenant is None or pod is None:
        return []
    spec, old = pod["spec"], ((request.old_object or {}).get("spec") or {})
    known = {_image(one) for one in _containers(old)}
    problems = [
        forbidden(f"spec.{field}", f"{image} is of {registry}; the tenant has {', '.join(tenant.spec.registries)}")
        for field, image in (pair for pair in _containers(spec) if _image(pair) not in known)
        if tenant.spec.registries and (registry := registry_of(image)) not in tenant.spec.registries
    ]
    name = spec.get("priorityClassName", "")
    if name and name != old.get("priorityClassName"):
        problems += _named("spec.priorityClassName", name, tenant.spec.priority_classes)
    return problems


async def check_claim(request: AdmissionRequest[V1PersistentVolumeClaim], cluster: Cluster) -> list[FieldError]:
    """Check the storage class of a claim."""
    tenant, claim = await _tenant(request, cluster), request.object
    if tenant is None or claim is None:
        return []
    return _named("spec.storageClassName", claim["spec"].get("storageClassName") or "", tenant.spec.storage_classes)


def registry_of(image: str) -> str:
    """Return the host of an image, as container runtimes read it."""
    host, slash, _ = image.partition("/")
    is_host = slash and ("." in host or ":" in host or host == "localhost")
    return host if is_host else _DEFAULT_REGISTRY


def _image(pair: tuple[str, str]) -> str:
    return pair[1]


def _containers(spec: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the field and the image of each container."""
    for field in _CONTAINERS:
        for number, container in enumerate(spec.get(field) or ()):
            yield f"{field}[{number}].image", container.get("image") or ""


def _named(field: str, name: str, allowed: Collection[str]) -> list[FieldError]:
    if not allowed or name in allowed:
        return []
    return [forbidden(field, f"{name or 'none'} is not of the tenant, which has {', '.join(allowed)}")]
