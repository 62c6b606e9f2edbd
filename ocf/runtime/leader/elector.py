"""`Elector`: a single attempt to take or renew a lease.

The rules are those of client-go's `tools/leaderelection`. Clocks of different hosts are never compared: the time that
is left of another process's lease is measured on the local clock, from when the lease was last seen to change. The
times in the lease are only informative.

A renewal is valid from before it was sent. So even if the response is lost, no process that saw the renewal waits for a
shorter time than this process holds the lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from ocf.cluster import Cluster
from ocf.concepts import Clock
from ocf.errors import AlreadyExistsError, ConflictError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.timestamps import format_micro_time
from ocf.runtime.leader.timing import Timing

__all__ = ["Elector"]

_MANAGER: Final = "leader-election"
_INTERNAL_ERROR: Final = 500
_NEVER: Final = timedelta(0)  # an elapsed time is never before it


@dataclass(slots=True)
class Elector:
    """A candidate for a lease.

    Args:
        identity: The identity of this process, which must be unique.
        clock: Measures how long other holders have not renewed the lease.
        labels: Labels of the lease.

    Attributes:
        valid_until: When this process stops holding the lease, as `elapsed` of the clock; in the past if it does not.
    """

    cluster: Cluster
    key: ObjectKey
    identity: str
    clock: Clock
    timing: Timing
    labels: Mapping[str, str] = field(default_factory=dict)
    valid_until: timedelta = _NEVER
    _seen: Manifest | None = field(default=None, init=False)
    _seen_at: timedelta = field(default=_NEVER, init=False)
    _read_at: timedelta = field(default=_NEVER, init=False)
    """When the last read began that showed the lease as it was last seen."""

    @property
    def holds(self) -> bool:
        """Whether this process holds the lease now."""
        return self.clock.elapsed() < self.valid_until

    @property
    def holder(self) -> str:
        """The holder of the lease when it was last read; empty if it was free."""
        return _holder(self._seen) if self._seen else ""

    @property
    def free_in(self) -> timedelta:
        """For how long the lease that was read last holds if it is not renewed; not positive once it has ended."""
        spec = (self._seen or {}).get("spec") or {}
        lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or self.timing.lease.total_seconds())
        return self._seen_at + lasts - self.clock.elapsed()

    async def attempt(self) -> bool:
        """Take the lease, or renew it.

        Returns:
            Whether this process holds the lease; False if another process holds it, or took it first.
        """
        started = self.clock.elapsed()
        if self._seen is not None and self.holds and await self._update(self._seen):
            self._read_at, self.valid_until = started, started + self.timing.renew_deadline
            return True
        try:
            live = await self.cluster.get(self.key)
        except NotFoundError:
            taken = await self._create()
        else:
            self._observe(live)
            if not self._is_free(live):
                self.valid_until = _NEVER
                return False
            taken = await self._update(live)
        if taken:
            self._read_at, self.valid_until = started, started + self.timing.renew_deadline
        return taken

    async def take(self, live: Manifest | None) -> bool:
        """Write this process into a lease that is free; return whether no other process wrote it first.

        Args:
            live: The lease as read; None if it did not exist.
        """
        return await (self._create() if live is None else self._update(live))

    def observe(self, live: Manifest, began: timedelta) -> None:
        """Take note of a lease that several processes hold together, under one identity, as a list shows it.

        Each renewal by one process is valid for all: one that the last read did not show was sent after that read.

        Args:
            began: When the list was sent, as `elapsed` of the clock.
        """
        if _holder(live) != self.identity:
            self.valid_until = _NEVER
        elif self._seen is not None and live.get("spec") != self._seen.get("spec"):
            self.valid_until = max(self.valid_until, self._read_at + self.timing.renew_deadline)
        self._observe(live)
        self._read_at = began

    @property
    def unchanged_for(self) -> timedelta:
        """For how long the lease has been seen without a change."""
        return self.clock.elapsed() - self._seen_at

    async def release(self) -> None:
        """Release the lease, if this process holds it, so that others need not wait until it expires."""
        if not self.holds:
            return
        live = await self.cluster.get(self.key)
        if _holder(live) == self.identity and self.holds:
            self.valid_until = _NEVER
            now = format_micro_time(self.clock.now())
            spec = {**live["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
            await self.cluster.update({**live, "spec": spec | {"acquireTime": now}}, field_manager=_MANAGER)

    def _observe(self, live: Manifest) -> None:
        if self._seen is None or live.get("spec") != self._seen.get("spec"):
            self._seen_at = self.clock.elapsed()
        self._seen = live

    def _is_free(self, live: Manifest) -> bool:
        return _holder(live) in {"", self.identity} or self.free_in <= timedelta(0)

    async def _create(self) -> bool:
        metadata: Manifest = {"name": self.key.name, "namespace": self.key.namespace}
        if self.labels:
            metadata["labels"] = {**self.labels}
        lease = {"apiVersion": self.key.api_version, "kind": self.key.kind, "metadata": metadata}
        try:
            live = await self.cluster.create({**lease, "spec": self._spec({})}, field_manager=_MANAGER)
        except AlreadyExistsError:
            return False
        self._observe(live)
        return True

    async def _update(self, seen: Manifest) -> bool:
        """Write this process into the lease as last read; return whether no other process wrote it first."""
        wanted = {**copy_json(seen), "spec": self._spec(seen.get("spec") or {})}
        if self.labels:
            wanted["metadata"]["labels"] = {**(wanted["metadata"].get("labels") or {}), **self.labels}
        try:
            live = await self.cluster.update(wanted, field_manager=_MANAGER)
        except (ConflictError, NotFoundError):
            return False
        except ServerError as error:
            # The API server creates a Lease by an update; that of one which was deleted fails because of its version.
            if error.code != _INTERNAL_ERROR:
                raise
            return False
        self._observe(live)
        return True

    def _spec(self, before: dict[str, Any]) -> dict[str, Any]:
        now = format_micro_time(self.clock.now())
        ours = before.get("holderIdentity") == self.identity
        transitions = before.get("leaseTransitions") or 0
        return {
            **before,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self.timing.lease.total_seconds()),
            "acquireTime": before.get("acquireTime", now) if ours else now,
            "renewTime": now,
            "leaseTransitions": transitions if ours or not before else transitions + 1,
        }


def _holder(lease: Manifest) -> str:
    return (lease.get("spec") or {}).get("holderIdentity") or ""
