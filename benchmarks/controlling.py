"""Two thousand autoscalers with ten pods each: the cost of one sync of the live controller.

The cluster is the embedded one in virtual time, which advances only while all tasks are waiting. The time of a sync
period of 15 seconds is therefore the work of that period only, including that of the cluster. Every autoscaler scales
by cpu. The counts are the requests that a real API server would receive, including those for metrics.

The setup takes a while, so it runs only when the first figure is requested.
"""

import asyncio
import gc
import json
import resource
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.figures import Count, Suite
from benchmarks.scaled_workloads import PODS, create_workload
from ocf.autoscaling.algorithm import Container, Pod, Readiness, Sample, Scale, Settings, Snapshot, decide
from ocf.controllers.hpa import HpaController, HpaControllerOptions, Mode
from ocf.controllers.hpa.modes import BUILT_IN
from ocf.controllers.hpa.state import StateStore
from ocf.objects import ObjectKey
from ocf.testing import LoopClock
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf.testing.virtual_time import VirtualLoop
from ocf_server import EmbeddedCluster

__all__ = ["resident", "small_suite", "suite"]

_SIZE: Final = 2_000
_FEW: Final = 200
_SMALL: Final = 20
_PERIOD: Final = timedelta(seconds=15)
_SYNC_LIMIT: Final = 15_000
_REMEMBERED_LIMIT: Final = 64_000
_SAMPLED: Final = 20
_NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
_KINDS: Final = 3  # of watches that are renewed now and then: autoscalers, pods, Deployments


class _Counted(FakeMetricsClient):
    """Metrics APIs that count the questions."""

    asked = 0

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        self.asked += 1
        return await super().pod_metrics(namespace, selector)


class _Controlled:
    """Workloads and autoscalers, spread over namespaces, and a controller that runs them.

    Attributes:
        grown: How many bytes of memory the controller took, caches included.
    """

    def __init__(self, size: int, namespaces: int) -> None:
        self._clock = LoopClock()
        self._namespaces = [f"shop-{number}" for number in range(namespaces)]
        # Nothing is garbage here, and looking for it after each write would be most of what setting up costs.
        self._cluster = EmbeddedCluster(namespaces=self._namespaces, now=self._clock.now, collect=False)
        self._metrics = _Counted(self._clock)
        self._controller = HpaController(
            self._cluster, self._metrics, options=HpaControllerOptions(mode=Mode.REPLACE), clock=self._clock
        )
        self._size = size
        self.grown = 0

    @classmethod
    async def bring_up(cls, size: int, namespaces: int) -> "_Controlled":
        """Create everything, start the controller, and let it do what there is to be done."""
        made = cls(size, namespaces)
        for number in range(size):
            await create_workload(made._cluster, made._metrics, f"web-{number}", made._namespaces[number % namespaces])
        await made._start()
        return made

    async def _start(self) -> None:
        self._cluster.requests.clear()
        before = resident()
        self._running = asyncio.create_task(self._controller.run())
        for _ in range(4):
            await self.sync()
        self.grown = resident() - before
        reconciler = self._controller.reconciler
        assert reconciler is not None
        assert len(reconciler.states) == self._size
        assert not any(known.problem for known in reconciler.states), next(iter(reconciler.states)).problem

    async def sync(self) -> None:
        """Advance by one sync period, in which every autoscaler is reconciled."""
        await asyncio.sleep(_PERIOD.total_seconds())

    async def milliseconds(self) -> int:
        """Return how long a sync takes: the middle of three, in time of the processor."""
        taken = []
        for _ in range(3):
            start = time.process_time()
            await self.sync()
            taken.append(time.process_time() - start)
        return round(median(taken) * 1000)

    async def quiet(self) -> tuple[int, int]:
        """Return how many writes, and how many questions for measurements and objects, one sync takes."""
        self._cluster.requests.clear()
        self._metrics.asked = 0
        await self.sync()
        return self._cluster.requests.writes, self._cluster.requests.reads + self._metrics.asked

    async def close(self) -> None:
        """Stop the controller."""
        self._controller.stop()
        await self._running


def _remembered(sampled: int) -> int:
    """Return the bytes remembered of one autoscaler after two hours, with a window of one hour.

    Args:
        sampled: The number of autoscalers that are measured; the result is their mean.
    """
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    manifest = {
        "apiVersion": BUILT_IN[0],
        "kind": BUILT_IN[1],
        "metadata": {"name": "web", "namespace": "shop", "uid": "1"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 50,
            "metrics": [{"type": "Resource", "resource": metric}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 3600}},
        },
    }
    packed, key = json.dumps(manifest), ObjectKey.of(manifest)
    tracemalloc.start()
    memories = [StateStore(Settings()) for _ in range(sampled)]
    known = [memory.get_or_create(key, json.loads(packed))[0] for memory in memories]
    samples, before = {"web-0": Sample(400, _NOW)}, _NOW - timedelta(hours=1)
    pods = (
        Pod(
            name="web-0", started=before, ready=Readiness("True", before), containers=(Container("app", {"cpu": 500}),)
        ),
    )
    for number in range(2 * 3600 // 15):
        now = _NOW + number * _PERIOD
        for each in known:
            assert each.parsed.autoscaler is not None
            seen = Snapshot(
                autoscaler=each.parsed.autoscaler, scale=Scale(1, 1, "app=web"), pods=pods, metric_values=(samples,)
            )
            each.history = decide(seen, each.history, now=now).history
    assert all(len(each.history.recommendations or ()) > 3600 // 15 for each in known)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size // sampled


def resident() -> int:
    """Return how many bytes of memory the process holds; where the system does not say, how many it ever held."""
    gc.collect()
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@contextmanager
def _suite(size: int, few: int, sampled: int) -> Iterator[Suite]:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        started: list[_Controlled] = []

        @cache
        def controlled(number: int, namespaces: int) -> _Controlled:
            made = runner.run(_Controlled.bring_up(number, namespaces))
            started.append(made)
            return made

        @cache
        def quiet(number: int, namespaces: int) -> tuple[int, int]:
            return runner.run(controlled(number, namespaces).quiet())

        def count(name: str, what: str, value: Any, limit: int | None = None) -> Count:
            return Count(name=f"controlling.{name}", what=what, value=value, limit=limit)

        yield [
            count(
                "sync",
                f"milliseconds of a sync of {size} autoscalers with {PODS} pods each, the cluster's part included",
                lambda: runner.run(controlled(size, 10).milliseconds()),
                _SYNC_LIMIT,
            ),
            count(
                "remembered",
                "bytes remembered of an autoscaler that looks back for an hour, once that is full",
                lambda: _remembered(sampled),
                _REMEMBERED_LIMIT,
            ),
            count("writes", "its writes, where nothing is to be done", lambda: quiet(size, 10)[0], 0),
            *(
                count(
                    name,
                    f"requests of a sync of {number} autoscalers in {namespaces} namespace{'s' * (namespaces > 1)}",
                    lambda number=number, namespaces=namespaces: quiet(number, namespaces)[1],
                    namespaces + 2 * _KINDS,
                )
                for name, number, namespaces in (
                    ("one-namespace", few, 1),
                    ("ten-namespaces", few, 10),
                    ("hundred-namespaces", few, 100),
                    ("many", size, 10),
                )
            ),
            count(
                "memory",
                "KiB of memory per autoscaler and its pods, caches included",
                lambda: controlled(size, 10).grown // size // 1024,
            ),
        ]
        for made in started:
            runner.run(made.close())


suite = partial(_suite, _SIZE, _FEW, _SAMPLED)
"""Give the cases."""
small_suite = partial(_suite, _SMALL, _SMALL // 2, 1)
"""Give them over few autoscalers, for a run that only shows that everything works."""
