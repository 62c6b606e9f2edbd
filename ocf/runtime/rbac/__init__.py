"""RBAC rules derived from components: the least privileges of an operator, as roles to be applied."""

from ocf.runtime.rbac.manifests import roles
from ocf.runtime.rbac.policy_rule import PolicyRule
from ocf.runtime.rbac.rules import EVENTS, custom_definitions, kopf_rules, lease_rules, policy_rules

__all__ = [
    "EVENTS",
    "PolicyRule",
    "custom_definitions",
    "kopf_rules",
    "lease_rules",
    "policy_rules",
    "roles",
]
