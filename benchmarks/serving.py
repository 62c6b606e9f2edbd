"""The embedded API server over HTTP, beside a real one: lists, reads, writes, pages and watches.

Each server is a process of its own, and both are asked by the same plain client for the same objects. All times are
wall-clock times, because a request mostly waits. Without the programs of a control plane (`make envtest`) the real API
server is left out. Each server is started when its first figure is requested.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import cache, partial
from typing import Final

from benchmarks.api_servers import (
    APPLY,
    KINDS,
    MAPS,
    ApiServer,
    config_map,
    elapsed,
    fill,
    start_embedded,
    start_real,
)
from benchmarks.figures import Case, Count, Suite
from benchmarks.timer import Measure
from ocf.testing.envtest.binaries import find_programs

__all__ = ["small_suite", "suite"]

_FEW: Final = 1_000
_MANY: Final = 50_000
_PAGE: Final = 500
_FANOUT: Final = 100
_WATCHES: Final = 2_000
_LARGE: Final = 900_000
_WAIT_LIMIT: Final = 100_000_000
_LEFT_LIMIT: Final = 64
_PAGES_SHARE: Final = 1.3
# The server returns the memory of watches a second after half of them have ended.
_SETTLED: Final = 3  # seconds without a change
_POLL: Final = 1.0

Call = Callable[[ApiServer], Awaitable[object]]


class _Filled:
    """A server with objects of each kind, started when it is first asked for.

    Args:
        runner: Runs it.
        start: Starts the server.
        number: Number of objects of each kind.
    """

    def __init__(self, runner: asyncio.Runner, start: Callable[[], Awaitable[ApiServer]], number: int) -> None:
        self._runner = runner
        self._start = start
        self._number = number
        self._found: tuple[ApiServer, dict[str, int]] | None = None

    def measure(self, call: Call, calls: int) -> int:
        """Return the nanoseconds that some calls took."""
        return self._runner.run(_turns(self._filled()[0], call, calls))

    def first(self, kind: str) -> int:
        """Return the milliseconds that the first list of a kind took."""
        return round(self._filled()[1][kind] / 1_000_000)

    def _filled(self) -> tuple[ApiServer, dict[str, int]]:
        if self._found is None:
            self._found = self._runner.run(self._fill())
        return self._found

    async def _fill(self) -> tuple[ApiServer, dict[str, int]]:
        server = await self._start()
        return server, await fill(server, self._number)


async def _turns(server: ApiServer, call: Call, calls: int) -> int:
    return sum([await elapsed(partial(call, server)) for _ in range(calls)])


@contextmanager
def _suite(*, few: int, many: int, watches: int, real: bool) -> Iterator[Suite]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        servers = {"serving": _Filled(runner, lambda: start_embedded(stack, 0), few)}
        if real and find_programs() is not None:
            servers = {"serving.real": _Filled(runner, lambda: start_real(stack), few), **servers}
        elif real:
            print("serving.real is left out: `make envtest` builds the programs of a control plane", file=sys.stderr)
        try:
            yield [
                *(each for name, server in servers.items() for each in _compared(name, server, few, len(servers) > 1)),
                *_pages(runner, cache(lambda: runner.run(start_embedded(stack, many))), many),
                Count(
                    name="serving.left",
                    what=f"MiB that {watches} watches of large objects leave with the process after they have ended",
                    value=cache(lambda: runner.run(_left(watches))),
                    limit=_LEFT_LIMIT,
                ),
            ]
        finally:
            runner.run(stack.aclose())


def _compared(name: str, server: _Filled, few: int, both: bool) -> Iterator[Case | Count]:  # noqa: FBT001 (private)
    """Give the requests that both servers are asked for; those of the real one are the yardstick."""
    is_judged = both and name == "serving"
    where = "the embedded API server" if name == "serving" else "a real API server"
    calls: dict[str, tuple[str, Call]] = {
        kind: (f"list of {few} {kind}", partial(_get, path)) for kind, (path, _) in KINDS.items()
    }
    calls["get"] = ("get", partial(_get, f"{MAPS}/configmap-00000"))
    calls["apply"] = ("apply of a changed ConfigMap", partial(_apply, itertools.count()))
    calls["fanout"] = (
        f"opening {_FANOUT} watches, and a change until all have reported it",
        partial(_fan_out, itertools.count()),
    )
    for what, (text, call) in calls.items():
        yield Case(
            name=f"{name}.{what}",
            what=f"{text}: {where}",
            measure=partial(server.measure, call),
            against=f"serving.real.{what}" if is_judged else "",
            share=1.0 if is_judged else None,
        )
    for kind in KINDS:
        yield Count(
            name=f"{name}.first-{kind}",
            what=f"ms of the first list of {few} {kind}: {where}",
            value=partial(server.first, kind),
            against=f"serving.real.first-{kind}" if is_judged else "",
        )


async def _get(path: str, server: ApiServer) -> None:
    await server.ask("GET", path)


async def _apply(turns: Iterator[int], server: ApiServer) -> None:
    body = {**config_map(0), "data": {"turn": str(next(turns))}}
    await server.ask("PATCH", f"{MAPS}/configmap-00000?fieldManager=benchmark&force=true", body, APPLY)


async def _fan_out(turns: Iterator[int], server: ApiServer) -> None:
    """Change an object, and wait until all watches have reported it."""
    name, turn = "configmap-00001", str(next(turns))
    query = f"watch=1&fieldSelector=metadata.name={name}&resourceVersion=0"
    async with AsyncExitStack() as stack:
        responses = [await stack.enter_async_context(server.session.get(f"{MAPS}?{query}")) for _ in range(_FANOUT)]
        await server.ask(
            "PATCH",
            f"{MAPS}/{name}?fieldManager=benchmark&force=true",
            {**config_map(1), "data": {"turn": turn}},
            APPLY,
        )
        for response in responses:
            while f'"turn":"{turn}"' not in (await response.content.readline()).decode():
                pass


def _pages(runner: asyncio.Runner, started: Callable[[], ApiServer], many: int) -> Iterator[Case]:
    async def whole(server: ApiServer) -> None:
        assert len(json.loads(await server.ask("GET", MAPS))["items"]) == many

    async def paged(server: ApiServer) -> None:
        token, seen = "", 0
        while token or not seen:
            page = json.loads(await server.ask("GET", f"{MAPS}?limit={_PAGE}&continue={token}"))
            token, seen = page["metadata"].get("continue", ""), seen + len(page["items"])
        assert seen == many

    def measured(call: Call) -> Measure:
        return lambda calls: runner.run(_turns(started(), call, calls))

    yield Case(name="serving.whole", what=f"list of {many} ConfigMaps, decoded by the client", measure=measured(whole))
    yield Case(
        name="serving.pages",
        what=f"the same in pages of {_PAGE}",
        measure=measured(paged),
        against="serving.whole",
        share=_PAGES_SHARE,
    )
    yield Case(
        name="serving.wait",
        what="the longest wait for a get during such a list",
        measure=lambda calls: runner.run(_longest_wait(started())) * calls,
        limit=_WAIT_LIMIT,
    )


async def _longest_wait(server: ApiServer) -> int:
    """Return the nanoseconds that the slowest of many gets took during a list of all objects."""
    listing = asyncio.create_task(server.ask("GET", MAPS))
    waits = []
    while not listing.done():
        waits.append(await elapsed(lambda: server.ask("GET", f"{MAPS}/configmap-00007")))
    await listing
    return max(waits)


async def _left(watches: int) -> int:
    """Return the MiB by which a process has grown when watches of a large object have ended."""
    async with AsyncExitStack() as stack:
        server = await start_embedded(stack, 1)
        path = f"{MAPS}/configmap-00000?fieldManager=benchmark&force=true"
        await server.ask("PATCH", path, {**config_map(0), "data": {"large": "x" * _LARGE}}, APPLY)
        before = server.resident()
        async with AsyncExitStack() as open_watches:
            for _ in range(watches):
                # Nothing is read, as by a client that is slow.
                await open_watches.enter_async_context(server.session.get(f"{MAPS}?watch=1&resourceVersion=0"))
            await server.ask("PATCH", path, {**config_map(0), "data": {"large": "y" * _LARGE}}, APPLY)
        return await _settled(server) - before


async def _settled(server: ApiServer) -> int:
    """Return the resident memory of a server, as soon as it has fallen as far as it does."""
    seen = [server.resident()]
    while len(seen) <= _SETTLED or min(seen[-_SETTLED:]) < seen[-_SETTLED - 1]:
        await asyncio.sleep(_POLL)
        seen.append(server.resident())
    return seen[-1]


suite = partial(_suite, few=_FEW, many=_MANY, watches=_WATCHES, real=True)
"""Give the cases."""
small_suite = partial(_suite, few=5, many=600, watches=5, real=False)
"""Give them for few objects and without a real server, for a run that only shows that everything works."""
