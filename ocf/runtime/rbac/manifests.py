"""Roles and role bindings: merged rules without wildcards, bound to the operator's service account."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from ocf.cluster import ServiceAccount
from ocf.objects import Manifest
from ocf.runtime.rbac.policy_rule import PolicyRule

__all__ = ["roles"]

_API: Final = "rbac.authorization.k8s.io"
_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")


def roles(
    privileges: Iterable[PolicyRule], *, name: str, account: ServiceAccount, namespaces: Sequence[str] = ()
) -> list[Manifest]:
    """Return roles that grant privileges, and their bindings to a service account.

    Args:
        name: Name of the roles and bindings.
        account: The service account of the bindings.
        namespaces: Namespaces that the operator watches; empty for all, which needs a ClusterRole.

    Returns:
        The objects: at most one ClusterRole, and one Role per namespace, each followed by its binding.

    Example:
        >>> from ocf.cluster import ServiceAccount
        >>> secrets = {PolicyRule("", "secrets", "get", "ca"), PolicyRule("", "secrets", "patch", "ca")}
        >>> role, binding = roles(secrets, name="op", account=ServiceAccount("op", "ops"), namespaces=["shop"])
        >>> role["rules"]
        [{'apiGroups': [''], 'resources': ['secrets'], 'resourceNames': ['ca'], 'verbs': ['get', 'patch']}]
    """
    placed: dict[str, set[PolicyRule]] = defaultdict(set)
    for one in _without_granted(frozenset(privileges), everywhere=not namespaces):
        where = [one.namespace] if one.namespace else namespaces if one.namespaced else ()
        for namespace in where or [""]:
            placed[namespace].add(one)
    return [manifest for namespace in sorted(placed) for manifest in _role(name, namespace, placed[namespace], account)]


def _without_granted(privileges: frozenset[PolicyRule], *, everywhere: bool) -> Iterator[PolicyRule]:
    """Omit privileges that a privilege for all objects of all namespaces includes."""
    for one in privileges:
        whole = replace(one, name="", namespace="")
        if one == whole or not (everywhere and whole in privileges):
            yield one


def _role(name: str, namespace: str, privileges: set[PolicyRule], account: ServiceAccount) -> list[Manifest]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    kind = "Role" if namespace else "ClusterRole"
    subject = {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
    return [
        {"apiVersion": f"{_API}/v1", "kind": kind, "metadata": metadata, "rules": _rules(privileges)},
        {
            "apiVersion": f"{_API}/v1",
            "kind": f"{kind}Binding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": _API, "kind": kind, "name": name},
            "subjects": [subject],
        },
    ]


def _in_order(verb: str) -> tuple[int, str]:
    """Return the key that sorts verbs: the usual ones as they are usually written, then others by name."""
    return (_VERBS.index(verb) if verb in _VERBS else len(_VERBS), verb)


def _rules(privileges: Iterable[PolicyRule]) -> list[dict[str, Any]]:
    """Merge privileges that differ in one field only: first names, then verbs, then resources."""
    names: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for one in privileges:
        names[one.group, one.resource, one.verb].add(one.name)
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for (group, resource, verb), given in names.items():
        verbs[group, resource, () if "" in given else tuple(sorted(given))].add(verb)
    resources: dict[tuple[str, tuple[str, ...], tuple[str, ...]], set[str]] = defaultdict(set)
    for (group, resource, objects), done in verbs.items():
        resources[group, objects, tuple(sorted(done, key=_in_order))].add(resource)
    return [
        {
            "apiGroups": [group],
            "resources": sorted(found),
            **({"resourceNames": list(objects)} if objects else {}),
            "verbs": list(in_order),
        }
        for (group, objects, in_order), found in sorted(
            resources.items(), key=lambda item: (item[0][0], sorted(item[1]), item[0])
        )
    ]
