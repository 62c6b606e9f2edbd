"""What the next pass would change, as the API server says it: the pass is rehearsed, and every write is a dry run.

Defaults, normalisation and admission are the server's, so what is shown is what would be stored. An object that a
write would leave as it is, is no difference, even where the pass cannot know that before it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from ocf.component.dry_run_cluster import DryRunCluster
from ocf.component.model.context import reconciling
from ocf.component.model.registration import find_scale_targets
from ocf.component.model.resource_options import Lifecycle
from ocf.component.preview import explain_entry
from ocf.component.reconcile.run import failing
from ocf.concepts import ProvenanceTrace, Source, SourceKind, Why
from ocf.errors import OcfError, ReconcileError
from ocf.objects import ObjectKey, format_path, get_field, redacted
from ocf.objects.managed_fields import ManagedFields

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.component.component import Component
    from ocf.component.dry_run_cluster import PlannedWrite
    from ocf.component.model.ownership import Owner
    from ocf.component.model.registration import Registration
    from ocf.component.status.results import ResourceOutcome, Result
    from ocf.concepts import Clock, Provenance
    from ocf.errors import ConflictError
    from ocf.objects import Manifest

__all__ = [
    "ComponentDiff",
    "FieldConflict",
    "FieldDiff",
    "IgnoredField",
    "ObjectDiff",
    "TakenField",
    "Verb",
    "diff",
]

# What says nothing about what an object is: it is new with every write, or somebody else's report.
_NOISE: Final = frozenset({"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"})
_LIVE: Final = Source(SourceKind.BASE)
_OURS: Final = Source(SourceKind.RESOURCE)


class Verb(StrEnum):
    """What the next pass would do to an object."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class FieldDiff:
    """One field that would be another one.

    Args:
        path: The field, as `FieldOrigin.path` spells it.
        before: Its live value; None if it is not there.
        after: The value that would be stored; None if it would be gone.
        source: Who set what would be stored, `mutation tracing, edit_containers`; empty where that is not known, which
            is so for defaults.
    """

    path: str
    before: Any
    after: Any
    source: str = ""


@dataclass(frozen=True, slots=True)
class TakenField:
    """A field that somebody else owns, and that would be taken.

    Args:
        path: The field; entries of lists are named by their keys.
        manager: The field manager that loses it.
    """

    path: str
    manager: str


@dataclass(frozen=True, slots=True)
class IgnoredField:
    """A field that is left to others.

    Args:
        resource: Identity of the resource.
        path: The field.
        value: Its live value; None if it is not there.
        managers: Who owns it now, and how: `kube-controller-manager (Update, scale)`.
    """

    resource: str
    path: str
    value: Any
    managers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that we want, that somebody else owns, and that may not be taken.

    Args:
        resource: Identity of the resource.
        path: The field.
        manager: Who owns it.
    """

    resource: str
    path: str
    manager: str


@dataclass(frozen=True, slots=True)
class ObjectDiff:
    """What would become of one object. Secrets are digests, and what is new with every write is left out.

    Args:
        resource: Identity of the object.
        verb: What would be done to it.
        before: The live object; None if there is none.
        after: As it would be stored; None if it would be deleted.
        fields: The fields that would be others, for an update.
        taken: The fields that would be taken from others.
        reasons: Why it would be written, as the outcome of the pass says it.
    """

    resource: str
    verb: Verb
    before: Manifest | None
    after: Manifest | None
    fields: tuple[FieldDiff, ...] = ()
    taken: tuple[TakenField, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ComponentDiff:
    """What the next pass of a component would do.

    Args:
        component: Name of the component.
        objects: What would become of the objects that it would write, in order.
        left: The fields that it leaves to others.
        conflicts: The fields on which the pass would fail.
        result: What the pass would report, as far as that can be known from how things stand; None if it would fail.
        problem: Why it would fail; empty if it would not.
    """

    component: str
    objects: tuple[ObjectDiff, ...] = ()
    ignored: tuple[IgnoredField, ...] = ()
    conflicts: tuple[FieldConflict, ...] = ()
    result: Result | None = None
    problem: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the pass would change nothing, and succeed."""
        return not self.objects and not self.problem


async def diff(
    components: Sequence[Component],
    owner: Manifest,
    cluster: Cluster,
    *,
    clock: Clock | None = None,
    seen: Callable[[ObjectKey], None] | None = None,
) -> tuple[ComponentDiff, ...]:
    """Rehearse the next pass over the components of an owner. Nothing is written.

    Args:
        components: In the order in which they are reconciled; a later one sees the conditions of earlier ones.
        owner: The owner as read from the cluster.
        cluster: Where the objects live; it is read, and asked for dry runs.
        clock: Tells the instant of the pass; the machine's clock by default.
        seen: Called with each object that is looked at, for a display of progress.

    Returns:
        One difference per component, in the same order. A component whose pass would fail says why.

    Raises:
        ManifestError: If the owner has no name or no uid.
        ApiError: If the cluster cannot be asked.
    """
    found: list[ComponentDiff] = []
    rehearsal = DryRunCluster(cluster, seen=seen)
    async with reconciling(owner, rehearsal, clock=clock) as context:
        for component in components:
            rehearsal.start()
            result, problem = None, ""
            try:
                result = await component.reconcile(context)
            except ReconcileError as error:
                problem = error.problem
            found.append(_described(component, context.owned_by, rehearsal, result, problem))
    return tuple(found)


def _described(
    component: Component, owner: Owner, rehearsal: DryRunCluster, result: Result | None, problem: str
) -> ComponentDiff:
    explained = _Explained(component)
    ours = frozenset(owner.field_manager(component.name, *more) for more in ((), ("left",)))
    outcomes = {outcome.resource: outcome for outcome in result.outcomes} if result is not None else {}
    objects = [
        _object(written, explained.of(written.key), outcomes.get(str(written.key)), ours)
        for written in rehearsal.written.values()
        if _differs(written)
    ]
    conflicts = [each for key, error in rehearsal.conflicts for each in _conflicts(key, error)]
    left = tuple(explained.left(rehearsal))
    return ComponentDiff(component.name, tuple(objects), left, tuple(conflicts), result, problem)


def _object(
    written: PlannedWrite, explanation: Provenance | None, outcome: ResourceOutcome | None, ours: frozenset[str]
) -> ObjectDiff:
    before, after = (_shown(each) for each in (written.before, written.after))
    verb = _verb(written)
    fields = _fields(before, after) if before is not None and after is not None else ()
    origins = {origin.path: origin for origin in explanation.fields} if explanation is not None else {}
    # Where somebody put an entry into a list of ours, positions differ; then the values say so, mostly.
    told = tuple(
        replace(each, source=str(origins[each.path].source))
        if each.path in origins and origins[each.path].value == each.after
        else each
        for each in fields
    )
    taken = tuple(_taken(written, ours)) if verb is Verb.UPDATE else ()
    return ObjectDiff(str(written.key), verb, before, after, told, taken, _reasons(outcome, told))


def _reasons(outcome: ResourceOutcome | None, fields: Sequence[FieldDiff]) -> tuple[str, ...]:
    """Return why an object would be written, without fields that differ only in how the server spells their values."""
    if outcome is None:
        return ()
    confirmed = tuple(
        drift
        for drift in outcome.reasons
        if drift.why is not Why.CHANGED or any(each.path.startswith(drift.path) for each in fields)
    )
    return replace(outcome, reasons=confirmed).reason_texts


def _verb(written: PlannedWrite) -> Verb:
    if written.after is None:
        return Verb.DELETE
    if written.before is None:
        return Verb.CREATE
    return Verb.RELEASE if written.released else Verb.UPDATE


def _differs(written: PlannedWrite) -> bool:
    if written.before is None or written.after is None:
        return written.before is not written.after
    if _content(written.before) != _content(written.after):
        return True
    return ManagedFields.of(written.before).paths() != ManagedFields.of(written.after).paths()


def _content(manifest: Manifest) -> Manifest:
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _NOISE}
    return {key: value for key, value in manifest.items() if key != "status"} | {"metadata": metadata}


def _shown(manifest: Manifest | None) -> Manifest | None:
    return None if manifest is None else redacted(_content(manifest))


def _fields(before: Manifest, after: Manifest) -> tuple[FieldDiff, ...]:
    trace = ProvenanceTrace()
    trace.step(before, _LIVE)
    trace.step(after, _OURS)
    changed = [origin for origin in (*trace.fields, *trace.removed) if origin.source is _OURS]
    return tuple(
        FieldDiff(origin.path, origin.previous.value if origin.previous else None, origin.value) for origin in changed
    )


class _Explained:
    """What is known of the resources of a component: who set their fields, and what they leave to others."""

    def __init__(self, component: Component) -> None:
        self._entries = {entry.key: entry for entry in component.entries if entry.lifecycle is Lifecycle.MANAGED}
        self._suspended = component.suspended
        try:
            naming = _naming(component.name)
            self._ignored = find_scale_targets(component.entries, naming).ignored
        except OcfError:
            # The reconcile reports the error.
            self._ignored = {}

    def of(self, key: ObjectKey) -> Provenance | None:
        """Explain a resource; None for what is not rendered, or can only be rendered in the middle of a pass."""
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

    def left(self, rehearsal: DryRunCluster) -> Iterator[IgnoredField]:
        """Say who owns the fields that are left to others."""
        for key, entry in self._entries.items():
            live = rehearsal.before(key)
            shown = redacted(live) if live is not None else None
            for path in self._ignored_fields(entry) if live is not None else ():
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


def _taken(written: PlannedWrite, ours: frozenset[str]) -> Iterator[TakenField]:
    """Find the fields that somebody else owned before, and does not own after: no apply of ours gives one up."""
    after = ManagedFields.of(written.after).paths()
    for manager, fields in ManagedFields.of(written.before).paths().items():
        if manager.name not in ours:
            yield from (TakenField(path, manager.name) for path in sorted(fields - after.get(manager, frozenset())))
