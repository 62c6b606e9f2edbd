"""Takeover of the fields of former writers of an object.

What a former writer owns has to become ours without a field losing its value. So the ownership is moved as a whole, by
one patch of `managedFields`: the entries of its field managers become entries of ours, and nothing else changes. From
then on, the object is as if this component had applied it all the time: our apply drops what we do not declare, and
ignored and saved fields are handed over.

There are three kinds of former writers:

* Another component of the same owner: a resource moves by registering it there.
* A component of an earlier owner of the same name, with another uid. An owner that was restored from a backup, or
  created again after its objects were orphaned, has a new uid, and the fields of the old one would stay for ever. That
  the old one is gone is known if the object refers to it, or if no owner with this uid exists that could have made it.
* A field manager that the author names as former: `kubectl`, Helm, another operator. It is taken over once per object,
  which a label remembers, so that a user may change other fields with the same client afterwards. Its writes are
  usually updates, whose entries become that of an apply. Those of subresources, and the status, stay apart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ocf.cluster import ListOptions
from ocf.component.apply.managed_fields_patch import OwnershipChange, change_ownership
from ocf.component.model.former_managers import is_former, is_taken, taken_label
from ocf.component.model.ownership import CREATOR, SECOND, OtherUid, Owner, uid_of
from ocf.component.status.results import Drift
from ocf.concepts.recorder import Why
from ocf.errors import ForbiddenError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import (
    FieldManager,
    ManagedFields,
    ManagedFieldsEntry,
    as_applied,
    fields_path,
    is_apply,
    union,
)
from ocf.objects.owned_paths import dropped_fields, is_below, path_label
from ocf.objects.paths import get_field

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext
    from ocf.concepts.recorder import Event

__all__ = ["FormerWriters", "Takeover", "other_applier", "removed_fields", "takeover_event", "with_managers_renamed"]

_APPLY: Final = "Apply"
_PAGE: Final = 500
_STATUS: Final = "f:status"


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
    for manager in ManagedFields.of(live).appliers:
        other = owner.other_operator_of(manager)
        if other:
            return f'operator "{other}"'
    found = (name for name, is_second in _others(live, component, context).values() if not is_second)
    return next((f'component "{name}"' for name in found if not claims.is_stale(name, key)), "")


@dataclass(frozen=True, slots=True)
class FormerWriters:
    """The former writers of an object.

    Args:
        moved: Field managers of other components of the owner, and the name of ours that replaces each.
        earlier: The same of the components of earlier owners.
        named: The same of the field managers that the author has named.
        is_shared: Whether owners of all namespaces may have made the object, of any name.
    """

    moved: Mapping[FieldManager, str] = field(default_factory=dict)
    earlier: Mapping[FieldManager, str] = field(default_factory=dict)
    named: Mapping[FieldManager, str] = field(default_factory=dict)
    is_shared: bool = False

    @property
    def names(self) -> dict[FieldManager, str]:
        """All of them, with the names that replace theirs."""
        return {**self.moved, **self.earlier, **self.named}

    @property
    def strangers(self) -> tuple[str, ...]:
        """The names of those that are not of a component of this owner."""
        return tuple(sorted({manager.name for manager in (*self.earlier, *self.named)}))

    @property
    def reasons(self) -> tuple[Drift, ...]:
        """Why their fields are taken over: one reason for all components of the owner, and one for each other name."""
        paths = ["metadata.managedFields"] if self.moved else []
        paths += [f"metadata.managedFields[manager={name}]" for name in self.strangers]
        return tuple(Drift(path, Why.TAKEN_OVER) for path in paths)

    def fields(self, live: Manifest) -> Manifest:
        """Return the fields of those that are not of a component of this owner, as a `fieldsV1`."""
        theirs = {**self.earlier, **self.named}
        return union(*(_without_status(entry) for entry in ManagedFields.of(live).entries if entry.manager in theirs))


class Takeover:
    """Takes over the fields of former writers of one object, in one reconcile.

    Args:
        named: Field managers that the author has named as former, by name or pattern.
        unowned: Whether the object gets no owner reference.
    """

    def __init__(self, component: str, context: ReconcileContext, named: Collection[str], *, unowned: bool) -> None:
        self._component = component
        self._context = context
        self._owner = context.owned_by
        self._creator = FieldManager(self._owner.field_manager(component, CREATOR), "Update", "")
        self._named = named
        self._unowned = unowned
        self._has_asked = False
        self._alive: frozenset[str] | None = None

    async def find(self, live: Manifest) -> FormerWriters:
        """Find the former writers of an object."""
        moved = {
            FieldManager(name, _APPLY, ""): self._ours(is_second=is_second)
            for name, (_, is_second) in _others(live, self._component, self._context).items()
        }
        # A create whose fields have not become ours, because the process ended.
        if any(entry.manager == self._creator for entry in ManagedFields.of(live).entries):
            moved[self._creator] = self._ours()
        earlier = self._owner.earlier_uids(live)
        controller = self._owner.foreign_controller(live, earlier)
        if controller:
            # What another owner controls is left as it is.
            return FormerWriters(moved)
        named = self._find_named(live)
        found: dict[FieldManager, str] = {}
        for name in ManagedFields.of(live).appliers:
            manager = FieldManager(name, _APPLY, "")
            other = self._owner.other_uid_of(name) or self._hashed(name, earlier)
            if other is None or manager in named:
                continue
            if other.uid in earlier or await self._is_gone(other.uid, live):
                found[manager] = self._ours(is_second=other.is_second)
        return FormerWriters(moved, found, named, is_shared=not self._is_exclusive(live))

    def _hashed(self, name: str, earlier: Collection[str]) -> OtherUid | None:
        """Return the uid and the part of a hashed field manager of an earlier owner to which the object refers."""
        components = {self._component, *self._context.claims.components}
        for uid in earlier:
            of = replace(self._owner, uid=uid).component_of(name, components)
            if of is not None:
                return OtherUid(uid, of[1])
        return None

    async def take(self, live: Manifest) -> tuple[Manifest | None, FormerWriters, Manifest]:
        """Take over the fields of all former writers, bound to the version that was read.

        Returns:
            The object after that, None if it was deleted meanwhile; the former writers, none if nothing was changed;
            and the fields of those that are not of a component of this owner, as a `fieldsV1`.
        """
        found, fields = await self.find(live), Manifest()
        if not found.names:
            return live, found, fields

        async def decide(whole: Manifest) -> OwnershipChange | None:
            nonlocal found, fields
            found = await self.find(whole)
            fields = found.fields(whole)
            if not found.names:
                return None
            labels = {taken_label(manager.name): "true" for manager in found.named}
            entries = ManagedFields.of(whole).manifests
            return OwnershipChange(with_managers_renamed(entries, found.names, made_by=self._creator), labels)

        after, changed = await change_ownership(self._context.cluster_of(self._component), live, self._ours(), decide)
        return after, found if changed else FormerWriters(), fields

    def _ours(self, *, is_second: bool = False) -> str:
        return self._owner.field_manager(self._component, *((SECOND,) if is_second else ()))

    def _find_named(self, live: Manifest) -> dict[FieldManager, str]:
        """Return the field managers that are named, were not taken over before, and are not of this owner.

        None of the owner itself: a component declares only some of its fields, and the others are what its users want.
        """
        if not self._named or self._owner.is_object(ObjectKey.of(live)):
            return {}
        components = {self._component, *self._context.claims.components}
        return {
            entry.manager: self._ours()
            for entry in ManagedFields.of(live).entries
            if not entry.manager.subresource
            and is_former(entry.manager.name, self._named)
            and not is_taken(live, entry.manager.name)
            and self._owner.component_of(entry.manager.name, components) is None
            and _without_status(entry)
        }

    def _is_exclusive(self, live: Manifest) -> bool:
        """Return whether only owners in the namespace of this one, or cluster-scoped ones, may own an object.

        Without an owner reference, those of every namespace may share it.
        """
        namespace = self._owner.key.namespace
        return not self._unowned and (not namespace or live["metadata"].get("namespace") == namespace)

    async def _is_gone(self, uid: str, live: Manifest) -> bool:
        """Return whether it is certain that no owner with a uid exists that may have made an object."""
        if not self._has_asked:
            self._has_asked = True
            with suppress(ForbiddenError):
                self._alive = frozenset(uid_of(one) for one in await self._possible_owners(live))
        return self._alive is not None and uid not in self._alive

    async def _possible_owners(self, live: Manifest) -> list[Manifest]:
        key, context = self._owner.key, self._context
        if self._is_exclusive(live):
            options = ListOptions(namespace=key.namespace, metadata_only=True)
            return [*(await context.unobserved.list(key.api_version, key.kind, options)).items]
        # An operator of some namespaces does not watch all, and may not read them either.
        found: list[Manifest] = []
        page = ListOptions(limit=_PAGE)
        while True:
            answer = await context.pages.list(key.api_version, key.kind, page)
            found += answer.items
            if not answer.continue_token:
                return found
            page = replace(page, continue_token=answer.continue_token)


def removed_fields(
    fields: Manifest, desired: Manifest, live: Manifest, manager: str, *, ignored: Collection[tuple[str, ...]]
) -> list[str]:
    """Return which of the fields that were taken over the next apply removes.

    Args:
        live: The object after the takeover.
        manager: Our field manager.
        ignored: Fields that are left to other writers on purpose.
    """
    places = [fields_path(path) for path in ignored]
    others = [entry for entry in ManagedFields.of(live).entries if entry.manager.name != manager]
    kept = union(*(entry.fields for entry in others))
    dropped = (path for path in dropped_fields(fields, desired) if not is_below(path, places))
    return [path_label(path) for path in dropped if get_field(kept, path) is None]


def takeover_event(owner: Owner, live: Manifest, managers: Sequence[str], removed: Sequence[str]) -> Event:
    """Return the event about fields that were taken over.

    Args:
        managers: The field managers from which they were taken.
        removed: Those that the next apply removes, because the component does not declare them.
    """
    key = ObjectKey.of(live)
    names = ", ".join(managers)
    fields = f", removed as not declared: {', '.join(removed)}" if removed else ""
    note = f"Fields of {owner.named(key)} taken over from {names}{fields}"
    return owner.event(key, "FieldsTakenOver", note, action="TakeOver")


def with_managers_renamed(
    entries: Sequence[Manifest], names: Mapping[FieldManager, str], *, made_by: FieldManager | None = None
) -> list[Manifest]:
    """Return entries of `managedFields` with those of some managers as applies under new names.

    If there is an apply of the new name already, it gets the fields of both. The status stays with an update.

    Args:
        made_by: That of our own create, of which all that an apply would not have recorded is dropped: the next apply
            may have nothing to change, and would not do so.

    Example:
        >>> def entry(manager: str, operation: str = "Apply", **fields: Any) -> Manifest:
        ...     return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields}
        >>> names = {FieldManager("old", "Update", ""): "new"}
        >>> with_managers_renamed([entry("new", a={}), entry("old", "Update", b={})], names)
        [{'manager': 'new', 'operation': 'Apply', 'apiVersion': 'v1', 'fieldsV1': {'a': {}, 'b': {}}}]
    """
    kept: list[Manifest] = []
    moved: list[Manifest] = []
    for entry in map(ManagedFieldsEntry, entries):
        if entry.manager not in names:
            kept.append(entry.manifest)
            continue
        if _STATUS in entry.fields:
            kept.append({**entry.manifest, "fieldsV1": {_STATUS: entry.fields[_STATUS]}})
        fields = _without_status(entry)
        fields = as_applied(fields) if entry.manager == made_by else fields
        ours = {"manager": names[entry.manager], "operation": _APPLY, "fieldsV1": fields}
        moved.append({**entry.manifest, **ours})
    renamed: list[Manifest] = []
    applies: dict[str, int] = {}
    for manifest in (*kept, *moved):
        if not is_apply(manifest):
            renamed.append(manifest)
            continue
        at = applies.setdefault(manifest["manager"], len(renamed))
        if at == len(renamed):
            renamed.append(manifest)
        else:
            # An apply has one entry, whatever the version. Fields that its version does not have are without effect.
            fields = union(renamed[at].get("fieldsV1") or {}, manifest.get("fieldsV1") or {})
            renamed[at] = {**renamed[at], "fieldsV1": fields}
    return renamed


def _without_status(entry: ManagedFieldsEntry) -> Manifest:
    return {name: inner for name, inner in entry.fields.items() if name != _STATUS}


def _others(live: Manifest, component: str, context: ReconcileContext) -> dict[str, tuple[str, bool]]:
    """Return the field managers of other components: the component, and whether it is its second field manager."""
    found: dict[str, tuple[str, bool]] = {}
    for name in ManagedFields.of(live).appliers:
        of = context.owned_by.component_of(name, context.claims.components)
        if of is not None and of[0] != component:
            found[name] = of
    return found
