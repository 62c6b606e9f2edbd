"""Safety rules for removing nodes."""

from ocf.nodegroups.rules.pods import (
    budgets_of,
    check_pdbs,
    has_local_storage,
    is_safe_to_evict,
    is_system_pod,
    movable_pods,
    must_not_be_disrupted,
)
from ocf.nodegroups.rules.rules import POD_RULES, RULES, Blocked, Removal, SafetyRule, first_block

__all__ = [
    "POD_RULES",
    "RULES",
    "Blocked",
    "Removal",
    "SafetyRule",
    "budgets_of",
    "check_pdbs",
    "first_block",
    "has_local_storage",
    "is_safe_to_evict",
    "is_system_pod",
    "movable_pods",
    "must_not_be_disrupted",
]
