"""The live HPA controller beside that of kube-controller-manager, on a real API server.

Both run one after the other on the same autoscalers, each with ten pods, spread over ten namespaces, where nothing has
to be scaled. Each is a process of its own, without a client-side rate limit; its CPU time, user and system, is divided
by the syncs that it counts itself, so a busy machine does not change the figures much.

Without the programs of the control plane, the rows are left out.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from typing import Final, TypeAlias

import aiohttp

from benchmarks.figures import Count, Suite
from benchmarks.programs import cpu_seconds, resident, running, waiting_for
from benchmarks.scaled_workloads import PODS, create_workload
from ocf.cluster.client import ApiServerCluster
from ocf.testing.envtest import ControllerName, ControlPlane
from ocf.testing.envtest.binaries import REMEDY, find_programs
from ocf.testing.envtest.startup import free_port
from ocf.testing.metrics_stub import MetricsStub

__all__ = ["small_suite", "suite", "syncs_of"]

_SIZES: Final = (200, 2_000)
_PERIOD: Final = timedelta(seconds=10)
_WARM: Final = 2  # syncs of each autoscaler before the measurement
_MEASURED: Final = 2  # sync periods
_POLL: Final = 3.0  # seconds between two looks at whether it is warm
_NAMESPACES: Final = tuple(f"shop-{number}" for number in range(10))
_CONCURRENT: Final = 32  # workloads that are created at a time
_SHARE: Final = 0.5
_NO_LIMIT: Final = "100000"
_COMMAND: Final = "from ocf.cli import main; main()"
_SYNCS: Final = re.compile(
    r"^horizontal_pod_autoscaler_controller_reconciliation_duration_seconds_count\S* (\S+)$", re.MULTILINE
)
_PROCESS: Final = re.compile(r"^process_(cpu_seconds_total|resident_memory_bytes) (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Usage:
    """What a controller has used since its start: syncs, CPU time in seconds, and memory in MiB."""

    syncs: float
    cpu: float
    memory: float


_ReadUsage: TypeAlias = Callable[[], Awaitable[_Usage]]


@dataclass(frozen=True, slots=True)
class _Cost:
    """Microseconds of CPU time for a sync of one autoscaler, and MiB of memory."""

    sync: int
    memory: int


class _Environment:
    """A control plane, its metrics APIs, and autoscalers whose number only grows."""

    def __init__(self, plane: ControlPlane, cluster: ApiServerCluster, stub: MetricsStub, ports: Sequence[int]) -> None:
        self._plane = plane
        self._cluster = cluster
        self._stub = stub
        self._ports = ports
        self._size = 0

    @classmethod
    @asynccontextmanager
    async def started(cls) -> AsyncIterator["_Environment"]:
        """Start everything, without autoscalers."""
        ports: list[int] = []  # the last one is that of the program that was started last

        def next_port() -> int:
            ports.append(free_port())
            return ports[-1]

        async with ControlPlane(ports=next_port) as plane, await plane.cluster() as cluster, MetricsStub(plane) as stub:
            for name in _NAMESPACES:
                manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                await cluster.create(manifest, field_manager="benchmark")
            yield cls(plane, cluster, stub, ports)

    async def grow(self, size: int) -> None:
        """Add workloads and their autoscalers up to a number."""
        free = asyncio.Semaphore(_CONCURRENT)

        async def create(number: int) -> None:
            async with free:
                namespace = _NAMESPACES[number % len(_NAMESPACES)]
                await create_workload(self._cluster, self._stub.metrics, f"web-{number}", namespace)

        await asyncio.gather(*(create(number) for number in range(self._size, size)))
        self._size = size

    async def theirs(self) -> _Cost:
        """Measure the controller of kube-controller-manager."""
        flags = {
            "authorization-always-allow-paths": "/healthz,/metrics",
            "kube-api-qps": _NO_LIMIT,
            "kube-api-burst": _NO_LIMIT,
        }
        name = ControllerName.HORIZONTAL_POD_AUTOSCALER
        controllers = self._plane.controllers(name, hpa_sync_period=_PERIOD, arguments=flags)

        async def usage() -> _Usage:
            text = await _metrics(f"https://127.0.0.1:{self._ports[-1]}/metrics")
            found = {name: float(value) for name, value in _PROCESS.findall(text)}
            return _Usage(syncs_of(text), found["cpu_seconds_total"], found["resident_memory_bytes"] / 2**20)

        with ExitStack() as stack:
            await asyncio.to_thread(stack.enter_context, controllers)
            return await self._cost(usage)

    async def ours(self) -> _Cost:
        """Measure our controller, in the place of the other one."""
        port = free_port()
        arguments = ["hpa-controller", "--mode", "replace", "--take-over", "--take-over-delay", "2s"]
        arguments += ["--no-leader-elect", "--host", "127.0.0.1", "--port", str(port)]
        async with running(["-c", _COMMAND, *arguments], self._plane.kubeconfig, {}) as program:

            async def usage() -> _Usage:
                text = await _metrics(f"http://127.0.0.1:{port}/metrics")
                return _Usage(syncs_of(text), cpu_seconds(program), resident(program))

            return await self._cost(usage)

    async def _cost(self, usage: _ReadUsage) -> _Cost:
        """Compare the counters before and after some periods without scrapes: one costs as much as some syncs."""
        async with waiting_for(lambda: f"{_WARM} syncs of {self._size} autoscalers"):
            while (before := await usage()).syncs < _WARM * self._size:  # noqa: ASYNC110 (another process)
                await asyncio.sleep(_POLL)
        await asyncio.sleep(_MEASURED * _PERIOD.total_seconds())
        after = await usage()
        each = (after.cpu - before.cpu) / (after.syncs - before.syncs)
        return _Cost(round(each * 1_000_000), round(after.memory))


async def _metrics(url: str) -> str:
    """Return the metrics of a process; none while it does not listen yet."""
    try:
        async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as answer:
            answer.raise_for_status()
            return await answer.text()
    except aiohttp.ClientConnectionError:
        return "process_cpu_seconds_total 0\nprocess_resident_memory_bytes 0\n"


def syncs_of(text: str) -> float:
    """Return how many syncs a controller has made, from its metrics.

    Args:
        text: The metrics in the text format of Prometheus.
    """
    return sum(float(value) for value in _SYNCS.findall(text))


class _Measured:
    """The costs of both controllers by number of autoscalers; each is measured when it is requested first."""

    def __init__(self, runner: asyncio.Runner, stack: AsyncExitStack) -> None:
        self._runner = runner
        self._stack = stack
        self.costs = cache(self._costs)
        self._environment = cache(lambda: runner.run(stack.enter_async_context(_Environment.started())))

    def _costs(self, size: int) -> Mapping[str, _Cost]:
        environment = self._environment()

        async def measure() -> Mapping[str, _Cost]:
            await environment.grow(size)
            return {"theirs": await environment.theirs(), "ours": await environment.ours()}

        return self._runner.run(measure())


@contextmanager
def _suite(sizes: Sequence[int]) -> Iterator[Suite]:
    if sizes and find_programs() is None:
        print(f"live is left out: {REMEDY} installs the programs that it needs", file=sys.stderr)
        sizes = ()
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        measured = _Measured(runner, stack)
        yield [row for size in sizes for row in _rows(measured, size)]
        runner.run(stack.aclose())


def _rows(measured: _Measured, size: int) -> Iterator[Count]:
    whole = f"of {size} autoscalers with {PODS} pods each"
    theirs, ours = f"live.kube-controller-manager.{size}", f"live.{size}"
    yield Count(
        name=theirs,
        what=f"microseconds of CPU of a sync of one {whole}: kube-controller-manager",
        value=lambda: measured.costs(size)["theirs"].sync,
    )
    yield Count(
        name=ours,
        what=f"microseconds of CPU of a sync of one {whole}",
        value=lambda: measured.costs(size)["ours"].sync,
        against=theirs,
        share=_SHARE,
    )
    yield Count(
        name=f"{theirs}.memory",
        what=f"MiB of memory {whole}: kube-controller-manager",
        value=lambda: measured.costs(size)["theirs"].memory,
    )
    yield Count(
        name=f"{ours}.memory",
        what=f"MiB of memory {whole}",
        value=lambda: measured.costs(size)["ours"].memory,
        against=f"{theirs}.memory",
        share=1.0,
    )


suite = partial(_suite, _SIZES)
"""Give the figures."""
small_suite = partial(_suite, ())
"""Give none: a sync period of both takes longer than a run that only shows that everything works."""
