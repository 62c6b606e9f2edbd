"""The owner's status in one reconcile: it is written once, and what is not stored, refused or reverted is shown.

Everything but `write_accepted` is a function of values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ocf.cluster import Cluster, Subresource
from ocf.cluster.apply_cache import UnstoredStatus
from ocf.cluster.server_errors import without_values
from ocf.component.model.ownership import Owner, status_of
from ocf.component.model.status_backoff import hold_back, note_status
from ocf.component.model.unstored_fields import ITEM, ValuePath, dropped_fields, without_fields
from ocf.component.status.status_changes import StatusChanges, StatusPart
from ocf.concepts import Event
from ocf.errors import (
    ApiError,
    BadRequestError,
    ConfigError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from ocf.objects import Manifest
from ocf.objects.conditions import (
    ConditionStatus,
    condition_type_problem,
    reason_problem,
    set_condition,
    shortened_message,
)

__all__ = [
    "FAILED_EVENT",
    "FINALIZER_EVENT",
    "REVERTED_EVENT",
    "UNSTORED_EVENT",
    "WrittenStatus",
    "failure_events",
    "own_condition",
    "owner_event",
    "replaced_value",
    "shows",
    "write_accepted",
]

FAILED_EVENT: Final = "ReconcileFailed"
"""Reason of the event about a failed reconcile."""
FINALIZER_EVENT: Final = "FinalizerReverted"
"""Reason of the event about a finalizer that another writer sets again each time."""
REVERTED_EVENT: Final = "StatusReverted"
"""Reason of the event about values of the status that another writer reverts again and again."""

UNSTORED_EVENT: Final = "StatusNotStored"
"""Reason of the event about a status that the API server refuses, or of which it drops fields."""

_STATUSES: Final = frozenset(ConditionStatus)
# How many characters of a text are compared.
_COMPARED: Final = 1000
# How often a status write is tried after conflicts. Each try starts from the stored status, and of several reconciles
# that write at once, one succeeds in each round: this many lose nothing.
_TRIES: Final = 32
_EVERYTHING: Final = frozenset({()})
# A field as causes of the API server name it: `status.conditions[2].reason`.
_REFUSED_FIELD: Final = re.compile(r"status\.(?P<name>[^.\[]+)(\[(?P<place>\d+)\])?")


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
    event = owner.event(owner.key, reason, note, action=action)
    return replace(event, type="Warning") if warning else event


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


class _RefusedStatus(Exception):  # noqa: N818 (never raised to a user)
    """The API server has refused a status, and will refuse it again: by schema, by RBAC, by its size.

    Attributes:
        error: Its error, without values: what an author computes a status from is not known.
        parts: What of the status it names; empty if it does not name any.
        is_about_content: Whether another status may be accepted.
    """

    def __init__(self, error: ApiError, sent: Manifest) -> None:
        self.error: Final = without_values(error)
        self.parts: Final = frozenset(_refused_parts(error, sent))
        self.is_about_content: Final = not isinstance(error, ForbiddenError)
        super().__init__(str(self.error))


def _refused_parts(error: ApiError, sent: Manifest) -> Iterator[StatusPart]:
    for cause in error.causes:
        found = _REFUSED_FIELD.match(cause.field)
        if found is None:
            continue
        name, place = found["name"], int(found["place"] or -1)
        conditions = sent.get("conditions")
        if name == "conditions" and isinstance(conditions, list) and 0 <= place < len(conditions):
            condition = conditions[place]
            yield StatusPart(name, str(condition.get("type") if isinstance(condition, dict) else ""))
        else:
            yield StatusPart(name)


class WrittenStatus(NamedTuple):
    """The status that was sent, and what of it is not stored or held back: messages, empty if they are not new."""

    status: Manifest
    problem: str = ""
    reverted: str = ""
    retry_after: timedelta | None = None


async def write_accepted(
    cluster: Cluster,
    live: Manifest,
    owner: Owner,
    changes: StatusChanges,
    elapsed: timedelta,
    *,
    show: Callable[[ApiError], None],
) -> tuple[WrittenStatus | None, ApiError | None]:
    """Write what the API server accepts of the status of an owner; return it, and the error about the rest.

    What it refuses is withdrawn from the changes. An error is raised if nothing that may be refused is left. The first
    one is shown before the rest is written, which may be one condition more.
    """
    refusal: ApiError | None = None
    while True:
        try:
            return await _write_status(cluster, live, owner, changes, elapsed), refusal
        except _RefusedStatus as refused:
            if refusal is None:
                refusal = refused.error
                show(refusal)
            if not refused.is_about_content or not changes.withdraw(refused.parts):
                raise refusal from None


async def _write_status(
    cluster: Cluster, live: Manifest, owner: Owner, changes: StatusChanges, elapsed: timedelta
) -> WrittenStatus | None:
    """Write the status of an owner if the changes make it differ from the one that was read.

    After a conflict the status is read again, and the changes are merged into it. A write that would only repeat fields
    that the API server does not store is not sent until the owner changes. Values that another writer reverts again and
    again are held back. Returns None if the owner was deleted, and raises `_RefusedStatus` if it was refused.
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
        except (BadRequestError, ForbiddenError, InvalidError) as error:
            raise _RefusedStatus(error, status) from None
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
    before = known.fields if known is not None else frozenset()
    dropped = dropped_fields(status, status_of(stored)) if is_served else _EVERYTHING
    # A field that is not sent each time stays known, so that it is shown once.
    fields = dropped | {path for path in before if without_fields(status, frozenset({path})) == status}
    if not fields and status == status_of(stored):
        cache.note_unstored_status(uid, manager, None)
        return WrittenStatus(status)
    sent = without_fields(status, fields)
    cache.note_unstored_status(uid, manager, UnstoredStatus(str(metadata.get("resourceVersion") or ""), fields, sent))
    if fields <= before:
        return WrittenStatus(status)
    kind = f"{stored.get('kind')} of {stored.get('apiVersion')}"
    if not is_served:
        lost = f"the API server has no subresource `status` for {kind}, and stores neither conditions nor other fields"
        remedy = "use a kind with a status; a CustomResourceDefinition enables it by `subresources: {status: {}}`"
    else:
        lost = f"the API server does not store {', '.join(sorted(map(_path_text, dropped)))} of {kind}"
        remedy = "in a CustomResourceDefinition, add the fields to the schema of the status"
    return WrittenStatus(status, f"{lost}: {remedy}")


def _path_text(path: ValuePath) -> str:
    """Return a field as messages name it.

    Example:
        >>> _path_text(("conditions", "*", "observedGeneration"))
        'status.conditions[*].observedGeneration'
    """
    return ".".join(("status", *path)).replace(f".{ITEM}", f"[{ITEM}]")
