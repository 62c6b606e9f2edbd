"""The operator: whose objects it makes, from which component, what it reports, and in which words it tells of it.

A declaration does nothing by itself. `python -m examples.memcached` runs it in a cluster, `ocf dev examples.memcached`
on your machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from examples.memcached import admission, monitor
from examples.memcached.component import every_state, memcached
from examples.memcached.definition import definition
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
        metrics: What it counts in; None counts nothing but what every operator counts.
        strict: Whether its webhooks refuse what is most likely a mistake, see `examples.memcached.validation`.
    """
    return Operator(
        name=NAME,
        owner=OwnerType.of(definition(), Memcached),
        components=memcached,
        report=partial(_report, metrics=metrics),
        # What a pass reads by name is watched as well: the Secrets, above all, that a cache names.
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
    """Tell of what was created and updated, in the words that users of the operator know, and of nothing else.

    Args:
        event: As the component tells it.
    """
    reason = _REASONS.get(event.action)
    if reason is None:
        return None
    return replace(
        event, reason=reason, action="Reconcile", note=f"{reason} {event.resource.kind} {event.resource.name}"
    )


def privileges() -> Iterable[PolicyRule]:
    """Return what the operator needs of a cluster, without a lease."""
    return memcached_operator.policy_rules(every_state())


async def _report(
    context: ReconcileContext, cache: Memcached, outcome: ReconcileOutcome, *, metrics: Metrics | None
) -> None:
    """Report a pass, whatever became of it."""
    seen = await observe(cache, context.cluster, outcome.error)
    report(context, cache, seen)
    if metrics is not None:
        owner = context.owned_by.key
        metrics.passed(owner, since=context.elapsed, failed=outcome.error is not None)
        metrics.seen(owner, cache, seen)


memcached_operator: Final = operator()
"""What `ocf dev` and tests find in this module."""
