"""Metrics of pods that share the load of their clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ocf.cluster import Cluster, ListOptions
from ocf.testing.fake_metrics import FakeMetricsClient
from tests.controllers.nodegroup.whole_cluster.history import is_serving

__all__ = ["SharedLoad"]


class SharedLoad(FakeMetricsClient):
    """Cpu usage of pods: the ready ones share `millicores` equally, the others use nothing and report nothing.

    Args:
        cluster: The cluster of the pods.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.millicores = 0
        self._cluster = cluster

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        pods = (await self._cluster.list("v1", "Pod", ListOptions(namespace=namespace, label_selector=selector))).items
        ready = [each["metadata"] for each in pods if is_serving(each)]
        used = f"{self.millicores // max(len(ready), 1)}m"
        for pod in ready:
            self.set_usage(namespace, pod["name"], {"app": {"cpu": used}}, labels=pod.get("labels"), window="1ms")
        known = {pod["name"] for pod in ready}
        return [each for each in await super().pod_metrics(namespace, selector) if each["metadata"]["name"] in known]
