"""Handover of fields that we stop applying, and whose values must stay.

A real API server resets a field to its default when its only manager drops it (a Deployment's replicas to 1). So the
value is handed over first: a second field manager of ours, `<manager>/left`, applies it; then our own apply drops the
field, and the second manager keeps it until another writer sets it.

There are two such kinds of fields. An ignored field is never set by us, and handed over with its live value; if it was
forced before it was ignored, the rendered object has the value of the running form.

A field that a suspension has set, and that the running form does not declare, usually the replica count, is handed over
with the value that was saved. Such a value must survive, set by an autoscaler or by a user, so the apply that suspends
the object saves it in an annotation of the same object: no crash can come in between. A saved value is kept while we
own the field. After another writer has set the field during the suspension, the next apply saves the newer value.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from ocf.component.model.ownership import SECOND
from ocf.errors import ConflictError, InvalidError
from ocf.objects import Manifest
from ocf.objects.managed_fields import ManagedFields, fields_path, union
from ocf.objects.manifest import PREFIX
from ocf.objects.owned_paths import (
    ABSENT,
    OwnedPath,
    dropped_fields,
    is_below,
    owned_fields,
    path_label,
    undeclared_fields,
    value_at,
    with_value_at,
)
from ocf.objects.paths import get_field, with_field

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext

__all__ = [
    "BEFORE_SUSPENSION",
    "DesiredStates",
    "FieldHandover",
    "Handover",
    "plan_handover",
    "saved_values",
    "with_saved_values",
]

BEFORE_SUSPENSION: Final = f"{PREFIX}/before-suspension"
"""Annotation that holds, as JSON by field path, the values that a suspension replaced."""

# With the uid, an object that was just deleted is not created again with these fields alone.
_LOCKED_METADATA: Final = ("name", "namespace", "uid", "resourceVersion")
# A handover names the version that was read, so it conflicts whenever another writer changed the object meanwhile.
_TRIES: Final = 5


class FieldHandover:
    """Hands over fields of one object in one reconcile, and saves values that its suspension replaces.

    Args:
        states: Renders the object with its ignored fields.
    """

    def __init__(
        self,
        component: str,
        manager: str,
        context: ReconcileContext,
        ignore_fields: Collection[tuple[str, ...]],
        states: Callable[[], Awaitable[DesiredStates]],
    ) -> None:
        self._component = component
        self._manager = manager
        self._context = context
        self._cluster = context.cluster_of(component)
        self._ignored = [fields_path(path) for path in ignore_fields]
        self._render = states

    @property
    def _second(self) -> str:
        return self._context.owned_by.field_manager(self._component, SECOND)

    async def with_saved_values(self, suspended: Manifest, running: Manifest, live: Manifest | None) -> Manifest:
        """Add to a suspended object the live values of the fields that only its suspension sets."""
        states = await self._states(live, saved_values(live))
        set_here = [path for path in self._ignored if value_at(suspended, path) is not ABSENT]
        ignored = [(path, states.value(live, path)) for path in set_here]
        if live is None:
            # What is set once is a part of the running form of an object that is created.
            live = running
        return with_saved_values(suspended, running, live, self._manager, ignored)

    async def is_due(self, live: Manifest, desired: Manifest) -> bool:
        """Return whether fields are handed over before the object is applied."""
        return await self._plan_handover(live, desired, saved_values(live)) is not None

    async def hand_over(
        self, live: Manifest | None, desired: Manifest, read: Callable[[], Awaitable[Manifest | None]]
    ) -> tuple[Manifest | None, tuple[str, ...]]:
        """Hand over the fields that our apply drops, and whose values must stay.

        Args:
            live: The live object.
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
                live = await self._cluster.apply(plan.manifest, field_manager=self._second, force=plan.force)
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
        return await self._render() if _lacks_saved_value(own, saved, self._ignored) else DesiredStates({}, {})


class DesiredStates(NamedTuple):
    """The desired object including its ignored fields; empty if it is not known.

    Attributes:
        running: The running form.
        suspended: The suspended form.
    """

    running: Manifest
    suspended: Manifest

    def value(self, live: Manifest | None, path: OwnedPath) -> Any:
        """Return the live value of a field, or that of the running form if a suspension forced it; None if not set."""
        value = value_at(live, path)
        value = value_at(self.running, path) if value == value_at(self.suspended, path) else value
        return None if value is ABSENT else value


@dataclass(frozen=True, slots=True)
class Handover:
    """What the second field manager applies before our apply drops the fields.

    Args:
        manifest: The fields, with the `resourceVersion` that was read, so that no newer value is overwritten.
        force: Whether the apply is forced, because it replaces a value of our own at the end of a suspension.
        paths: The fields as text.
    """

    manifest: Manifest
    force: bool
    paths: tuple[str, ...]


def _lacks_saved_value(own: Manifest, saved: Mapping[str, Any], ignored: Collection[OwnedPath]) -> bool:
    """Return whether we own an ignored field without a saved value."""
    return any(path_label(path) not in saved and get_field(own, path) is not None for path in ignored)


def plan_handover(
    live: Manifest,
    desired: Manifest,
    *,
    manager: str,
    second: str,
    ignored: Collection[OwnedPath] = (),
    saved: Mapping[str, Any],
    states: DesiredStates,
) -> Handover | None:
    """Plan the handover of the fields that our next apply drops and whose values must stay.

    Args:
        live: The live object.
        desired: The object that we apply next.
        manager: Our field manager.
        second: Our second field manager. What it owns already is applied again, so that it keeps that.
        ignored: The ignored fields.
        saved: The saved values by field.
        states: The desired object, for ignored fields without a saved value.

    Returns:
        What is applied first; None if there is no such field with a value.
    """
    managed = ManagedFields.of(live)
    own = managed.owned_by(manager)
    if own is None:
        return None
    values = {
        path: saved.get(path_label(path), states.value(live, path))
        for path in ignored
        if get_field(own, path) is not None
    }
    for path in dropped_fields(own, desired) if saved else ():
        if path_label(path) in saved and not is_below(path, ignored):
            values[path] = saved[path_label(path)]
    values = {path: value for path, value in values.items() if value is not None}
    if not values:
        return None
    metadata = {key: live["metadata"][key] for key in _LOCKED_METADATA if key in live["metadata"]}
    manifest: Manifest = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata}
    kept = ((path, value_at(live, path)) for path in owned_fields(managed.owned_by(second) or {}))
    for path, value in (*kept, *values.items()):
        if value is not ABSENT:
            manifest = with_value_at(manifest, path, value)
    force = bool(saved) or any(value != value_at(live, path) for path, value in values.items())
    return Handover(manifest, force=force, paths=tuple(map(path_label, values)))


def saved_values(live: Manifest | None) -> dict[str, Any]:
    """Return the values that a suspension has saved, by field; an invalid annotation counts as absent."""
    text = get_field(live, ("metadata", "annotations", BEFORE_SUSPENSION))
    try:
        values = json.loads(text, parse_constant=_reject) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def with_saved_values(
    suspended: Manifest,
    running: Manifest,
    live: Manifest | None,
    manager: str,
    ignored: Collection[tuple[OwnedPath, Any]] = (),
) -> Manifest:
    """Add to a suspended object the live values of the fields that only its suspension sets.

    Args:
        suspended: The desired object, suspended; it is not changed.
        running: The desired object as it is applied while it is not suspended.
        live: The live object; None if it does not exist.
        manager: Our field manager.
        ignored: Ignored fields that the suspension sets, each with its value in case that we own it and no value is
            saved. They are always listed, null for a field that was not set.

    Returns:
        The object with the annotation; the same object if there is nothing to save.
    """
    saved, managed = saved_values(live), ManagedFields.of(live)
    own = managed.owned_by(manager) or {}
    values = {path_label(path): _value(live, own, saved, path, fallback) for path, fallback in ignored}
    for path in _set_by_suspension(suspended, running, managed, [path for path, _ in ignored]):
        value = _value(live, own, saved, path)
        if value is not None:
            values[path_label(path)] = value
    if not values:
        return suspended
    annotation = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return with_field(suspended, ("metadata", "annotations", BEFORE_SUSPENSION), annotation)


def _set_by_suspension(
    suspended: Manifest, running: Manifest, managed: ManagedFields, ignored: Collection[OwnedPath]
) -> Iterator[OwnedPath]:
    fields = union(*(entry.fields for entry in managed.entries))
    for path in undeclared_fields(suspended, running, fields or None):
        if not is_below(path, ignored):
            yield path


def _value(live: Manifest | None, own: Manifest, saved: dict[str, Any], path: OwnedPath, fallback: Any = None) -> Any:
    """Return the value to save: while we own the field, its live value is the one that the suspension has set."""
    if get_field(own, path) is not None:
        return saved.get(path_label(path), fallback)
    value = value_at(live, path)
    return None if value is ABSENT else value


def _reject(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _is_about_values(error: InvalidError) -> bool:
    """Return whether values in a request are rejected by the API server itself, and not by a policy of admission."""
    # An apply with a value of a wrong type is answered with 500 and without causes.
    return error.code != HTTPStatus.UNPROCESSABLE_ENTITY or any(cause.field for cause in error.causes)
