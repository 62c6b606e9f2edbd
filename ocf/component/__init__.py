"""Components: resources that are reconciled together and reported as one condition of their owner.

Build a component with `Builder`, and reconcile it inside `reconciling`.
"""

from ocf.component.apply.handover import BEFORE_SUSPENSION
from ocf.component.builder import Builder
from ocf.component.component import Component
from ocf.component.context import ReconcileContext, reconciling
from ocf.component.deletion import CleanupPending, DeletionOrder
from ocf.component.diff import ComponentDiff, diff
from ocf.component.finalizer import FinalizationResult, Finalizer, OnDelete, finalize
from ocf.component.model.resource_options import Adoption, Conflicts, Participation
from ocf.component.parallel import reconcile_all
from ocf.component.reconcile.prerequisites import Prerequisite, depends_on
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
    "DeletionOrder",
    "FinalizationResult",
    "Finalizer",
    "OnDelete",
    "Participation",
    "Prerequisite",
    "Reason",
    "ReconcileContext",
    "Result",
    "depends_on",
    "describe",
    "diff",
    "finalize",
    "reconcile_all",
    "reconciling",
    "summarize",
]
