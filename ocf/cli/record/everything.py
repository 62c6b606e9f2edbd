"""`ocf record --all`: one scenario of all HPAs of a namespace or a cluster, as far as they may be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ocf.autoscaling.algorithm import Autoscaler
from ocf.cluster import ListOptions
from ocf.controllers.hpa.modes import BUILT_IN
from ocf.errors import ApiError, ConfigError, ManifestError
from ocf.objects import ObjectKey
from ocf.objects.paths import get_field
from ocf.objects.selectors import LabelSelector
from ocf.simulation.scenario.dumped import DumpedAutoscaler, dumped_scenario

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.objects import Manifest

__all__ = ["everything"]


async def everything(cluster: Cluster, namespace: str) -> tuple[str, list[str]]:
    """Return the scenario, and a sentence for each part that could not be read.

    Args:
        namespace: The namespace of the HPAs; empty for all.

    Raises:
        ApiError: If the HPAs cannot be listed.
        ConfigError: If there are none.
    """
    notes: list[str] = []
    autoscalers = await _listed(cluster, *BUILT_IN, namespace)
    if not autoscalers:
        raise ConfigError(f"there is no HorizontalPodAutoscaler in {namespace or 'the cluster'}")
    # Those of other workloads take room on the nodes, so all are asked for first.
    reader = _Reader(cluster, notes)
    everywhere = await reader.listed("v1", "Pod", "", "the room that other pods take on nodes is not known")
    pods = everywhere
    if pods is None and namespace:
        pods = await reader.listed("v1", "Pod", namespace, "requests are those of the pod templates")
    budgets = await reader.listed("policy/v1", "PodDisruptionBudget", namespace, "drains of nodes keep none")
    nodes = await reader.listed("v1", "Node", "", "pods never wait for a node")
    found = [await _dumped(cluster, each, pods or [], notes) for each in autoscalers]
    return dumped_scenario(found, budgets=budgets or [], nodes=nodes or [], pods=everywhere, notes=notes), notes


async def _listed(cluster: Cluster, api_version: str, kind: str, namespace: str) -> Sequence[Manifest]:
    return (await cluster.list(api_version, kind, ListOptions(namespace=namespace))).items


class _Reader:
    """Reads what may be read, and notes what may not."""

    def __init__(self, cluster: Cluster, notes: list[str]) -> None:
        self._cluster = cluster
        self._notes = notes

    async def listed(self, api_version: str, kind: str, namespace: str, without: str) -> Sequence[Manifest] | None:
        """Return all objects of a kind; None if they cannot be listed.

        Args:
            without: What the scenario lacks then.
        """
        try:
            return await _listed(self._cluster, api_version, kind, namespace)
        except ApiError as error:
            self._notes.append(f"{kind} of {namespace or 'the cluster'}: {error}; {without}")
            return None


async def _dumped(cluster: Cluster, hpa: Manifest, pods: Sequence[Manifest], notes: list[str]) -> DumpedAutoscaler:
    autoscaler = Autoscaler.of(hpa)
    key = ObjectKey(autoscaler.api_version, autoscaler.kind, autoscaler.target, autoscaler.namespace)
    try:
        target = await cluster.get(key)
    except ApiError as error:
        notes.append(f"{autoscaler.reference}: {error}; its replicas and requests are assumptions")
        return DumpedAutoscaler(hpa=hpa)
    try:
        selector = LabelSelector.of(get_field(target, ("spec", "selector")))
    except ManifestError as error:
        # Of a kind with another field of this name: a DeploymentConfig of OpenShift has a map of labels.
        notes.append(f"{autoscaler.reference}: spec.selector: {error}; its requests are those of its template")
        return DumpedAutoscaler(hpa=hpa, target=target)
    own = tuple(
        each
        for each in pods
        if get_field(each, ("metadata", "namespace")) == autoscaler.namespace
        and selector.matches(get_field(each, ("metadata", "labels")) or {})
        and get_field(each, ("status", "phase")) not in ("Succeeded", "Failed")
    )
    return DumpedAutoscaler(hpa=hpa, target=target, pods=own)
