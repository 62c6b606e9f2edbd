"""Whether an operator lives and is ready, as far as it knows itself.

A cluster that cannot be reached is no reason to restart: nothing would be better afterwards. So a watch that has a
problem makes the process not ready at once, and unhealthy only once that has gone on for longer than any outage that
mends itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ocf.cluster.cache import CachedCluster
    from ocf.concepts import Clock
    from ocf.runtime.monitoring.http_server import Check, Checks
    from ocf.runtime.operator.controller import Controller

__all__ = ["Health"]


class Health:
    """The checks of a process; what they look at comes and goes with each term as a leader.

    Args:
        clock: Measures how long a problem has lasted.
        patience: How long a watch may have a problem before the process is unhealthy.
    """

    def __init__(self, clock: Clock, patience: timedelta) -> None:
        self._clock = clock
        self._patience = patience
        self._cache: CachedCluster | None = None
        self._controllers: Sequence[Controller] = ()
        self._since: timedelta | None = None
        self.webhooks: Check | None = None
        """Says why webhooks cannot be asked; None where none are served."""

    def look_at(self, cache: CachedCluster | None, controllers: Sequence[Controller] = ()) -> None:
        """Look at the parts of a term; at nothing while there is none."""
        self._cache, self._controllers, self._since = cache, controllers, None

    @property
    def live(self) -> Checks:
        """What `/healthz` asks."""
        return {"passes": self.passes, "watches": self._lasting(self.watches)}

    @property
    def ready(self) -> Checks:
        """What `/readyz` asks."""
        own = {"passes": self.passes, "owners": self.owners, "watches": self.watches}
        return own if self.webhooks is None else {**own, "webhooks": self.webhooks}

    def passes(self) -> str:
        """Name the passes that go on after they were cancelled."""
        return "; ".join(filter(None, (each.live() for each in self._controllers)))

    def watches(self) -> str:
        """Name the watches that have a problem; a kind that the cluster does not know is none until it is asked for."""
        if self._cache is None:
            return ""
        return "; ".join(state.problem for state in self._cache.informers if state.problem and not state.missing)

    def owners(self) -> str:
        """Name the kinds of owners that are not read yet."""
        return "; ".join(sorted({each.ready() for each in self._controllers} - {""}))

    def _lasting(self, check: Callable[[], str]) -> Check:
        """Make a check of another one, which fails once that has failed for longer than patience lasts."""

        def lasting() -> str:
            problem = check()
            if not problem:
                self._since = None
                return ""
            if self._since is None:
                self._since = self._clock.elapsed()
            lasted = self._clock.elapsed() - self._since
            return f"for {lasted}: {problem}" if lasted >= self._patience else ""

        return lasting
