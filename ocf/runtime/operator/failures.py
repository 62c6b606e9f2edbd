"""Failures of a reconcile that do not belong to one component, shown in the conditions of the owner.

A component that fails sets its own condition. Whatever else fails (the owner cannot be read by its model, one of the
operator's functions raises, a timeout) leaves conditions that nothing has set: those of components that could not be
built, and those that the operator sets itself. They would go on reporting an earlier reconcile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ocf.component.deletion import condition_type
from ocf.errors import failure_text

if TYPE_CHECKING:
    from ocf.component import Component, ReconcileContext
    from ocf.runtime.operator.operator import Operator
    from ocf.runtime.operator.types import ReconcileOutcome

__all__ = ["show_failure", "show_hidden_failures"]


def show_failure(
    operator: Operator[Any],
    context: ReconcileContext,
    problem: str,
    *,
    components: Iterable[Component] = (),
) -> None:
    """Show a failure in the failure condition of an operator, and in each of its conditions that was not set yet.

    Args:
        operator: The operator.
        context: The reconcile of the owner.
        problem: The message, without the values of Secrets; see `ocf.errors.failure_text`.
        components: The components of the owner, if they are known.
    """
    declared = [*operator.published_conditions, *operator.abnormal_conditions]
    types = [*(one.condition_type for one in components if one.published), *context.published(declared)]
    # The condition of a clean-up is about the clean-up only, which may have succeeded.
    kept = {*context.staged, condition_type(operator.finalizer)}
    stale = [name for name in types if name not in kept]
    context.fail([*stale, operator.failure_condition], problem, abnormal=operator.abnormal_conditions)


def show_hidden_failures(operator: Operator[Any], context: ReconcileContext, outcome: ReconcileOutcome) -> None:
    """Show the errors of unpublished components in the failure condition, unless a condition of the report shows them.

    Args:
        operator: The operator.
        context: The reconcile of the owner.
        outcome: Its outcome, after the report.
    """
    errors = [
        outcome.errors[one.name] for one in outcome.components if not one.published and one.name in outcome.errors
    ]
    hidden = [text for text in map(failure_text, errors) if not context.shows(text)]
    if hidden:
        # The components have recorded their failures, so there are events already.
        context.stage(context.condition_context(operator.failure_condition).failed("; ".join(hidden)))
