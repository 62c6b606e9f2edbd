"""The node-group controller as a process that kills itself after given writes, each of them once.

`python -m tests.controllers.nodegroup.whole_cluster.process KUBECONFIG FOLDER STEP...`; all processes with one folder
share the steps that are done.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

from ocf.cluster import Cluster, Request, Subresource
from ocf.cluster.client import ApiServerCluster
from ocf.cluster.interceptor import InterceptingCluster
from ocf.controllers.nodegroup.manifests import NAME
from ocf.controllers.nodegroup.options import ControllerOptions
from ocf.controllers.nodegroup.plan import Plan
from ocf.controllers.nodegroup.process import ProcessOptions, run_process
from ocf.controllers.nodegroup.providers.kwok import KwokProvider
from ocf.objects import Manifest
from ocf.runtime.leader import Timing
from ocf.runtime.operator import Lease, Listen
from tests.controllers.nodegroup.whole_cluster.environment import SYSTEM, TYPES
from tests.controllers.nodegroup.whole_cluster.shifted_clock import ShiftedClock

__all__ = ["RECONCILED", "SHIFT", "STEPS", "done"]

RECONCILED: Final = "reconciled"
"""The line that a process prints for each reconcile."""

SHIFT: Final = "shift"
"""The file of the clock in the folder."""

_DONE: Final = "done"
_TIMING: Final = Timing(
    lease=timedelta(seconds=3), renew_deadline=timedelta(seconds=2), retry_period=timedelta(milliseconds=250)
)
Step: TypeAlias = Callable[[Request, Manifest], bool]
"""Returns whether a write is the one, from the request and the object in the answer."""


def _wrote(verb: str, kind: str, subresource: Subresource | None = None) -> Step:
    return lambda request, _: (request.verb, request.kind, request.subresource) == (verb, kind, subresource)


def _stored(kind: str, condition: Callable[[Mapping[str, Any]], Any]) -> Step:
    written = _wrote("update", kind, Subresource.STATUS)
    return lambda request, answer: written(request, answer) and bool(condition(answer.get("status") or {}))


STEPS: Final[Mapping[str, Step]] = {
    "decision to add": _stored("NodeGroup", lambda status: status["lastDecision"].startswith("add")),
    "object created": _wrote("create", "VPSieNode"),
    "request stored": _stored("VPSieNode", lambda status: status["phase"] == "Provisioning"),
    "machine created": _wrote("create", "Node"),
    "request accepted": _stored("VPSieNode", lambda status: "acceptedAt" in status),
    "node ready": _stored("VPSieNode", lambda status: status["phase"] == "Ready"),
    "failure stored": _stored("VPSieNode", lambda status: status["phase"] == "Failed"),
    "refusal counted": _stored("NodeGroup", lambda status: status.get("backoffs")),
    "drain stored": _stored("VPSieNode", lambda status: status["phase"] == "Draining"),
    "node cordoned": _wrote("patch", "Node"),
    "pod evicted": _wrote("create", "Pod", Subresource.EVICTION),
    "object deleted": _wrote("delete", "VPSieNode"),
    "deletion stored": _stored("VPSieNode", lambda status: status["phase"] == "Terminating"),
    "machine deleted": _wrote("delete", "Node"),
    "finalizer removed": _wrote("patch", "VPSieNode"),
}
"""The writes after which a process may be killed, by what they have done."""


def done(folder: Path) -> list[str]:
    """Return the steps after which a process was killed, in order.

    Args:
        folder: The folder of the processes.
    """
    file = folder / _DONE
    return file.read_text(encoding="ascii").splitlines() if file.exists() else []


class _KillingCluster(InterceptingCluster):
    """A cluster that kills this process after the first write that is the next step."""

    def __init__(self, cluster: Cluster, folder: Path, steps: Sequence[str]) -> None:
        super().__init__(cluster)
        self._folder = folder
        self._steps = steps

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        answer = await send()
        past = done(self._folder)
        if not request.verb.is_read and len(past) < len(self._steps):
            step = self._steps[len(past)]
            if STEPS[step](request, answer):
                (self._folder / _DONE).write_text("\n".join([*past, step]), encoding="ascii")
                os.kill(os.getpid(), signal.SIGKILL)
        return answer


async def _main(kubeconfig: str, folder: Path, steps: Sequence[str]) -> None:
    def report(_: Plan) -> None:
        sys.stdout.write(f"{RECONCILED}\n")
        sys.stdout.flush()

    options = ProcessOptions(
        controller=ControllerOptions(
            busy_period=timedelta(milliseconds=500),
            idle_period=timedelta(milliseconds=300),
            quiet_period=timedelta(milliseconds=100),
            report=report,
        ),
        lease=Lease(NAME, SYSTEM, timing=_TIMING),
        listen=Listen(0, "127.0.0.1"),
    )
    async with await ApiServerCluster.connect(Path(kubeconfig)) as cluster:
        await run_process(
            _KillingCluster(cluster, folder, steps),
            lambda where: KwokProvider(where, TYPES),
            options,
            asyncio.Event(),
            clock=ShiftedClock(folder / SHIFT),
        )


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
