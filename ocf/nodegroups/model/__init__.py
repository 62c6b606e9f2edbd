"""Node groups, instance types and the status that steers scaling, as values."""

from ocf.nodegroups.model.catalog import Catalog
from ocf.nodegroups.model.gaps import FIRST_GAP, LONGEST_GAP, MOST_FAILURES, TypeGap
from ocf.nodegroups.model.groups import (
    DEFAULT_SCALE_DOWN_COOLDOWN,
    Membership,
    NodeGroup,
    ScaleDownPolicy,
    TypeChoice,
    UtilizationSource,
    assign_nodes,
)
from ocf.nodegroups.model.status import FIRST_BACKOFF, LONGEST_BACKOFF, GroupStatus, TypeRefusal

__all__ = [
    "DEFAULT_SCALE_DOWN_COOLDOWN",
    "FIRST_BACKOFF",
    "FIRST_GAP",
    "LONGEST_BACKOFF",
    "LONGEST_GAP",
    "MOST_FAILURES",
    "Catalog",
    "GroupStatus",
    "Membership",
    "NodeGroup",
    "ScaleDownPolicy",
    "TypeChoice",
    "TypeGap",
    "TypeRefusal",
    "UtilizationSource",
    "assign_nodes",
]
