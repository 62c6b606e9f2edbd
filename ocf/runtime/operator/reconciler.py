"""The reconcile of one owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ocf.component import FINALIZER, finalize, reconcile_each, reconciling
from ocf.errors import ReconcileError
from ocf.objects import get_field
from ocf.runtime.operator.failures import show_failure, show_hidden_failures
from ocf.runtime.operator.operator import Operator
from ocf.runtime.operator.types import ReconcileOutcome

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.component import Component, ReconcileContext, Result
    from ocf.concepts import Clock, Recorder
    from ocf.objects import Manifest

__all__ = ["reconcile_owner"]

O = TypeVar("O")  # noqa: E741 (the owner)

# Seconds that a report gets at least; less than the time after which the controller cancels a reconcile that timed out.
_REPORT_TIME: Final = 10.0


async def reconcile_owner(
    operator: Operator[O], manifest: Manifest, cluster: Cluster, *, clock: Clock, recorder: Recorder
) -> timedelta | None:
    """Reconcile the components of an owner, and write its status once, also if the reconcile fails.

    Args:
        operator: The operator.
        manifest: The owner as read from the cluster.
        cluster: The cluster of the objects.
        clock: The clock of the reconcile.
        recorder: Gets the attempts, events and conditions of the reconcile.

    Returns:
        The delay until the next reconcile without an event; None if only an event can change anything.

    Raises:
        Exception: The error that the reconcile failed with, after the status was written.
    """
    async with reconciling(manifest, cluster, clock=clock, recorder=recorder) as context:
        if context.is_ending and FINALIZER not in (get_field(manifest, ("metadata", "finalizers")) or []):
            return None
        try:
            owner = operator.owner.read(manifest)
        except Exception as error:
            show_failure(operator, context, error, step="reading the owner")
            raise
        deadline = asyncio.get_running_loop().time() + operator.reconcile_timeout.total_seconds()
        outcome = await _attempted(operator, owner, context, deadline)
        gone = outcome.finalization is not None and not outcome.finalization.remaining
        asked = None if gone else await _reported(operator, owner, context, outcome, deadline)
        show_hidden_failures(operator, context, outcome)
        context.clear_failure(operator.failure_condition)
        if outcome.error is not None:
            raise outcome.error
        return min((delay for delay in (outcome.requeue_after, asked) if delay is not None), default=None)


async def _attempted(operator: Operator[O], owner: O, context: ReconcileContext, deadline: float) -> ReconcileOutcome:
    """Reconcile the components until a deadline; an error is part of the outcome and of the conditions."""
    components: tuple[Component, ...] = ()
    step = "the function that returns the components"
    try:
        async with _limited(operator, deadline):
            components = await operator.callbacks.components(owner, context)
            step = "the finalizer"
            departure = await finalize(context, *components)
            if departure is not None:
                return ReconcileOutcome(components=components, finalization=departure)
            step = ""
            return _outcome(components, await reconcile_each(context, *components))
    except Exception as error:  # noqa: BLE001 (it is reported first, and raised then)
        show_failure(operator, context, error, step=step, components=components)
        return ReconcileOutcome(components=components, error=error)


@asynccontextmanager
async def _limited(operator: Operator[Any], deadline: float) -> AsyncIterator[None]:
    """Cancel the block at a deadline of the loop's clock, and raise that as an error of the reconcile."""
    term = asyncio.timeout_at(deadline)
    try:
        async with term:
            yield
    except TimeoutError:
        if not term.expired():
            raise
        problem = f"the reconcile exceeded its timeout of {operator.reconcile_timeout}"
        raise ReconcileError(operator.name, problem) from None


def _outcome(components: tuple[Component, ...], answers: Sequence[Result | Exception]) -> ReconcileOutcome:
    results, errors = {}, {}
    for component, answer in zip(components, answers, strict=True):
        if isinstance(answer, Exception):
            errors[component.name] = answer
        else:
            results[component.name] = answer
    error = next(iter(errors.values()), None)
    if len(errors) > 1:
        error = ExceptionGroup(f"{len(errors)} of {len(components)} components failed", list(errors.values()))
    return ReconcileOutcome(components=components, results=results, errors=errors, error=error)


async def _reported(
    operator: Operator[O], owner: O, context: ReconcileContext, outcome: ReconcileOutcome, deadline: float
) -> timedelta | None:
    # After a timeout, the report still has to publish it.
    latest = max(deadline, asyncio.get_running_loop().time() + _REPORT_TIME)
    try:
        async with _limited(operator, latest):
            return await operator.callbacks.report(context, owner, outcome)
    except Exception as error:
        show_failure(operator, context, error, step="the report", components=outcome.components)
        if outcome.error is None:
            raise
        outcome.error.add_note(f"the report failed, too: {type(error).__name__}")
        return None
