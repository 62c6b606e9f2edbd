"""A metrics API behind the served cluster: registered by an APIService, and read by the HPA controller."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import trustme

from ocf.cluster.client import ApiServerCluster
from ocf.controllers.hpa import BUILT_IN, Mode
from ocf.embedded.http import HttpServer, write_kubeconfig
from ocf.objects import ObjectKey
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.certificates import CertificateFiles
from ocf.testing.metrics_stub import MetricsStub
from tests.controllers.hpa.conftest import until
from tests.controllers.hpa.real_server import autoscaler, counts, deployment, running

Kubectl = Callable[..., Awaitable[Any]]


class Served:
    """The served cluster in the place of a control plane, for `MetricsStub`."""

    def __init__(self, server: HttpServer, folder: Path) -> None:
        self._folder = folder
        self._certificates = trustme.CA()
        self.authority = folder / "authority.pem"
        self._certificates.cert_pem.write_to_path(str(self.authority))
        self.kubeconfig = folder / "served"
        write_kubeconfig(server.kubeconfig(), self.kubeconfig)

    async def cluster(self) -> ApiServerCluster:
        return await ApiServerCluster.connect(self.kubeconfig)

    def certificate_for(self, name: str, *hosts: str) -> CertificateFiles:
        issued = self._certificates.issue_cert(*hosts)
        files = CertificateFiles(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        issued.cert_chain_pems[0].write_to_path(str(files.certificate))
        issued.private_key_pem.write_to_path(str(files.key))
        return files


async def test_the_hpa_controller_scales_by_a_metric_behind_the_server(server: HttpServer, tmp_path: Path) -> None:
    served = Served(server, tmp_path)
    async with await served.cluster() as cluster, MetricsStub(cast("ControlPlane", served)) as stub:
        web = await cluster.create(deployment("shop"), field_manager="user")
        await cluster.create(autoscaler(BUILT_IN, "shop"), field_manager="user")
        stub.metrics.set_external("shop", "queue", "40")
        async with running(cluster, Mode.REPLACE):
            await until(cluster, ObjectKey.of(web), counts(4))


async def test_kubectl_shows_the_usage_of_pods(server: HttpServer, kubectl: Kubectl, tmp_path: Path) -> None:
    async with MetricsStub(cast("ControlPlane", Served(server, tmp_path))) as stub:
        stub.metrics.set_usage("shop", "web-0", {"app": {"cpu": "450m", "memory": "10Mi"}}, labels={"app": "web"})
        assert (await kubectl("top", "pods", "-n", "shop", "--no-headers")).out.split() == ["web-0", "450m", "10Mi"]
        shown = (await kubectl("get", "apiservices", "--no-headers")).out
    assert "v1beta1.metrics.k8s.io" in shown
    assert "kube-system/ocf-metrics-stub" in shown
    assert "False" not in shown
