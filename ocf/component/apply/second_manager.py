"""Second field manager of a component, which keeps values that we stop applying."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from ocf.component.apply.field_handover import DesiredStates, Handover, lacks_saved_value, plan_handover
from ocf.component.apply.saved_fields import saved_values, with_saved_values
from ocf.component.model.ownership import SECOND
from ocf.errors import ConflictError, InvalidError
from ocf.objects import Manifest
from ocf.objects.managed_fields import ManagedFields, fields_path
from ocf.objects.owned_paths import ABSENT, value_at

if TYPE_CHECKING:
    from ocf.component.apply.desired_object import DesiredObject
    from ocf.component.model.context import ReconcileContext

__all__ = ["SecondManager"]

# A handover names the version that was read, so it conflicts whenever another writer changed the object meanwhile.
_TRIES: Final = 5


class SecondManager:
    """Hands over fields of one object in one reconcile, and saves values that its suspension replaces.

    Args:
        desired: The desired object.
        component: Name of the component.
        manager: Field manager of the component.
        context: The reconcile of the owner.
    """

    def __init__(self, desired: DesiredObject, component: str, manager: str, context: ReconcileContext) -> None:
        self._desired = desired
        self._component = component
        self._manager = manager
        self._context = context
        self._ignored = [fields_path(path) for path in desired.ignore_fields]

    @property
    def _second(self) -> str:
        return self._context.owned_by.field_manager(self._component, SECOND)

    async def with_saved_values(self, suspended: Manifest, running: Manifest, live: Manifest | None) -> Manifest:
        """Add to a suspended object the live values of the fields that only its suspension sets.

        Args:
            suspended: The desired object, suspended.
            running: The desired object as it is applied while it is not suspended.
            live: The live object; None if it does not exist.
        """
        states = await self._states(live, saved_values(live))
        set_here = [path for path in self._ignored if value_at(suspended, path) is not ABSENT]
        ignored = [(path, states.value(live, path)) for path in set_here]
        return with_saved_values(suspended, running, live, self._manager, ignored)

    async def hand_over(
        self, live: Manifest | None, desired: Manifest, read: Callable[[], Awaitable[Manifest | None]]
    ) -> tuple[Manifest | None, tuple[str, ...]]:
        """Hand over the fields that our apply drops, and whose values must stay.

        Args:
            live: The live object; None if it does not exist.
            desired: The object that we apply next.
            read: Reads the live object again, after a conflict.

        Returns:
            The live object after that, and the fields that were handed over.

        Raises:
            ApiError: If the handover fails, or conflicts five times in a row.
        """
        if live is None:
            return None, ()
        saved = saved_values(live)
        for tries_left in reversed(range(_TRIES)):
            plan = await self._plan_handover(live, desired, saved)
            if plan is None:
                break
            try:
                live = await self._context.cluster.apply(plan.manifest, field_manager=self._second, force=plan.force)
            except ConflictError:
                if not tries_left:
                    raise
                live = await read()
                saved = saved and saved_values(live)
            except InvalidError as error:
                if not saved or not _is_about_values(error):
                    raise
                # The annotation was edited, and the API server rejects what it holds.
                saved = {}
            else:
                return live, plan.paths
        return live, ()

    async def _plan_handover(
        self, live: Manifest | None, desired: Manifest, saved: Mapping[str, Any]
    ) -> Handover | None:
        if live is None or not (self._ignored or saved):
            return None
        return plan_handover(
            live,
            desired,
            manager=self._manager,
            second=self._second,
            ignored=self._ignored,
            saved=saved,
            states=await self._states(live, saved),
        )

    async def _states(self, live: Manifest | None, saved: Mapping[str, Any]) -> DesiredStates:
        """Render the object with its ignored fields, if we own one of them without a saved value."""
        own = ManagedFields.of(live).owned_by(self._manager) or {}
        return await self._desired.states() if lacks_saved_value(own, saved, self._ignored) else DesiredStates({}, {})


def _is_about_values(error: InvalidError) -> bool:
    """Return whether values in a request are rejected by the API server itself, and not by a policy of admission."""
    # An apply with a value of a wrong type is answered with 500 and without causes.
    return error.code != HTTPStatus.UNPROCESSABLE_ENTITY or any(cause.field for cause in error.causes)
