"""Privileges that components need, one per verb.

The privileges follow from the requests that the framework sends. A managed object is read and applied, which is a
patch; an apply that creates the object also needs `create`. `delete` is needed only if an object may be deleted: by a
component with a gate or with pruning, by a resource to be deleted, or by one that is deleted on suspension.

Every possible lifecycle of a resource counts, not only the present one: a gate may close, and a condition
(`delete_when`, `orphan_when`) may become true. So one component with all its possible resources is enough. Resources
that a component does not register are unknown; the privileges of several components are the union.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from ocf.cluster import Cluster
from ocf.cluster.impersonation import Impersonation
from ocf.component import Component, DeletionOrder
from ocf.component.model.registration import Registration
from ocf.component.model.resource_options import Lifecycle, Writes
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import split_api_version
from ocf.runtime.rbac.escalation import escalation_rules
from ocf.runtime.rbac.policy_rule import PolicyRule
from ocf.schema.builtin import builtin_resource, is_builtin_group
from ocf.schema.rest_mapping import RESTMapping, StatusPlace, guessed_mapping, rest_mapping

__all__ = [
    "ANY",
    "EVENTS",
    "REVIEW_RULES",
    "custom_definitions",
    "declared_rules",
    "is_known",
    "kopf_rules",
    "lease_rules",
    "mapping_or_guess",
    "policy_rules",
    "wildcard_group",
]

ANY: Final = "*"
"""Any group or resource, as in a role; in place of a kind, all kinds of a group."""
REVIEW_RULES: Final = frozenset(
    {
        PolicyRule("authentication.k8s.io", "tokenreviews", "create", namespaced=False),
        PolicyRule("authorization.k8s.io", "subjectaccessreviews", "create", namespaced=False),
    }
)
"""What a process needs to find out who calls it, and what the caller may do."""

_UNNAMEABLE: Final = frozenset({"list", "watch"})
_READS: Final = frozenset({"get", "list", "watch"})
_VERBS_OF_LIFECYCLE: Final = {
    Lifecycle.MANAGED: ("get", "create", "patch"),
    Lifecycle.READ_ONLY: ("get",),
    Lifecycle.DELETED: ("get", "delete"),
    Lifecycle.ORPHANED: ("get", "patch"),
}
_CREATED_PARTS: Final = frozenset({"binding", "eviction", "token"})
"""Subresources that are only created."""
_CREATED: Final = frozenset({Lifecycle.MANAGED, Lifecycle.DELETED})
_REFERRING: Final = frozenset({Lifecycle.MANAGED, Lifecycle.ORPHANED})


EVENTS: Final = frozenset({PolicyRule("events.k8s.io", "events", verb) for verb in ("create", "patch")})
"""Privileges for posting events (`ocf.runtime.events.broadcasting_events`)."""


def lease_rules(name: str, namespace: str, *, sharded: bool = False) -> frozenset[PolicyRule]:
    """Return the privileges for leader election.

    Args:
        name: Name of the lease.
        namespace: Namespace of the lease.
        sharded: Whether several replicas are at work, each with a Lease whose name is not known before.
    """
    one = partial(PolicyRule, "coordination.k8s.io", "leases", namespace=namespace)
    if sharded:
        return frozenset(map(one, ("create", "delete", "get", "list", "update")))
    return frozenset({one("create"), one("get", name=name), one("update", name=name)})


def kopf_rules(*, clusterwide: bool = True, posting: bool = True, peering: str = "") -> frozenset[PolicyRule]:
    """Return the privileges that kopf itself asks for, beside those of the operators that run inside it.

    They are those of kopf's documentation (https://docs.kopf.dev/en/stable/deployment/#rbac). Without the permission to
    watch definitions and namespaces kopf runs, too, but logs warnings and does not see later changes. Handlers of
    kopf's own need more: what they are registered for is listed, watched and patched.

    Args:
        clusterwide: Whether kopf runs for all namespaces (`--all-namespaces`), not for some (`--namespace`).
        posting: Whether handlers of kopf's own post events on objects.
        peering: Name of the peering object (`--peering`); empty without peering.

    Example:
        >>> sorted({rule.resource for rule in kopf_rules(peering="default")})
        ['clusterkopfpeerings', 'customresourcedefinitions', 'events', 'namespaces']
    """
    definitions = partial(PolicyRule, "apiextensions.k8s.io", "customresourcedefinitions", namespaced=False)
    spaces = partial(PolicyRule, "", "namespaces", namespaced=False)
    found = {rule(verb) for rule in (definitions, spaces) for verb in ("list", "watch")}
    if posting:
        found.add(PolicyRule("", "events", "create"))
    if peering:
        peers = "clusterkopfpeerings" if clusterwide else "kopfpeerings"
        peer = partial(PolicyRule, "kopf.dev", peers, namespaced=not clusterwide)
        found |= {peer("list"), peer("watch"), peer("get", name=peering), peer("patch", name=peering)}
    return frozenset(found)


def policy_rules(  # noqa: PLR0913 (independent facts about the operator, by keyword)
    components: Iterable[Component],
    *,
    owner: ObjectKey,
    watches: Iterable[tuple[str, str]] = (),
    definitions: Iterable[Manifest] = (),
    cached: bool = False,
    fixed: bool = False,
    enforced: bool = False,
    deletion_order: DeletionOrder | None = None,
) -> frozenset[PolicyRule]:
    """Return the privileges that an operator of some components needs.

    Args:
        components: The components, with all resources that they may have; the state of gates does not matter, but
            `delete_when` and `orphan_when` must be false.
        owner: Key of any owner: only its kind and scope matter.
        watches: Further kinds that the operator watches, as `("v1", "Secret")`.
        definitions: The CustomResourceDefinitions of the kinds that are not built in, that of the owner included.
        cached: Whether reads go through a cache, which lists and watches every kind that it reads.
        fixed: Whether the objects have the same names for every owner; then the privileges are limited to these names.
        enforced: Whether the cluster runs the admission plugin `OwnerReferencesPermissionEnforcement`, as OpenShift
            does. It also requires `delete` on objects whose owner references are set or removed.
        deletion_order: Order of the clean-up if the operator has an `on_delete`; None if it has none.

    A component that acts as another user requires the right to impersonate that user, and with a cache those to read.
    Everything else is done with the rights of the user, who needs what is left out here.

    Roles and bindings of the components also require the privileges that they grant, see
    `ocf.runtime.rbac.escalation`.

    Returns:
        The privileges; add `EVENTS` and `lease_rules` with `|`.

    Raises:
        ConfigError: If a kind of the components is neither built in nor defined; the plural of a watched one is
            guessed.
    """
    components, definitions = tuple(components), tuple(definitions)
    find = partial(rest_mapping, definitions=definitions)
    found: set[PolicyRule] = set()
    needs_finalizer = deletion_order is not None
    components_first = deletion_order is DeletionOrder.COMPONENTS_FIRST
    for component in components:
        own = _READS | {"create", "patch", "delete"}
        if component.acting_as is not None:
            own = _READS if cached else frozenset()
            found |= set(_impersonation_rules(component, component.acting_as, owner, fixed=fixed))
        for entry in component.entries:
            resource = find(entry.resource.key.api_version, entry.resource.key.kind)
            lifecycles = entry.options.possible_lifecycles
            without_gc = bool(owner.namespace) and not resource.namespaced and not entry.options.unowned
            without_gc = without_gc and bool(lifecycles & _CREATED)
            marked = entry.options.mark is not None and bool(lifecycles & _CREATED)
            needs_finalizer |= without_gc or marked
            owned = bool(lifecycles & _CREATED) and not entry.options.unowned
            by_list = without_gc or marked or (components_first and owned)
            name = entry.resource.key.name if fixed else ""
            verbs = set(_verbs(component, entry, resource, cached=cached, by_list=by_list))
            if enforced and lifecycles & _REFERRING and not entry.options.unowned:
                verbs.add("delete")  # the plugin: a change of the owner references can get an object deleted
            if marked:
                verbs.add("patch")  # a copy that is orphaned or shared loses its label
            for verb in verbs & own:
                # Objects that are found by a list may have any name.
                any_name = verb in _UNNAMEABLE or (verb == "delete" and (component.prunes or by_list))
                any_name = any_name or (verb == "patch" and marked)
                found.add(_on(resource, verb, "" if any_name else name))
        needs_finalizer |= component.makes_external or bool(component.prune_external)
        for kind in component.prune_kinds:
            needed = {"get", "list", "patch", "delete", *(("watch",) if cached else ())}
            found |= {_on(find(*kind), verb) for verb in needed & own}
        if component.reads_pods and any(entry.pod_source is not None for entry in component.entries):
            found |= {PolicyRule("", plural, "list") for plural in ("pods", "events")}
    written = [entry for component in components if component.acting_as is None for entry in component.entries]
    found |= set(escalation_rules(written, fixed=fixed))
    found |= set(_of_owner(find(owner.api_version, owner.kind), needs_finalizer=needs_finalizer, enforced=enforced))
    found |= {_on(mapping_or_guess(*watched, definitions), verb) for watched in watches for verb in ("list", "watch")}
    return frozenset(_without_covered(found))


def declared_rules(
    *,
    reads: Iterable[tuple[str, str]] = (),
    writes: Iterable[tuple[str, str]] = (),
    deletes: Iterable[tuple[str, str]] = (),
    definitions: Iterable[Manifest] = (),
) -> frozenset[PolicyRule]:
    """Return the privileges for requests of an author's own functions, through a cache.

    A kind may name a subresource, as a role does: `("apps/v1", "Deployment/scale")`. The plural of a kind that is
    neither built in nor defined is guessed. `("example.com/*", "*")` is for all kinds of a group, `("*", "*")` for all.

    Args:
        reads: Kinds that are read.
        writes: Kinds of which objects are created and changed.
        deletes: Kinds of which objects are deleted.
        definitions: The CustomResourceDefinitions of the kinds that are not built in.

    Raises:
        ConfigError: If a built-in kind does not have a subresource.
    """
    known = tuple(definitions)
    found: set[PolicyRule] = set()
    for kinds, verbs in ((reads, ()), (writes, ("create", "update", "patch")), (deletes, ("delete",))):
        for api_version, name in kinds:
            kind, _, part = name.partition("/")
            resource = mapping_or_guess(api_version, kind, known)
            if not part:
                found |= {_on(resource, verb) for verb in ("get", "list", "watch", *verbs)}
                continue
            _require_subresource(api_version, kind, part)
            wanted = ("create",) if part in _CREATED_PARTS else ("get", *(verb for verb in verbs if verb != "create"))
            found |= {_on(resource, verb, part=f"/{part}") for verb in wanted}
    return frozenset(found)


def _require_subresource(api_version: str, kind: str, part: str) -> None:
    builtin = builtin_resource(*split_api_version(api_version), kind)
    if builtin is not None and part not in {*builtin.subresources, *_CREATED_PARTS}:
        known = ", ".join(sorted(builtin.subresources)) or "none"
        raise ConfigError(f'{api_version} {kind} has no subresource "{part}"; it has: {known}')


def is_known(api_version: str, kind: str, definitions: Iterable[Manifest]) -> bool:
    """Return whether a kind is built in or defined."""
    try:
        rest_mapping(api_version, kind, definitions)
    except ConfigError:
        return False
    return True


def mapping_or_guess(api_version: str, kind: str, definitions: Iterable[Manifest]) -> RESTMapping:
    """Return the resource of a kind; if it is neither built in nor defined, the one that clients guess.

    Args:
        kind: The kind, or `ANY` for all of the group.
    """
    if kind == ANY:
        return RESTMapping(wildcard_group(api_version), ANY, namespaced=True)
    known = tuple(definitions)
    # What a built-in group does not have is misspelt.
    if is_known(api_version, kind, known) or is_builtin_group(split_api_version(api_version)[0]):
        return rest_mapping(api_version, kind, known)
    return guessed_mapping(api_version, kind)


def wildcard_group(api_version: str) -> str:
    """Return the group of `example.com/*`; `ANY` for a wildcard of all groups."""
    return ANY if api_version == ANY else split_api_version(api_version)[0]


def _on(resource: RESTMapping, verb: str, name: str = "", part: str = "") -> PolicyRule:
    return PolicyRule(resource.group, resource.plural + part, verb, name, resource.namespaced)


def _verbs(
    component: Component, entry: Registration, resource: RESTMapping, *, cached: bool, by_list: bool
) -> Iterator[str]:
    if entry.options.updates_only:
        yield from ("get", "patch", "list", *(("watch",) if cached else ()))
        return
    for lifecycle in entry.options.possible_lifecycles:
        yield from _VERBS_OF_LIFECYCLE[lifecycle]
    prunes = component.prunes and resource.namespaced
    if cached:
        yield from ("list", "watch")
    if prunes or by_list:
        yield "list"
    suspendable = entry.suspendable if entry.options.writes is Writes.ALL else None
    deleted_on_suspend = suspendable is not None and suspendable.delete_on_suspend()
    if (
        prunes
        or by_list
        or (
            Lifecycle.MANAGED in entry.options.possible_lifecycles
            and (component.gate is not None or deleted_on_suspend or entry.options.recreates or entry.once)
        )
    ):
        yield "delete"


def _impersonation_rules(
    component: Component, user: Impersonation, owner: ObjectKey, *, fixed: bool
) -> Iterator[PolicyRule]:
    """Yield the privileges to act as a user.

    An account in the namespace of the owner or of the component's objects may be another one for each owner: in any
    namespace of the operator, and of any name unless names are fixed. Everything else may only be as it is named.
    """
    anywhere = partial(PolicyRule, verb="impersonate", namespaced=False)
    account = user.account
    if account is None:
        yield anywhere("", "users", name=user.user)
    else:
        beside = account.namespace in {owner.namespace, *(entry.key.namespace for entry in component.entries)}
        name, namespace = "" if beside and not fixed else account.name, "" if beside else account.namespace
        yield PolicyRule("", "serviceaccounts", "impersonate", name, namespace=namespace)
    for group in user.groups:
        yield anywhere("", "groups", name=group)
    if user.uid:
        yield anywhere("authentication.k8s.io", "uids", name=user.uid)
    for key, values in user.extra.items():
        for value in values:
            yield anywhere("authentication.k8s.io", f"userextras/{key.lower()}", name=value)


def _of_owner(resource: RESTMapping, *, needs_finalizer: bool, enforced: bool) -> Iterator[PolicyRule]:
    for verb in ("get", "list", "watch"):
        yield _on(resource, verb)
    if resource.status is StatusPlace.SUBRESOURCE:
        yield _on(resource, "update", part="/status")
    # The finalizer, and a status without a subresource, are a patch of the owner itself.
    if needs_finalizer or resource.status is StatusPlace.OBJECT:
        yield _on(resource, "patch")
    if enforced:
        yield _on(resource, "update", part="/finalizers")


def _without_covered(found: set[PolicyRule]) -> Iterator[PolicyRule]:
    """Omit privileges for one name that a privilege for all names includes."""
    for one in found:
        whole = PolicyRule(one.group, one.resource, one.verb, "", one.namespaced, one.namespace)
        if one == whole or whole not in found:
            yield one


async def custom_definitions(cluster: Cluster) -> tuple[Manifest, ...]:
    """Read the CustomResourceDefinitions of a cluster, for `policy_rules`."""
    found = await cluster.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    return found.items
