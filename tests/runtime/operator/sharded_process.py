"""One replica of an operator of shops, as a process: `python -m tests.runtime.operator.sharded_process`.

Arguments: a kubeconfig, its name, the namespace of the lease, what the owners are divided by (`none` for no sharding),
and the file to which it appends a line for each reconcile: begin and end by the clock of the machine, and the uid. At
its end it writes a line with its cost.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO, cast

from ocf.cluster.client import ApiServerCluster
from ocf.runtime.operator import Lease, ManagerOptions, Operator, Sharding, run
from ocf.runtime.operator.run import seldom_collecting

from .conftest import SHOPS, Shop, components_of

if TYPE_CHECKING:
    from ocf.component import Component, ReconcileContext


def operator(name: str, lines: TextIO) -> Operator[Shop]:
    """Return the operator, which writes a line for each reconcile."""

    async def reconcile(owner: Shop, _: ReconcileContext) -> Component:
        begin = time.monotonic()
        # Long enough for another replica to be seen at the same owner.
        await asyncio.sleep(0.002)
        lines.write(json.dumps([name, begin, time.monotonic(), owner.metadata.uid]) + "\n")
        return components_of(owner)

    owns = [("v1", "ConfigMap"), ("v1", "Service")]
    return Operator(name="shops", owner=SHOPS, components=reconcile, owns=owns, workers=8)


async def main(kubeconfig: str, name: str, namespace: str, by: str, lines: TextIO) -> None:
    sharding = None if by == "none" else Sharding(by=cast('Literal["uid", "namespace"]', by))
    options = ManagerOptions(lease=Lease("shops", namespace, name), sharding=sharding, listen=None, events=False)
    async with await ApiServerCluster.connect(Path(kubeconfig)) as cluster:
        await run(cluster, operator(name, lines), options=options)
    used = resource.getrusage(resource.RUSAGE_SELF)
    cost = {"name": name, "cpu": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024}
    lines.write(json.dumps(cost) + "\n")


if __name__ == "__main__":
    config, replica, home, divided, log = sys.argv[1:]
    with seldom_collecting(), Path(log).open("a", buffering=1, encoding="utf-8") as written:
        asyncio.run(main(config, replica, home, divided, written))
