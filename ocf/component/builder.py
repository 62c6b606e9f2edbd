"""The component's builder: collects, and reports every problem at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ocf.component.component import Component
from ocf.component.entries import Entry
from ocf.concepts import Resource
from ocf.errors import BuildError, ConfigError
from ocf.objects import parse_path

if TYPE_CHECKING:
    from typing import Self

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
        self._entries: list[Entry] = []
        self._problems: list[str] = []
        self._suspended = False
        self._grace_period = timedelta(0)
        self._poll_interval = _POLL_INTERVAL

    def with_resource(self, resource: Resource, *, leaves: Sequence[str] = ()) -> Self:
        """Register a resource: it is applied, owned, and counts for the condition.

        Args:
            resource: Built by a primitive's builder; the order of registration matters.
            leaves: Fields of its object that somebody else sets, `spec.replicas`; we send them neither at creation
                nor later. The field that a scaler of this component sets is left to it without being named here.
        """
        if not isinstance(resource, Resource):
            self._problems.append(f'nil resource registered in component "{self._name}"')
            return self
        paths = []
        for text in leaves:
            try:
                paths.append(parse_path(text))
            except ConfigError as error:
                self._problems.append(f'resource "{resource.identity}" in component "{self._name}": {error}')
        self._entries.append(Entry.of(resource, tuple(paths)))
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

    def build(self) -> Component:
        """Return the component.

        Raises:
            BuildError: With every problem found.
        """
        problems = [*self._problems, *self._found()]
        if problems:
            raise BuildError(problems)
        return Component(
            name=self._name,
            condition_type=self._condition_type,
            entries=tuple(self._entries),
            suspended=self._suspended,
            grace_period=self._grace_period,
            poll_interval=self._poll_interval,
        )

    def _found(self) -> Iterator[str]:
        if not self._name:
            yield "component name cannot be empty"
        if not self._condition_type:
            yield "condition type cannot be empty"
        if self._grace_period < timedelta(0):
            yield f"grace period must be positive, got {self._grace_period}"
        if self._poll_interval <= timedelta(0):
            yield f"poll interval must be positive, got {self._poll_interval}"
        for identity, times in Counter(entry.identity for entry in self._entries).items():
            if times > 1:
                yield f'duplicate resource "{identity}" in component "{self._name}"'
