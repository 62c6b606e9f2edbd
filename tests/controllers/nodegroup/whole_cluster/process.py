"""The node-group controller as a process that kills itself after given writes, each of them once.

`python -m tests.controllers.nodegroup.whole_cluster.process KUBECONFIG FOLDER STEP...`; all processes with one folder
share the steps that are done.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from ocf.cluster import Subresource
from ocf.cluster.client import ApiServerCluster
from ocf.controllers.nodegroup.manifests import NAME
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.plan import NodeGroupPlan
from ocf.controllers.nodegroup.providers.kwok import KwokProvider
from ocf.runtime.leader import Timing
from ocf.runtime.operator import Lease
from tests.controllers.nodegroup.whole_cluster.environment import SYSTEM, TYPES
from tests.controllers.nodegroup.whole_cluster.in_process import shifted_runner
from tests.controllers.nodegroup.whole_cluster.killing import KillingCluster, Step, stored, wrote
from tests.controllers.nodegroup.whole_cluster.shifted_clock import ShiftedClock

__all__ = ["RECONCILED", "SHIFT", "STEPS", "TIMING"]

RECONCILED: Final = "reconciled"
"""The line that a process prints for each reconcile."""

SHIFT: Final = "shift"
"""The file of the clock in the folder."""

TIMING: Final = Timing(
    lease=timedelta(seconds=3), renew_deadline=timedelta(seconds=2), retry_period=timedelta(milliseconds=250)
)
"""A lease that ends soon after its holder was killed."""

STEPS: Final[Mapping[str, Step]] = {
    "decision to add": stored("NodeGroup", lambda status: status["lastDecision"].startswith("add")),
    "object created": wrote("create", "VPSieNode"),
    "request stored": stored("VPSieNode", lambda status: status["phase"] == "Provisioning"),
    "machine created": wrote("create", "Node"),
    "request accepted": stored("VPSieNode", lambda status: "acceptedAt" in status),
    "node ready": stored("VPSieNode", lambda status: status["phase"] == "Ready"),
    "failure stored": stored("VPSieNode", lambda status: status["phase"] == "Failed"),
    "refusal counted": stored("NodeGroup", lambda status: status.get("backoffs")),
    "drain stored": stored("VPSieNode", lambda status: status["phase"] == "Draining"),
    "node cordoned": wrote("patch", "Node"),
    "pod evicted": wrote("create", "Pod", Subresource.EVICTION),
    "object deleted": wrote("delete", "VPSieNode"),
    "deletion stored": stored("VPSieNode", lambda status: status["phase"] == "Terminating"),
    "machine deleted": wrote("delete", "Node"),
    "finalizer removed": wrote("patch", "VPSieNode"),
}
"""The writes after which a process may be killed, by what they have done."""


async def _main(kubeconfig: str, folder: Path, steps: Sequence[str]) -> None:
    def report(_: NodeGroupPlan) -> None:
        sys.stdout.write(f"{RECONCILED}\n")
        sys.stdout.flush()

    options = NodeGroupControllerOptions(
        busy_period=timedelta(milliseconds=500),
        idle_period=timedelta(milliseconds=300),
        quiet_period=timedelta(milliseconds=100),
        report=report,
    )
    async with await ApiServerCluster.connect(Path(kubeconfig)) as cluster:
        runner = shifted_runner(
            KillingCluster(cluster, folder, steps, STEPS),
            lambda where: KwokProvider(where, TYPES),
            options,
            lease=Lease(NAME, SYSTEM, timing=TIMING),
            clock=ShiftedClock(folder / SHIFT),
            stopped=asyncio.Event(),
        )
        await runner.run()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
