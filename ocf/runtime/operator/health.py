"""Liveness and readiness checks of a process.

A restart does not help while the cluster cannot be reached. So a watch that has a problem makes the process not ready
at once, and unhealthy only after a problem that lasts longer than a usual outage.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from ocf.objects.manifest import split_api_version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ocf.cluster.cache import CachedCluster
    from ocf.concepts import Clock
    from ocf.runtime.admission.server import WebhookServer
    from ocf.runtime.monitoring.http_server import Check, Checks
    from ocf.runtime.operator.controller import Controller
    from ocf.runtime.operator.declared_kinds import DeclaredKinds
    from ocf.runtime.sharding.membership import Membership

__all__ = ["Health"]


class Health:
    """The checks of a process; `set_term` sets the caches and controllers that they inspect.

    Args:
        clock: Measures how long a problem has lasted.
        watch_failure_timeout: How long a watch may have a problem before the process is unhealthy.
        lease: Returns that a lost lease has not ended what ran under it; None if the process needs no lease.
    """

    def __init__(self, clock: Clock, watch_failure_timeout: timedelta, lease: Check | None = None) -> None:
        self._clock = clock
        self._watch_failure_timeout = watch_failure_timeout
        self._caches: Sequence[CachedCluster] = ()
        self._controllers: Sequence[Controller] = ()
        self._waiting: tuple[Sequence[CachedCluster], Sequence[DeclaredKinds]] = (), ()
        self._since: timedelta | None = None
        self._lease = lease
        self._webhooks: WebhookServer | None = None
        self._converted: Collection[tuple[str, str]] = ()
        self._starts: dict[str, str] = {}
        self._shards: Membership | None = None

    def expect(self, part: str, problem: str) -> None:
        """Make the process unready until a part of it has started, `webhooks`; called before the checks are served."""
        self._starts[part] = problem

    def has_started(self, part: str) -> None:
        """Record that a part of the process has started."""
        self._starts[part] = ""

    def set_webhooks(self, webhooks: WebhookServer, converted: Collection[tuple[str, str]]) -> None:
        """Set the server of the webhooks."""
        self._webhooks, self._converted = webhooks, converted
        self.has_started("webhooks")

    def set_shards(self, shards: Membership) -> None:
        """Set the part of a process that shares the owners with others."""
        self._shards = shards

    def set_waiting(self, caches: Sequence[CachedCluster], declared: Sequence[DeclaredKinds]) -> None:
        """Set the caches that are filled while the process waits for the lease, and the kinds that they must have."""
        self._waiting = caches, declared

    def set_term(self, caches: Sequence[CachedCluster], controllers: Sequence[Controller] = ()) -> None:
        """Set the caches and the controllers of the current term as the leader; none between terms."""
        self._caches, self._controllers, self._since = caches, controllers, None

    @property
    def live(self) -> Checks:
        """The checks of `/healthz`."""
        own = {"reconciles": self.reconciles, "watches": self._lasting(self.watches)}
        lease = {"lease": self._lease} if self._lease is not None else {}
        webhooks = {"webhooks": self._live_webhooks} if "webhooks" in self._starts else {}
        return {**own, **lease, **webhooks}

    @property
    def ready(self) -> Checks:
        """The checks of `/readyz`.

        A Service has no endpoint while the pods are not ready, so what cannot be read before the webhooks of the
        process are called must not keep it from being ready: the kinds that it converts do not count.
        """
        own: Checks = {
            "reconciles": self.reconciles,
            "owners": lambda: self.owners(without=self._converted),
            "watches": lambda: self.watches(without=self._converted),
        }
        shards = {"shards": self._shards.ready} if self._shards is not None else {}
        return {**own, **shards, **{part: partial(self._started, part) for part in self._starts}}

    @property
    def notes(self) -> Checks:
        """What `/readyz?verbose` says of a check that passes."""
        return {"shards": self._shards.describe} if self._shards is not None else {}

    def _live_webhooks(self) -> str:
        return self._webhooks.live() if self._webhooks is not None else ""

    def _started(self, part: str) -> str:
        if part == "webhooks" and self._webhooks is not None:
            return self._webhooks.problem()
        return self._starts[part]

    def reconciles(self) -> str:
        """Return which reconciles still run after they were cancelled."""
        return "; ".join(filter(None, (each.live() for each in self._controllers)))

    def watches(self, *, without: Collection[tuple[str, str]] = ()) -> str:
        """Return the problems of declared watches; a kind that the cluster does not have is not a problem.

        Other watches are of what owners make the operator read. Their problems are logged, shown by the metrics, and
        affect the owners that need them: what one owner names must not take the process out of service for all.
        """
        caches, declared = self._watched
        failing = (
            state
            for cache in caches
            for state in cache.failing
            if state.problem
            and not state.missing
            and (split_api_version(state.api_version)[0], state.kind) not in without
        )
        return "; ".join(state.problem for state in failing if any(each.include(state) for each in declared))

    def owners(self, *, without: Collection[tuple[str, str]] = ()) -> str:
        """Return which kinds of owners, and other declared kinds, are not in the cache yet."""
        return "; ".join(sorted({each.ready(without=without) for each in self._watched[1]} - {""}))

    @property
    def _watched(self) -> tuple[Sequence[CachedCluster], Sequence[DeclaredKinds]]:
        """The caches of the term, or those of a process that waits, and the kinds that they must have."""
        return (self._caches, [each.declared for each in self._controllers]) if self._controllers else self._waiting

    def _lasting(self, check: Callable[[], str]) -> Check:
        """Return a check that fails once another check has failed for `watch_failure_timeout`."""

        def lasting() -> str:
            problem = check()
            if not problem:
                self._since = None
                return ""
            if self._since is None:
                self._since = self._clock.elapsed()
            lasted = self._clock.elapsed() - self._since
            return f"for {lasted}: {problem}" if lasted >= self._watch_failure_timeout else ""

        return lasting
