"""Clients of the commands that read an autoscaler of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.controllers.hpa.snapshot.scale_getter import ScaleGetter
    from ocf.controllers.metrics_client import MetricsClient
    from ocf.errors import ConfigError, NotFoundError
    from ocf.objects import ObjectKey

__all__ = ["AutoscalerClients", "context_namespace", "missing_autoscaler", "open_clients"]


class AutoscalerClients(NamedTuple):
    """The clients with which an autoscaler is read."""

    cluster: Cluster
    scales: ScaleGetter
    metrics: MetricsClient


@asynccontextmanager
async def open_clients(kubeconfig: str | None, context: str | None) -> AsyncIterator[AutoscalerClients]:
    """Connect to the cluster.

    Args:
        kubeconfig: Kubeconfig file; None for the default of kubectl.
        context: Context of the kubeconfig; None for the current one.
    """
    from ocf.cluster.client import ApiServerCluster
    from ocf.controllers.hpa.snapshot import SubresourceScaleGetter
    from ocf.controllers.metrics_client import RESTMapper, RESTMetricsClient

    async with await ApiServerCluster.connect(kubeconfig, context=context) as cluster:
        kinds = RESTMapper(cluster)
        scales = SubresourceScaleGetter(cluster, cluster, kinds=kinds)
        yield AutoscalerClients(cluster, scales, RESTMetricsClient(cluster, kinds=kinds))


async def missing_autoscaler(cluster: Cluster, key: ObjectKey, error: NotFoundError) -> ConfigError:
    """Return the error of an autoscaler that does not exist, with its namespace and the names of those in it."""
    from ocf.cluster import ListOptions
    from ocf.errors import ApiError, ConfigError, NotFoundError

    try:
        found = await cluster.list(key.api_version, key.kind, ListOptions(namespace=key.namespace))
        names = ", ".join(sorted(each["metadata"]["name"] for each in found.items)) or "none"
    except NotFoundError:
        # The kind is not served.
        names = "none"
    except ApiError as problem:
        names = f"not known ({problem.message})"
    return ConfigError(f"{error.message}; autoscalers in namespace {key.namespace}: {names}")


def context_namespace(kubeconfig: str | None, context: str | None) -> str:
    """Return the namespace of a context, as kubectl does.

    Args:
        kubeconfig: Kubeconfig file; None for the default of kubectl.
        context: Context of the kubeconfig; None for the current one.
    """
    from kubernetes.config import list_kube_config_contexts

    try:
        found: tuple[Any, Any] = list_kube_config_contexts(config_file=kubeconfig)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 (connecting reports the error, without secrets)
        return "default"
    contexts, active = found
    selected = [each for each in contexts if each["name"] == context] if context else [active]
    return str(selected[0]["context"].get("namespace") or "default") if selected else "default"
