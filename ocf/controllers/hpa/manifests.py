"""Installation manifests of the controller: CRD, service account, roles with least privilege, and Deployment."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ocf.controllers.hpa.modes import GROUP, Mode
from ocf.controllers.hpa.take_over import RIVAL_LEASE
from ocf.controllers.installation import ControllerPod, controller_manifests
from ocf.controllers.metrics_client import RESOURCE_METRICS
from ocf.controllers.metrics_client.client import CUSTOM_METRICS, EXTERNAL_METRICS
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.runtime.rbac import EVENTS, PolicyRule, lease_rules

__all__ = ["NAME", "TARGETS", "HpaInstallation", "ScalableResource", "cluster_role", "installation_manifests"]

NAME: Final = "ocf-hpa-controller"
"""The name of the lease and of all installed objects."""

_BUILT_IN: Final = "autoscaling"
_AUTOSCALERS: Final = "horizontalpodautoscalers"
_OWN: Final = "horizontalautoscalers"
_READ: Final = ("list", "watch")


@dataclass(frozen=True, slots=True, order=True)
class ScalableResource:
    """A resource that may be scaled.

    Args:
        group: Its API group; empty for the core.
        resource: Its name, `deployments`.
        derived: Whether its Scale is derived from the object itself, which is watched.
    """

    group: str
    resource: str
    derived: bool = False

    @classmethod
    def parse(cls, text: str) -> "ScalableResource":
        """Parse a resource as kubectl writes it.

        Args:
            text: `rollouts.argoproj.io`; without a dot a resource of the core group, `replicationcontrollers`.

        Raises:
            ConfigError: If the text is not a resource.

        Example:
            >>> ScalableResource.parse("rollouts.argoproj.io")
            ScalableResource(group='argoproj.io', resource='rollouts', derived=False)
        """
        resource, _, group = text.partition(".")
        if not resource or resource != resource.lower() or "/" in text or text.endswith("."):
            raise ConfigError(f'must be a resource like "rollouts.argoproj.io", in plural, not {text!r}')
        known = next((one for one in TARGETS if (one.group, one.resource) == (group, resource)), None)
        if known is None and not group:
            raise ConfigError(
                f'must name its group, as "deployments.apps" does, not {text!r}: '
                "of the core group only replicationcontrollers can be scaled"
            )
        return known or cls(group, resource)


TARGETS: Final = (
    ScalableResource("", "replicationcontrollers", derived=True),
    ScalableResource("apps", "deployments", derived=True),
    ScalableResource("apps", "replicasets", derived=True),
    ScalableResource("apps", "statefulsets", derived=True),
)
"""The built-in resources that can be scaled."""


def cluster_role(
    mode: Mode,
    *,
    targets: Iterable[ScalableResource] = TARGETS,
    lease_namespace: str = "",
    sharding: bool = False,
) -> frozenset[PolicyRule]:
    """Return the policy rules that the controller needs, and no others.

    Args:
        mode: Which autoscalers it runs.
        targets: The resources that may be scaled.
        lease_namespace: The namespace of its lease; empty without leader election.
        sharding: Whether several replicas are at work, each with a Lease of its own.

    Example:
        >>> sorted(one.resource for one in cluster_role(Mode.DRY_RUN) if one.verb == "update")
        []
    """
    found = {PolicyRule("", "pods", verb) for verb in _READ}
    found |= {PolicyRule(_BUILT_IN, _AUTOSCALERS, verb) for verb in _READ}
    found |= set(_target_rules(targets, writes=mode.writes))
    found |= {
        PolicyRule(RESOURCE_METRICS, "pods", "list"),
        # A custom metric is the subresource of an object that is named, so the verb is get, on any resource; an
        # external metric is a resource itself, which is listed.
        PolicyRule(CUSTOM_METRICS, "*", "get"),
        PolicyRule(EXTERNAL_METRICS, "*", "list"),
    }
    if mode is Mode.OWN_KIND:
        found |= {PolicyRule(GROUP, _OWN, verb) for verb in _READ} | {PolicyRule(GROUP, f"{_OWN}/status", "update")}
    elif mode.writes:
        found.add(PolicyRule(_BUILT_IN, f"{_AUTOSCALERS}/status", "update"))
        one, where = RIVAL_LEASE.name, RIVAL_LEASE.namespace
        found.add(PolicyRule("coordination.k8s.io", "leases", "get", name=one, namespace=where))
    if mode.writes:
        found |= EVENTS
        if lease_namespace:
            found |= lease_rules(NAME, lease_namespace, sharded=sharding)
    return frozenset(found)


def _target_rules(targets: Iterable[ScalableResource], *, writes: bool) -> Iterator[PolicyRule]:
    for target in targets:
        if target.derived:
            for verb in _READ:
                yield PolicyRule(target.group, target.resource, verb)
        if writes or not target.derived:  # a conflict reads the Scale again
            yield PolicyRule(target.group, f"{target.resource}/scale", "get")
        if writes:
            yield PolicyRule(target.group, f"{target.resource}/scale", "update")


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaInstallation:
    """The settings of an installation.

    Args:
        mode: Which autoscalers the controller runs.
        namespace: The namespace of the controller.
        image: The container image; it has `ocf` on its path.
        arguments: The arguments of `ocf hpa-controller`.
        replicas: The number of processes; one leads, the others wait.
        targets: The resources that may be scaled.
        leader_election: Whether a leader is elected.
        sharding: Whether all processes work, each on the autoscalers of a part of the namespaces.
    """

    mode: Mode
    namespace: str
    image: str
    arguments: Sequence[str] = ()
    replicas: int = 2
    targets: Sequence[ScalableResource] = TARGETS
    leader_election: bool = True
    sharding: bool = False


def installation_manifests(wanted: HpaInstallation) -> list[Manifest]:
    """Return the manifests of an installation, in the order in which to apply them.

    Args:
        wanted: The settings of the installation.

    Returns:
        The CustomResourceDefinition in mode own-kind, a service account, roles with bindings, and a Deployment.
    """
    from ocf.controllers.hpa.crd import definition

    needed = cluster_role(
        wanted.mode,
        targets=wanted.targets,
        lease_namespace=wanted.namespace if wanted.leader_election else "",
        sharding=wanted.sharding,
    )
    elected = wanted.leader_election and wanted.mode.writes
    pod = ControllerPod(
        image=wanted.image,
        command=["ocf", "hpa-controller"],
        arguments=wanted.arguments,
        replicas=wanted.replicas if elected else 1,
        alone=not elected,
    )
    own = [definition()] if wanted.mode is Mode.OWN_KIND else []
    return [*own, *controller_manifests(NAME, wanted.namespace, needed, pod)]
