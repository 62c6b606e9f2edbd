"""Builder of a component, which reports all problems of a declaration together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, Self, Unpack, cast

from ocf.cluster import Propagation, ServiceAccount
from ocf.cluster.impersonation import NO_EXTRA, Impersonation
from ocf.component.component import Component
from ocf.component.model.common_metadata import NO_METADATA
from ocf.component.model.data_flow import data_problems, independence_problems, rollout_problems
from ocf.component.model.former_managers import pattern_problems
from ocf.component.model.owner_labels import recommended_labels, selector_labels
from ocf.component.model.registration import Registration, is_builder, is_resource
from ocf.component.model.registration_problems import registration_problems
from ocf.component.model.resource_options import Adoption, EffectiveOptions, Lifecycle, ResourceOptions
from ocf.component.model.rollout import BeforeUpdate, Rollout
from ocf.component.reconcile.prerequisites import Prerequisite
from ocf.concepts import Resource
from ocf.concepts.external import Client, ExternalResource
from ocf.concepts.resource import ObjectDefaults, ResourceBuilder
from ocf.errors import BuildError, ConfigError
from ocf.feature import Gate
from ocf.objects import ObjectKey
from ocf.objects.conditions import condition_type_problem

__all__ = ["Builder"]

_PAIR: Final = 2
_NOT_IN_ROLLOUT: Final = frozenset({"read_only", "delete_when", "orphan_when", "independent"})


class Builder:
    """Builds a component.

    With an owner, objects that are registered as builders get what their baselines lack: the name and the namespace of
    the owner, and a selector. All objects get the labels `app.kubernetes.io/name` (the owner's kind in lower case),
    `instance` (its name), `component` (the component's name) and `managed-by` (the owner's group). Name, instance and
    component are the selector, also of pod templates; `with_labels` changes labels and selectors alike.

    Args:
        name: Name of the component, `web-interface`.
        condition_type: Type of its condition on the owner; components of one owner need different ones.
        owner: Key of the owner; None for objects that have name, namespace, labels and selectors themselves.

    Example:
        >>> from ocf.objects import ObjectKey
        >>> from ocf.primitives import configmap
        >>> owner = ObjectKey("example.com/v1", "Shop", "corner", "town")
        >>> component = Builder("web", owner=owner).with_resource(configmap.Builder({"data": {"color": "red"}})).build()
        >>> component.name, component.condition_type
        ('web', 'Ready')
        >>> component.render()[0]["metadata"]["labels"]["app.kubernetes.io/instance"]
        'corner'
    """

    def __init__(self, name: str, *, condition_type: str = "Ready", owner: ObjectKey | None = None) -> None:
        self._made = Component(name=name, condition_type=condition_type)
        self._registered: list[tuple[Resource | ResourceBuilder, EffectiveOptions]] = []
        self._common = NO_METADATA
        self._namespace = ""
        self._adoption: Adoption | None = None
        self._problems: list[str] = []
        self._owner = owner if isinstance(owner, ObjectKey) else None
        if self._owner is not None:
            self._with_common("labels", recommended_labels(self._owner, name), pod_templates=False)
        elif owner is not None:
            self._problems.append(f"the owner must be an ObjectKey, such as shop.key, got {type(owner).__name__}")

    def with_resource(self, resource: Resource | ResourceBuilder, **options: Unpack[ResourceOptions]) -> Self:
        """Register a resource. By default it is applied, owned, and part of the condition.

        Args:
            resource: A resource, or a primitive's builder, which is built with the component. Applied in this order.
            options: See `ResourceOptions`.
        """
        if not (is_builder(resource) or is_resource(resource)):
            self._problems.append(_resource_problem(self._made.name, resource))
            return self
        try:
            self._registered.append((resource, EffectiveOptions.of(options)))
        except ConfigError as error:
            identity = getattr(resource, "identity", type(resource).__module__)
            self._problems.append(f'resource "{identity}" in component "{self._made.name}": {error}')
        return self

    def include_when(
        self,
        condition: bool,  # noqa: FBT001 (reads as a sentence)
        make: Callable[[], Resource | ResourceBuilder],
        **options: Unpack[ResourceOptions],
    ) -> Self:
        """Register a resource only if a condition holds; otherwise it is neither built nor applied, read or deleted.

        Args:
            condition: Usually a property of the cluster.
            make: Builds the resource; called only if the condition holds.
            options: See `ResourceOptions`.
        """
        if not condition:
            return self
        if not callable(make):
            self._problems.append(f'no build function passed to include_when in component "{self._made.name}"')
            return self
        return self.with_resource(make(), **options)

    def with_rollout(
        self,
        resources: Sequence[Resource | ResourceBuilder],
        *,
        max_unavailable: int = 1,
        before_update: BeforeUpdate | None = None,
        **options: Unpack[ResourceOptions],
    ) -> Self:
        """Register resources that are changed a few at a time, such as the members of a database.

        They are created together. Later on, one is changed only while fewer than `max_unavailable` of them are not
        ready; the others wait, and the condition is `Updating` until all are up to date. One of which nothing is
        available, because it was deleted, is broken or was suspended, waits for no other one.

        Args:
            resources: The members, in the order in which they are changed: usually the primary last.
            max_unavailable: How many of them may be unavailable, at least 1.
            before_update: Called before the spec of a member that is available changes, or the member is replaced, with
                its live object and the context, such as `async def switch_over(live, context)`. A text is why the
                change has to wait: the function is called again after the poll interval. It may be called again for the
                same change.
            options: See `ResourceOptions`; those of each of them.
        """
        problem = _rollout_problem(resources, max_unavailable, before_update, options)
        if problem:
            self._problems.append(problem)
            return self
        rollout, before = Rollout(max_unavailable, before_update), len(self._registered)
        for resource in resources:
            self.with_resource(resource, **options)
        members = self._registered[before:]
        self._registered[before:] = [(resource, replace(each, rollout=rollout)) for resource, each in members]
        return self

    def with_namespace(self, namespace: str) -> Self:
        """Set the namespace of all objects whose baseline has none, instead of that of the owner.

        It applies to resources that are registered as builders, because a built resource has a namespace, and not to
        cluster-scoped objects.

        Args:
            namespace: Name of the namespace.
        """
        self._namespace = namespace
        return self

    def with_labels(self, labels: Mapping[str, str], *, pod_templates: bool = False) -> Self:
        """Add labels to all objects that the component applies.

        A label that a resource sets itself, in its baseline or in a mutation, wins over these, and these win over those
        of the owner. A selector that a baseline has is never changed.

        Args:
            labels: The labels; those of several calls are combined, and the last value of a key wins.
            pod_templates: Whether they are added to the pod templates of built-in workloads as well. Another value then
                replaces their pods, and the API server rejects it for an existing Job.
        """
        return self._with_common("labels", labels, pod_templates=pod_templates)

    def with_annotations(self, annotations: Mapping[str, str], *, pod_templates: bool = False) -> Self:
        """Add annotations to all objects that the component applies, as `with_labels` does.

        Args:
            annotations: The annotations.
            pod_templates: As for `with_labels`.
        """
        return self._with_common("annotations", annotations, pod_templates=pod_templates)

    def with_feature_gate(self, gate: Gate | None) -> Self:
        """Put the whole component behind a gate: while the gate is off, the component's objects are deleted.

        Args:
            gate: The gate, evaluated in every reconcile; None changes nothing.
        """
        if gate is None:
            return self
        if self._made.gate is not None:
            self._problems.append("feature gate already set; with_feature_gate can only be called once")
        self._made = replace(self._made, gate=gate)
        return self

    def with_prerequisite(self, *prerequisites: Prerequisite | None) -> Self:
        """Add prerequisites, which must be met before the component does anything, suspending included.

        Args:
            prerequisites: Checked in order until the component has passed all of them; None is ignored.
        """
        added = [one for one in prerequisites if one is not None]
        self._made = replace(self._made, prerequisites=(*self._made.prerequisites, *added))
        return self

    def unpublished(self) -> Self:
        """Keep the component's condition out of the owner's status; it is returned and can be aggregated.

        An unpublished condition is not stored, so there is no grace period, and prerequisites are checked in every
        reconcile.
        """
        self._made = replace(self._made, published=False)
        return self

    def with_prune(
        self,
        *,
        kinds: Sequence[tuple[str, str]] = (),
        external: Sequence[Client[Any, Any]] = (),
        while_blocked: bool = False,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> Self:
        """Delete objects that the component applied in earlier reconciles and does not register now.

        Pruning considers every kind of which the component registers a resource, and `kinds`. It deletes the objects
        in the owner's namespace (in all namespaces, for a cluster-scoped owner) that name the owner and were applied by
        this component; that costs one list request per kind and reconcile. Nothing is pruned while the component is
        suspended. A resource that `include_when` leaves out is not registered.

        Args:
            kinds: Kinds that it considers although the component registers no resource of them any more, as
                `("v1", "ConfigMap")`: for a set of objects that may become empty, and a resource that is dropped. A
                kind that the API server does not serve is left out.
            external: Clients of external resources of which the same holds.
            while_blocked: Whether objects are pruned also while a resource is blocked. By default they stay until then,
                because the old ones may be needed until the new ones are applied.
            propagation: What happens to the dependents of the objects, as for `with_resource`.
        """
        self._problems += _kind_problems(kinds)
        try:
            policy = Propagation(propagation)
        except ValueError:
            self._problems.append(
                f'propagation of with_prune must be one of {", ".join(Propagation)}, got "{propagation}"'
            )
            return self
        named = tuple(dict.fromkeys((*self._made.prune_kinds, *(kinds or ()))))
        self._made = replace(
            self._made,
            prunes=True,
            prunes_while_blocked=while_blocked,
            prune_kinds=named,
            prune_external=(*self._made.prune_external, *external),
            prune_propagation=policy,
        )
        return self

    def with_adoption(self, adoption: Adoption) -> Self:
        """Set whether objects that exist already, and that no component of the owner has created, are adopted.

        An adopted object is changed, gets the owner reference, and is deleted with the owner; an event names it. One
        that must not be adopted is left as it is, and blocks its resource; the condition names it and what to do.

        Args:
            adoption: `Adoption.ALWAYS`, the default; `Adoption.LABELLED`, only with a label that names the owner; or
                `Adoption.NEVER`. The option `adopt` of a resource wins.
        """
        try:
            self._adoption = Adoption(adoption)
        except ValueError:
            self._problems.append(f'with_adoption must be one of {", ".join(Adoption)}, got "{adoption}"')
        return self

    def with_former_managers(self, *managers: str) -> Self:
        """Take over the fields of field managers that wrote the objects before and do not any more.

        Without it, a field that such a writer has set stays for ever, also one that the component has set, too, and
        drops later. What they own becomes the component's own, once per object, and the apply that follows removes what
        the component does not declare. An event names the managers and these fields, and a diff shows them beforehand.

        Args:
            managers: Names, as in `metadata.managedFields`, or patterns with `*` and `?`: `kubectl-client-side-apply`,
                `helm`, `shop-operator-*`. A label of the object, `ocf.dev/taken-over.<name>`, remembers each that was
                taken over; what it writes later stays.
        """
        self._problems += pattern_problems(managers)
        self._made = replace(self._made, former_managers=(*self._made.former_managers, *managers))
        return self

    def acting_as(
        self,
        user: str | ServiceAccount,
        *,
        groups: Sequence[str] = (),
        uid: str = "",
        extra: Mapping[str, Sequence[str]] = NO_EXTRA,
    ) -> Self:
        """Apply, adopt, prune and delete the objects of the component as another user, with the rights of that user.

        The operator reads and writes its owner itself, and reads cached objects with its own rights.

        Args:
            user: As of `Cluster.acting_as`; `ServiceAccount(shop.spec.account, shop.namespace)` for one in its spec.
            groups: As of `Cluster.acting_as`, like the others.
        """
        try:
            self._made = replace(self._made, acting_as=Impersonation.of(user, groups, uid, extra))
        except ConfigError as error:
            self._problems.append(str(error))
        return self

    def suspend(self, suspended: bool = True) -> Self:  # noqa: FBT001, FBT002 (reads as a sentence)
        """Set whether the component is suspended; the last call wins.

        Args:
            suspended: Usually a field of the owner's spec.
        """
        self._made = replace(self._made, suspended=suspended)
        return self

    def with_grace_period(self, period: timedelta) -> Self:
        """Set the time after which a component that is not ready becomes degraded or down.

        Args:
            period: Zero, the default, for no limit.
        """
        self._made = replace(self._made, grace_period=period)
        return self

    def with_poll_interval(self, interval: timedelta) -> Self:
        """Set the time until the next reconcile while the component is blocked, waiting or being suspended.

        Args:
            interval: Greater than zero; 10 seconds by default.
        """
        self._made = replace(self._made, poll_interval=interval)
        return self

    def with_pod_causes(self) -> Self:
        """Name in the condition why the pods of a workload do not start, or are not ready.

        While the component is not ready, from the poll interval on, the pods of each workload that is not ready are
        listed, at most 50, and if there are fewer than desired, the events about the workload; and the component is
        reconciled again after the poll interval. Nothing is watched, and nothing is read once it is ready. The role of
        the operator needs `list` for pods and events, which the generated one has.
        """
        self._made = replace(self._made, reads_pods=True)
        return self

    def with_handler_timeout(self, timeout: timedelta | None) -> Self:
        """Set the timeout of one handler call: of a mutation, a guard, a status handler or a prerequisite.

        Without a timeout, handlers are called in the thread of the event loop, which is fastest, but a handler that
        hangs blocks everything. With a timeout, each call gets its own thread; use it for handlers that do more than
        compare values. After the timeout the reconcile fails with an error that names the resource. The thread cannot
        be stopped: it ends with its handler or with the process.

        Args:
            timeout: Greater than zero; None, the default, for no limit.
        """
        self._made = replace(self._made, handler_timeout=timeout)
        return self

    def build(self) -> Component:
        """Return the component.

        Raises:
            BuildError: With every problem found.
        """
        entries = self._build_entries(problems := list(self._problems))
        problems += self._build_problems(entries)
        if problems:
            raise BuildError(problems)
        objects = tuple(entry for entry in entries if entry.external is None)
        return replace(self._made, entries=objects, external=tuple(e for e in entries if e.external is not None))

    def _with_common(self, name: str, entries: Mapping[str, str], *, pod_templates: bool) -> Self:
        try:
            self._common = self._common.extended(name, entries, pod_templates=pod_templates)
        except ConfigError as error:
            self._problems.append(str(error))
        return self

    def _build_entries(self, problems: list[str]) -> list[Registration]:
        entries: list[Registration] = []
        for given, options in self._registered:
            try:
                adopt = options.adopt or self._adoption
                built = self._built(given, options)
                made = built.at_each_target() if isinstance(built, ExternalResource) else [built]
                if not made:
                    # The last target has left: the resource is deleted there, unless it stays.
                    left = Lifecycle.DELETED if options.lifecycle is Lifecycle.MANAGED else options.lifecycle
                    made, options = [built], replace(options, lifecycle=left)  # noqa: PLW2901
                options = replace(options, adopt=adopt) if adopt else options  # noqa: PLW2901 (with the default)
                # What another writer makes gets no labels of ours.
                common = NO_METADATA if options.updates_only else self._common
                entries += [
                    Registration.of(one, options, common=common, place=place)
                    for place, one in enumerate(made, len(entries))
                ]
            except BuildError as error:
                problems += error.problems
        return entries

    def _built(self, given: Resource | ResourceBuilder, options: EffectiveOptions) -> Resource:
        if not is_builder(given):
            return cast("Resource", given)
        owner = self._owner
        by_name = options.updates_only or Lifecycle.MANAGED not in options.possible_lifecycles
        if owner is None and not self._namespace and not by_name:
            return given.build()
        selects = owner is not None and not options.updates_only
        defaults = ObjectDefaults(
            namespace=self._namespace or (owner.namespace if owner is not None else ""),
            owner=owner,
            selector=selector_labels(self._common.objects.labels) if selects else {},
            by_name=by_name,
        )
        # The caller may use the builder again.
        return copy(given).with_defaults(defaults).build()

    def _build_problems(self, entries: Sequence[Registration]) -> Iterator[str]:
        yield from _name_problems(self._made.name)
        yield from _type_problems(self._made.condition_type)
        yield from self._time_problems()
        if not isinstance(self._made.suspended, bool):
            yield f"suspend() takes True or False, got {self._made.suspended!r:.60}"
        if self._made.gate is not None and not callable(getattr(self._made.gate, "enabled", None)):
            yield f"a feature gate has a method enabled(), got {self._made.gate!r:.60}"
        for prerequisite in self._made.prerequisites:
            if not callable(getattr(prerequisite, "check", None)):
                yield f"a prerequisite needs a check method, {type(prerequisite).__name__} has none"
        yield from self._common.problems()
        if self._made.acting_as is not None and any(entry.options.held_for_cleanup for entry in entries):
            yield "held_for_cleanup is mutually exclusive with acting_as: the operator removes that finalizer itself"
        yield from registration_problems(self._made.name, entries)
        yield from data_problems(self._made.name, entries)
        yield from independence_problems(self._made.name, entries)
        yield from rollout_problems(self._made.name, entries)

    def _time_problems(self) -> Iterator[str]:
        made = self._made
        times = {"grace period": made.grace_period, "poll interval": made.poll_interval}
        for name, value in {**times, "handler timeout": made.handler_timeout}.items():
            given: object = value
            if given is None and name == "handler timeout":
                continue
            if not isinstance(given, timedelta):
                yield f"{name} must be a timedelta, got {given!r:.60}"
            elif given < timedelta(0) or (not given and name != "grace period"):
                yield f"{name} must be positive, got {given}"
        if self._made.grace_period and not self._made.published:
            yield "an unpublished component has no grace period: its condition is not stored"


def _name_problems(name: object) -> Iterator[str]:
    """Yield why a name cannot be a part of the component's field manager."""
    if name is None or name == "":
        yield "component name cannot be empty"
    elif not isinstance(name, str):
        yield f"component name must be a text, got {name!r:.60}"
    elif not name.isprintable():
        position, character = next((at, one) for at, one in enumerate(name) if not one.isprintable())
        yield (
            f"component name {name!r:.60} must be printable, because it is a part of the field manager: the API server "
            f"rejects the character U+{ord(character):04X} at position {position}"
        )


def _type_problems(condition_type: object) -> Iterator[str]:
    """Yield why a text cannot be the type of a condition."""
    if condition_type is None or condition_type == "":
        yield "condition type cannot be empty"
    elif not isinstance(condition_type, str):
        yield f"condition type must be a text, got {condition_type!r:.60}"
    elif problem := condition_type_problem(condition_type):
        yield problem


def _kind_problems(kinds: object) -> Iterator[str]:
    """Yield why kinds cannot be pruned that are named in this way."""
    given = list(kinds) if isinstance(kinds, Sequence) and not isinstance(kinds, str) else [kinds]
    for kind in given:
        if not (isinstance(kind, tuple | list) and len(kind) == _PAIR and all(isinstance(one, str) for one in kind)):
            yield f'with_prune: kinds must be pairs such as ("v1", "ConfigMap"), got {kind!r:.60}'


def _rollout_problem(resources: object, most: object, before: object, options: Mapping[str, object]) -> str:
    """Return why arguments of a rollout are wrong; empty if they are not."""
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        return f"with_rollout: max_unavailable must be an integer of at least 1, got {most!r:.60}"
    if before is not None and not callable(before):
        return f"with_rollout: before_update must be an `async def` function, got {before!r:.60}"
    if isinstance(resources, str) or not isinstance(resources, Sequence):
        return f"with_rollout takes a list of resources, got {type(resources).__name__}"
    excluded = sorted(_NOT_IN_ROLLOUT & {name for name, value in options.items() if value is not None})
    return f"with_rollout does not take {', '.join(excluded)}: use with_resource" if excluded else ""


def _resource_problem(component: str, given: object) -> str:
    """Return why a registered value is not a resource."""
    if given is None:
        return f'None registered as a resource in component "{component}"'
    return f'not a resource but {type(given).__name__} registered in component "{component}"'
