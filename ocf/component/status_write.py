"""The write of an owner's status: where its definition holds it, and what is kept in memory because it does not.

* A definition without the subresource `status` holds the status in the object itself. There each write of the status is
  a new generation, so that conditions have no `observedGeneration`: writing it would be a reason to write it again.
* A built-in kind without a status holds none: nothing is sent.
* What the schema drops, refuses or requires is reported once for each kind, and is kept as it would have been sent:
  see `unstored_fields`. Conditions that cannot be stored are the ones of the last reconcile in this process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from ocf.cluster import ApplyCache, Cluster, PatchOptions, PatchType, Subresource
from ocf.cluster.apply_cache import Rewrites, StatusLimits
from ocf.cluster.server_errors import without_values
from ocf.component.model.ownership import Owner, status_of
from ocf.component.model.status_backoff import HeldStatus, hold_back, note_status
from ocf.component.model.unstored_fields import (
    ITEM,
    ValuePath,
    dropped_fields,
    is_stored,
    recalled,
    rewritten_parts,
    without_conditions,
    without_fields,
)
from ocf.component.status.status_changes import StatusChanges, StatusPart, fields_of
from ocf.errors import ApiError, BadRequestError, ConflictError, ForbiddenError, InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import find_condition
from ocf.objects.timestamps import format_time
from ocf.schema.rest_mapping import StatusPlace, has_status

__all__ = ["Merge", "StatusWrite", "WrittenStatus", "as_known", "merged", "read_owner", "write_accepted"]

# How often a status write is tried after conflicts. Each try starts from the stored status, and of several reconciles
# that write at once, one succeeds in each round: this many lose nothing.
_TRIES: Final = 32
_NOTHING: Final[frozenset[ValuePath]] = frozenset()
# A field as causes of the API server name it: `status.conditions[2].reason`.
_REFUSED_FIELD: Final = re.compile(r"status\.(?P<name>[^.\[]+)(\[(?P<place>\d+)\])?(\.(?P<rest>.+))?")
_REQUIRED: Final = "FieldValueRequired"
_TYPE: Final = "FieldValueTypeInvalid"
# Times that older conditions have beside that of the last transition, such as lastUpdateTime and lastHeartbeatTime.
_OTHER_TIME: Final = re.compile(r"last[A-Z][A-Za-z]*Time")


class WrittenStatus(NamedTuple):
    """The status that was sent, and what of it is not stored or held back: messages, empty if they are not new.

    Attributes:
        stored: The owner as it is stored then.
    """

    status: Manifest
    stored: Manifest
    problem: str = ""
    reverted: str = ""
    retry_after: timedelta | None = None


Merge: TypeAlias = Callable[[StatusChanges, Manifest], Manifest]
"""Merges changes into a status that another writer has stored meanwhile; raises an error if that must not be."""


def merged(changes: StatusChanges, live: Manifest) -> Manifest:
    """Merge changes into a newer status, whatever another writer has changed."""
    return changes.rebased(live)


def as_known(owner: Manifest, operator: str, cache: ApplyCache) -> tuple[Owner, Manifest]:
    """Return an owner and its status, with the conditions that its definition does not hold as they were sent last."""
    found = Owner.of(owner, operator)
    if cache.status_limits(operator, found.key.api_version, found.key.kind).in_object:
        found = replace(found, generation=0)
    return found, recalled(status_of(owner), cache.rewrites(found.uid, found.field_manager("status")))


class _RefusedStatus(Exception):  # noqa: N818 (never raised to a user)
    """The API server has refused a status, and will refuse it again: by schema, by RBAC, by its size.

    Attributes:
        error: Its error, without values: what an author computes a status from is not known.
        parts: What of the status it names; empty if it does not name any.
        is_about_content: Whether another status may be accepted.
    """

    def __init__(self, error: ApiError, parts: Collection[StatusPart]) -> None:
        self.error: Final = without_values(error)
        self.parts: Final = parts
        self.is_about_content: Final = not isinstance(error, ForbiddenError)
        super().__init__(str(self.error))


@dataclass(frozen=True, slots=True)
class _Causes:
    """The causes of a refusal.

    Args:
        parts: What an author, or another condition, can change.
        filled: Fields of conditions that are required, and can be filled.
        required: Fields that are required, and that nothing sets.
        no_list: Whether the conditions are something else than a list of objects.
    """

    parts: frozenset[StatusPart]
    filled: frozenset[str]
    required: frozenset[ValuePath]
    no_list: bool

    @classmethod
    def of(cls, error: ApiError, sent: Manifest, changes: StatusChanges) -> _Causes:
        """Read the causes of an error."""
        found = [*_read_causes(error, sent, changes)]
        return cls(
            frozenset(one for one in found if isinstance(one, StatusPart)),
            frozenset(one for one in found if isinstance(one, str)),
            frozenset(one for one in found if type(one) is tuple and len(one) > 0),
            () in found,
        )

    @property
    def is_about_definition(self) -> bool:
        """Whether no value of the status is wrong: the definition requires more, or holds no conditions."""
        return not self.parts and bool(self.filled or self.required or self.no_list)


def _read_causes(error: ApiError, sent: Manifest, changes: StatusChanges) -> Iterator[StatusPart | str | ValuePath]:
    """Yield a part for each wrong value, a name for a field to fill, a path for a missing field, `()` for no list."""
    assigned_fields, assigned_types = changes.assigned_fields, changes.assigned_types
    for cause in error.causes:
        found = _REFUSED_FIELD.fullmatch(cause.field)
        if found is None:
            yield StatusPart("")
            continue
        name, place, rest = found["name"], int(found["place"] or -1), found["rest"] or ""
        conditions = sent.get("conditions")
        if name == "conditions" and isinstance(conditions, list):
            condition = conditions[place] if 0 <= place < len(conditions) else None
            kind = str(condition.get("type")) if isinstance(condition, dict) else ""
            if cause.reason == _REQUIRED and _OTHER_TIME.fullmatch(rest):
                yield rest
            elif cause.reason == _REQUIRED and rest and kind not in assigned_types:
                yield (name, ITEM, *rest.split("."))
            elif cause.reason == _TYPE and not rest:
                yield ()
            else:
                yield StatusPart(name, kind)
        elif cause.reason == _REQUIRED and name not in assigned_fields:
            yield (name, *rest.split(".")) if rest else (name,)
        else:
            yield StatusPart(name)


@dataclass(slots=True, kw_only=True)
class StatusWrite:
    """What a write of an owner's status needs, and what it finds out about the definition.

    Args:
        now: The time of the reconcile; `elapsed` is the same on the monotonic clock.
        hidden: Types of the conditions that are not sent, and are kept in the memory of the process.
        failures: Types of the conditions that show a failure, which is an event and a log line as well.
        problems: What the definition does not hold, as far as it is new.
        holds_conditions: Whether the definition may hold conditions.
        place: Where the present try writes the status. It is chosen before the try, since another reconcile may find
            out another place before the answer comes.
        tried: The places that have not taken the status.
    """

    cluster: Cluster
    owner: Owner
    changes: StatusChanges
    now: datetime
    elapsed: timedelta
    merge: Merge
    hidden: Collection[str] = ()
    failures: Collection[str] = ()
    problems: list[str] = field(default_factory=list)
    holds_conditions: bool = True
    place: StatusPlace = StatusPlace.SUBRESOURCE
    tried: set[StatusPlace] = field(default_factory=set)
    tries_left: int = _TRIES

    @property
    def limits(self) -> StatusLimits:
        """What is known of the definition."""
        key = self.owner.key
        return self.cluster.apply_cache.status_limits(self.owner.operator, key.api_version, key.kind)

    def note(self, limits: StatusLimits) -> None:
        """Replace what is known of the definition."""
        key = self.owner.key
        self.cluster.apply_cache.note_status_limits(self.owner.operator, key.api_version, key.kind, limits)

    def choose_place(self) -> None:
        """Choose where the next try writes the status."""
        untried = StatusPlace.OBJECT not in self.tried or StatusPlace.SUBRESOURCE in self.tried
        self.place = StatusPlace.OBJECT if self.limits.in_object and untried else StatusPlace.SUBRESOURCE
        if not has_status(self.owner.key.api_version, self.owner.key.kind):
            self.place = StatusPlace.NONE

    def wanted(self, live: Manifest) -> Manifest:
        """Return the status that the owner should have, from the one that is stored."""
        stored = recalled(status_of(live), self._rewrites)
        # The owner may have been stored since it was read, by a write in this reconcile.
        status = self.changes.status if stored == self.changes.stored else self.merge(self.changes, stored)
        return _filled(status, stored, self.changes.changed_types, self.limits.filled, self.now)

    def held_back(self, status: Manifest, live: Manifest) -> HeldStatus:
        """Return the status that may be written now; values that another writer reverts again and again wait."""
        if self.place is StatusPlace.NONE:
            return HeldStatus(status)
        return hold_back(status, live, self.owner, self.cluster.apply_cache, self.elapsed)

    def is_stored(self, status: Manifest, live: Manifest) -> bool:
        """Return whether there is nothing to send: it is stored, or it is known what becomes of it."""
        if self.place is StatusPlace.NONE:
            return True
        return is_stored(self._sent(status, live), status_of(live), self._rewrites)

    async def send(self, status: Manifest, live: Manifest) -> Manifest:
        """Send a status for the version that was read."""
        sent, manager = self._sent(status, live), self._manager
        if self.place is StatusPlace.SUBRESOURCE:
            wanted = {**live, "status": sent}
            return await self.cluster.update(wanted, field_manager=manager, subresource=Subresource.STATUS)
        version = str(live["metadata"].get("resourceVersion") or "")
        # A failed test of the version would be an invalid patch; a version that is replaced is a conflict.
        patch = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/status", "value": sent},
        ]
        options = PatchOptions(patch_type=PatchType.JSON, field_manager=manager)
        return await self.cluster.patch(self.owner.key, patch, options)

    def try_again(self, error: ConflictError | NotFoundError) -> bool:
        """Return whether there is a place left to send the status to: without the subresource, the object itself.

        Raises:
            ConflictError: If other writers were faster too often.
        """
        if isinstance(error, ConflictError):
            self.tries_left -= 1
            if not self.tries_left:
                raise error
            return True
        self.tried.add(StatusPlace.SUBRESOURCE)
        if StatusPlace.OBJECT in self.tried:
            self.place = StatusPlace.OBJECT
            return False
        self.note(replace(self.limits, in_object=True))
        self.owner = replace(self.owner, generation=0)
        self.changes.forget_generation()
        return True

    def is_ignored(self, stored: Manifest, live: Manifest) -> bool:
        """Return whether an object has taken nothing of its status, so that the subresource is to be tried.

        The definition may enable it since the last write: then the API server ignores the status of an object.
        """
        if self.place is not StatusPlace.OBJECT or status_of(stored) != status_of(live):
            return False
        self.tried.add(StatusPlace.OBJECT)
        return StatusPlace.SUBRESOURCE not in self.tried

    def stored(self, status: Manifest, stored: Manifest, live: Manifest) -> WrittenStatus:
        """Return a status that was sent, and note what of it the definition does not hold."""
        sent, before, cache = self._sent(status, live), self.limits, self.cluster.apply_cache
        note_status(status_of(stored), live, self.owner, cache, self.elapsed, sent=sent)
        lost = dropped_fields(sent, status_of(stored))
        # A field that is not sent each time stays known, so that it is reported once.
        unsent = {path for path in before.dropped if without_fields(sent, frozenset({path})) == sent}
        required = _NOTHING if self.holds_conditions else before.required
        in_object = self.place is StatusPlace.OBJECT
        self.note(replace(before, in_object=in_object, dropped=lost | unsent, required=required))
        if lost - before.dropped:
            self.problems.append(_dropped_text(stored, lost))
        return self.kept(status, stored)

    def kept(self, status: Manifest, live: Manifest) -> WrittenStatus:
        """Remember what of a status is stored otherwise than it would be sent, and return the status."""
        kept = rewritten_parts(status, status_of(live), self._rewrites)
        self.cluster.apply_cache.remember(self.owner.uid, self._manager, kept)
        before = self.limits
        shown = without_conditions(status, {*self.hidden, *self.failures})
        if shown and self.place is StatusPlace.NONE and not before.dropped:
            self.note(replace(before, dropped=frozenset({()})))
            self.problems.append(_no_status_text(live))
        return WrittenStatus(status, live, "; ".join(self.problems))

    def adapt(self, error: ApiError, status: Manifest) -> bool:
        """Note what the definition requires or does not hold; return whether another status can be sent.

        Raises:
            _RefusedStatus: If the error is about a value of the status, or about something else.
        """
        causes = _Causes.of(error, status, self.changes)
        if not causes.is_about_definition:
            raise _RefusedStatus(error, causes.parts)
        before, key = self.limits, self.owner.key
        unfilled = causes.filled & before.filled
        required = causes.required | {("conditions", ITEM, name) for name in unfilled}
        dropped = frozenset({("conditions",)}) if causes.no_list else _NOTHING
        if required - before.required:
            self.problems.append(_required_text(key, required))
        if dropped - before.dropped:
            self.problems.append(_dropped_text({"kind": key.kind, "apiVersion": key.api_version}, dropped))
        self.note(
            replace(
                before,
                filled=before.filled | causes.filled,
                required=before.required | required,
                dropped=before.dropped | dropped,
            )
        )
        fills = bool(causes.filled - before.filled)
        could_hold, about = self.holds_conditions, {path[0] for path in required}
        if dropped or "conditions" in about:
            self.holds_conditions = False
        return about <= {"conditions"} and (fills or could_hold)

    def _sent(self, status: Manifest, live: Manifest) -> Manifest:
        if self.holds_conditions:
            return without_conditions(status, self.hidden)
        # Those of other controllers stay as they are.
        kept = {name: value for name, value in status_of(live).items() if name == "conditions"}
        return fields_of(status) | kept

    @property
    def _manager(self) -> str:
        return self.owner.field_manager("status")

    @property
    def _rewrites(self) -> Rewrites:
        return self.cluster.apply_cache.rewrites(self.owner.uid, self._manager)


async def write_accepted(
    write: StatusWrite, live: Manifest, *, show: Callable[[ApiError], None]
) -> tuple[WrittenStatus | None, ApiError | None]:
    """Write what the API server accepts of the status of an owner; return it, and the error about the rest.

    What it refuses is withdrawn from the changes. An error is raised if nothing that may be refused is left. The first
    one is shown before the rest is written, which may be one condition more.
    """
    refusal: ApiError | None = None
    while True:
        try:
            return await _write_status(write, live), refusal
        except _RefusedStatus as refused:
            if refusal is None:
                refusal = refused.error
                show(refusal)
            if not refused.is_about_content or not write.changes.withdraw(refused.parts):
                raise refusal from None


async def _write_status(write: StatusWrite, live: Manifest) -> WrittenStatus | None:
    """Write the status of an owner if the changes make it differ from the one that was read.

    After a conflict the status is read again, and the changes are merged into it. A write of which is known what
    becomes of it is not sent. Values that another writer reverts again and again are held back. Returns None if the
    owner was deleted, and raises `_RefusedStatus` if it was refused.
    """
    reverted = ""
    while True:
        write.choose_place()
        status, problem, retry_after = write.held_back(write.wanted(live), live)
        reverted = reverted or problem
        if write.is_stored(status, live):
            return write.kept(status, live)._replace(reverted=reverted, retry_after=retry_after)
        try:
            stored = await write.send(status, live)
        except (ConflictError, NotFoundError) as error:
            found = await read_owner(write.cluster, write.owner)
            if found is None:  # which says nothing about the definition
                return None
            live = found
            if not write.try_again(error):
                return write.stored(status, live, live)
        except (BadRequestError, ForbiddenError, InvalidError) as error:
            if not write.adapt(error, status):
                return write.kept(status, live)
        else:
            if not write.is_ignored(stored, live):
                done = write.stored(status, stored, live)
                return done._replace(reverted=reverted, retry_after=retry_after)
            live = stored


def _filled(
    status: Manifest, stored: Manifest, types: Collection[str], names: Collection[str], now: datetime
) -> Manifest:
    """Return a status in whose conditions required times are set: they change with the rest of the condition."""
    if not names or not types:
        return status
    conditions = [
        _with_times(one, find_condition(stored.get("conditions"), one["type"]) or {}, names, now)
        if isinstance(one, dict) and isinstance(one.get("type"), str) and one["type"] in types
        else one
        for one in status.get("conditions") or ()
    ]
    return {**status, "conditions": conditions} if conditions else status


def _with_times(condition: Manifest, before: Manifest, names: Collection[str], now: datetime) -> Manifest:
    missing = [name for name in names if name not in condition]
    same = {**condition, **{name: before[name] for name in missing if name in before}}
    return same if same == before else {**condition, **dict.fromkeys(missing, format_time(now))}


def _no_status_text(live: Manifest) -> str:
    return (
        f"{_kind_text(live)} has no status: its conditions are kept in the memory of the process until it ends, and no "
        "other field of the status is kept; failures are in events, the log and the metrics"
    )


def _dropped_text(live: Manifest, paths: Iterable[ValuePath]) -> str:
    lost, kept = ", ".join(sorted(map(_path_text, paths))), ""
    if any(path[:1] == ("conditions",) for path in paths):
        kept = "; until then the process keeps the conditions in its memory"
    remedy = "in a CustomResourceDefinition, add the fields to the schema of the status"
    return f"the API server does not store {lost} of {_kind_text(live)}: {remedy}{kept}"


def _required_text(key: ObjectKey, paths: Iterable[ValuePath]) -> str:
    missing = ", ".join(sorted(map(_path_text, paths)))
    of_status = sorted({path[0] for path in paths if path[0] != "conditions"})
    remedy = "make the fields optional in its schema"
    if of_status:
        remedy = f"""set {", ".join(f'`context.status["{name}"]`' for name in of_status)} in `report`"""
    lost = "no status is stored" if of_status else "no condition is stored"
    kind = f"{key.kind} of {key.api_version}"
    kept = "until then the process keeps the conditions in its memory"
    return f"the definition of {kind} requires {missing}, which is not set, so that {lost}: {remedy}; {kept}"


def _kind_text(live: Manifest) -> str:
    return f"{live.get('kind')} of {live.get('apiVersion')}"


def _path_text(path: ValuePath) -> str:
    """Return a field as messages name it.

    Example:
        >>> _path_text(("conditions", "*", "observedGeneration"))
        'status.conditions[*].observedGeneration'
    """
    return ".".join(("status", *path)).replace(f".{ITEM}", f"[{ITEM}]")


async def read_owner(cluster: Cluster, owner: Owner) -> Manifest | None:
    """Read an owner again; None if it was deleted, or another one has its name now."""
    try:
        live = await cluster.get(owner.key)
    except NotFoundError:
        return None
    return live if live["metadata"].get("uid") == owner.uid else None
