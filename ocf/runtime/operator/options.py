"""Options of a manager: namespaces, leader election, probes, metrics, webhooks, events and timing."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from prometheus_client import CollectorRegistry

from ocf.cluster import Cluster
from ocf.cluster.cache import CacheTiming
from ocf.concepts import Clock, SystemClock
from ocf.concepts.tracing import Tracer
from ocf.errors import ConfigError
from ocf.objects import ObjectKey
from ocf.runtime.leader import Timing
from ocf.runtime.leader.election import new_identity
from ocf.runtime.operator.operator import Operator
from ocf.runtime.operator.webhook_options import WebhookOptions
from ocf.runtime.page import PageOptions
from ocf.runtime.rbac import PolicyRule
from ocf.runtime.rbac.rules import REVIEW_RULES, lease_rules
from ocf.runtime.sharding import Sharding
from ocf.runtime.sharding.membership import Membership

__all__ = ["Lease", "Listen", "ManagerOptions", "membership"]

_TIMING: Final = Timing()
# The kubelet kills a container 30 seconds after SIGTERM; the lease must be released before that.
_SHUTDOWN_TIMEOUT: Final = timedelta(seconds=20)
# As in controller-runtime (`CacheSyncTimeout`).
_CACHE_SYNC_TIMEOUT: Final = timedelta(minutes=2)
_WATCH_FAILURE_TIMEOUT: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Lease:
    """The lease that elects the leader among the processes of an operator.

    Args:
        name: Name of the lease; operators must not share one.
        namespace: Namespace of the lease.
        identity: Identity of this process, unique among all processes; generated if empty.
        timing: Duration of the lease, renew deadline and retry period.
    """

    name: str
    namespace: str
    identity: str = ""
    timing: Timing = _TIMING


@dataclass(frozen=True, slots=True)
class Listen:
    """Address on which metrics and probes are served.

    Args:
        port: The port; 0 takes any free port.
        host: The address.
    """

    port: int = 8080
    host: str = "0.0.0.0"  # noqa: S104 (the kubelet and Prometheus come from outside of the pod)


def membership(
    cluster: Cluster, lease: Lease, sharding: Sharding, clock: Clock, random: Callable[[], float] = random.random
) -> Membership:
    """Return the part of a process among the replicas that hold a lease together."""
    return Membership(
        cluster,
        ObjectKey("coordination.k8s.io/v1", "Lease", lease.name, lease.namespace),
        lease.identity or new_identity(),
        sharding=sharding,
        timing=lease.timing,
        clock=clock,
        random=random,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerOptions:
    """Options of a manager, the process that runs operators.

    Args:
        namespaces: Namespaces that the operators watch; empty for all.
        lease: The lease of the leader election; None runs without an election.
        sharding: How the replicas divide the owners, so that all of them are at work; they hold the lease together
            then. None has one leader reconcile all owners.
        warm_standby: Whether a process that waits for the lease fills its caches and follows them, so that it begins to
            reconcile as soon as it leads. If not, it saves the memory, and a new leader first lists what it needs.
        listen: Address of probes and metrics; None serves neither.
        admission: How the operators' webhooks are served; None if this process does not serve them.
        page: How the page of owners and reconciles is served; None does not serve it, and records nothing for it.
        metrics: Whether metrics are collected.
        metrics_prefix: Prefix of the name of the condition metric.
        registry: Registry of the metrics; None creates one.
        events: Whether events are posted.
        shutdown_timeout: How long running reconciles may continue after a stop was requested.
        cache_sync_timeout: How long a kind that an operator declares may be missing, or its first list fail or take,
            before the process ends with an error; `Operator.late_kinds` may be missing for any time.
        watch_failure_timeout: How long a watch may have a problem before `/healthz` fails; `/readyz` fails at once.
        max_objects: Maximum number of objects of one kind in the cache; None for no limit.
        cache_timing: Clock, retries and relist interval of the cache; None for the defaults.
        clock: The clock of reconciles, events and leader election.
        random: Returns a random number in [0, 1), for jitter.
        tracer: Records the spans of reconciles, requests and webhooks, `ocf.runtime.tracing.OpenTelemetryTracer`; None
            records none.

    Raises:
        ConfigError: If `sharding` is set without a lease.
    """

    namespaces: Sequence[str] = ()
    lease: Lease | None = None
    sharding: Sharding | None = None
    warm_standby: bool = True
    listen: Listen | None = Listen()
    admission: WebhookOptions | None = None
    page: PageOptions | None = None
    metrics: bool = True
    metrics_prefix: str = "ocf"
    registry: CollectorRegistry | None = None
    events: bool = True
    shutdown_timeout: timedelta = _SHUTDOWN_TIMEOUT
    cache_sync_timeout: timedelta = _CACHE_SYNC_TIMEOUT
    watch_failure_timeout: timedelta = _WATCH_FAILURE_TIMEOUT
    max_objects: int | None = None
    cache_timing: CacheTiming | None = None
    clock: Clock = field(default_factory=SystemClock)
    random: Callable[[], float] = random.random
    tracer: Tracer | None = None

    def __post_init__(self) -> None:
        if self.sharding is not None and self.lease is None:
            raise ConfigError(
                "sharding needs a lease: its name is that of the replicas, and part of those of the slots"
            )

    def policy_rules(self, *operators: Operator[Any]) -> frozenset[PolicyRule]:
        """Return the RBAC rules of the process itself: its lease, its webhooks' certificates, and its page's reviews.

        The rules of an operator are those of `Operator.policy_rules`.

        Args:
            operators: The operators of the process.
        """
        needed: frozenset[PolicyRule] = frozenset()
        if self.lease is not None:
            sharded = self.sharding is not None
            needed |= lease_rules(self.lease.name, self.lease.namespace, sharded=sharded)
        if self.admission is not None:
            needed |= self.admission.policy_rules(*operators)
        if self.page is not None:
            needed |= REVIEW_RULES
        return needed
