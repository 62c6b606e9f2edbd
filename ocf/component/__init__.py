"""Many resources, one condition: build, reconcile, suspend.

A component is built from resources, reconciled inside `reconciling`, and reported as one condition of its owner.
"""

from ocf.component.apply.field_handover import BEFORE_SUSPENSION
from ocf.component.builder import Builder
from ocf.component.component import Component
from ocf.component.diff import ComponentDiff, FieldConflict, FieldDiff, LeftField, ObjectDiff, TakenField, Verb, diff
from ocf.component.finalizer import FINALIZER, Departure, finalize
from ocf.component.model.context import ReconcileContext, reconciling
from ocf.component.model.data_flow import DataFlow
from ocf.component.model.resource_options import Conflicts, Participation, ResourceOptions
from ocf.component.parallel import reconcile_all, reconcile_each
from ocf.component.reconcile.prerequisites import Prerequisite, PrerequisiteStatus, depends_on
from ocf.component.status.conditions import Condition
from ocf.component.status.reasons import Reason
from ocf.component.status.results import Action, Outcome, Result
from ocf.component.summary import NOT_REACHED, Account, accounts, describe

__all__ = [
    "BEFORE_SUSPENSION",
    "FINALIZER",
    "NOT_REACHED",
    "Account",
    "Action",
    "Builder",
    "Component",
    "ComponentDiff",
    "Condition",
    "Conflicts",
    "DataFlow",
    "Departure",
    "FieldConflict",
    "FieldDiff",
    "LeftField",
    "ObjectDiff",
    "Outcome",
    "Participation",
    "Prerequisite",
    "PrerequisiteStatus",
    "Reason",
    "ReconcileContext",
    "ResourceOptions",
    "Result",
    "TakenField",
    "Verb",
    "accounts",
    "depends_on",
    "describe",
    "diff",
    "finalize",
    "reconcile_all",
    "reconcile_each",
    "reconciling",
]
