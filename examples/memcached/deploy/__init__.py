"""What a cluster has to know of the operator, as far as the operator itself says it.

`python -m examples.memcached.deploy` writes these manifests into `base`, next to those that people write; a test holds
them to what the operator says today.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from examples.memcached.admission import webhooks
from examples.memcached.definition import definition
from examples.memcached.operator import NAME, privileges
from ocf.cluster.embedded import EmbeddedCluster
from ocf.runtime.admission import SecretCertificates, Service, configurations
from ocf.runtime.rbac import Account, lease_privileges, roles

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from ocf.runtime.rbac import Privilege

__all__ = ["ACCOUNT", "SERVICE", "generated", "needed"]

_NAMESPACE: Final = "memcached-operator"
ACCOUNT: Final = Account(NAME, _NAMESPACE)
SERVICE: Final = Service(NAME, _NAMESPACE)


def needed() -> frozenset[Privilege]:
    """Return all that a process of the operator needs: for caches, its lease, and the certificate of its webhooks."""
    certificates = SecretCertificates(EmbeddedCluster(), webhooks(), SERVICE, namespace=_NAMESPACE)
    return frozenset(privileges()) | lease_privileges(NAME, _NAMESPACE) | certificates.privileges


def generated() -> dict[str, list[Manifest]]:
    """Return the manifests that the operator says itself, by the names of their files."""
    return {
        "definition.yaml": [definition()],
        "roles.yaml": roles(needed(), name=NAME, account=ACCOUNT),
        "webhooks.yaml": configurations(webhooks(), SERVICE),
    }
