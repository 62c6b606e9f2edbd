"""Diff of a component: what its next reconcile would change, from dry runs of its writes.

Defaulting, normalisation and admission are the API server's, so the diff shows what would be stored. Objects that a
write would not change are not reported, even where only the server knows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from ocf.cluster import Cluster
from ocf.component.apply.deleter import OwnedObjectDeleter
from ocf.component.block import reconciling
from ocf.component.component import Component
from ocf.component.context import ReconcileContext
from ocf.component.dry_run_cluster import DryRunCluster, PlannedWrite
from ocf.component.external.calls import ExternalCalls
from ocf.component.model.ownership import DEFAULT_OPERATOR
from ocf.component.model.registration import Registration, find_scale_targets
from ocf.component.model.resource_options import Lifecycle
from ocf.component.pause import without_pause
from ocf.component.preview import explain_entry
from ocf.component.reconcile.prune import prunable_kinds
from ocf.component.reconcile.run import failing
from ocf.component.status.results import Action, ResourceOutcome, Result
from ocf.concepts import Clock
from ocf.concepts.external import GROUP, form_of
from ocf.concepts.provenance import Provenance, Source, SourceKind
from ocf.concepts.provenance_trace import ProvenanceTrace
from ocf.concepts.recorder import Why
from ocf.errors import ConflictError, ForbiddenError, OcfError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.paths import format_path, get_field, with_field, without_field
from ocf.objects.redaction import GENERATED, redacted

__all__ = [
    "ComponentDiff",
    "DiffVerb",
    "FieldConflict",
    "FieldDiff",
    "IgnoredField",
    "ObjectDiff",
    "TakenField",
    "changed_fields",
    "diff",
]

# Metadata that the API server sets; it is not part of a diff.
_NOISE: Final = frozenset({"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"})
_LIVE: Final = Source(SourceKind.BASE)
_OURS: Final = Source(SourceKind.RESOURCE)


class DiffVerb(StrEnum):
    """What the next reconcile would do to an object."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RELEASE = "release"


_EXTERNAL: Final = {
    Action.CREATED: DiffVerb.CREATE,
    Action.UPDATED: DiffVerb.UPDATE,
    Action.DELETED: DiffVerb.DELETE,
}


@dataclass(frozen=True, slots=True)
class FieldDiff:
    """One field that would change.

    Args:
        path: The field, in the spelling of `FieldOrigin.path`.
        before: Its live value; None if it is not set.
        after: The value that would be stored; None if the field would be removed.
        source: Origin of the new value, `mutation tracing, edit_containers`; empty if it is not known, as for defaults.
    """

    path: str
    before: Any
    after: Any
    source: str = ""


@dataclass(frozen=True, slots=True)
class TakenField:
    """A field that would be taken from another field manager.

    Args:
        path: The field; list entries are named by their keys.
        manager: The field manager that loses it.
    """

    path: str
    manager: str


@dataclass(frozen=True, slots=True)
class IgnoredField:
    """An ignored field.

    Args:
        resource: Identity of the resource.
        path: The field.
        value: Its live value; None if it is not set.
        managers: Field managers that own it, with operation and subresource: `kube-controller-manager (Update, scale)`.
    """

    resource: str
    path: str
    value: Any
    managers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field of another field manager that must not be taken.

    Args:
        resource: Identity of the resource.
        path: The field.
        manager: The field manager that owns it.
    """

    resource: str
    path: str
    manager: str


@dataclass(frozen=True, slots=True)
class ObjectDiff:
    """Diff of one object. Secrets are shown as digests, and metadata that only the server sets is left out.

    Args:
        resource: Identity of the object.
        verb: What would be done to it.
        before: The live object; None if it does not exist.
        after: The object as it would be stored; None if it would be deleted.
        fields: The fields that would change, for an update.
        taken: The fields that would be taken from other field managers.
        reasons: Why it would be written, as in the outcome of the reconcile.
    """

    resource: str
    verb: DiffVerb
    before: Manifest | None
    after: Manifest | None
    fields: tuple[FieldDiff, ...] = ()
    taken: tuple[TakenField, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ComponentDiff:
    """What the next reconcile of a component would do.

    Args:
        component: Name of the component; empty for what the function that returns the components writes itself.
        objects: Diffs of the objects that it would write, in order.
        ignored: The ignored fields.
        conflicts: The fields on which the reconcile would fail.
        unregistered: Identities of objects that the component applied before, does not register any more, and would not
            delete, because it does not prune.
        result: Result of the reconcile, based on the present state of the cluster; None if it would fail.
        problem: Why it would fail; empty if it would not.
    """

    component: str
    objects: tuple[ObjectDiff, ...] = ()
    ignored: tuple[IgnoredField, ...] = ()
    conflicts: tuple[FieldConflict, ...] = ()
    unregistered: tuple[str, ...] = ()
    result: Result | None = None
    problem: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the reconcile would succeed and change nothing."""
        return not self.objects and not self.problem


async def diff(
    components: Sequence[Component] | Callable[[ReconcileContext], Awaitable[Sequence[Component]]],
    owner: Manifest,
    cluster: Cluster,
    *,
    operator: str = DEFAULT_OPERATOR,
    former_managers: Sequence[str] = (),
    clock: Clock | None = None,
    seen: Callable[[ObjectKey], None] | None = None,
) -> tuple[ComponentDiff, ...]:
    """Reconcile the components of an owner with dry runs. Nothing is written.

    The diff of an owner that is paused or being deleted is that of a reconcile without the pause and the deletion.

    Args:
        components: The components, in the order of their reconciles; a later one sees the conditions of earlier ones.
            Or a function that returns them, which reads the cluster, and writes in dry runs, through the context that
            it is called with.
        owner: The owner as read from the cluster.
        cluster: The cluster of the objects; it receives reads and dry runs.
        operator: Name of the operator that reconciles them, as for `reconciling`.
        former_managers: Field managers whose fields are taken over, as for `reconciling`.
        clock: Clock for the time of the reconcile; the system clock by default.
        seen: Called with each object that is read, for a progress display.

    Returns:
        One diff per component, in the same order; it has the error of a reconcile that would fail. What the function
        that returns the components writes itself is a diff before them, without the name of a component.

    Raises:
        ManifestError: If the owner has no name or no uid.
        ApiError: If a request fails.
    """
    found: list[ComponentDiff] = []
    dry_run = DryRunCluster(cluster, seen=seen)
    running = without_field(without_pause(owner, operator), ("metadata", "deletionTimestamp"))
    async with reconciling(
        running, dry_run, operator=operator, former_managers=former_managers, clock=clock
    ) as context:
        context.dry_run = True
        if not isinstance(components, Sequence):
            components = await components(context)
            found += _own_writes(dry_run, operator)
        for component in components:
            component.announce(context)
        for component in components:
            dry_run.start()
            result, problem = None, ""
            try:
                result = await component.reconcile(context)
            except ReconcileError as error:
                problem = error.problem
            written = _component_diff(component, context, dry_run, result, problem)
            found.append(replace(written, unregistered=await _unregistered(component, context)))
    return tuple(found)


def _own_writes(dry_run: DryRunCluster, operator: str) -> list[ComponentDiff]:
    """Return what the function that returns the components writes itself: one diff, or none."""
    prefix = f"{operator}/"
    objects = [
        _object_diff(write, None, None, lambda manager: manager.startswith(prefix))
        for write in dry_run.written.values()
        if _differs(write)
    ]
    return [ComponentDiff("", tuple(objects))] if objects else []


def _component_diff(
    component: Component, context: ReconcileContext, dry_run: DryRunCluster, result: Result | None, problem: str
) -> ComponentDiff:
    skipped = {one.resource for one in result.outcomes if one.why is Why.NOT_SERVED} if result is not None else ()
    explanations = _Explanations(component, skipped)

    def is_ours(manager: str) -> bool:
        return context.owned_by.component_of(manager, context.claims.components) is not None

    outcomes = {outcome.resource: outcome for outcome in result.outcomes} if result is not None else {}
    objects = [
        _object_diff(_without_generated(write, explanations), explanations, outcomes.get(str(write.key)), is_ours)
        for write in dry_run.written.values()
        if _differs(write)
    ]
    conflicts = [each for key, error in dry_run.conflicts for each in _conflicts(key, error)]
    objects += _external_diffs(context, result)
    left = tuple(explanations.ignored(dry_run))
    return ComponentDiff(component.name, tuple(objects), left, tuple(conflicts), result=result, problem=problem)


def _external_diffs(context: ReconcileContext, result: Result | None) -> Iterator[ObjectDiff]:
    """Yield what would be done outside of the cluster, with the fields that the desired state has."""
    calls = context.cluster.apply_cache.shared(ExternalCalls)
    for outcome in result.outcomes if result is not None else ():
        verb = _EXTERNAL.get(outcome.action) if outcome.resource.startswith(f"{GROUP}/") else None
        if verb is None:
            continue
        known = calls.known(context.owned_by.mark, outcome.resource)
        after, before = known.planned, None
        if known.observed is not None:
            before = form_of(outcome.resource, known.observed)
        if before is not None and after is not None:
            before = {**before, "spec": {key: one for key, one in before["spec"].items() if key in after["spec"]}}
        fields = changed_fields(before, after) if before is not None and after is not None else ()
        yield ObjectDiff(outcome.resource, verb, before, after, fields, reasons=outcome.reason_texts)


async def _unregistered(component: Component, context: ReconcileContext) -> tuple[str, ...]:
    """Return what pruning would delete; nothing if the component prunes, or the kinds must not be listed."""
    if component.prunes:
        return ()
    deleter = OwnedObjectDeleter(component.name, context)
    namespace = context.owned_by.key.namespace
    registered = {entry.unversioned for entry in component.entries}
    found: list[str] = []
    for api_version, kind in prunable_kinds(component.entries, namespace):
        # A reconcile without pruning lists nothing, so that the user may not be allowed to.
        with suppress(ForbiddenError):
            for live in await deleter.applied(api_version, kind, namespace):
                key, ending = ObjectKey.of(live), get_field(live, ("metadata", "deletionTimestamp")) is not None
                if key.unversioned not in registered and not ending and not deleter.reason_to_keep(live):
                    found.append(str(key))
    return tuple(found)


def _without_generated(write: PlannedWrite, explanations: _Explanations) -> PlannedWrite:
    """Return a write without values that were generated for the dry run, which the reconcile will not use."""
    after = write.after
    if after is None:
        return write
    for path in explanations.generated(write.key):
        if get_field(after, path) is not None and get_field(write.before, path) is None:
            after = with_field(after, path, GENERATED)
    return replace(write, after=after)


def _object_diff(
    write: PlannedWrite,
    explanations: _Explanations | None,
    outcome: ResourceOutcome | None,
    is_ours: Callable[[str], bool],
) -> ObjectDiff:
    explanation = explanations.of(write.key) if explanations is not None else None
    before, after = (_shown(each) for each in (write.before, write.after))
    verb = _verb(write)
    fields = changed_fields(before, after) if before is not None and after is not None else ()
    origins = {origin.path: origin for origin in explanation.fields} if explanation is not None else {}
    # An entry that another writer inserted into a list of ours shifts positions; comparing values detects most cases.
    explained_fields = tuple(
        replace(each, source=str(origins[each.path].source))
        if each.path in origins and origins[each.path].value == each.after
        else each
        for each in fields
    )
    taken = tuple(_taken(write, is_ours)) if verb is DiffVerb.UPDATE else ()
    return ObjectDiff(
        str(write.key), verb, before, after, explained_fields, taken, _reasons(outcome, explained_fields, verb)
    )


def _reasons(outcome: ResourceOutcome | None, fields: Sequence[FieldDiff], verb: DiffVerb) -> tuple[str, ...]:
    """Return why an object would be written, without fields that differ only in how the server spells their values."""
    if outcome is None:
        return ()
    confirmed = tuple(
        drift
        for drift in outcome.reasons
        if verb is DiffVerb.DELETE
        or drift.why is not Why.CHANGED
        or any(each.path.startswith(drift.path) for each in fields)
    )
    return replace(outcome, reasons=confirmed).reason_texts


def _verb(write: PlannedWrite) -> DiffVerb:
    if write.after is None:
        return DiffVerb.DELETE
    if write.before is None:
        return DiffVerb.CREATE
    return DiffVerb.RELEASE if write.released else DiffVerb.UPDATE


def _differs(write: PlannedWrite) -> bool:
    if write.before is None or write.after is None:
        return write.before is not write.after
    if _content(write.before) != _content(write.after):
        return True
    return ManagedFields.of(write.before).paths() != ManagedFields.of(write.after).paths()


def _content(manifest: Manifest) -> Manifest:
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _NOISE}
    return {key: value for key, value in manifest.items() if key != "status"} | {"metadata": metadata}


def _shown(manifest: Manifest | None) -> Manifest | None:
    return None if manifest is None else redacted(_content(manifest))


def changed_fields(before: Manifest, after: Manifest) -> tuple[FieldDiff, ...]:
    """Return the fields of which two states of an object differ; values that may be secret are digests."""
    trace = ProvenanceTrace()
    trace.step(before, _LIVE)
    trace.step(after, _OURS)
    changed = [origin for origin in (*trace.fields, *trace.removed) if origin.source is _OURS]
    return tuple(
        FieldDiff(origin.path, origin.previous.value if origin.previous else None, origin.value) for origin in changed
    )


class _Explanations:
    """Provenance and ignored fields of the managed resources of a component."""

    def __init__(self, component: Component, skipped: Collection[str]) -> None:
        entries = [entry for entry in component.entries if entry.identity not in skipped]
        self._entries = {entry.key: entry for entry in entries if entry.lifecycle is Lifecycle.MANAGED}
        self._suspended = component.suspended
        try:
            naming = _naming(component.name)
            self._ignored = find_scale_targets(entries, naming).ignored
        except OcfError:
            # The reconcile reports the error.
            self._ignored = {}

    def of(self, key: ObjectKey) -> Provenance | None:
        """Return the provenance of a resource; None if it is not rendered, or only with data of a reconcile."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        try:
            suspended = self._suspended and entry.suspendable is not None
            return explain_entry(entry, self._ignored_fields(entry), suspended=suspended)
        except OcfError:
            return None

    def _ignored_fields(self, entry: Registration) -> tuple[tuple[str, ...], ...]:
        return self._ignored.get(entry.identity, entry.options.ignore_fields)

    def generated(self, key: ObjectKey) -> Collection[tuple[str, ...]]:
        """Return the fields of an object whose values are generated."""
        entry = self._entries.get(key)
        return entry.generated if entry is not None else ()

    def ignored(self, dry_run: DryRunCluster) -> Iterator[IgnoredField]:
        """Yield the ignored fields with their owners."""
        for key, entry in self._entries.items():
            live = dry_run.before(key)
            shown = redacted(live) if live is not None else None
            ignored = dict.fromkeys([*self._ignored_fields(entry), *entry.options.set_once])
            for path in ignored if live is not None else ():
                managers = tuple(_managers(live, path))
                yield IgnoredField(entry.identity, format_path(path), get_field(shown, path), managers)


def _naming(component: str) -> Callable[[Registration], Any]:
    return lambda entry: failing(component, "find scale target of", entry)


def _conflicts(key: ObjectKey, error: ConflictError) -> Iterator[FieldConflict]:
    for cause in error.causes:
        yield FieldConflict(str(key), cause.field.removeprefix("."), cause.manager or cause.message)


def _managers(live: Manifest | None, path: Sequence[str]) -> Iterator[str]:
    for manager in ManagedFields.of(live).owners_of(path):
        yield f"{manager.name} ({', '.join(filter(None, manager[1:]))})"


def _taken(write: PlannedWrite, is_ours: Callable[[str], bool]) -> Iterator[TakenField]:
    """Yield the fields that another manager owned before and does not own after the reconcile."""
    after = ManagedFields.of(write.after).paths()
    for manager, fields in ManagedFields.of(write.before).paths().items():
        if not is_ours(manager.name):
            yield from (TakenField(path, manager.name) for path in sorted(fields - after.get(manager, frozenset())))
