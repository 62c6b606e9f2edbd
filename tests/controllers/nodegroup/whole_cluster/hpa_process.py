"""The HPA controller as a process that kills itself after given writes, each of them once.

`python -m tests.controllers.nodegroup.whole_cluster.hpa_process KUBECONFIG FOLDER STEP...`; all processes with one
folder share the steps that are done.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from ocf.autoscaling.algorithm import Settings
from ocf.cluster import Cluster, Subresource
from ocf.cluster.client import ApiServerCluster
from ocf.concepts import Recorder
from ocf.controllers.hpa import HpaController, HpaControllerOptions, Mode
from ocf.controllers.hpa.manifests import NAME
from ocf.controllers.hpa.reporter import COMPONENT
from ocf.controllers.hpa.take_over import CLAIM_REASON
from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.controllers.process import leader_runner
from ocf.runtime.operator import Lease
from tests.controllers.nodegroup.whole_cluster.environment import SYSTEM
from tests.controllers.nodegroup.whole_cluster.killing import KillingCluster, Step, stored, wrote
from tests.controllers.nodegroup.whole_cluster.process import TIMING

__all__ = ["STEPS"]

_KIND: Final = "HorizontalPodAutoscaler"


def _is_claimed(status: Mapping[str, Any]) -> bool:
    return any(each["reason"] == CLAIM_REASON for each in status.get("conditions") or ())


STEPS: Final[Mapping[str, Step]] = {
    "autoscaler claimed": stored(_KIND, _is_claimed),
    "target scaled": wrote("update", "Deployment", Subresource.SCALE),
    "status stored": stored(_KIND, lambda status: not _is_claimed(status)),
}
"""The writes after which a process may be killed, by what they have done."""


async def _main(kubeconfig: str, folder: Path, steps: Sequence[str]) -> None:
    options = HpaControllerOptions(
        mode=Mode.REPLACE,
        settings=Settings(sync_period=timedelta(milliseconds=300)),
        take_over_delay=timedelta(seconds=1),
    )
    async with await ApiServerCluster.connect(Path(kubeconfig)) as cluster:

        def make(where: Cluster, events: Recorder | None) -> HpaController:
            return HpaController(where, RESTMetricsClient(cluster), options=options, events=events, reader=cluster)

        killing = KillingCluster(cluster, folder, steps, STEPS)
        lease = Lease(NAME, SYSTEM, timing=TIMING)
        await leader_runner(killing, make, component=COMPONENT, lease=lease).run()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
