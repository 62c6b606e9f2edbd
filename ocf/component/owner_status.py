"""Status of an owner in one reconcile: a copy of it is changed, and written once.

Everything but `write_status` is a function of values. A definition without a schema lets other clients store anything
in a status: what is not a condition stays as it is stored, beside ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from ocf.cluster import Cluster, Subresource
from ocf.cluster.apply_cache import UnstoredStatus
from ocf.component.model.ownership import Owner, status_of
from ocf.component.model.status_backoff import hold_back, note_status
from ocf.component.model.unstored_fields import ITEM, ValuePath, dropped_fields, without_fields
from ocf.component.status.reasons import Reason
from ocf.concepts import Event
from ocf.errors import (
    ApiError,
    BadRequestError,
    ConfigError,
    ConflictError,
    FieldProblem,
    ForbiddenError,
    InvalidError,
    ManifestError,
    NotFoundError,
)
from ocf.objects import Manifest, copy_json
from ocf.objects.conditions import (
    ConditionStatus,
    condition_problems,
    condition_type_problem,
    find_condition,
    has_type,
    reason_problem,
    set_condition,
    shortened_message,
    typed_conditions,
    with_condition,
)
from ocf.objects.json_values import to_json
from ocf.objects.paths import format_path

__all__ = [
    "FAILED_EVENT",
    "FINALIZER_EVENT",
    "REVERTED_EVENT",
    "UNSTORED_EVENT",
    "StatusChanges",
    "WrittenStatus",
    "failure_events",
    "is_refused",
    "own_condition",
    "owner_event",
    "replaced_value",
    "shows",
    "write_status",
]

FAILED_EVENT: Final = "ReconcileFailed"
"""Reason of the event about a failed reconcile."""
FINALIZER_EVENT: Final = "FinalizerReverted"
"""Reason of the event about a finalizer that another writer sets again each time."""
REVERTED_EVENT: Final = "StatusReverted"
"""Reason of the event about values of the status that another writer reverts again and again."""

UNSTORED_EVENT: Final = "StatusNotStored"
"""Reason of the event about a status that the API server refuses, or of which it drops fields."""

_ABSENT: Final = object()
_STATUSES: Final = frozenset(ConditionStatus)
# How many characters of a text are compared.
_COMPARED: Final = 1000
# How often a status write is tried after conflicts. Each try starts from the stored status, and of several reconciles
# that write at once, one succeeds in each round: this many lose nothing.
_TRIES: Final = 32
_EVERYTHING: Final = frozenset({()})


class StatusChanges:
    """The status that an owner will have, computed from the status as it was read.

    Attributes:
        stored: The status as it was read.
        status: A copy of it, for changes.

    Example:
        >>> changes = StatusChanges({"phase": "Idle", "size": 1})
        >>> changes.status["size"] = 2
        >>> changes.rebased({"phase": "Busy", "size": 1})
        {'phase': 'Busy', 'size': 2}
    """

    def __init__(self, stored: Manifest) -> None:
        self.stored: Final = stored
        self.status: Final[dict[str, Any]] = copy_json(stored)
        self._set: dict[str, Manifest] = {}
        self._removed: set[str] = set()
        self._problems: list[FieldProblem] = []

    @property
    def conditions(self) -> list[Manifest]:
        """The conditions with all changes so far."""
        return typed_conditions(self.status.get("conditions"))

    @property
    def stored_conditions(self) -> list[Manifest]:
        """The conditions as they were read."""
        return typed_conditions(self.stored.get("conditions"))

    @property
    def changed_types(self) -> frozenset[str]:
        """Types of the conditions that were set, or changed in `status`."""
        stored = self.stored_conditions
        return frozenset({*self._set, *(one["type"] for one in self.conditions if one not in stored)})

    @property
    def assigned_types(self) -> frozenset[str]:
        """Types of the conditions that were changed in `status` only."""
        return self.changed_types - self._set.keys()

    def set_condition(self, condition: Manifest) -> None:
        """Set a condition; it replaces the one of its type, at its place."""
        self._set[condition["type"]] = condition
        self._removed.discard(condition["type"])
        self._require_list()
        self.status["conditions"] = with_condition(self.status.get("conditions") or [], condition)

    def restore(self, name: str) -> None:
        """Give a condition that was changed in `status` its stored state back."""
        stored = [one for one in self.stored_conditions if has_type(one, name)]
        entries = self.status["conditions"]
        kept = [one for one in entries if not has_type(one, name)]
        self._replace(with_condition(entries, stored[0]) if stored else kept)

    def remove_failure(self, name: str) -> None:
        """Remove a stored condition whose reason is `Error`, unless it was changed."""
        self._require_list()
        failure = find_condition(self.stored_conditions, name)
        if failure is not None and failure.get("reason") == Reason.ERROR and name not in self.changed_types:
            self.remove_condition(name)

    def remove_condition(self, name: str) -> None:
        """Remove a stored condition."""
        self._require_list()
        self._removed.add(name)
        self._replace([one for one in self.status.get("conditions") or [] if not has_type(one, name)])

    def arrange(self, types: Iterable[str]) -> None:
        """Sort the conditions that are new in this reconcile into a given order, after the stored ones."""
        there = {one["type"] for one in self.stored_conditions}
        rank = {name: at for at, name in enumerate(types)}
        new = [one for one in self.conditions if one["type"] not in there]
        if new:
            others = [one for one in self.status["conditions"] if all(one is not each for each in new)]
            self._replace([*others, *sorted(new, key=lambda one: rank.get(one["type"], len(rank)))])

    def make_plain(self) -> tuple[FieldProblem, ...]:
        """Convert the status to plain JSON values, which the cluster stores; it is compared with them.

        A field that contains something else keeps its stored value, so that the rest can be written. Each condition is
        such a field of its own, also one that was assigned and is not a condition.

        Example:
            >>> changes = StatusChanges({"since": "noon"})
            >>> changes.status.update(size=(1, 2), since={1, 2})
            >>> [problem.path for problem in changes.make_plain()], changes.status
            (['status.since'], {'since': 'noon', 'size': [1, 2]})
        """
        self._require_list()
        problems, self._problems = self._problems, []
        plain: dict[str, Any] = {}
        for name, value in self.status.items():
            try:
                if name == "conditions" and isinstance(value, list):
                    plain[name] = self._plain_conditions(value, problems)
                else:
                    plain |= to_json({name: value}, "status", ("status",))
            except ManifestError as error:
                problems += error.problems
                if name in self.stored:
                    plain[name] = self.stored[name]
        self.status.clear()
        self.status.update(plain)
        return tuple(problems)

    def rebased(self, live: Manifest) -> dict[str, Any]:
        """Merge the changes into a newer status; other writers' changes are kept, except where both changed the same.

        Maps are merged key by key, and conditions by type. Any other list is one value.
        """
        status: dict[str, Any] = _merged(_fields(self.stored), _fields(self.status), _fields(live))
        entries = live.get("conditions")
        merged = list(entries) if isinstance(entries, list) else []
        ours, old = _by_type(self.conditions), _by_type(self.stored_conditions)
        for name, condition in ours.items():
            if name in self._set or condition != old.get(name):
                merged = with_condition(merged, condition)
        for name, condition in old.items():
            if name not in ours and (name in self._removed or find_condition(merged, name) == condition):
                merged = [one for one in merged if not has_type(one, name)]
        if "conditions" in live and merged == (entries if isinstance(entries, list) else []):
            return {**status, "conditions": entries}
        return {**status, "conditions": merged} if merged else status

    def _require_list(self) -> None:
        """Set the list of conditions again if something else was assigned, and record the problem."""
        found, stored = self.status.get("conditions"), self.stored.get("conditions")
        if isinstance(found, list) or "conditions" not in self.status:
            return
        if found != stored:
            seen = "None" if found is None else f"a value of type {type(found).__name__}"
            self._problems.append(FieldProblem("status.conditions", f"must be a list of conditions, got {seen}"))
        elif not self._set:
            return
        entries = list(stored) if isinstance(stored, list) else []
        for condition in self._set.values():
            entries = with_condition(entries, condition)
        self._replace(entries)

    def _replace(self, entries: list[Any]) -> None:
        """Replace the conditions; a list that gets empty is removed."""
        if entries:
            self.status["conditions"] = entries
        else:
            self.status.pop("conditions", None)

    def _plain_conditions(self, conditions: list[Any], problems: list[FieldProblem]) -> list[Any]:
        """Return the conditions without those that were assigned and are wrong; what is stored is not checked."""
        stored = self.stored.get("conditions")
        unchecked = [*(stored if isinstance(stored, list) else ()), *self._set.values()]
        twice = {name for name, times in Counter(one["type"] for one in self.stored_conditions).items() if times > 1}
        plain: list[Any] = []
        for place, condition in enumerate(conditions):
            path = "status", "conditions", place
            value: Any = None
            wrong: list[FieldProblem] = []
            try:
                value = to_json(condition, "status", path)
            except ManifestError as error:
                wrong += error.problems
            if not wrong and value not in unchecked:
                wrong += condition_problems(value, format_path(path))
            name = condition.get("type") if isinstance(condition, dict) else None
            if isinstance(name, str) and name not in twice and find_condition(plain, name) is not None:
                problems.append(FieldProblem(format_path((*path, "type")), f'must be unique, got "{name}" twice'))
                continue
            problems += wrong
            plain += self._kept(name) if wrong else [value]
        return plain

    def _kept(self, name: object) -> list[Manifest]:
        """Return what is written in place of a wrong condition: the one of its type that was set or stored, if any."""
        if not isinstance(name, str):
            return []
        found = self._set.get(name) or find_condition(self.stored_conditions, name)
        return [] if found is None else [found]


def _fields(status: Manifest) -> Manifest:
    return {name: value for name, value in status.items() if name != "conditions"}


def _by_type(conditions: list[Manifest]) -> dict[str, Manifest]:
    return {one["type"]: one for one in conditions}


def _merged(old: Any, ours: Any, theirs: Any) -> Any:
    """Merge a value of ours and one of another writer, which both come from an old one."""
    if ours == old:
        return copy_json(theirs) if theirs is not _ABSENT else theirs
    before, changed = (one if isinstance(one, dict) else {} for one in (old, ours))
    is_map = isinstance(ours, dict) or (ours is _ABSENT and isinstance(old, dict))
    if not is_map or not isinstance(theirs, dict):
        return ours
    merged = {}
    for key in {**theirs, **changed}:
        value = _merged(before.get(key, _ABSENT), changed.get(key, _ABSENT), theirs.get(key, _ABSENT))
        if value is not _ABSENT:
            merged[key] = value
    # A map that was removed here stays as far as another writer has added to it.
    return merged if merged or isinstance(ours, dict) else _ABSENT


def own_condition(
    stored: Manifest | None, name: str, *, status: str, reason: str, message: str, generation: int, now: datetime
) -> Manifest:
    """Return a condition as it is to be stored; its transition time changes only with its status."""
    for part, value in (("type", name), ("status", status), ("reason", reason), ("message", message)):
        if not isinstance(value, str):
            raise ConfigError(
                f'condition "{name}": the {part} must be a text, got an object of type {type(value).__name__}'
            )
    invalid = f"the status must be True, False or Unknown, got {status!r}" if status not in _STATUSES else ""
    problems = list(filter(None, (condition_type_problem(name), invalid, reason_problem(reason))))
    if problems:
        raise ConfigError(f'condition "{name}": {"; ".join(problems)}')
    (condition,) = set_condition(
        [stored] if stored is not None else [],
        condition_type=name,
        status=ConditionStatus(status),
        reason=reason,
        message=shortened_message(message),
        observed_generation=generation,
        now=now,
    )
    return condition


def shows(conditions: Iterable[Manifest], problem: str) -> bool:
    """Return whether the message of a condition contains the text of a failure."""
    # A message that is too long for the API was cut.
    start = problem[:_COMPARED]
    return any(start in str(one.get("message")) for one in conditions)


def failure_events(owner: Owner, problems: Iterable[str], stored: Sequence[Manifest]) -> Iterator[Event]:
    """Yield an event for each new failure: one that no condition showed before this reconcile."""
    for problem in dict.fromkeys(problems):
        if not shows(stored, problem):
            yield owner_event(owner, FAILED_EVENT, problem, action="Reconcile")


def owner_event(owner: Owner, reason: str, note: str, *, action: str, warning: bool = True) -> Event:
    """Return an event about an owner."""
    kind = "Warning" if warning else "Normal"
    return Event(
        owner=owner.key, owner_uid=owner.uid, resource=owner.key, reason=reason, action=action, note=note, type=kind
    )


def replaced_value(owner: Manifest, written: Manifest) -> str:
    """Return which value in the status of an owner was replaced, because no condition can be stored beside it."""
    path, value = "status", owner.get("status")
    if isinstance(value, dict):
        path, value = "status.conditions", value.get("conditions")
        value = None if isinstance(value, list) else value
    if value is None or not written.get("conditions"):
        return ""
    kind = type(value).__name__
    return f"{path} was stored as a value of type {kind}, and is replaced, because it cannot hold conditions"


def is_refused(error: ApiError) -> bool:
    """Return whether the API server has refused a write, and will refuse it again: by schema, by RBAC, by its size."""
    return isinstance(error, BadRequestError | ForbiddenError | InvalidError)


class WrittenStatus(NamedTuple):
    """The status that was sent, and what of it is not stored or held back: messages, empty if they are not new."""

    status: Manifest
    problem: str = ""
    reverted: str = ""
    retry_after: timedelta | None = None


async def write_status(
    cluster: Cluster, live: Manifest, owner: Owner, changes: StatusChanges, elapsed: timedelta
) -> WrittenStatus | None:
    """Write the status of an owner if the changes make it differ from the one that was read.

    After a conflict the status is read again, and the changes are merged into it. A write that would only repeat fields
    that the API server does not store is not sent until the owner changes. Values that another writer reverts again and
    again are held back. Returns None if the owner was deleted.
    """
    status, manager, cache = changes.status, owner.field_manager("status"), cluster.apply_cache
    reverted, retry_after = "", None
    for tries_left in reversed(range(_TRIES)):
        held = hold_back(status, live, owner, cache, elapsed)
        status, reverted, retry_after = held.status, reverted or held.problem, held.retry_after
        if status == status_of(live) or _is_repeated(cluster, manager, live, status):
            break
        wanted = {**live, "status": status}
        try:
            stored = await cluster.update(wanted, field_manager=manager, subresource=Subresource.STATUS)
        except NotFoundError:
            found = await _read(cluster, owner)
            return None if found is None else _checked(cluster, manager, found, status, is_served=False)
        except ConflictError:
            if not tries_left:
                raise
        else:
            note_status(status_of(stored), live, owner, cache, elapsed, sent=status)
            return _checked(cluster, manager, stored, status)._replace(reverted=reverted, retry_after=retry_after)
        found = await _read(cluster, owner)
        if found is None:
            return None
        live = found
        status = changes.rebased(status_of(live))
    return WrittenStatus(status, reverted=reverted, retry_after=retry_after)


async def _read(cluster: Cluster, owner: Owner) -> Manifest | None:
    """Read an owner again; None if it was deleted, or another one has its name now."""
    try:
        live = await cluster.get(owner.key)
    except NotFoundError:
        return None
    return live if live["metadata"].get("uid") == owner.uid else None


def _is_repeated(cluster: Cluster, manager: str, live: Manifest, status: Manifest) -> bool:
    """Return whether a write would repeat an earlier one, except in fields that the API server does not store."""
    metadata = live["metadata"]
    known = cluster.apply_cache.unstored_status(str(metadata.get("uid") or ""), manager)
    if known is None or known.version != metadata.get("resourceVersion"):
        return False
    return bool(without_fields(status, known.fields) == known.sent)


def _checked(
    cluster: Cluster, manager: str, stored: Manifest, status: Manifest, *, is_served: bool = True
) -> WrittenStatus:
    """Compare a status with what is stored, and remember the fields that are not."""
    cache, metadata = cluster.apply_cache, stored["metadata"]
    uid = str(metadata.get("uid") or "")
    known = cache.unstored_status(uid, manager)
    if is_served and status == status_of(stored):
        cache.note_unstored_status(uid, manager, None)
        return WrittenStatus(status)
    fields = dropped_fields(status, status_of(stored)) if is_served else _EVERYTHING
    sent = without_fields(status, fields)
    cache.note_unstored_status(uid, manager, UnstoredStatus(str(metadata.get("resourceVersion") or ""), fields, sent))
    if not fields or (known is not None and fields <= known.fields):
        return WrittenStatus(status)
    kind = f"{stored.get('kind')} of {stored.get('apiVersion')}"
    if not is_served:
        lost = f"the API server has no subresource `status` for {kind}, and stores neither conditions nor other fields"
        remedy = "use a kind with a status; a CustomResourceDefinition enables it by `subresources: {status: {}}`"
    else:
        lost = f"the API server does not store {', '.join(sorted(map(_path_text, fields)))} of {kind}"
        remedy = "in a CustomResourceDefinition, add the fields to the schema of the status"
    return WrittenStatus(status, f"{lost}: {remedy}")


def _path_text(path: ValuePath) -> str:
    """Return a field as messages name it.

    Example:
        >>> _path_text(("conditions", "*", "observedGeneration"))
        'status.conditions[*].observedGeneration'
    """
    return ".".join(("status", *path)).replace(f".{ITEM}", f"[{ITEM}]")
