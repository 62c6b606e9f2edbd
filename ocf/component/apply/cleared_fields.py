"""Fields that an author clears: an edit sets them to None, and they leave the live object, whichever client set them.

An apply removes only what its manager alone owns, and a null in it counts as a field that is not declared. So the field
is taken from its managers first, by a change of `managedFields` that changes no value. Then the same apply as always
drops it, and the API server sets its default, if it has one. A merge patch with a null would do it in one write, but
leave us as the manager of that default, by an update: the next apply that declares the field conflicts with ourselves.

What was written through a subresource stays, such as a replica count. So does a default of the API server, which has no
manager. A cache may have only our own entry of `managedFields`, so it cannot be told from the value of another writer:
the API server is asked once, and the default is remembered as a known rewrite.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from ocf.cluster import PatchOptions, PatchType
from ocf.cluster.apply_cache import Rewrites
from ocf.component.apply.managed_fields_patch import OwnershipChange, change_ownership
from ocf.component.apply.recreation import immutable_fields
from ocf.component.model.ownership import uid_of
from ocf.component.model.resource_options import Conflicts
from ocf.component.status.results import Drift
from ocf.concepts.recorder import Why
from ocf.errors import ConflictError, InvalidError, StatusCause
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields, ManagedFieldsEntry, excluding, is_apply, union
from ocf.objects.owned_paths import ABSENT, OwnedPath, path_label, value_at, with_value_at
from ocf.objects.paths import get_field, with_field

if TYPE_CHECKING:
    from ocf.cluster import Cluster

__all__ = ["ClearedFields", "with_fields_moved"]

_CONFLICT: Final = "FieldManagerConflict"


class ClearedFields:
    """The fields that the author of one resource clears, in one reconcile.

    Args:
        cluster: The cluster, with what is known about the defaults of the API server.
        manager: Our field manager.
        paths: The fields.
        on_conflict: What happens if another field manager owns one of them.
    """

    def __init__(self, cluster: Cluster, manager: str, paths: Collection[OwnedPath], *, on_conflict: Conflicts) -> None:
        self._cluster = cluster
        self._manager = manager
        self._paths = paths
        self._on_conflict = on_conflict

    def drift(self, live: Manifest) -> tuple[Drift, ...]:
        """Return the fields that have another value than a known default, so that a writer may have set them."""
        if not self._paths:
            return ()
        known = self._cluster.apply_cache.rewrites(uid_of(live), self._manager)
        found = ((path_label(path), value_at(live, path)) for path in self._paths)
        return tuple(
            Drift(label, Why.CLEARED, None, value)
            for label, value in found
            if value is not ABSENT and known.get(label) != (None, value)
        )

    async def take(
        self, live: Manifest, require_possible: Callable[[], Awaitable[None]]
    ) -> tuple[Manifest | None, tuple[Drift, ...], tuple[str, ...]]:
        """Take the fields from their managers, bound to the version that was read.

        Args:
            require_possible: Raises an error if the apply that drops them would stay rejected; then nothing is taken.

        Returns:
            The object after that, None if it was deleted meanwhile; the fields that were taken; and from whom.

        Raises:
            ConflictError: If fields of other managers must not be taken.
        """
        if not self.drift(live):
            return live, (), ()
        others: list[ManagedFieldsEntry] = []
        taken: tuple[OwnedPath, ...] = ()

        async def decide(whole: Manifest) -> OwnershipChange | None:
            nonlocal others, taken
            others = [entry for entry in ManagedFields.of(whole).entries if entry.manager.name != self._manager]
            taken = tuple(path for path in self._paths if _is_taken_from(others, path))
            if not taken or self._on_conflict is not Conflicts.TAKE:
                return None
            await require_possible()
            await self._require_mutable(whole, taken)
            return OwnershipChange(with_fields_moved(whole, self._manager, taken), {})

        after, changed = await change_ownership(self._cluster, live, self._manager, decide)
        if taken and not changed and after is not None:
            raise _conflict(others, taken)
        if changed or after is None:
            reasons = (Drift(path_label(path), Why.CLEARED, None, value_at(live, path)) for path in taken)
            holders = (entry.manager.name for entry in others if any(_holds(entry, path) for path in taken))
            return after, tuple(reasons), tuple(dict.fromkeys(holders))
        # No field manager owns the values: defaults of the API server, about which the next reconcile need not ask.
        cache = self._cluster.apply_cache
        uid = uid_of(after)
        cache.remember(uid, self._manager, {**cache.rewrites(uid, self._manager), **self.defaults(after)})
        return after, (), ()

    async def _require_mutable(self, whole: Manifest, places: Collection[OwnedPath]) -> None:
        """Raise the error of the API server if one of the fields cannot be changed; fields of list entries can be."""
        patch: Manifest = {}
        for place in places:
            # A merge patch could only replace a list as a whole, which would test something else.
            if all(step.startswith("f:") for step in place):
                patch = with_value_at(patch, place, None)
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager=self._manager, dry_run=True)
        try:
            await self._cluster.patch(ObjectKey.of(whole), patch, options)
        except InvalidError as error:
            if immutable_fields(error):
                raise

    def defaults(self, whole: Manifest) -> Rewrites:
        """Return the fields that have a value without a manager of their own, as rewrites of "not set".

        Args:
            whole: The object with all of its `managedFields`.
        """
        entries = ManagedFields.of(whole).entries
        found = ((path, value_at(whole, path)) for path in self._paths)
        return {
            path_label(path): (None, value)
            for path, value in found
            if value is not ABSENT and not _is_taken_from(entries, path)
        }


def with_fields_moved(live: Manifest, manager: str, paths: Collection[OwnedPath]) -> list[Manifest]:
    """Return the entries of `managedFields` with fields, and all below them, as applied by one manager alone.

    Example:
        >>> def entry(manager: str, operation: str, **fields: Any) -> Manifest:
        ...     return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields}
        >>> entries = [entry("us", "Apply", a={}), entry("kubectl", "Update", b={"c": {}}, d={}), entry("x", "", b={})]
        >>> moved = with_fields_moved({"apiVersion": "v1", "metadata": {"managedFields": entries}}, "us", [("b",)])
        >>> [(each["manager"], each["fieldsV1"]) for each in moved]
        [('us', {'a': {}, 'b': {'c': {}}}), ('kubectl', {'d': {}})]
    """
    managed = ManagedFields.of(live)
    ours: Manifest = managed.owned_by(manager) or {}
    kept: list[Manifest] = []
    for entry in managed.entries:
        fields = entry.fields
        # What was written through a subresource, such as the count of an autoscaler, is never taken.
        for path in paths if not entry.manager.subresource else ():
            held = get_field(fields, path)
            if held is not None:
                ours = union(ours, with_field({}, path, held))
                fields = excluding(fields, path)
        if fields or not entry.fields:
            kept.append({**entry.manifest, "fieldsV1": fields})
    own = [at for at, manifest in enumerate(kept) if manifest.get("manager") == manager and is_apply(manifest)]
    if own:
        kept[own[0]] = {**kept[own[0]], "fieldsV1": ours}
        return kept
    # An entry without a time gets the time of the request.
    added = {"manager": manager, "operation": "Apply", "apiVersion": live["apiVersion"], "fieldsType": "FieldsV1"}
    return [*kept, {**added, "fieldsV1": ours}]


def _holds(entry: ManagedFieldsEntry, path: OwnedPath) -> bool:
    return get_field(entry.fields, path) is not None


def _is_taken_from(entries: Collection[ManagedFieldsEntry], path: OwnedPath) -> bool:
    """Return whether a field has managers, none of whom has written it through a subresource."""
    holding = [entry for entry in entries if _holds(entry, path)]
    return bool(holding) and not any(entry.manager.subresource for entry in holding)


def _conflict(entries: Collection[ManagedFieldsEntry], paths: Collection[OwnedPath]) -> ConflictError:
    """Return an error as the API server's about fields of other managers, of which each cause names one."""
    causes = tuple(
        StatusCause(_CONFLICT, f'conflict with "{entry.manager.name}"', f".{path_label(path)}")
        for entry in entries
        for path in paths
        if _holds(entry, path)
    )
    fields = ", ".join(f"{cause.message}: {cause.field}" for cause in causes)
    text = f"an edit sets a field to None that another field manager owns, and on_conflict does not take it: {fields}"
    return ConflictError(text, code=HTTPStatus.CONFLICT, causes=causes)
