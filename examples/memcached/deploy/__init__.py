"""Manifests for the deployment of the operator that are generated from its declaration.

`python -m examples.memcached.deploy` writes these manifests into `base`, next to the manifests that are maintained by
hand; a test checks that they are up to date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from examples.memcached.definition import definition
from examples.memcached.operator import NAME, memcached_operator, privileges
from ocf.runtime.admission import Service
from ocf.runtime.operator import Lease, ManagerOptions, WebhookOptions
from ocf.runtime.rbac import ServiceAccount, roles

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from ocf.runtime.rbac import PolicyRule

__all__ = ["ACCOUNT", "SERVICE", "generated", "needed"]

_NAMESPACE: Final = "memcached-operator"
ACCOUNT: Final = ServiceAccount(NAME, _NAMESPACE)
SERVICE: Final = Service(NAME, _NAMESPACE)
_ADMISSION: Final = WebhookOptions(address=SERVICE)
_OPTIONS: Final = ManagerOptions(lease=Lease(NAME, _NAMESPACE), admission=_ADMISSION)


def needed() -> frozenset[PolicyRule]:
    """Return all rules that the operator needs: for caches, its lease, and the certificate of its webhooks."""
    return frozenset(privileges()) | _OPTIONS.policy_rules(memcached_operator)


def generated() -> dict[str, list[Manifest]]:
    """Return the generated manifests by file name."""
    return {
        "definition.yaml": [definition()],
        "roles.yaml": roles(needed(), name=NAME, account=ACCOUNT),
        "webhooks.yaml": _ADMISSION.configurations(memcached_operator),
    }
