"""Components: resources that are reconciled together and reported as one condition of their owner.

Build a component with `Builder`, and reconcile it inside `reconciling`.
"""

from ocf.component.apply.handover import BEFORE_SUSPENSION
from ocf.component.block import reconciling
from ocf.component.builder import Builder
from ocf.component.component import Component
from ocf.component.context import ReconcileContext
from ocf.component.diff import ComponentDiff, diff
from ocf.component.model.context_values import ContextKey
from ocf.component.model.resource_options import Adoption, Conflicts, Participation, Writes
from ocf.component.named_set import stored_names
from ocf.component.owner_deletion import CleanupPending, DeletionOrder
from ocf.component.owner_finalizers import FinalizationResult, Finalizer, OnDelete, finalize
from ocf.component.reconcile.prerequisites import Prerequisite, depends_on
from ocf.component.reconcile_components import reconcile_all
from ocf.component.status.conditions import Condition
from ocf.component.status.reasons import Reason
from ocf.component.status.results import Result
from ocf.component.summary import describe, summarize

__all__ = [
    "BEFORE_SUSPENSION",
    "Adoption",
    "Builder",
    "CleanupPending",
    "Component",
    "ComponentDiff",
    "Condition",
    "Conflicts",
    "ContextKey",
    "DeletionOrder",
    "FinalizationResult",
    "Finalizer",
    "OnDelete",
    "Participation",
    "Prerequisite",
    "Reason",
    "ReconcileContext",
    "Result",
    "Writes",
    "depends_on",
    "describe",
    "diff",
    "finalize",
    "reconcile_all",
    "reconciling",
    "stored_names",
    "summarize",
]
