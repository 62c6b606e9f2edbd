"""The rights that a real API server was asked for, against those of the installed role."""

from __future__ import annotations

from typing import Final

from ocf.controllers.metrics_client import RESOURCE_METRICS
from ocf.controllers.nodegroup.manifests import cluster_role
from ocf.controllers.nodegroup.model import GROUP
from ocf.runtime.rbac import PolicyRule
from tests.controllers.nodegroup.whole_cluster.audit import AuditLog
from tests.controllers.nodegroup.whole_cluster.environment import NODE_GROUP_USER, SYSTEM

__all__ = ["FINALIZERS", "PROVIDER", "assert_each_right_is_used"]

FINALIZERS: Final = PolicyRule(GROUP, "nodegroups/finalizers", "update")
"""What the admission plugin OwnerReferencesPermissionEnforcement asks for; it sends no request for that."""

PROVIDER: Final = PolicyRule("", "nodes", "create")
"""What the provider of kwok needs."""

_MEASURED: Final = PolicyRule(RESOURCE_METRICS, "nodes", "list")  # for groups that want the measured use of nodes


def assert_each_right_is_used(audit: AuditLog) -> None:
    """Check that there was a request for each rule of the role, and none for another.

    Args:
        audit: The audit log after a scenario with all that the controller does.
    """
    allowed = {_right(rule) for rule in cluster_role(lease_namespace=SYSTEM)}
    used = audit.rights(NODE_GROUP_USER)
    assert allowed - used == {_right(FINALIZERS), _right(_MEASURED)}
    assert used - allowed == {_right(PROVIDER)}


def _right(rule: PolicyRule) -> tuple[str, str, str]:
    return rule.group, rule.resource, rule.verb
