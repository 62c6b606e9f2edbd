"""A metrics API behind the served cluster: registered by an APIService, and read by the HPA controller."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ocf.cluster.client import ApiServerCluster
from ocf.controllers.hpa import Mode
from ocf.controllers.hpa.modes import BUILT_IN
from ocf.objects import ObjectKey
from ocf.testing.metrics_stub import MetricsStub
from ocf_server.http import write_kubeconfig
from ocf_server.http.server import HttpServer
from tests.controllers.hpa.conftest import until
from tests.controllers.hpa.real_server import autoscaler, counts, deployment, running

Kubectl = Callable[..., Awaitable[Any]]


@pytest.fixture
def kubeconfig(server: HttpServer, tmp_path: Path) -> Path:
    write_kubeconfig(server.kubeconfig(), tmp_path / "served")
    return tmp_path / "served"


async def test_the_hpa_controller_scales_by_a_metric_behind_the_server(kubeconfig: Path) -> None:
    async with await ApiServerCluster.connect(kubeconfig) as cluster, MetricsStub(kubeconfig) as stub:
        web = await cluster.create(deployment("shop"), field_manager="user")
        await cluster.create(autoscaler(BUILT_IN, "shop"), field_manager="user")
        stub.metrics.set_external("shop", "queue", "40")
        async with running(cluster, Mode.REPLACE):
            await until(cluster, ObjectKey.of(web), counts(4))


async def test_kubectl_shows_the_usage_of_pods(kubectl: Kubectl, kubeconfig: Path) -> None:
    async with MetricsStub(kubeconfig) as stub:
        stub.metrics.set_usage("shop", "web-0", {"app": {"cpu": "450m", "memory": "10Mi"}}, labels={"app": "web"})
        assert (await kubectl("top", "pods", "-n", "shop", "--no-headers")).out.split() == ["web-0", "450m", "10Mi"]
        shown = (await kubectl("get", "apiservices", "--no-headers")).out
    assert "v1beta1.metrics.k8s.io" in shown
    assert "kube-system/ocf-metrics-stub" in shown
    assert "False" not in shown
