"""One replica of an operator of shops, as a process: `python -m tests.runtime.operator.sharded_process`.

Arguments: a kubeconfig, its name, the namespace of the lease, what the owners are divided by (`none` for no sharding),
and the file to which it appends a line for each reconcile: begin and end by the clock of the machine, and the uid. Each
second, and at its end, it writes a line with its cost so far.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

from ocf.cluster import Cluster, InterceptingCluster, Request, WatchEvent, WatchOptions
from ocf.cluster.client import ApiServerCluster
from ocf.cluster.protocol import EventType
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


class Counted(InterceptingCluster):
    """A cluster whose writes and events are counted by kind."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.writes: Counter[str] = Counter()
        self.events: Counter[str] = Counter()

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        self.writes[request.kind] += not request.verb.is_read
        return await send()

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        async for event in super().watch(api_version, kind, options):
            self.events[kind] += event.type is not EventType.BOOKMARK
            yield event

    def cost(self) -> str:
        return json.dumps({"writes": self.writes, "events": self.events}) + "\n"


async def main(kubeconfig: str, name: str, namespace: str, by: str, lines: TextIO) -> None:
    sharding = None if by == "none" else Sharding(by=cast('Literal["uid", "namespace"]', by))
    options = ManagerOptions(lease=Lease("shops", namespace, name), sharding=sharding, listen=None, events=False)
    async with await ApiServerCluster.connect(Path(kubeconfig)) as cluster:
        counted = Counted(cluster)

        async def report() -> None:
            while True:
                lines.write(counted.cost())
                await asyncio.sleep(1)

        reporting = asyncio.create_task(report())
        await run(counted, operator(name, lines), options=options)
        reporting.cancel()
    lines.write(counted.cost())


if __name__ == "__main__":
    config, replica, home, divided, log = sys.argv[1:]
    with seldom_collecting(), Path(log).open("a", buffering=1, encoding="utf-8") as written:
        asyncio.run(main(config, replica, home, divided, written))
