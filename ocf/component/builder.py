"""Builder of a component, which reports all problems of a declaration together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import timedelta
from typing import Self, Unpack, cast

from ocf.component.component import Component
from ocf.component.model.common_metadata import NO_METADATA
from ocf.component.model.data_flow import data_problems, independence_problems
from ocf.component.model.former_managers import pattern_problems
from ocf.component.model.owner_labels import recommended_labels, selector_labels
from ocf.component.model.registration import Registration, is_builder, is_resource
from ocf.component.model.resource_options import Adoption, EffectiveOptions, Lifecycle, ResourceOptions
from ocf.component.reconcile.prerequisites import Prerequisite
from ocf.concepts import Resource
from ocf.concepts.resource import ObjectDefaults, ResourceBuilder
from ocf.errors import BuildError, ConfigError
from ocf.feature import Gate
from ocf.objects import ObjectKey
from ocf.objects.conditions import condition_type_problem

__all__ = ["Builder"]


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

    def with_prune(self) -> Self:
        """Delete objects that the component applied in earlier reconciles and does not register now.

        Pruning considers every kind of which the component registers a resource. It deletes the objects in the owner's
        namespace (in all namespaces, for a cluster-scoped owner) that name the owner and were applied by this
        component; that costs one list request per kind and reconcile. Nothing is pruned while a resource is blocked or
        the component is suspended. A resource that `include_when` leaves out is not registered.
        """
        self._made = replace(self._made, prunes=True)
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
        problems = list(self._problems)
        entries = self._build_entries(problems)
        problems += self._build_problems(entries)
        if problems:
            raise BuildError(problems)
        return replace(self._made, entries=tuple(entries))

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
                entry = Registration.of(self._built(given), replace(options, adopt=adopt) if adopt else options)
            except BuildError as error:
                problems += error.problems
            else:
                entries.append(replace(entry, common=self._common) if self._common else entry)
        return entries

    def _built(self, given: Resource | ResourceBuilder) -> Resource:
        if not is_builder(given):
            return cast("Resource", given)
        owner = self._owner
        if owner is None and not self._namespace:
            return given.build()
        defaults = ObjectDefaults(
            namespace=self._namespace or (owner.namespace if owner is not None else ""),
            owner=owner,
            selector=selector_labels(self._common.objects.labels) if owner is not None else {},
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
        yield from self._duplicates(entries)
        yield from self._shared_selectors(entries)
        yield from data_problems(self._made.name, entries)
        yield from independence_problems(self._made.name, entries)

    def _time_problems(self) -> Iterator[str]:
        times = {
            "grace period": self._made.grace_period,
            "poll interval": self._made.poll_interval,
            "handler timeout": self._made.handler_timeout,
        }
        for name, value in times.items():
            given: object = value
            if given is None and name == "handler timeout":
                continue
            if not isinstance(given, timedelta):
                yield f"{name} must be a timedelta, got {given!r:.60}"
            elif given < timedelta(0) or (not given and name != "grace period"):
                yield f"{name} must be positive, got {given}"
        if self._made.grace_period and not self._made.published:
            yield "an unpublished component has no grace period: its condition is not stored"

    def _shared_selectors(self, entries: Sequence[Registration]) -> Iterator[str]:
        """Yield which workloads would select the pods of each other, because none has a selector of its own."""
        defaulted = [
            entry.identity
            for entry in entries
            if entry.alive is not None
            and entry.lifecycle is Lifecycle.MANAGED
            and getattr(entry.resource, "selects_by_default", False)
        ]
        if len(defaulted) > 1:
            yield (
                f'component "{self._made.name}": {" and ".join(defaulted)} would select the same pods: set '
                "spec.selector and the labels of the pod template in all of them but one, or make them components of "
                "their own"
            )

    def _duplicates(self, entries: Sequence[Registration]) -> Iterator[str]:
        seen: dict[str, Registration] = {}
        for entry in entries:
            first = seen.setdefault(entry.identity, entry)
            if first is not entry:
                options = _option_text(entry) if _option_text(entry) != _option_text(first) else ""
                yield f'duplicate resource "{entry.identity}" in component "{self._made.name}"{options}'


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


def _option_text(entry: Registration) -> str:
    """Return the options of a registration as text, for an error about two registrations of one object."""
    deleted, read = (
        str(entry.lifecycle is lifecycle).lower() for lifecycle in (Lifecycle.DELETED, Lifecycle.READ_ONLY)
    )
    return f" (delete={deleted}, readOnly={read}, mode={entry.options.participation})"


def _resource_problem(component: str, given: object) -> str:
    """Return why a registered value is not a resource."""
    if given is None:
        return f'None registered as a resource in component "{component}"'
    return f'not a resource but {type(given).__name__} registered in component "{component}"'
