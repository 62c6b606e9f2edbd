"""Declaration of the operator: its owner type, component, status report, webhooks and event texts.

The declaration does not run anything. `python -m examples.memcached` runs the operator in a cluster,
`ocf dev examples.memcached` runs it on your machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from examples.memcached import admission, monitor
from examples.memcached.component import every_state, memcached
from examples.memcached.conditions import TYPES
from examples.memcached.model import Memcached
from examples.memcached.reporting import observe, report
from ocf.runtime.operator import Operator, OwnerType

if TYPE_CHECKING:
    from examples.memcached.metrics import Metrics
    from ocf.component import ReconcileContext
    from ocf.concepts import Event
    from ocf.runtime.operator import ReconcileOutcome
    from ocf.runtime.rbac import PolicyRule

__all__ = ["NAME", "memcached_operator", "operator", "privileges", "words"]

NAME: Final = "memcached-operator"

_REASONS: Final = {"Create": "Created", "Update": "Updated"}


def operator(metrics: Metrics | None = None, *, strict: bool = False) -> Operator[Memcached]:
    """Declare the operator.

    Args:
        metrics: The additional metrics; None exports only the metrics that every operator has.
        strict: Whether the webhooks also reject valid but probably unintended specs, see
            `examples.memcached.validation`.
    """
    return Operator(
        name=NAME,
        owner=OwnerType.of(Memcached),
        components=memcached,
        report=partial(_report, metrics=metrics),
        published_conditions=TYPES,
        abnormal_conditions=("Degraded",),
        # Objects that a reconcile reads by name are watched as well, above all the Secrets that a cache references.
        owns=[
            ("apps/v1", "Deployment"),
            ("autoscaling/v2", "HorizontalPodAutoscaler"),
            ("v1", "Service"),
            ("policy/v1", "PodDisruptionBudget"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
        ],
        definitions=[monitor.DEFINITION],
        webhooks=admission.webhooks(strict=strict).webhooks,
        event_formatter=words,
        recorders=() if metrics is None else (metrics,),
        on_deleted=None if metrics is None else metrics.forget,
    )


def words(event: Event) -> Event | None:
    """Return the event that is published: one for each created or updated object, and None for all other actions.

    Args:
        event: The event of the component.
    """
    reason = _REASONS.get(event.action)
    if reason is None:
        return None
    return replace(
        event, reason=reason, action="Reconcile", note=f"{reason} {event.resource.kind} {event.resource.name}"
    )


def privileges() -> Iterable[PolicyRule]:
    """Return the policy rules that the operator needs in a cluster, without those for a lease."""
    return memcached_operator.policy_rules(every_state())


async def _report(
    context: ReconcileContext, cache: Memcached, outcome: ReconcileOutcome, *, metrics: Metrics | None
) -> None:
    """Report the status and the metrics of a reconcile, whether it succeeded or failed."""
    seen = await observe(cache, context.cluster, outcome.error)
    report(context, cache, seen)
    if metrics is not None:
        owner = context.owned_by.key
        metrics.reconciled(owner, since=context.elapsed, failed=outcome.error is not None)
        metrics.seen(owner, cache, seen)


memcached_operator: Final = operator()
"""The instance that `ocf dev` and tests import."""
