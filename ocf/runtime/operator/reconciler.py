"""The reconcile of one owner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ocf.cluster import Cluster
from ocf.cluster.server_errors import is_namespace_ending
from ocf.component import CleanupPending, Component, Finalizer, ReconcileContext, Result, reconciling
from ocf.component.model.context_values import ContextValues
from ocf.component.reconcile_components import reconcile_each
from ocf.concepts import Clock, Recorder
from ocf.concepts.tracing import annotate_span, requeue_attributes
from ocf.errors import ManifestError, ReconcileError, failure_text
from ocf.objects import Manifest
from ocf.runtime.operator.operator import Operator
from ocf.runtime.operator.types import ReconcileOutcome
from ocf.runtime.operator.unwatched_objects import show_unwatched
from ocf.runtime.workqueue.queue import SHORTEST_DELAY
from ocf.runtime.workqueue.workers import is_retry

__all__ = ["RETRYING", "ReconcileHooks", "reconcile_owner"]

RETRYING: Final = "Retrying"
"""Reason of the event about a reconcile that the author's function ended, to be repeated later."""

O = TypeVar("O")  # noqa: E741 (the owner)
T = TypeVar("T")

# Seconds that a report gets at least; less than the time after which the controller cancels a reconcile that timed out.
_REPORT_TIME: Final = 10.0
_NAMESPACE_POLL: Final = timedelta(seconds=30)
"""When an owner is reconciled again for which the author's functions could create nothing: its namespace ends."""


class ReconcileHooks(NamedTuple):
    """How a controller takes part in a reconcile.

    Attributes:
        selected: Whether the operator selects the owner; if not, it is cleaned up if it is being deleted, or released.
        unobserved: The cluster without the records of what the reconcile has read; None if there are no records.
        pages: The cluster for lists of which no kind is watched; None for the same cluster.
        read_latest: Returns the owner as it is known now, without a request, so that a pause is noticed at once; None
            if it has not changed.
        found: Called with the components of the owner before anything is made.
        unwatched: Returns which changes start no reconcile, after all was read; empty if all do.
        orphans: Returns whether the owner was seen with the finalizer by which its delete orphans its objects.
        wake: Reconciles the owner again, called at any time after this reconcile; None if nothing does.
        retry_by: Called with the longest delay of the retry if a reconcile fails that has asked for one.
        values: What the lifespan of the operator has set; None for nothing.
    """

    selected: bool = True
    unobserved: Cluster | None = None
    pages: Cluster | None = None
    read_latest: Callable[[], Manifest | None] | None = None
    found: Callable[[ReconcileContext, Sequence[Component]], object] | None = None
    unwatched: Callable[[], str] = str
    orphans: Callable[[], bool] = bool
    wake: Callable[[], object] | None = None
    retry_by: Callable[[timedelta], object] = str
    values: ContextValues | None = None


_NO_HOOKS: Final = ReconcileHooks()


async def reconcile_owner(
    operator: Operator[O],
    manifest: Manifest,
    cluster: Cluster,
    *,
    clock: Clock,
    recorder: Recorder,
    hooks: ReconcileHooks = _NO_HOOKS,
) -> timedelta | None:
    """Reconcile the components of an owner, and write its status once, also if the reconcile fails.

    An owner that is being deleted is cleaned up instead (`on_delete`). While only finalizers of others hold it, the
    operator's functions are called, and the components apply nothing. While it is paused, none of them is called.

    Args:
        manifest: The owner as read from the cluster.
        cluster: The cluster of the objects.
        clock: The clock of the reconcile.
        recorder: Gets the attempts, events and conditions of the reconcile.
        hooks: What a controller sees of the reconcile.

    Returns:
        The delay until the next reconcile without an event; None if only an event can change anything.

    Raises:
        Exception: The error that the reconcile failed with, after the status was written.
    """
    block = reconciling(
        manifest,
        cluster,
        operator=operator.name,
        former_managers=operator.former_managers,
        clock=clock,
        recorder=recorder,
        pause_field=operator.pause_field,
    )
    context: ReconcileContext | None = None
    try:
        async with block as context:
            context.read_latest, context.wake = hooks.read_latest, hooks.wake
            context.failure_types = (operator.failure_type,)
            if operator.failure_condition is None:
                context.hidden_types = (operator.failure_type,)
            context.finalizers = operator.finalizers
            if hooks.unobserved is not None:
                context.unobserved = hooks.unobserved
            if hooks.pages is not None:
                context.pages = hooks.pages
            if hooks.values is not None:
                context.values.inherit(hooks.values)
            annotate_span(lambda: {"ocf.controller": operator.name})
            if not (hooks.selected or context.is_ending):
                await Finalizer().release(context)
            elif context.pause is None:
                await _OwnerReconcile(operator, context, hooks).run()
            annotate_span(requeue_attributes, context.delay)
    except Exception:
        # A failure that asks to be repeated at once each time would have no backoff.
        if context is not None and context.delay is not None and context.delay > SHORTEST_DELAY:
            hooks.retry_by(context.delay)
        raise
    return None if context.is_gone else context.delay


class _OwnerReconcile(Generic[O]):
    """One reconcile of one owner."""

    def __init__(
        self,
        operator: Operator[O],
        context: ReconcileContext,
        hooks: ReconcileHooks,
    ) -> None:
        self._operator = operator
        self._context = context
        self._hooks = hooks
        self._deadline = asyncio.get_running_loop().time() + operator.reconcile_timeout.total_seconds()
        self._owner: O | None = None
        self._components: tuple[Component, ...] | None = None
        self._step = "the finalizer"
        """What fails if an error is raised now; empty if the error names it."""

    async def run(self) -> None:
        """Reconcile or clean up, and report."""
        operator, context = self._operator, self._context
        finalizer = Finalizer(
            on_delete=self._on_delete if operator.on_delete is not None else None,
            order=operator.deletion_order,
            orphans=self._hooks.orphans(),
        )
        try:
            outcome = await self._limited(self._deadline, self._attempted(finalizer))
        except Exception as error:
            if context.pause is not None:
                return
            if is_namespace_ending(error) and not context.is_ending:
                # Kubernetes deletes what is in the namespace; what cannot be created there is not missing.
                context.delay = _NAMESPACE_POLL
                return
            self._show(error, finalizer)
            if self._owner is None:
                raise
            outcome = ReconcileOutcome(components=self._components or (), error=error)
        # A pause that came meanwhile ends the reconcile: nothing of it is reported, and the owner's event repeats it.
        if self._owner is None or context.pause is not None:
            return
        # The owner was deleted before anything was made in this reconcile.
        unmade = outcome.finalization is not None and not context.is_ending
        reached = {name: tuple(found.values()) for name, found in context.outcomes.items()}
        outcome = replace(outcome, outcomes=reached, deleted=tuple(context.children.outcomes))
        if not (context.is_gone or unmade):
            await self._reported(self._owner, outcome)
        if outcome.requeue_after is not None:
            context.requeue_after(outcome.requeue_after)
        outcome = self._with_plain_status(outcome)
        _show_hidden_failures(operator, context, outcome)
        # A reconcile that failed is retried anyway.
        show_unwatched(context, operator.reconciled_type, self._hooks.unwatched() if outcome.error is None else "")
        context.clear_failure(operator.failure_type)
        if outcome.error is not None:
            raise outcome.error

    async def _attempted(self, finalizer: Finalizer) -> ReconcileOutcome:
        """Read the owner, and reconcile it or clean up; without anything to do, the owner is not read."""
        operator, context = self._operator, self._context
        if not await finalizer.begin(context):
            return ReconcileOutcome()
        self._step = "reading the owner"
        self._owner = owner = operator.owner.read(context.owner)
        self._step = "the clean-up" if finalizer.cleans_up(context) else "the finalizer"
        find = partial(self._find_components, owner)
        finalization = await finalizer.run(context, find)
        if finalization is None:
            components = await find()
            self._step = ""
            return _outcome(components, await reconcile_each(context, *components))
        held = context.is_ending and not context.is_gone and finalization.requeue_after is None
        if held and operator.on_delete is None:
            # Another finalizer holds the owner, maybe one of the author's own, which this function may remove.
            # What it makes for an owner with an `on_delete` would never be deleted.
            await find()
        return ReconcileOutcome(components=self._components or (), finalization=finalization)

    async def _find_components(self, owner: O) -> tuple[Component, ...]:
        """Return the components of the owner; the author's function is called once per reconcile."""
        if self._components is None:
            step, self._step = self._step, "the function that returns the components"
            self._components = await self._operator.callbacks.components(owner, self._context)
            if self._hooks.found is not None:
                self._hooks.found(self._context, self._components)
            self._step = step
        return self._components

    async def _on_delete(self, context: ReconcileContext) -> CleanupPending | None:
        return await self._operator.callbacks.on_delete(self._operator.owner.read(context.owner), context)

    async def _reported(self, owner: O, outcome: ReconcileOutcome) -> None:
        # After a timeout, the report still has to publish it.
        latest = max(self._deadline, asyncio.get_running_loop().time() + _REPORT_TIME)
        try:
            await self._limited(latest, self._operator.callbacks.report(self._context, owner, outcome))
        except Exception as error:
            self._step = "the report"
            self._show(error)
            if outcome.error is None:
                raise
            outcome.error.add_note(f"the report failed, too: {type(error).__name__}")

    def _with_plain_status(self, outcome: ReconcileOutcome) -> ReconcileOutcome:
        """Return the outcome; it has an error if the author's functions set a status that cannot be written."""
        try:
            self._context.require_plain_status()
        except ManifestError as error:
            self._step = "writing the status"
            self._show(error)
            return outcome if outcome.error is not None else replace(outcome, error=error)
        return outcome

    def _show(self, error: Exception, finalizer: Finalizer | None = None) -> None:
        """Show an error in the failure condition; with a finalizer, it may be one of the clean-up.

        What only asks for a later reconcile is no failure, and is an event in the author's words.
        """
        if is_retry(error):
            self._context.event(RETRYING, failure_text(error))
            return
        text = failure_text(error)
        problem = f"{self._step} failed: {text}" if self._step else text
        if finalizer is not None and finalizer.cleans_up(self._context):
            problem = finalizer.fail(self._context, problem)
        self._context.fail([self._operator.failure_type], problem)

    async def _limited(self, deadline: float, work: Awaitable[T]) -> T:
        """Return the result of the work; at a deadline of the loop's clock, cancel it and raise an error instead."""
        term = asyncio.timeout_at(deadline)
        try:
            async with term:
                return await work
        except TimeoutError:
            if not term.expired():
                raise
            problem = f"the reconcile exceeded its timeout of {self._operator.reconcile_timeout}{self._unfinished()}"
            raise ReconcileError(self._operator.name, problem) from None

    def _unfinished(self) -> str:
        """Name the components whose conditions are those of an earlier reconcile; empty unless they were reconciled."""
        staged = self._context.staged
        found = [one.name for one in self._components or () if one.published and one.condition_type not in staged]
        return f" before these components were reconciled: {', '.join(found)}" if found and not self._step else ""


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


# A component that fails sets its own condition. Whatever else fails (the owner cannot be read by its model, one of the
# operator's functions raises, a timeout) says nothing about the components that were not reached, nor about what the
# operator's own conditions are about. So those stay as they were observed last, with the generation that this was.
def _show_hidden_failures(operator: Operator[Any], context: ReconcileContext, outcome: ReconcileOutcome) -> None:
    """Show the errors of unpublished components in the failure condition, unless a condition of the report shows them.

    Args:
        outcome: Its outcome, after the report.
    """
    errors = [
        outcome.errors[one.name] for one in outcome.components if not one.published and one.name in outcome.errors
    ]
    hidden = [text for text in map(failure_text, errors) if not context.shows(text)]
    if hidden:
        before = context.condition_context(operator.failure_type)
        # A failure of this reconcile, such as one of the report, is not replaced by those of the components.
        texts = [before.previous.message, *hidden] if operator.failure_type in context.staged else hidden
        # The components have recorded their failures, so there are events already.
        context.stage(before.failed("; ".join(texts)))
