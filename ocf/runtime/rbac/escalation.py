"""Privileges that the API server requires of the author of roles and bindings, so that no author gains privileges.

A role can be written by an account that has all privileges in it, or the verb `escalate` on roles. A binding can be
written by an account that has all privileges of the role, or the verb `bind` on it.

Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Final

from ocf.component.model.resource_options import Lifecycle
from ocf.errors import MutationError, NotReadyError
from ocf.runtime.rbac.policy_rule import PolicyRule

if TYPE_CHECKING:
    from ocf.component.model.registration import Registration
    from ocf.objects import Manifest

__all__ = ["escalation_rules"]

_GROUP: Final = "rbac.authorization.k8s.io"
_ROLES: Final = {"Role": "roles", "ClusterRole": "clusterroles"}
_BINDINGS: Final = {"RoleBinding", "ClusterRoleBinding"}


def escalation_rules(entries: Iterable[Registration], *, fixed: bool) -> Iterator[PolicyRule]:
    """Yield the privileges that writing the roles and bindings of some components requires.

    A managed role requires the privileges in it; if they are not known before the reconcile, are not about resources,
    or come from an aggregation rule, it requires `escalate`. A binding requires nothing more if its role is managed,
    too, and otherwise `bind` on its role.
    """
    managed = [
        entry
        for entry in entries
        if entry.key.api_version.startswith(f"{_GROUP}/") and Lifecycle.MANAGED in entry.options.possible_lifecycles
    ]
    granted = {}
    for entry in managed:
        if entry.key.kind in _ROLES:
            rules = _granted(_rendered(entry), namespaced=entry.key.kind == "Role")
            granted[entry.key.kind, entry.key.name] = rules is not None
            name = entry.key.name if fixed else ""
            yield from rules if rules is not None else [_on_role(entry.key.kind, "escalate", name, entry.key.kind)]
    for entry in managed:
        if entry.key.kind in _BINDINGS:
            yield from _of_binding(entry, granted, fixed=fixed)


def _of_binding(entry: Registration, granted: dict[tuple[str, str], bool], *, fixed: bool) -> Iterator[PolicyRule]:
    binding = _rendered(entry)
    if binding is None:
        yield from (_on_role(kind, "bind", "", entry.key.kind) for kind in _ROLES)
        return
    kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
    if granted.get((kind, name)):
        return
    # A role of the components has another name for another owner.
    any_name = (kind, name) in granted and not fixed
    yield _on_role(kind, "bind", "" if any_name else name, entry.key.kind)


def _on_role(role: str, verb: str, name: str, written: str) -> PolicyRule:
    return PolicyRule(_GROUP, _ROLES[role], verb, name, namespaced=not written.startswith("Cluster"))


def _rendered(entry: Registration) -> Manifest | None:
    """Return the object; None if it needs data that is extracted in a reconcile, or others decide on its content."""
    if getattr(entry.resource, "is_reference", False):
        return None
    try:
        return entry.resource.render()
    except MutationError as error:
        if isinstance(error.__cause__, NotReadyError):
            return None
        raise


def _granted(role: Manifest | None, *, namespaced: bool) -> list[PolicyRule] | None:
    """Return the privileges in a role; None if they are not all known and about resources."""
    if role is None or role.get("aggregationRule") is not None:
        return None
    found: list[PolicyRule] = []
    for rule in role.get("rules") or ():
        if rule.get("nonResourceURLs"):
            return None
        names = rule.get("resourceNames") or [""]
        for group, resource, verb, name in product(
            rule.get("apiGroups") or (), rule.get("resources") or (), rule["verbs"], names
        ):
            found.append(PolicyRule(group, resource, verb, name, namespaced=namespaced))
    return found
