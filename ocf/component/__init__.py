"""Many resources, one condition: build, reconcile, suspend.

A component is built from resources, reconciled inside `reconciling`, and reported as one condition of its owner.
"""

from ocf.component.builder import Builder
from ocf.component.component import Component
from ocf.component.conditions import Condition
from ocf.component.context import ReconcileContext, reconciling
from ocf.component.leaving import BEFORE_SUSPENSION
from ocf.component.options import Conflicts, Participation, ResourceOptions
from ocf.component.prerequisites import Prerequisite, PrerequisiteStatus, depends_on
from ocf.component.reasons import Reason
from ocf.component.results import Action, Outcome, Result
from ocf.component.topology import DataFlow

__all__ = [
    "BEFORE_SUSPENSION",
    "Action",
    "Builder",
    "Component",
    "Condition",
    "Conflicts",
    "DataFlow",
    "Outcome",
    "Participation",
    "Prerequisite",
    "PrerequisiteStatus",
    "Reason",
    "ReconcileContext",
    "ResourceOptions",
    "Result",
    "depends_on",
    "reconciling",
]
