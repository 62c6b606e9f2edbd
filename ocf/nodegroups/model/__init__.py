"""Node groups, instance types and the status that steers scaling, as values."""

from ocf.nodegroups.model.catalog import Catalog
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
    "LONGEST_BACKOFF",
    "Catalog",
    "GroupStatus",
    "Membership",
    "NodeGroup",
    "ScaleDownPolicy",
    "TypeChoice",
    "TypeRefusal",
    "UtilizationSource",
    "assign_nodes",
]
