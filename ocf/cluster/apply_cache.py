"""Bounded cache of apply results, shared by all reconciles of an operator.

The API server may store another value than it was sent: an admission webhook rewrites it, or the server normalizes it.
An operator that only compares what it sent with what is stored would write again in every reconcile. So the `Cluster`
keeps, for each object and field manager, which sent value was stored as which other value. The cache is bounded;
losing it (a restart) costs one write for each affected object.

It also keeps when an object was last written, with which desired state, and how often each field of it was reverted
since then, to detect another controller that insists on other values. Losing that costs a few writes before the fight
is detected again.

It keeps what was sent of a status that the API server stores otherwise or not at all: conditions that the definition of
the owner cannot hold are known only here. Losing that costs one write for each affected owner, and their grace periods
begin anew. What the definition of a kind cannot hold, and why a status was refused, is kept to report it once.

Results of requests as another user are kept apart: admission may store another value for each user, and what was
accepted from one may be refused to the other.

Finally it keeps, in a few bytes for each object, in which version and for which desired state the object was last in
sync: as long as both are the same, the object need not be compared again. Losing that costs one comparison.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from ocf.objects import ObjectKey

__all__ = ["ApplyCache", "LastWrite", "Rewrites", "StatusLimits"]

SharedT = TypeVar("SharedT")

Rewrites: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Field path to (value sent, value stored)."""

_NOTHING: Final[Rewrites] = {}


class Reverts(NamedTuple):
    """Reverts of one field.

    Attributes:
        times: How often in a row the field, or others with it, were reverted again soon after they were written.
        at: The time of the last write that restored it, by `Clock.elapsed`.
    """

    times: int
    at: timedelta


@dataclass(frozen=True, slots=True)
class LastWrite:
    """The last write of an object by one field manager.

    Args:
        desired_hash: Hash of the desired state that was written.
        at: The time of the write, by `Clock.elapsed`.
        version: The `resourceVersion` of the object after the write.
        reverts: The reverts of this desired state, by field.
        noticed: The fields of which the revert of this write was already detected.
        budgets: When each budget of writes that restore something is full again, by `Clock.elapsed`.
        owner: The owner that it was written for, for messages about another owner; None if there is none.
        sent_hash: Hash of what was sent, without the unstored fields, if `desired_hash` is of what was stored.
        unstored: The fields of it that the API server did not store, each as the keys of its path.
    """

    desired_hash: bytes
    at: timedelta
    version: str = ""
    reverts: Mapping[str, Reverts] = field(default_factory=dict)
    noticed: frozenset[str] = frozenset()
    budgets: Mapping[str, timedelta] = field(default_factory=dict)
    owner: ObjectKey | None = None
    sent_hash: bytes = b""
    unstored: frozenset[tuple[str, ...]] = frozenset()


@dataclass(frozen=True, slots=True)
class StatusLimits:
    """What the definition of a kind cannot hold of the status that an operator writes, as far as it is known.

    Args:
        in_object: Whether the status is a part of the object, because there is no subresource for it.
        dropped: The fields that are not stored, each as the keys of its path; no keys for the whole status.
        required: The fields without which no status is stored, and which the operator does not set.
        filled: The fields that each condition must have beside those of `metav1.Condition`.
    """

    in_object: bool = False
    dropped: frozenset[tuple[str, ...]] = frozenset()
    required: frozenset[tuple[str, ...]] = frozenset()
    filled: frozenset[str] = frozenset()


_NO_LIMITS: Final = StatusLimits()


class _Claim(NamedTuple):
    """The operator that sets a condition, and whether it assigned the condition in a list with those of others."""

    operator: str
    assigned: bool


@dataclass(slots=True)
class ApplyCache:
    """Results of the operator's writes, by object and field manager.

    Args:
        limit: The maximum number of objects; the least recently used one is dropped first.

    Example:
        >>> cache = ApplyCache(limit=1)
        >>> cache.remember("uid-1", "manager", {"spec.image": ("web", "mirror/web")})
        >>> cache.rewrites("uid-1", "manager")["spec.image"]
        ('web', 'mirror/web')
        >>> cache.remember("uid-2", "manager", {"spec.image": ("web", "mirror/web")})
        >>> dict(cache.rewrites("uid-1", "manager"))
        {}
    """

    limit: int = 10_000
    _in_sync: OrderedDict[tuple[str, str], tuple[str, bytes]] = field(
        default_factory=OrderedDict, init=False, repr=False
    )
    _table: OrderedDict[tuple[str, str], Rewrites] = field(default_factory=OrderedDict, init=False, repr=False)
    _writes: OrderedDict[tuple[ObjectKey, str], LastWrite] = field(default_factory=OrderedDict, init=False, repr=False)
    _limits: dict[tuple[str, str, str], StatusLimits] = field(default_factory=dict, init=False, repr=False)
    _refusals: OrderedDict[tuple[str, str], str] = field(default_factory=OrderedDict, init=False, repr=False)
    _reserved: Mapping[tuple[str, str, str], str] = field(default_factory=dict, init=False, repr=False)
    _conditions: OrderedDict[str, dict[str, _Claim]] = field(default_factory=OrderedDict, init=False, repr=False)
    _shared: dict[type, Any] = field(default_factory=dict, init=False, repr=False)
    _user: str = field(default="", init=False)
    """Key of the user as whom the writes are sent; empty for the user of the process."""

    def acting_as(self, user: str) -> "ApplyCache":
        """Return the results of the writes as another user, in the same memory and within the same limit.

        Args:
            user: Key of the user, `Impersonation.key`.
        """
        view = copy(self)
        view._user = user  # noqa: SLF001 (of this class)
        return view

    def _by(self, manager: str) -> str:
        """Return the key of a field manager; no name of one contains a line break."""
        return f"{manager}\n{self._user}" if self._user else manager

    def shared(self, kind: type[SharedT]) -> SharedT:
        """Return the one object of a class that all reconciles share, in the memory of the process.

        Args:
            kind: The class; it is called without arguments the first time.
        """
        if kind not in self._shared:
            self._shared[kind] = kind()
        found: SharedT = self._shared[kind]
        return found

    def rewrites(self, uid: str, manager: str) -> Rewrites:
        """Return the fields of an object that the server stored differently.

        Args:
            uid: The object's uid.
            manager: The field manager that wrote.

        Returns:
            The rewritten fields; empty if none are known.
        """
        manager = self._by(manager)
        known = self._table.get((uid, manager))
        if known is None:
            return _NOTHING
        self._table.move_to_end((uid, manager))
        return known

    def remember(self, uid: str, manager: str, rewrites: Rewrites) -> None:
        """Replace the rewritten fields of an object.

        Args:
            uid: The object's uid.
            manager: The field manager that wrote.
            rewrites: The fields that were stored differently; empty removes the object from the cache.
        """
        manager = self._by(manager)
        self._table.pop((uid, manager), None)
        if rewrites:
            self._table[uid, manager] = rewrites
            while len(self._table) > self.limit:
                self._table.popitem(last=False)

    def is_in_sync(self, uid: str, manager: str, version: str, desired_hash: bytes) -> bool:
        """Return whether an object in this version is known to be in sync with this desired state.

        Args:
            uid: The object's uid.
            manager: The field manager that would write.
            version: Its resourceVersion.
            desired_hash: Hash of the desired state.
        """
        return self._in_sync.get((uid, self._by(manager))) == (version, desired_hash)

    def mark_in_sync(self, uid: str, manager: str, version: str, desired_hash: bytes) -> None:
        """Record that an object is in sync.

        Args:
            uid: The object's uid.
            manager: The field manager that would write.
            version: Its resourceVersion.
            desired_hash: Hash of the desired state.
        """
        manager = self._by(manager)
        self._in_sync[uid, manager] = (version, desired_hash)
        self._in_sync.move_to_end((uid, manager))
        while len(self._in_sync) > self.limit:
            self._in_sync.popitem(last=False)

    def last_write(self, key: ObjectKey, manager: str) -> LastWrite | None:
        """Return the last write of an object, whether the object still exists or not; None if it is not known.

        It is that of all users: a field manager that writes as another one replaces its own fields, and no other client
        has reverted them.

        Args:
            key: The object.
            manager: The field manager that wrote.
        """
        return self._writes.get((key, manager))

    def note_write(self, key: ObjectKey, manager: str, write: LastWrite) -> None:
        """Record the last write of an object.

        Args:
            key: The object.
            manager: The field manager that wrote.
        """
        self._writes[key, manager] = write
        self._writes.move_to_end((key, manager))
        while len(self._writes) > self.limit:
            self._writes.popitem(last=False)

    def forget_write(self, key: ObjectKey, manager: str) -> None:
        """Drop the last write of an object, because the operator deleted the object itself.

        Args:
            key: The object.
            manager: The field manager that wrote.
        """
        self._writes.pop((key, manager), None)

    def status_limits(self, operator: str, api_version: str, kind: str) -> StatusLimits:
        """Return what the definition of a kind cannot hold of the status that an operator writes.

        Args:
            operator: Name of the operator.
        """
        return self._limits.get((operator, api_version, kind), _NO_LIMITS)

    def note_status_limits(self, operator: str, api_version: str, kind: str, limits: StatusLimits) -> None:
        """Replace what is known of the definition of a kind; there are as many entries as kinds of owners.

        Args:
            operator: Name of the operator.
        """
        self._limits[operator, api_version, kind] = limits

    def is_new_refusal(self, uid: str, manager: str, reason: str) -> bool:
        """Record why the API server has refused an object's status; return whether the last reason was another one.

        Args:
            uid: The object's uid.
            manager: The field manager that wrote.
            reason: The reason; empty if the status was accepted.
        """
        before = self._refusals.pop((uid, manager), "")
        if reason:
            self._refusals[uid, manager] = reason
            while len(self._refusals) > self.limit:
                self._refusals.popitem(last=False)
        return reason != before

    def reserve_conditions(self, reserved: Mapping[tuple[str, str, str], str]) -> None:
        """Replace the conditions that operators of the process declare, so that no other one sets them meanwhile.

        Args:
            reserved: Group and kind of the owners, and type of the condition, to the name of the operator.
        """
        self._reserved = reserved

    def claim_condition(self, key: ObjectKey, uid: str, operator: str, name: str, *, assigned: bool = False) -> str:
        """Record that an operator sets a condition of an object, unless another one of the process sets or declares it.

        A type that begins with the name of an operator and a slash is always its own.

        Args:
            key: The object.
            uid: The object's uid.
            name: The type of the condition.
            assigned: Whether it was assigned in the list of all conditions, and not set by its type.

        Returns:
            The name of the other operator; empty if there is none.
        """
        declared = self._reserved.get((*key.group_kind, name), operator)
        if declared != operator:
            return declared
        known = self._conditions.setdefault(uid, {})
        self._conditions.move_to_end(uid)
        while len(self._conditions) > self.limit:
            self._conditions.popitem(last=False)
        other = known[name].operator if name in known else operator
        if other != operator and not name.startswith(f"{operator}/"):
            return other
        known[name] = _Claim(operator, assigned)
        return ""

    def release_conditions(self, uid: str, operator: str, *, kept: Collection[str], assigned: Collection[str]) -> None:
        """Drop the conditions of an object that an operator has set before and does not set any more.

        A condition that was assigned in the list is kept for as long as the operator assigns it again.

        Args:
            uid: The object's uid.
            kept: The types of the conditions that it sets.
            assigned: The types of the conditions that it has assigned, also with the values that are stored.
        """
        known = self._conditions.get(uid, {})
        ours = [name for name, one in known.items() if one.operator == operator and name not in kept]
        for name in ours:
            if not known[name].assigned or name not in assigned:
                del known[name]
