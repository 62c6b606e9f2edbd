"""Takeover of an object that another component of the same owner has applied.

A resource moves from one component to another by registering it there. What the old component owned then has to become
ours without a field losing its value. So the ownership is moved as a whole, by one patch of `managedFields`: the
entries of the old component's field managers become entries of ours, and nothing else changes. From then on, the object
is as if this component had applied it all the time: our apply drops what we do not declare, and ignored and saved
fields are handed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import PatchOptions, PatchType
from ocf.component.model.ownership import SECOND
from ocf.errors import ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields, union

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext

__all__ = ["is_contested", "other_applier", "take_over", "with_managers_renamed"]

# The patch names the version that was read, so it conflicts whenever another writer changed the object meanwhile.
_TRIES: Final = 5


def other_applier(live: Manifest, component: str, context: ReconcileContext) -> str:
    """Name another component of the owner, or another operator of the owner, that applies an object now.

    A component is one that manages the object in this reconcile, or one whose field manager has applied it and of which
    is not known that it does not manage it any more. What another operator manages is not known: it is one whose field
    manager has applied the object.

    Returns:
        For example `component "web"` or `operator "malls"`; empty if there is none.
    """
    key, claims, owner = ObjectKey.of(live).unversioned, context.claims, context.owned_by
    registered = claims.other_than(component, key)
    if registered:
        return f'component "{registered}"'
    for manager in _appliers(live):
        other = owner.other_operator_of(manager)
        if other:
            return f'operator "{other}"'
    found = (name for name, is_second in _others(live, component, context).values() if not is_second)
    return next((f'component "{name}"' for name in found if not claims.is_stale(name, key)), "")


def is_contested(live: Manifest, component: str, context: ReconcileContext) -> bool:
    """Return whether `take_over` would take over fields of an object."""
    return bool(_others(live, component, context))


async def take_over(live: Manifest | None, component: str, context: ReconcileContext) -> tuple[Manifest | None, bool]:
    """Take over the ownership of the fields that another component of the owner has applied.

    Returns:
        The object after that, None if it was deleted meanwhile; and whether anything was taken over.
    """
    if live is None or not _others(live, component, context):
        return live, False
    key, cluster = ObjectKey.of(live), context.cluster
    manager = context.owned_by.field_manager(component)
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=manager)
    reading = PatchOptions(patch_type=PatchType.MERGE, field_manager=manager, dry_run=True)
    try:
        for tries_left in reversed(range(_TRIES)):
            # A cache may hold only a part of `managedFields`. The answer of the server to a dry run has all of it.
            whole = await cluster.patch(key, {}, reading)
            others = _others(whole, component, context)
            if not others:
                return whole, False
            names = {
                old: context.owned_by.field_manager(component, *((SECOND,) if is_second else ()))
                for old, (_, is_second) in others.items()
            }
            entries = with_managers_renamed(ManagedFields.of(whole).manifests, names)
            metadata = {"resourceVersion": whole["metadata"]["resourceVersion"], "managedFields": entries}
            try:
                taken = await cluster.patch(key, {"metadata": metadata}, options)
            except ConflictError:
                if not tries_left:
                    raise
            else:
                return taken, True
    except NotFoundError:
        return None, False
    return live, False


def with_managers_renamed(entries: Sequence[Manifest], names: Mapping[str, str]) -> list[Manifest]:
    """Return entries of `managedFields` with the applies of some managers under new names.

    If there is an entry of the new name already, it gets the fields of both.

    Example:
        >>> def entry(manager: str, **fields: Any) -> Manifest:
        ...     return {"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields}
        >>> with_managers_renamed([entry("new", a={}), entry("old", b={})], {"old": "new"})
        [{'manager': 'new', 'operation': 'Apply', 'apiVersion': 'v1', 'fieldsV1': {'a': {}, 'b': {}}}]
    """
    renamed: list[Manifest] = []
    applies: dict[str, int] = {}
    kept = [entry for entry in entries if not (_is_apply(entry) and entry["manager"] in names)]
    moved = [{**entry, "manager": names[entry["manager"]]} for entry in entries if entry not in kept]
    for entry in (*kept, *moved):
        at = applies.get(entry["manager"]) if _is_apply(entry) else None
        if at is None:
            if _is_apply(entry):
                applies[entry["manager"]] = len(renamed)
            renamed.append(entry)
        # Fields of different versions cannot be joined; the values of the older entry stay, without an owner.
        elif entry.get("apiVersion") == renamed[at].get("apiVersion"):
            fields = union(renamed[at].get("fieldsV1") or {}, entry.get("fieldsV1") or {})
            renamed[at] = {**renamed[at], "fieldsV1": fields}
    return renamed


def _is_apply(entry: Mapping[str, Any]) -> bool:
    return entry.get("operation") == "Apply" and not entry.get("subresource")


def _others(live: Manifest, component: str, context: ReconcileContext) -> dict[str, tuple[str, bool]]:
    """Return the field managers of other components: the component, and whether it is its second field manager."""
    found: dict[str, tuple[str, bool]] = {}
    for name in _appliers(live):
        of = context.owned_by.component_of(name, context.claims.components)
        if of is not None and of[0] != component:
            found[name] = of
    return found


def _appliers(live: Manifest) -> Iterator[str]:
    """Yield the field managers that have applied an object."""
    return (str(entry.get("manager") or "") for entry in ManagedFields.of(live).manifests if _is_apply(entry))
