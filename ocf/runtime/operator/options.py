"""How a process runs its operators: what is served, counted and told besides the work itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from ocf.concepts import Clock, SystemClock
from ocf.runtime.leader import Timing
from ocf.runtime.rbac.rules import lease_rules

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ocf.cluster.cache import CacheTiming
    from ocf.runtime.operator.operator import Operator
    from ocf.runtime.operator.webhook_options import WebhookOptions
    from ocf.runtime.rbac import PolicyRule

__all__ = ["Lease", "Listen", "ManagerOptions"]

_TIMING: Final = Timing()
# Kubernetes kills a process 30 seconds after it has asked it to end; the lease is to be given back within them.
_FAREWELL: Final = timedelta(seconds=20)
_PATIENCE: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Lease:
    """The lease by which processes agree who works.

    Args:
        name: Its name, one for each operator.
        namespace: Where it is.
        identity: Who we are, which no other process may be; empty makes one up.
        timing: How long things last.
    """

    name: str
    namespace: str
    identity: str = ""
    timing: Timing = _TIMING


@dataclass(frozen=True, slots=True)
class Listen:
    """Where metrics and probes are served.

    Args:
        port: The port; 0 takes any that is free.
        host: The address.
    """

    port: int = 8080
    host: str = "0.0.0.0"  # noqa: S104 (the kubelet and Prometheus come from outside of the pod)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerOptions:
    """How a process runs its operators.

    Args:
        namespaces: Where the operators work; empty for everywhere.
        lease: What a leader holds; None works without an election.
        listen: Where probes are served, and metrics; None serves nothing.
        admission: How the operators' webhooks are served; None leaves them to somebody else.
        metrics: Whether anything is counted.
        metrics_prefix: What the name of the condition metric starts with.
        registry: Where metrics are registered; None makes one.
        events: Whether events are posted.
        farewell: How long passes that are under way may go on once the process is told to stop.
        patience: How long a watch may have a problem before `/healthz` says so; `/readyz` says so at once.
        max_objects: How many objects of one kind may be held in memory; None for any number.
        pace: How often the cache asks the cluster, by which clock; None for the usual one.
        clock: Tells what time it is.
        chance: Draws a number from 0 up to 1.
    """

    namespaces: Sequence[str] = ()
    lease: Lease | None = None
    listen: Listen | None = Listen()
    admission: WebhookOptions | None = None
    metrics: bool = True
    metrics_prefix: str = "ocf"
    registry: CollectorRegistry | None = None
    events: bool = True
    shutdown_timeout: timedelta = _FAREWELL
    watch_failure_timeout: timedelta = _PATIENCE
    max_objects: int | None = None
    cache_timing: CacheTiming | None = None
    clock: Clock = field(default_factory=SystemClock)
    random: Callable[[], float] = random.random

    def policy_rules(self, *operators: Operator[Any]) -> frozenset[PolicyRule]:
        """Return what a process needs of the cluster besides what its operators need: a lease, and certificates.

        Args:
            operators: The operators of the process.
        """
        needed: frozenset[PolicyRule] = frozenset()
        if self.lease is not None:
            needed |= lease_rules(self.lease.name, self.lease.namespace)
        if self.admission is not None:
            needed |= self.admission.policy_rules(*operators)
        return needed
