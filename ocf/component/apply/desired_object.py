"""Rendering of the object of one resource, in the forms that an apply needs."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from ocf.component.apply.field_handover import DesiredStates
from ocf.component.model.ownership import Owner, sendable
from ocf.component.model.timeouts import call_with_timeout
from ocf.errors import ConfigError, OcfError
from ocf.objects import Manifest, ObjectKey

if TYPE_CHECKING:
    from ocf.component.model.registration import Registration

__all__ = ["DesiredObject"]


class DesiredObject(NamedTuple):
    """The desired object of one resource, in one reconcile.

    Args:
        entry: The resource.
        owner: The owner.
        ignore_fields: Ignored fields of the object.
        rendered: The object as it was rendered earlier in the reconcile; None if it was not.
        timeout: Timeout of rendering; None for no limit.
    """

    entry: Registration
    owner: Owner
    ignore_fields: Collection[tuple[str, ...]]
    rendered: Manifest | None
    timeout: timedelta | None

    async def applied(self, *, suspended: bool) -> Manifest:
        """Return the object as it is applied: without ignored fields, and with the owner reference.

        Args:
            suspended: Whether the suspended form is applied.

        Raises:
            OcfError: If it cannot be rendered, is another object, or cannot be owned.
        """
        rendered = self.rendered
        if rendered is None or suspended or self.ignore_fields:
            rendered = await self._render(suspended=suspended, ignore_fields=self.ignore_fields)
        key = ObjectKey.of(rendered)
        if key != self.entry.key:
            raise ConfigError(f"rendered {key}, expected {self.entry.key}")
        desired = sendable(rendered)
        return self.owner.disowned(desired) if self.entry.options.unowned else self.owner.owned(desired)

    async def states(self) -> DesiredStates:
        """Return the running and the suspended form with the ignored fields; both empty if they cannot be rendered."""
        try:
            return DesiredStates(await self._render(), await self._render(suspended=True))
        except OcfError:
            # Usually because of an empty data cell; then only the live value is known.
            return DesiredStates({}, {})

    async def _render(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Manifest:
        render = self.entry.render
        if self.timeout is None:
            return render(suspended=suspended, ignore_fields=ignore_fields)
        return await call_with_timeout(self.timeout, render, suspended=suspended, ignore_fields=ignore_fields)
