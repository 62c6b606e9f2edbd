"""Components: resources that are reconciled together and reported as one condition of their owner.

Build a component with `Builder`, and reconcile it inside `reconciling`.
"""

from ocf.component.apply.handover import BEFORE_SUSPENSION
from ocf.component.builder import Builder
from ocf.component.component import Component
from ocf.component.context import ReconcileContext, reconciling
from ocf.component.deletion import (
    SKIP_CLEANUP,
    CleanupPending,
    CleanupReason,
    DeletionOrder,
    cleanup_finalizer,
    external_finalizer,
)
from ocf.component.diff import (
    ComponentDiff,
    DiffVerb,
    FieldConflict,
    FieldDiff,
    IgnoredField,
    ObjectDiff,
    TakenField,
    diff,
)
from ocf.component.finalizer import FinalizationResult, Finalizer, OnDelete, finalize
from ocf.component.model.data_flow import DataFlow
from ocf.component.model.resource_options import Conflicts, Participation, ResourceOptions
from ocf.component.parallel import reconcile_all, reconcile_each
from ocf.component.reconcile.prerequisites import Prerequisite, PrerequisiteStatus, depends_on
from ocf.component.status.conditions import Condition
from ocf.component.status.reasons import Reason
from ocf.component.status.results import Action, Drift, ResourceOutcome, Result
from ocf.component.summary import NOT_REACHED, ResourceSummary, describe, summarize

__all__ = [
    "BEFORE_SUSPENSION",
    "NOT_REACHED",
    "SKIP_CLEANUP",
    "Action",
    "Builder",
    "CleanupPending",
    "CleanupReason",
    "Component",
    "ComponentDiff",
    "Condition",
    "Conflicts",
    "DataFlow",
    "DeletionOrder",
    "DiffVerb",
    "Drift",
    "FieldConflict",
    "FieldDiff",
    "FinalizationResult",
    "Finalizer",
    "IgnoredField",
    "ObjectDiff",
    "OnDelete",
    "Participation",
    "Prerequisite",
    "PrerequisiteStatus",
    "Reason",
    "ReconcileContext",
    "ResourceOptions",
    "ResourceOutcome",
    "ResourceSummary",
    "Result",
    "TakenField",
    "cleanup_finalizer",
    "depends_on",
    "describe",
    "diff",
    "external_finalizer",
    "finalize",
    "reconcile_all",
    "reconcile_each",
    "reconciling",
    "summarize",
]
