"""Definitions of other projects and their samples over HTTP: the embedded API server beside a real one.

The definitions are those that the tests of `ocf new kind` have recorded, each as often as needed, in groups of their
own. Without the programs of a control plane (`make envtest`) the real API server is left out.
"""

import asyncio
import gzip
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from benchmarks.api_servers import APPLY, ApiServer, elapsed, start_embedded, start_real
from benchmarks.autoscaler import NAMESPACE
from benchmarks.figures import Count, Suite
from ocf.objects import Manifest
from ocf.testing.envtest.binaries import find_programs

__all__ = ["small_suite", "suite"]

_RECORDED: Final = Path(__file__).parents[1] / "tests/scaffold/foreign_kind/recorded/definitions.jsonl.gz"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_AT_ONCE: Final = 8
_POLL: Final = 0.2
_MILLISECOND: Final = 1_000_000
_ESTABLISHED: Final = 0.25
_APPLIED: Final = 1.2

_Start = Callable[[AsyncExitStack], Awaitable[ApiServer]]


@cache
def _recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(_RECORDED.read_bytes()).decode().splitlines()]


def _definition(number: int) -> Manifest:
    """Return one of the definitions without the webhook that converts; after each was once, in a group of its own."""
    turn, index = divmod(number, len(_recorded()))
    recorded = _recorded()[index]["definition"]
    spec = {name: value for name, value in recorded["spec"].items() if name != "conversion"}
    metadata = {"annotations": recorded["metadata"].get("annotations") or {}}
    if turn:
        spec["group"], metadata = f"group-{number}.example.com", {}
    head = {key: recorded[key] for key in ("apiVersion", "kind")}
    return {**head, "metadata": {**metadata, "name": f"{spec['names']['plural']}.{spec['group']}"}, "spec": spec}


def _samples() -> list[tuple[str, Manifest]]:
    """Return the samples, each with the path of its kind."""
    found = []
    for line in _recorded():
        spec = line["definition"]["spec"]
        place = f"/namespaces/{NAMESPACE}" if spec["scope"] == "Namespaced" else ""
        for sample in line["samples"]:
            path = f"/apis/{sample['apiVersion']}{place}/{spec['names']['plural']}"
            found.append((path, {**sample, "metadata": {"labels": {"app": "benchmark"}}}))
    return found


async def _at_once(calls: Sequence[Callable[[], Awaitable[object]]]) -> None:
    """Make calls, a few at once."""
    rest = iter(calls)

    async def some() -> None:
        for call in rest:
            await call()

    await asyncio.gather(*(some() for _ in range(_AT_ONCE)))


async def _establish(server: ApiServer, number: int) -> None:
    """Create definitions, and wait until their kinds are established."""
    await _at_once([partial(server.ask, "POST", _DEFINITIONS, _definition(at)) for at in range(number)])
    while True:
        items = json.loads(await server.ask("GET", _DEFINITIONS))["items"]
        if sum(_is_established(item) for item in items) == number:
            return
        await asyncio.sleep(_POLL)


def _is_established(definition: Manifest) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


async def _apply(server: ApiServer, number: int) -> None:
    """Apply samples under new names."""
    calls = []
    for at, (path, body) in zip(range(number), itertools.cycle(_samples()), strict=False):
        name = f"sample-{at}"
        named = {**body, "metadata": {**body["metadata"], "name": name}}
        url = f"{path}/{name}?fieldManager=benchmark&force=true"
        calls.append(partial(server.ask, "PATCH", url, named, APPLY))
    await _at_once(calls)


async def _served(server: ApiServer) -> None:
    """Wait until a server serves the kinds of all samples."""
    for path in sorted({path for path, _ in _samples()}):
        while True:
            try:
                await server.ask("GET", f"{path}?limit=1")
                break
            except AssertionError:
                await asyncio.sleep(_POLL)


async def _times(start: _Start, kinds: int, objects: int) -> tuple[int, int]:
    """Return the milliseconds until definitions are established, and those of the applies."""
    async with AsyncExitStack() as stack:
        server = await start(stack)
        established = await elapsed(partial(_establish, server, kinds))
        await _served(server)
        return established // _MILLISECOND, await elapsed(partial(_apply, server, objects)) // _MILLISECOND


def _measured(start: _Start, kinds: int, objects: int) -> tuple[int, int]:
    return asyncio.run(_times(start, kinds, objects))


def _part(times: Callable[[], tuple[int, int]], index: int) -> int:
    return times()[index]


@contextmanager
def _suite(*, kinds: int, objects: int, real: bool) -> Iterator[Suite]:
    servers: list[tuple[str, _Start, str]] = [
        ("defining", partial(start_embedded, number=0), "the embedded API server")
    ]
    if both := real and find_programs() is not None:
        servers.insert(0, ("defining.real", start_real, "a real API server"))
    rows: list[Count] = []
    for name, start, where in servers:
        times = cache(partial(_measured, start, kinds, objects))
        judged = name == "defining"
        rows += [
            Count(
                name=f"{name}.established",
                what=f"ms until {kinds} definitions of other projects are established: {where}",
                value=partial(_part, times, 0),
                against="defining.real.established" if judged and both else "",
                share=_ESTABLISHED if judged and both else None,
            ),
            Count(
                name=f"{name}.applied",
                what=f"ms of {objects} applies of their samples: {where}",
                value=partial(_part, times, 1),
                against="defining.real.applied" if judged and both else "",
                share=_APPLIED if judged and both else None,
            ),
        ]
    yield rows


suite = partial(_suite, kinds=500, objects=10_000, real=True)
"""Give the counts."""
small_suite = partial(_suite, kinds=60, objects=20, real=False)
"""Give them for few objects and without a real server, for a run that only shows that everything works."""
