"""The component's builder: collects, and reports every problem at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Self, Unpack

from ocf.component.component import Component, Definition
from ocf.component.model.data_flow import data_problems, independence_problems
from ocf.component.model.registration import Registration, is_resource
from ocf.component.model.resource_options import EffectiveOptions, Lifecycle, ResourceOptions
from ocf.concepts import Resource
from ocf.errors import BuildError, ConfigError

if TYPE_CHECKING:
    from ocf.component.reconcile.prerequisites import Prerequisite
    from ocf.feature import Gate

__all__ = ["Builder"]

_POLL_INTERVAL: Final = timedelta(seconds=10)


class Builder:
    """Builds a component.

    Args:
        name: What the component is called, `web-interface`.
        condition_type: Type of its condition on the owner, `WebInterfaceReady`.

    Example:
        >>> component = Builder("web-interface", condition_type="WebInterfaceReady").build()
        >>> component.name
        'web-interface'
    """

    def __init__(self, name: str, *, condition_type: str) -> None:
        self._name = name
        self._condition_type = condition_type
        self._entries: list[Registration] = []
        self._problems: list[str] = []
        self._gate: Gate | None = None
        self._prerequisites: list[Prerequisite] = []
        self._suspended = False
        self._published = True
        self._prunes = False
        self._grace_period = timedelta(0)
        self._poll_interval = _POLL_INTERVAL
        self._handler_limit: timedelta | None = None

    def with_resource(self, resource: Resource, **options: Unpack[ResourceOptions]) -> Self:
        """Register a resource: unless an option says otherwise it is applied, owned, and counts for the condition.

        Args:
            resource: Built by a primitive's builder; the order of registration matters.
            options: How it is treated, see `ResourceOptions`.
        """
        if not is_resource(resource):
            self._problems.append(_no_resource(self._name, resource))
            return self
        try:
            self._entries.append(Registration.of(resource, EffectiveOptions.of(options)))
        except ConfigError as error:
            self._problems.append(f'resource "{resource.identity}" in component "{self._name}": {error}')
        return self

    def include_when(
        self,
        condition: bool,  # noqa: FBT001 (reads as a sentence)
        make: Callable[[], Resource],
        **options: Unpack[ResourceOptions],
    ) -> Self:
        """Register a resource only if a condition holds; otherwise nothing is made, read, created or deleted.

        Args:
            condition: Usually something found out about the cluster.
            make: Makes the resource; called only if the condition holds.
            options: How it is treated, see `ResourceOptions`.
        """
        if not condition:
            return self
        if not callable(make):
            self._problems.append(f'nil build function passed to IncludeWhen in component "{self._name}"')
            return self
        return self.with_resource(make(), **options)

    def with_feature_gate(self, gate: Gate | None) -> Self:
        """Switch the whole component by a gate: while it is off, what the component made is deleted.

        Args:
            gate: The gate, asked in every pass; None says nothing.
        """
        if gate is None:
            return self
        if self._gate is not None:
            self._problems.append("feature gate already set; WithFeatureGate can only be called once")
        self._gate = gate
        return self

    def with_prerequisite(self, *prerequisites: Prerequisite | None) -> Self:
        """Add something to wait for before the component does anything at all, suspending included.

        Args:
            prerequisites: Asked in order until the component got past them; None says nothing.
        """
        self._prerequisites.extend(one for one in prerequisites if one is not None)
        return self

    def unpublished(self) -> Self:
        """Keep the component's condition out of the owner's status; it is only returned, and can be aggregated.

        Without it nothing tells a later pass how long the component has been unready, so there is no grace period; and
        prerequisites are asked in every pass.
        """
        self._published = False
        return self

    def with_prune(self) -> Self:
        """Delete objects that the component made in earlier passes and does not register any more.

        Found are objects in the owner's namespace (in all, where the owner lives in none) that name the owner and were
        applied by this component, of every kind of which it still registers a resource; that costs one list per kind
        and pass. Nothing is pruned while a resource is blocked or the component is suspended. A resource that
        `include_when` leaves out is not registered.
        """
        self._prunes = True
        return self

    def suspend(self, suspended: bool = True) -> Self:  # noqa: FBT001, FBT002 (reads as a sentence)
        """Say whether the component is to be asleep; the last call wins.

        Args:
            suspended: Usually a field of the owner's spec.
        """
        self._suspended = suspended
        return self

    def with_grace_period(self, period: timedelta) -> Self:
        """Set how long the component may take to become ready before it is called degraded or down.

        Args:
            period: Zero, the default, means for ever.
        """
        self._grace_period = period
        return self

    def with_poll_interval(self, interval: timedelta) -> Self:
        """Set when to look again while the component is blocked or on its way to being suspended.

        Args:
            interval: Longer than nothing; 10 seconds by default.
        """
        self._poll_interval = interval
        return self

    def with_handler_timeout(self, limit: timedelta | None) -> Self:
        """Set how long one call of a handler may take: a mutation, a guard, a status, a prerequisite.

        Without a limit handlers are called in the thread of the loop, which costs least, and one that hangs holds up
        everything. With one, each call gets a thread: worth it for handlers that do more than compare values. A thread
        cannot be stopped, so what hangs goes on hanging until the process ends; the pass fails with an error that
        names the resource.

        Args:
            limit: Longer than nothing; None, the default, for ever.
        """
        self._handler_limit = limit
        return self

    def build(self) -> Component:
        """Return the component.

        Raises:
            BuildError: With every problem found.
        """
        problems = [*self._problems, *self._found()]
        if problems:
            raise BuildError(problems)
        definition = Definition(
            name=self._name,
            condition_type=self._condition_type,
            entries=tuple(self._entries),
            gate=self._gate,
            prerequisites=tuple(self._prerequisites),
            suspended=self._suspended,
            published=self._published,
            prunes=self._prunes,
            grace_period=self._grace_period,
            poll_interval=self._poll_interval,
            handler_timeout=self._handler_limit,
        )
        return Component(definition)

    def _found(self) -> Iterator[str]:
        if not self._name:
            yield "component name cannot be empty"
        if not self._condition_type:
            yield "condition type cannot be empty"
        if self._grace_period < timedelta(0):
            yield f"grace period must be positive, got {self._grace_period}"
        if self._grace_period and not self._published:
            yield "an unpublished component has no grace period: nothing tells since when it is not ready"
        if self._poll_interval <= timedelta(0):
            yield f"poll interval must be positive, got {self._poll_interval}"
        if self._handler_limit is not None and self._handler_limit <= timedelta(0):
            yield f"handler limit must be positive, got {self._handler_limit}"
        for prerequisite in self._prerequisites:
            if not callable(getattr(prerequisite, "check", None)):
                yield f"a prerequisite needs a check method, {type(prerequisite).__name__} has none"
        yield from self._duplicates()
        yield from data_problems(self._name, self._entries)
        yield from independence_problems(self._name, self._entries)

    def _duplicates(self) -> Iterator[str]:
        seen: dict[str, Registration] = {}
        for entry in self._entries:
            first = seen.setdefault(entry.identity, entry)
            if first is not entry:
                how = _treated(entry) if _treated(entry) != _treated(first) else ""
                yield f'duplicate resource "{entry.identity}" in component "{self._name}"{how}'


def _treated(entry: Registration) -> str:
    deleted, read = (str(entry.lifecycle is fate).lower() for fate in (Lifecycle.DELETED, Lifecycle.READ_ONLY))
    return f" (delete={deleted}, readOnly={read}, mode={entry.options.participation})"


def _no_resource(component: str, given: object) -> str:
    if given is None:
        return f'nil resource registered in component "{component}"'
    hint = "; was .build() forgotten?" if callable(getattr(given, "build", None)) else ""
    return f'no resource but {type(given).__name__} registered in component "{component}"{hint}'
