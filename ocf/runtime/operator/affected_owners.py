"""The owners that a change of an object affects: by its controller reference, by a watch, or because they read it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster.cache.serialization import unpack
from ocf.cluster.protocol import EventType
from ocf.component.author_code import is_cancelled
from ocf.component.pause import find_pause, pause_path
from ocf.objects import ObjectKey
from ocf.runtime.operator.predicates import needs_reconcile
from ocf.runtime.operator.watches import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.cluster.cache.subscriptions import CacheChange
    from ocf.runtime.operator.observed_versions import ObservationIndex, RunningReconcile
    from ocf.runtime.operator.operator import Operator
    from ocf.runtime.operator.owners import Owners
    from ocf.runtime.operator.watches import NamedOwners

__all__ = ["AffectedOwners"]

_log: Final = logging.getLogger(__name__)


class AffectedOwners:
    """Finds the owners of one operator that a change affects.

    Args:
        index: What the last reconcile of each owner has read.
        runs: The running reconciles.
    """

    def __init__(
        self,
        operator: Operator[Any],
        owners: Owners,
        index: ObservationIndex,
        runs: Mapping[ObjectKey, RunningReconcile],
    ) -> None:
        self._operator = operator
        self._owners = owners
        self._index = index
        self._runs = runs
        # These are read for every change of the cache.
        self._owner_kind: Final = operator.owner_kind
        self._owner_group_kind: Final = operator.owner_group_kind
        self._pause_path: Final = pause_path(operator.pause_field)
        self._mapped_at_once: Final = [one for one in operator.kind_watches if one.maps_at_once]

    def by(self, key: ObjectKey, change: CacheChange) -> Iterable[ObjectKey]:
        """Return the owners that an object has affected before a change, or affects now.

        Of a change that needs no reconcile, those that it affects in one of both states only: what selects the object
        has changed for them.
        """
        states = [state for state in (change.old, change.entry) if state is not None]
        if not self.is_needless(key, change):
            return self._in_any(key, states)
        before, after = ([*self._in_any(key, [state])] for state in states)
        return [owner for owner in (*before, *after) if (owner in before) != (owner in after)]

    def is_needless(self, key: ObjectKey, change: CacheChange) -> bool:
        """Return whether the operator's predicate of the kind says that a change needs no reconcile."""
        predicate = self._operator.triggers.get((key.api_version, key.kind))
        if predicate is None or change.type is not EventType.MODIFIED or change.old is None:
            return False
        old, new = unpack(change.old), unpack(change.entry)
        if (key.api_version, key.kind) == self._owner_kind:
            pauses = [find_pause(state, self._operator.name, self._pause_path) for state in (old, new)]
            if pauses[0] != pauses[1] or self._owners.concerns(change.old) != self._owners.concerns(change.entry):
                return False
        try:
            return not needs_reconcile(predicate, old, new)
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled(error):
                raise
            # An error in the author's function must not keep a change away.
            text = "%s: the predicate of %s failed for %s, which is reconciled"
            _log.exception(text, self._operator.name, key.kind, key)
            return False

    def named(self, names: NamedOwners) -> Iterator[ObjectKey]:
        """Yield the owners that a watch names.

        All owners are those that were reconciled, or are being reconciled: any other one waits for its first reconcile.
        """
        if names is ALL:
            yield from dict.fromkeys((*self._index.owners, *self._runs))
        else:
            for namespace, name in names:
                yield from self._existing(namespace, name)

    def depend_on(self, key: ObjectKey, state: CacheEntry | None) -> bool:
        """Return whether a change of an object affects an owner.

        Args:
            state: The object; None if it does not exist.
        """
        return any(True for _ in self._in_any(key, [state] if state is not None else []))

    def _in_any(self, key: ObjectKey, states: Sequence[CacheEntry]) -> Iterator[ObjectKey]:
        """Yield the owners that an object affects in any of some states."""
        if (key.api_version, key.kind) == self._owner_kind:
            yield key
        for state in states:
            yield from self._referred(key, state)
        yield from self._index.dependents(key, states)
        yield from (owner for owner, run_state in self._runs.items() if run_state.observed.depends_on(key, states))

    def _referred(self, key: ObjectKey, state: CacheEntry) -> Iterator[ObjectKey]:
        """Yield the owners that a state of an object refers to: its controller, and what the watches map it to."""
        controller = state.controller
        if controller is not None and (controller.group, controller.kind) == self._owner_group_kind:
            yield from self._existing(key.namespace, controller.name, controller.uid)
        for watch in self._mapped_at_once:
            if (watch.api_version, watch.kind) == (key.api_version, key.kind):
                try:
                    yield from [*self.named(watch.owners_of(unpack(state)))]
                except (Exception, asyncio.CancelledError) as error:
                    if is_cancelled(error):
                        raise
                    # The other state and the other watches may name owners.
                    _log.exception("%s: a watch could not map %s to owners", self._operator.name, key)

    def _existing(self, namespace: str, name: str, uid: str | None = None) -> Iterator[ObjectKey]:
        """Yield the owner of a name, in a namespace or cluster-scoped as its kind is; none if it does not exist.

        The key is that of the owner in the cache, and never built from an object in a namespace: a reconcile of a key
        that names no owner would report a living one as deleted. An owner that the cache does not hold yet is
        reconciled when it arrives.

        Args:
            uid: The uid that the owner must have; None for any.
        """
        for home in dict.fromkeys((namespace, "")):
            key = ObjectKey(*self._owner_kind, name, home)
            found = self._owners.cache.entry(key)
            if found is not None and uid in {None, found.uid}:
                yield key
