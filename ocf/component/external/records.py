"""Records of external resources in the owner's status: what was, or may have been, made outside of the cluster.

A record is stored before the call that creates, and removed once the resource was read and is gone. So whatever the
status names may exist, and nothing exists that it does not name.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

from ocf.concepts.external import values_of
from ocf.errors import HandlerError, ReconcileError

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext
    from ocf.concepts.external import ExternalResource

__all__ = ["FIELD", "REMEDY", "Record", "digest_of", "idempotency_key", "records_of", "stage_record", "store_record"]

FIELD: Final = "external"
"""The field of the owner's status that holds the records."""
REMEDY: Final = (
    "add the field to the schema of the status, such as `external: dict[str, Record] = {}` in its model, with "
    "`ocf.primitives.external.Record`"
)
"""How an owner comes to hold the records."""
_NAMESPACE: Final = UUID("6c1e0c5e-3a52-4cf0-9d0b-5f6a5ad6a7f5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The record of one external resource at one target; all fields are texts, and empty ones are not stored.

    Args:
        operator: The operator that manages it.
        component: The component that manages it.
        kind: Kind of its client.
        id: What the system has named it.
        applied: Digest of the desired state that was applied last.
        sent: When the last call that creates it was sent.
    """

    operator: str = ""
    component: str = ""
    kind: str
    name: str
    target: str = ""
    key: str
    id: str = ""
    applied: str = ""
    sent: str = ""

    @property
    def identity(self) -> str:
        """The identity of the resource, under which the record is stored."""
        return f"{self.kind}/{self.name}@{self.target}" if self.target else f"{self.kind}/{self.name}"


_NAMES: Final = frozenset(field.name for field in fields(Record))


def records_of(status: Mapping[str, Any], operator: str = "") -> dict[str, Record]:
    """Return the records of a status by identity; what is no record, because another writer has changed it, is lost.

    Args:
        operator: The operator whose records are returned; empty for those of all.

    Example:
        >>> stored = {"Bucket/a": {"component": "web", "kind": "Bucket", "name": "a", "key": "1"}, "Bucket/b": "?"}
        >>> [*records_of({"external": stored})]
        ['Bucket/a']
    """
    found = status.get(FIELD)
    read = [_read(one) for one in found.values()] if isinstance(found, Mapping) else []
    found_records = [record for record in read if record is not None]
    return {one.identity: one for one in found_records if not operator or one.operator in {"", operator}}


def _read(stored: Any) -> Record | None:
    if not isinstance(stored, Mapping):
        return None
    known = {name: value for name, value in stored.items() if name in _NAMES and isinstance(value, str)}
    return Record(**known) if known.get("kind") and known.get("name") and known.get("key") else None


async def stage_record(context: ReconcileContext, identity: str, record: Record | None) -> None:
    """Set or remove a record in the status, which is written later."""
    # A write of the status that is under way would replace what is set meanwhile.
    async with context.intents:
        _stage(context, identity, record)


def _stage(context: ReconcileContext, identity: str, record: Record | None) -> None:
    found = context.status.get(FIELD)
    records = {**found} if isinstance(found, Mapping) else {}
    if record is None:
        records.pop(identity, None)
    else:
        before = records.get(identity)
        # A field that the server has filled with its default stays: leaving it out would be a change that it drops.
        known = before if isinstance(before, Mapping) else {}
        records[identity] = {name: value for name, value in asdict(record).items() if value or name in known}
    if records:
        context.status[FIELD] = records
    else:
        context.status.pop(FIELD, None)


async def store_record(context: ReconcileContext, record: Record) -> None:
    """Store a record in the status of the owner now, with those that others wait to store: one write for all of them.

    Raises:
        ReconcileError: If the definition of the owner does not hold it.
        ApiError: If the API server refuses the status, or its answer is lost.
    """
    context.unstored[record.identity] = record
    async with context.intents:
        # Those of other targets that were read at the same time come in this turn of the loop.
        await asyncio.sleep(0)
        if record.identity in context.unstored:
            batch = {**context.unstored}
            for identity, one in batch.items():
                _stage(context, identity, one if isinstance(one, Record) else None)
            await context.write_status()
            # After an error each of the others tries it itself.
            for identity in batch:
                del context.unstored[identity]
    if records_of(context.owner.get("status") or {}).get(record.identity) != record:
        raise ReconcileError(
            record.component,
            f"the API server does not store status.{FIELD} of {context.owned_by.key}, in which external resources are "
            f"recorded before they are created: {REMEDY}",
        )


def idempotency_key(uid: str, resource: ExternalResource[Any, Any]) -> str:
    """Return the key of an external resource of an owner, which can be computed again if its record is lost."""
    return str(uuid5(_NAMESPACE, json.dumps([uid, resource.client.kind, resource.name, resource.target])))


def digest_of(key: str, desired: object) -> str:
    """Return a digest of a desired state; it shows a change of values that cannot be observed, such as a password.

    Raises:
        HandlerError: If it has a value whose text is another one for each instance, or no form in JSON.

    Example:
        >>> digest_of("1", {"tags": {"b", "a"}, "size": 3}) == digest_of("1", {"size": 3, "tags": {"a", "b"}})
        True
    """
    try:
        text = json.dumps(_canonical(values_of(desired)), sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise HandlerError(
            "the desired state must be a model, a dataclass or a dict, with texts as keys and without cycles: "
            f"{type(error).__name__}"
        ) from error
    return sha256(f"{key}{text}".encode()).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    """Return a value as JSON that is the same in every process."""
    if isinstance(value, dict):
        return {_name(key): _canonical(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_canonical(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted((_canonical(one) for one in value), key=json.dumps)
    if value is None or isinstance(value, str | int | float):
        return value
    if not {"__str__", "__repr__"} & _defined(type(value)):
        raise HandlerError(
            f"the desired state has a value of type {type(value).__name__}, of which a change cannot be recognized: "
            "use a model, a dataclass or a dict"
        )
    reveal = getattr(value, "get_secret_value", None)
    return str(reveal() if reveal is not None else value)


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError("a key is no text")
    return key


def _defined(kind: type) -> set[str]:
    """Return what a type and its bases define, `object` aside."""
    return {name for base in kind.__mro__[:-1] for name in vars(base)}
