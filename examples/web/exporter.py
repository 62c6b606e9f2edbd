"""The optional exporter: metrics of the application.

One gate controls two things: the exporter's Deployment, and the port of the application that the exporter reads.
"""

from __future__ import annotations

from typing import Final

from kubernetes.client import V1ContainerPort

from examples.web.shop import Part, Shop
from ocf.editors import ContainerEditor, container_named
from ocf.feature import BooleanGate, Gate, VersionGate
from ocf.primitives import deployment

__all__ = ["METRICS_PORT", "exporter", "metrics", "wanted"]

METRICS_PORT: Final = 9100


def wanted(shop: Shop) -> Gate:
    """Return the gate of the exporter, which is open if the user enables it."""
    return BooleanGate(shop.spec.exporter)


def exporter(shop: Shop) -> deployment.Builder:
    """Return the Deployment of the exporter; its baseline is for the newest version of the product."""
    # The second Deployment of its component: with the selector of the first, each would select the pods of the other.
    labels = {"app.kubernetes.io/instance": shop.metadata.name, "app.kubernetes.io/component": "exporter"}
    container = {
        "name": "exporter",
        "image": f"registry.example.com/shop/exporter:{shop.spec.version}",
        "args": [f"--from={shop.name_of(Part.WEB)}:{METRICS_PORT}", "--path=/metrics"],
    }
    base = {
        "metadata": {"name": shop.name_of(Part.EXPORTER), "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    return deployment.Builder(base).with_mutation(stats_path(shop.spec.version))


def stats_path(version: str) -> deployment.Mutation:
    """Return the mutation that reads the metrics of 1.x from `/stats`."""

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_containers(container_named("exporter"))
        def _(container: ContainerEditor) -> None:
            container.remove_arg("--path=/metrics")
            container.ensure_arg("--path=/stats")

    return deployment.Mutation("stats-path", mutate, feature=VersionGate(version, "< 2.0"))


def metrics(shop: Shop) -> deployment.Mutation:
    """Return the mutation of the application's Deployment that enables metrics and opens their port."""

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_containers(container_named("web"))
        def _(web: ContainerEditor) -> None:
            web.ensure_port(V1ContainerPort(name="metrics", container_port=METRICS_PORT))
            web.ensure_arg(f"--metrics=:{METRICS_PORT}")

    return deployment.Mutation("metrics", mutate, feature=wanted(shop))
