"""A cluster that an operator uses with the rights of its roles, and no others."""

from collections.abc import Iterable

from ocf.cluster import ServiceAccount
from ocf.errors import ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster

__all__ = ["operator_cluster"]

_USER = "test"


async def operator_cluster(cluster: EmbeddedCluster, roles: Iterable[Manifest]) -> EmbeddedCluster:
    """Apply the roles of an operator, and return the cluster as its service account uses it.

    What the roles do not allow is a `ForbiddenError`, which names verb, resource and namespace, as in a real cluster.
    The given cluster is still that of the administrator: with it, a test does what users do.

    Args:
        cluster: A cluster with `authorization=True`.
        roles: Roles and bindings, as `ocf manifests` writes them into `roles.yaml`, or as `ocf.runtime.rbac.roles`
            returns them; their namespaces are created if they are missing.

    Returns:
        The cluster for `running`, for `reconciles_with` of `OwnerEnv`, or for your own code.

    Raises:
        ConfigError: If the cluster does not authorize requests, or the bindings are not for one service account.

    Example:
        >>> import asyncio
        >>> from ocf.runtime.rbac import PolicyRule, roles
        >>> reads = {PolicyRule("", "configmaps", "list")}
        >>> granted = roles(reads, name="shops", account=ServiceAccount("shops", "operators"))
        >>> async def what_it_may_do() -> None:
        ...     cluster = await operator_cluster(EmbeddedCluster(authorization=True), granted)
        ...     print((await cluster.list("v1", "ConfigMap")).items)
        ...     await cluster.list("v1", "Secret")
        >>> asyncio.run(what_it_may_do())
        Traceback (most recent call last):
        ...
        ocf.errors.ForbiddenError: secrets is forbidden: User "system:serviceaccount:operators:shops" cannot list \
resource "secrets" in API group "" at the cluster scope; allow it with the rule {"apiGroups": [""], "resources": \
["secrets"], "verbs": ["list"]} of a ClusterRole that is bound to this user, as printed by kubectl create clusterrole \
list-secrets --verb=list --resource=secrets --dry-run=client --output=yaml
    """
    if not cluster.authorization:
        raise ConfigError(
            "the cluster authorizes no requests, so every role suffices: EmbeddedCluster(authorization=True)"
        )
    given = [*roles]
    account = _account(given)
    namespaces = {account.namespace, *(str(one["metadata"].get("namespace") or "") for one in given)}
    for name in sorted(namespaces - {""}):
        await _create_namespace(cluster, name)
    for manifest in given:
        await cluster.apply(manifest, field_manager=_USER, force=True)
    return cluster.authenticated_as(account)


def _account(roles: Iterable[Manifest]) -> ServiceAccount:
    found = {
        ServiceAccount(str(subject["name"]), str(subject.get("namespace") or one["metadata"].get("namespace")))
        for one in roles
        for subject in one.get("subjects") or ()
        if subject.get("kind") == "ServiceAccount"
    }
    if len(found) != 1:
        listed = ", ".join(sorted(f"{one.namespace}/{one.name}" for one in found)) or "none"
        raise ConfigError(
            f"the bindings of the roles must be for one service account, that of the operator; got {listed}"
        )
    return found.pop()


async def _create_namespace(cluster: EmbeddedCluster, name: str) -> None:
    try:
        await cluster.get(ObjectKey("v1", "Namespace", name))
    except NotFoundError:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await cluster.create(body, field_manager=_USER)
