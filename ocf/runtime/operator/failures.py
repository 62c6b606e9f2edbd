"""Failures of a reconcile that do not belong to one component, shown in the failure condition of the operator.

A component that fails sets its own condition. Whatever else fails (the owner cannot be read by its model, one of the
operator's functions raises, a timeout) says nothing about the components that were not reached, nor about what the
operator's own conditions are about. So those stay as they were observed last, with the generation that this was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ocf.errors import failure_text

if TYPE_CHECKING:
    from ocf.component import ReconcileContext
    from ocf.runtime.operator.operator import Operator
    from ocf.runtime.operator.types import ReconcileOutcome

__all__ = ["show_hidden_failures"]


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
        before = context.condition_context(operator.failure_type)
        # A failure of this reconcile, such as one of the report, is not replaced by those of the components.
        texts = [before.previous.message, *hidden] if operator.failure_type in context.staged else hidden
        # The components have recorded their failures, so there are events already.
        context.stage(before.failed("; ".join(texts)))
