"""`policy_rules`: what components do to a cluster, one privilege per verb.

What is counted is what the framework sends. A managed object is read, and applied, which is a patch; an apply that
makes the object needs `create` besides. Deleting is a privilege only where something may be deleted: of a component
with a gate or one that prunes, of a resource that is to be gone, or that suspending deletes.

Counted is what may become of a resource, and not only what becomes of it now: a gate may close, and a switch
(`delete_when`, `orphan_when`) that is off may be thrown. So one component with everything in it that there may be is
enough. What a component does not register at all nobody knows of; privileges of several components are the union.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from ocf.component.model.resource_options import Lifecycle
from ocf.objects import Manifest, ObjectKey
from ocf.schema.rest_mapping import RESTMapping, rest_mapping

if TYPE_CHECKING:
    from ocf.component import Component
    from ocf.component.model.registration import Registration

__all__ = ["EVENTS", "PolicyRule", "lease_rules", "policy_rules"]

_UNNAMEABLE: Final = frozenset({"list", "watch"})
_OF_FATE: Final = {
    Lifecycle.MANAGED: ("get", "create", "patch"),
    Lifecycle.READ_ONLY: ("get",),
    Lifecycle.DELETED: ("get", "delete"),
    Lifecycle.ORPHANED: ("get", "patch"),
}
_MADE: Final = frozenset({Lifecycle.MANAGED, Lifecycle.DELETED})
_REFERRING: Final = frozenset({Lifecycle.MANAGED, Lifecycle.ORPHANED})


@dataclass(frozen=True, slots=True, order=True)
class PolicyRule:
    """One verb on one resource.

    Args:
        group: Group of the resource; empty for the core group.
        resource: Its name, with its subresource: `shops/status`.
        verb: `get`, `list`, `watch`, `create`, `update`, `patch` or `delete`.
        name: The only object that is meant; empty for all.
        namespaced: Whether its objects live in namespaces.
        namespace: The only namespace that is meant; empty for wherever the operator works.
    """

    group: str
    resource: str
    verb: str
    name: str = ""
    namespaced: bool = True
    namespace: str = ""


EVENTS: Final = frozenset({PolicyRule("events.k8s.io", "events", verb) for verb in ("create", "patch")})
"""What posting events (`ocf.runtime.events.broadcasting_events`) needs."""


def lease_rules(name: str, namespace: str) -> frozenset[PolicyRule]:
    """Return what leader election needs.

    Args:
        name: Name of the lease.
        namespace: Where it is.
    """
    one = partial(PolicyRule, "coordination.k8s.io", "leases", namespace=namespace)
    return frozenset({one("create"), one("get", name=name), one("update", name=name)})


def policy_rules(
    components: Iterable[Component],
    *,
    owner: ObjectKey,
    watches: Iterable[tuple[str, str]] = (),
    definitions: Iterable[Manifest] = (),
    cached: bool = False,
    fixed: bool = False,
    enforced: bool = False,
) -> frozenset[PolicyRule]:
    """Return what an operator of some components needs.

    Args:
        components: The components, with every resource that they may have; whether gates are open does not matter,
            but switches are to be off.
        owner: An owner; of a kind, not of one object.
        watches: Kinds that the operator watches besides, as `("v1", "Secret")`.
        definitions: The CustomResourceDefinitions of the kinds that are not built in, that of the owner among them.
        cached: Whether reads go through a cache, which lists and watches every kind that it reads.
        fixed: Whether the objects have the same names whoever their owner is; then no others are allowed for.
        enforced: Whether the cluster runs the admission plugin `OwnerReferencesPermissionEnforcement`, as OpenShift
            does. It asks for more: for `delete` too, where an owner reference is set or taken off.

    Returns:
        The privileges; add `EVENTS` and `lease_rules` with `|`.

    Raises:
        ConfigError: If a kind is neither built in nor defined.
    """
    definitions = tuple(definitions)
    find = partial(rest_mapping, definitions=definitions)
    found: set[PolicyRule] = set()
    holds = False
    for component in components:
        for entry in component.entries:
            resource = find(entry.resource.key.api_version, entry.resource.key.kind)
            fates = entry.options.possible_lifecycles
            uncollected = bool(owner.namespace) and not resource.namespaced and not entry.options.unowned
            uncollected = uncollected and bool(fates & _MADE)
            holds |= uncollected
            name = entry.resource.key.name if fixed else ""
            given = set(_verbs(component, entry, resource, cached=cached, uncollected=uncollected))
            if enforced and fates & _REFERRING and not entry.options.unowned:
                given.add("delete")  # the plugin: who changes the owners of an object can get it deleted
            for verb in given:
                # What is found by a list may have any name.
                loose = verb in _UNNAMEABLE or (verb == "delete" and (component.prunes or uncollected))
                found.add(_on(resource, verb, "" if loose else name))
    found |= set(_of_owner(find(owner.api_version, owner.kind), holds=holds, enforced=enforced))
    found |= {_on(find(*watched), verb) for watched in watches for verb in ("list", "watch")}
    return frozenset(_without_covered(found))


def _on(resource: RESTMapping, verb: str, name: str = "", part: str = "") -> PolicyRule:
    return PolicyRule(resource.group, resource.plural + part, verb, name, resource.namespaced)


def _verbs(
    component: Component, entry: Registration, resource: RESTMapping, *, cached: bool, uncollected: bool
) -> Iterator[str]:
    for fate in entry.options.possible_lifecycles:
        yield from _OF_FATE[fate]
    prunes = component.prunes and resource.namespaced
    if cached:
        yield from ("list", "watch")
    if prunes or uncollected:
        yield "list"
    asleep = entry.suspendable is not None and entry.suspendable.delete_on_suspend()
    if (
        prunes
        or uncollected
        or (Lifecycle.MANAGED in entry.options.possible_lifecycles and (component.gate is not None or asleep))
    ):
        yield "delete"


def _of_owner(resource: RESTMapping, *, holds: bool, enforced: bool) -> Iterator[PolicyRule]:
    for verb in ("get", "list", "watch"):
        yield _on(resource, verb)
    yield _on(resource, "update", part="/status")
    if holds:  # the finalizer, which is a patch of the owner itself
        yield _on(resource, "patch")
    if enforced:
        yield _on(resource, "update", part="/finalizers")


def _without_covered(found: set[PolicyRule]) -> Iterator[PolicyRule]:
    """Leave out privileges for one name where there is one for all."""
    for one in found:
        whole = PolicyRule(one.group, one.resource, one.verb, "", one.namespaced, one.namespace)
        if one == whole or whole not in found:
            yield one
