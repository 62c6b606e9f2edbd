"""The action `migrate` of `ocf hpa-controller`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ocf.cli.output import echo

__all__ = ["run_migration"]


def run_migration(
    names: Sequence[str], namespace: str, *, back: bool, kubeconfig: str | None, context: str | None
) -> None:
    """Migrate autoscalers one after the other, and print each step.

    Args:
        names: Their names.
        namespace: Their namespace.
        back: Whether to migrate to HorizontalPodAutoscaler.
        kubeconfig: The kubeconfig file; None for that of kubectl.
        context: The context of the kubeconfig; None for the current one.

    Raises:
        ConfigError: If no name is given, or an autoscaler cannot be converted.
        ServerError: If a controller does not act in time.
    """
    from ocf.errors import ConfigError

    if not names:
        raise ConfigError("migrate needs the names of autoscalers: ocf hpa-controller migrate web --namespace shop")
    asyncio.run(_migrate(names, namespace, back=back, kubeconfig=kubeconfig, context=context))


async def _migrate(
    names: Sequence[str], namespace: str, *, back: bool, kubeconfig: str | None, context: str | None
) -> None:
    from ocf.cluster.client import ApiServerCluster
    from ocf.controllers.hpa.migration import migrate

    async with await ApiServerCluster.connect(kubeconfig, context=context) as cluster:
        for name in names:
            await migrate(cluster, name, namespace, back=back, report=echo)
