"""Installation manifests of the controller: definitions, service account, roles with least privilege, Deployment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ocf.controllers.installation import ControllerPod, controller_manifests
from ocf.controllers.metrics_client import RESOURCE_METRICS
from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition
from ocf.controllers.nodegroup.model import GROUP
from ocf.objects import Manifest
from ocf.runtime.rbac import EVENTS, PolicyRule, lease_rules

__all__ = ["NAME", "PRIORITY_CLASS", "NodeGroupInstallation", "cluster_role", "installation_manifests"]

NAME: Final = "ocf-nodegroup-controller"
"""The name of the lease and of all installed objects."""

PRIORITY_CLASS: Final = "system-cluster-critical"
"""The priority class of its pods."""

_READ: Final = ("list", "watch")
_READS: Final = (
    ("", "nodes"),
    ("", "pods"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "namespaces"),
    ("policy", "poddisruptionbudgets"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "csinodes"),
    ("apps", "daemonsets"),
    (GROUP, "nodegroups"),
    (GROUP, "vpsienodes"),
)
_WRITES: Final = (
    # Stores nothing: its answer has the time of the API server.
    PolicyRule("authentication.k8s.io", "selfsubjectreviews", "create"),
    PolicyRule("", "nodes", "patch"),
    PolicyRule("", "nodes", "delete"),
    PolicyRule("", "pods/eviction", "create"),
    PolicyRule(GROUP, "nodegroups", "patch"),
    PolicyRule(GROUP, "nodegroups/status", "update"),
    # Where the admission plugin OwnerReferencesPermissionEnforcement runs, a blocking owner reference needs it.
    PolicyRule(GROUP, "nodegroups/finalizers", "update"),
    PolicyRule(GROUP, "vpsienodes", "create"),
    PolicyRule(GROUP, "vpsienodes", "patch"),
    PolicyRule(GROUP, "vpsienodes", "delete"),
    PolicyRule(GROUP, "vpsienodes/status", "update"),
)


def cluster_role(*, dry_run: bool = False, lease_namespace: str = "") -> frozenset[PolicyRule]:
    """Return the policy rules that the controller needs, without those of its provider.

    Args:
        dry_run: Whether it only decides.
        lease_namespace: The namespace of its lease; empty without leader election.

    Example:
        >>> sorted({rule.verb for rule in cluster_role(dry_run=True)})
        ['list', 'watch']
    """
    found = {PolicyRule(group, resource, verb) for group, resource in _READS for verb in _READ}
    found.add(PolicyRule(RESOURCE_METRICS, "nodes", "list"))
    if not dry_run:
        found |= {*_WRITES, *EVENTS}
        if lease_namespace:
            found |= lease_rules(NAME, lease_namespace)
    return frozenset(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupInstallation:
    """The settings of an installation.

    Args:
        namespace: The namespace of the controller.
        image: The container image.
        command: The command that runs the controller with a provider.
        replicas: The number of processes; one leads, the others wait.
        leader_election: Whether a leader is elected.
        dry_run: Whether it only decides.
        provider_rules: The policy rules that its provider needs.
        config_maps: ConfigMaps of the user to mount: their names by path.
        secrets: Secrets of the user to mount: their names by path.
    """

    namespace: str
    image: str
    command: Sequence[str]
    replicas: int = 2
    leader_election: bool = True
    dry_run: bool = False
    provider_rules: frozenset[PolicyRule] = frozenset()
    config_maps: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)


def installation_manifests(wanted: NodeGroupInstallation) -> list[Manifest]:
    """Return the manifests of an installation, in the order in which to apply them.

    Args:
        wanted: The settings of the installation.

    Returns:
        The definitions, a service account, roles with bindings, and a Deployment.
    """
    elected = wanted.leader_election and not wanted.dry_run
    needed = cluster_role(dry_run=wanted.dry_run, lease_namespace=wanted.namespace if elected else "")
    pod = ControllerPod(
        image=wanted.image,
        command=wanted.command,
        replicas=wanted.replicas if elected else 1,
        alone=not elected,
        # It must be able to run while nodes are missing.
        priority_class=PRIORITY_CLASS,
        config_maps=wanted.config_maps,
        secrets=wanted.secrets,
    )
    definitions = [node_group_definition(), node_definition()]
    return [*definitions, *controller_manifests(NAME, wanted.namespace, needed | wanted.provider_rules, pod)]
