"""RBAC from components: the least that an operator needs, as roles to be applied."""

from ocf.runtime.rbac.definitions import custom_definitions
from ocf.runtime.rbac.manifests import Account, roles
from ocf.runtime.rbac.rules import EVENTS, Privilege, lease_privileges, privileges

__all__ = ["EVENTS", "Account", "Privilege", "custom_definitions", "lease_privileges", "privileges", "roles"]
