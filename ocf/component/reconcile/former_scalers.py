"""Scalers that the component does not manage any more: each goes before its target gets another scaler, or none.

With two autoscalers of one target, the HPA controller scales by neither, and KEDA rejects the second ScaledObject. Both
happen when a scaler is renamed, replaced by one of another kind, or pointed at the target of another one. One that a
finalizer holds, as KEDA's does, is waited for.

One with a successor is deleted right before that is applied, and only if the API server would accept the successor, so
that an invalid one leaves the target its scaler. One without a successor is deleted before its target is applied, which
may set the count itself again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ocf.cluster import Propagation
from ocf.component.apply.deleter import OwnedObjectDeleter
from ocf.component.model.resource_options import Lifecycle
from ocf.component.status.results import Action
from ocf.objects import Manifest, ObjectKey
from ocf.objects.paths import get_field

if TYPE_CHECKING:
    from ocf.component.apply.applier import Applier
    from ocf.component.model.registration import Registration
    from ocf.component.reconcile.prune import Pruner
    from ocf.component.reconcile.run import ReconcileRun

__all__ = ["FormerScalers"]


class _Former(NamedTuple):
    """A live scaler that is deleted.

    Args:
        identity: Its identity, as in outcomes.
        entry: Its resource, which is registered for deletion; None for one that is not registered.
    """

    identity: str
    live: Manifest
    entry: Registration | None


class FormerScalers:
    """The scalers that a component does not manage any more, in one reconcile.

    Args:
        work: Deletes them, and collects outcomes and errors.
        entries: All resources of the component.
        prunes: Whether the component deletes what it does not register any more.
    """

    def __init__(self, work: Pruner, run: ReconcileRun, entries: Sequence[Registration], *, prunes: bool) -> None:
        self._work = work
        self._run = run
        self._entries = entries
        self._prunes = prunes

    async def delete_without_successor(self) -> None:
        """Delete those that are registered for deletion, and whose target gets no other scaler."""
        managed = {entry.identity for entry in self._entries if entry.options.lifecycle is Lifecycle.MANAGED}
        targets = self._run.scaling.targets
        taken = {target.key.unversioned for name, target in targets.items() if name in managed}
        for entry in self._flagged():
            live = await self._run.applier(entry).get()
            if live is None:
                self._work.note_absent(entry)
            elif await self._target(entry, live) not in taken:
                await self._work.delete_early(entry.identity, live, entry)

    async def delete_before(self, entry: Registration, applier: Applier, live: Manifest | None) -> str:
        """Delete the former scalers of the target of a scaler, unless it scales that already.

        Args:
            live: The object of the scaler.

        Returns:
            What is waited for before the scaler is applied; empty if nothing is.

        Raises:
            ReconcileError: If the API server would reject the scaler; then nothing is deleted.
        """
        target = self._run.scaling.targets.get(entry.identity)
        if target is None or (live is not None and await self._target(entry, live) == target.key.unversioned):
            return ""
        found = [former async for former in self._of(entry, target.key)]
        if found and live is None:
            await applier.require_acceptance()
        remaining = []
        for former in found:
            action = await self._work.delete_early(former.identity, former.live, former.entry)
            # The garbage collector removes the finalizers of the other policies.
            in_background = self._work.propagation_of(former.entry) is Propagation.BACKGROUND
            held = not in_background or get_field(former.live, ("metadata", "finalizers"))
            if (action is Action.DELETED and held) or action in {Action.UNCHANGED, None}:
                remaining.append(former.identity)
        return f"waiting for {', '.join(remaining)}, which scales {target.key}, to be deleted" if remaining else ""

    async def _of(self, entry: Registration, target: ObjectKey) -> AsyncIterator[_Former]:
        """Yield the former scalers of a target: of any kind if they are registered for deletion, else of the same."""
        for other in self._flagged():
            flagged = await self._run.applier(other).get()
            if flagged is not None and await self._target(other, flagged) == target.unversioned:
                yield _Former(other.identity, flagged, other)
        if not self._prunes:
            return
        registered = {other.unversioned for other in self._entries}
        for live in await self._unregistered(entry):
            key = ObjectKey.of(live)
            if key.unversioned not in registered and await self._target(entry, live) == target.unversioned:
                yield _Former(str(key), live, None)

    async def _unregistered(self, entry: Registration) -> list[Manifest]:
        key = entry.key
        deleter = OwnedObjectDeleter(self._run.component, self._run.context)
        return await deleter.applied(key.api_version, key.kind, key.namespace)

    def _flagged(self) -> Iterator[Registration]:
        """Yield the scalers that are registered for deletion, unless they are gone.

        Of one that belongs to another writer, only the fields are released, with those of all other resources.
        """
        for entry in self._entries:
            is_deleted = entry.scaler is not None and entry.options.lifecycle is Lifecycle.DELETED
            if is_deleted and not entry.options.updates_only and not self._work.is_done(entry):
                yield entry

    async def _target(self, entry: Registration, live: Manifest) -> tuple[str, str, str, str] | None:
        """Return the target of a live scaler of the kind of a resource."""
        if entry.scaler is None:
            return None
        target = await self._run.ask("find scale target of", entry, entry.scaler.scale_target, live)
        return None if target is None else target.key.unversioned
