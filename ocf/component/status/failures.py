"""Failures in the status of an owner: the conditions that they are shown in, and the events about new ones.

Everything here is a function of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ocf.component.status.reasons import Reason
from ocf.concepts import Event
from ocf.objects import Manifest, ObjectKey, get_field
from ocf.objects.managed_fields import ManagedFields, fields_path, read_key

__all__ = ["FAILED_EVENT", "failure_events", "published_types", "shows"]

FAILED_EVENT: Final = "ReconcileFailed"
"""Reason of the event about a failed reconcile."""

_CONDITIONS: Final = fields_path(("status", "conditions"))
_REASONS: Final = frozenset(Reason)
# How many characters of a text are compared.
_COMPARED: Final = 1000


def published_types(owner: Manifest, manager: str, *, guess: bool = True) -> tuple[str, ...]:
    """Return the types of the stored conditions that a field manager wrote, in the order of the status.

    In a list with the key `type`, the API server records the manager of each condition. Of any other list it records
    only the last writer.

    Args:
        owner: The owner as read from the cluster.
        manager: Field manager of the status writes.
        guess: Whether a condition in a list without keys is taken for ours if its reason is a `Reason`.

    Example:
        >>> fields = {"f:status": {"f:conditions": {'k:{"type":"WebReady"}': {".": {}, "f:reason": {}}}}}
        >>> entry = {"manager": "Shop/status/1", "operation": "Update", "subresource": "status", "fieldsV1": fields}
        >>> conditions = [
        ...     {"type": "Backup", "reason": "Done", "observedGeneration": 1},
        ...     {"type": "WebReady", "reason": "Healthy", "observedGeneration": 1},
        ...     {"type": "CacheReady", "reason": "Healthy", "observedGeneration": 1},
        ... ]
        >>> owner = {"metadata": {"managedFields": [entry]}, "status": {"conditions": conditions}}
        >>> published_types(owner, "Shop/status/1")
        ('WebReady',)
        >>> published_types({**owner, "metadata": {}}, "Shop/status/1")
        ('WebReady', 'CacheReady')
    """
    conditions = get_field(owner, ("status", "conditions")) or []
    fields = [(one.manager.name, get_field(one.fields, _CONDITIONS) or {}) for one in ManagedFields.of(owner).entries]
    keyed = [(name, read_key(key)) for name, owned in fields for key in owned if key.startswith("k:")]
    if keyed:
        ours = {key.get("type") for name, key in keyed if name == manager}
        return tuple(one["type"] for one in conditions if one.get("type") in ours)
    likely = (one for one in conditions if guess and one.get("reason") in _REASONS and "observedGeneration" in one)
    return tuple(one["type"] for one in likely if one.get("type"))


def shows(conditions: Iterable[Manifest], problem: str) -> bool:
    """Return whether the message of a condition contains the text of a failure.

    Args:
        conditions: Conditions of an owner.
        problem: The text.
    """
    # A message that is too long for the API was cut.
    start = problem[:_COMPARED]
    return any(start in str(one.get("message")) for one in conditions)


def failure_events(owner: ObjectKey, uid: str, problems: Iterable[str], stored: Sequence[Manifest]) -> Iterator[Event]:
    """Yield an event for each new failure: one that no condition showed before this reconcile.

    Args:
        owner: The owner.
        uid: UID of the owner.
        problems: Texts of the failures of this reconcile.
        stored: The conditions of the owner as it was read.
    """
    for problem in dict.fromkeys(problems):
        if not shows(stored, problem):
            yield Event(
                owner=owner,
                owner_uid=uid,
                resource=owner,
                reason=FAILED_EVENT,
                action="Reconcile",
                note=problem,
                type="Warning",
            )
