"""Many resources, one condition: build, reconcile, suspend.

A component is built from resources, reconciled inside `reconciling`, and reported as one condition of its owner.
"""

from ocf.component.builder import Builder
from ocf.component.component import Component
from ocf.component.conditions import Condition
from ocf.component.context import ReconcileContext, reconciling
from ocf.component.diffing import ComponentDiff, FieldConflict, FieldDiff, LeftField, ObjectDiff, TakenField, Verb, diff
from ocf.component.explaining import NOT_REACHED, Account, accounts, describe
from ocf.component.finalizing import FINALIZER, Departure, finalize
from ocf.component.leaving import BEFORE_SUSPENSION
from ocf.component.options import Conflicts, Participation, ResourceOptions
from ocf.component.prerequisites import Prerequisite, PrerequisiteStatus, depends_on
from ocf.component.reasons import Reason
from ocf.component.results import Action, Outcome, Result
from ocf.component.together import reconcile_all, reconcile_each
from ocf.component.topology import DataFlow

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
