"""Values that an object gets once: fields that are set at creation, generated values, and whole objects.

Afterwards any other client may change them. So the component gives up the ownership that its write has recorded, by one
patch of `managedFields` that changes no value: a field without a manager conflicts with no apply, and an apply of ours
that does not declare it does not remove it. A create cannot do without that patch: the API server records all fields
for the manager of the create, whatever `managedFields` it names. After a crash in between, the next reconcile gives
them up before it applies anything, which would remove the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ocf.component.apply.handover import saved_values
from ocf.component.apply.managed_fields_patch import OwnershipChange, change_ownership
from ocf.component.model.holds import hold_finalizer
from ocf.component.model.ownership import CREATOR, SECOND
from ocf.component.model.resource_options import Writes
from ocf.component.status.results import Drift
from ocf.concepts.data import AuthorCode
from ocf.concepts.recorder import Why
from ocf.errors import HandlerError, MutationError
from ocf.objects.managed_fields import FieldManager, ManagedFields, as_applied, excluding, fields_path, read_key
from ocf.objects.manifest import PREFIX
from ocf.objects.owned_paths import ABSENT, OwnedPath, dropped_fields, path_label, value_at, with_value_at
from ocf.objects.paths import get_field, with_field

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext
    from ocf.component.model.registration import Registration
    from ocf.objects import Manifest

__all__ = ["CREATED_ONLY", "InitialValues"]

_Source: TypeAlias = Callable[[], Mapping[tuple[str, ...], Any]]

CREATED_ONLY: Final = f"{PREFIX}/created-only"
"""Annotation of an object that its component only creates, and by which it is known where it has no owner reference."""


class InitialValues:
    """The values that the object of one resource gets once, in one reconcile.

    Args:
        manager: The field manager of its applies.
    """

    def __init__(self, entry: Registration, component: str, context: ReconcileContext, manager: str) -> None:
        self._identity = entry.identity
        self._key = entry.key
        self._cluster = context.cluster_of(component)
        self._owner = context.owned_by
        self._manager = manager
        self.creates_only: Final = entry.options.writes is Writes.CREATE_ONLY
        self._set_once = [fields_path(path) for path in entry.options.set_once]
        self._sources = {fields_path(path): source for path, source in entry.generated.items()}
        self._together: dict[_Source, list[OwnedPath]] = {}
        for path, source in self._sources.items():
            self._together.setdefault(source, []).append(path)
        self._component = component

    def __bool__(self) -> bool:
        return bool(self.creates_only or self._set_once or self._sources)

    @property
    def _managers(self) -> set[FieldManager]:
        """Our field managers, whose fields are given up."""
        return {
            FieldManager(self._manager, "Apply", ""),
            FieldManager(self._owner.field_manager(self._component, SECOND), "Apply", ""),
            FieldManager(self._owner.field_manager(self._component, CREATOR), "Update", ""),
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that are set once or generated."""
        return tuple(path_label(path) for path in (*self._set_once, *self._sources))

    def reference(self) -> Manifest:
        """Return the object without the fields that it gets once, where that is all of them."""
        metadata = {"name": self._key.name, **({"namespace": self._key.namespace} if self._key.namespace else {})}
        return {"apiVersion": self._key.api_version, "kind": self._key.kind, "metadata": metadata}

    def marked(self, desired: Manifest) -> Manifest:
        """Return a desired object that shows whose it is, although the component gives up all other fields."""
        if not self.creates_only or self._owner.references(desired):
            return desired
        return with_field(desired, ("metadata", "annotations", CREATED_ONLY), "true")

    def missing(self, live: Manifest | None, desired: Manifest) -> Iterator[Drift]:
        """Yield the values that are generated now: an object lacks them, and the author declares none in their place.

        Those that are generated together are all generated if the object lacks one of them, and none if the author
        declares one. An object that is only created gets none later.
        """
        if live is not None and self.creates_only:
            return
        for paths in self._together.values():
            if any(value_at(desired, path) is not ABSENT for path in paths):
                continue
            if any(value_at(live, path) is ABSENT for path in paths):
                yield from (Drift(path_label(path), Why.GENERATED) for path in paths)

    def with_generated(self, desired: Manifest, live: Manifest | None) -> Manifest:
        """Return the desired object with a new value for each that is missing.

        Raises:
            MutationError: If a source fails or returns no value.
        """
        wanted = {drift.path for drift in self.missing(live, desired)}
        for source, paths in self._together.items():
            if path_label(paths[0]) in wanted:
                made = self._generated(" and ".join(map(path_label, paths)), source)
                for path, value in made.items():
                    desired = with_value_at(desired, fields_path(path), value)
        return desired

    def _generated(self, name: str, source: _Source) -> Mapping[tuple[str, ...], Any]:
        code = AuthorCode(self._identity)
        try:
            return source()
        except HandlerError as error:
            raise MutationError(self._identity, "", f"failed to generate {name}: {error}") from error
        except Exception as error:
            problem = f"failed to generate {name}: {code.error_text(error)}"
            raise MutationError(self._identity, "", problem) from error

    async def give_up(self, live: Manifest, desired: Manifest) -> tuple[Manifest | None, tuple[Drift, ...]]:
        """Give up the ownership of what does not belong to the component any more, without a change of a value.

        What a suspension has replaced is kept until the resume has put it back.

        Args:
            desired: What is applied to the object from now on.

        Returns:
            The object after that, None if it was deleted meanwhile; and what was given up.

        Raises:
            ReplacedError: If another client has created an object of its name meanwhile.
        """
        if not self or not any(self._given_up(live, desired)):
            return live, ()
        fields: tuple[OwnedPath, ...] = ()

        async def decide(whole: Manifest) -> OwnershipChange | None:
            nonlocal fields
            fields = tuple(dict.fromkeys(self._given_up(whole, desired)))
            return OwnershipChange(list(self._entries(whole, fields)), {}) if fields else None

        after, changed = await change_ownership(self._cluster, live, self._manager, decide)
        if not changed:
            return after, ()
        labels = ("metadata.managedFields",) if self.creates_only else map(path_label, fields)
        return after, tuple(Drift(label, Why.HANDED_OVER) for label in labels)

    def _given_up(self, live: Manifest, desired: Manifest) -> Iterator[OwnedPath]:
        """Yield the fields that one of our managers owns, and that are not ours any more."""
        managers = self._managers
        own = [entry.fields for entry in ManagedFields.of(live).entries if entry.manager in managers]
        if self.creates_only:
            for path in (path for fields in own for path in dropped_fields(fields, desired)):
                if not self._is_removed(live, path):
                    yield path
            return
        kept = saved_values(live)
        for path in (*self._set_once, *self._sources):
            if path_label(path) in kept or value_at(desired, path) is not ABSENT:
                continue
            if any(get_field(fields, path) is not None for fields in own):
                yield path

    def _is_removed(self, live: Manifest, path: OwnedPath) -> bool:
        """Return whether the next apply is to remove a field: our finalizer, or a reference to an earlier owner."""
        if path[:2] == ("f:metadata", "f:finalizers"):
            return path[2:] == (f'v:"{hold_finalizer(self._owner.operator)}"',)
        if path[:2] == ("f:metadata", "f:ownerReferences") and path[2:]:
            return read_key(path[2]).get("uid") in self._owner.earlier_uids(live)
        return False

    def _entries(self, live: Manifest, given_up: tuple[OwnedPath, ...]) -> Iterator[Manifest]:
        """Yield the entries of `managedFields` without what is given up."""
        managers = self._managers
        for entry in ManagedFields.of(live).entries:
            fields = entry.fields
            if entry.manager in managers:
                for path in given_up:
                    fields = excluding(fields, path)
                fields = as_applied(fields)
            if fields or not entry.fields:
                yield {**entry.manifest, "fieldsV1": fields}
