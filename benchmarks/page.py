"""What the page of an operator costs its reconciles: what is recorded for it, and what open pages take.

An operator with a page and one without take turns; what counts is the CPU time of this process for each reconcile, that
of the embedded cluster included.

The pages are open in another process, which is not measured, each as a caller with a token whose rights are reviewed.
All owners change between two messages to them, and what counts is the CPU time for a message, as a share of the time
between them. Time stands still while another process has the core: on a busy machine, a message would come after less
work.

The first page of an operator with many owners is the one row that is measured by the wall, since someone waits for it.
"""

import asyncio
import selectors
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from statistics import median
from typing import Final

import aiohttp

from benchmarks.figures import Count, Suite
from benchmarks.programs import until, waiting_for
from ocf import component
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.component import Component
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, secret
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.runtime.page import PageOptions
from ocf_server import EmbeddedCluster

__all__ = ["small_suite", "suite"]

_OWNERS: Final = 100
_CROWD: Final = 10  # times as many
_PAGES: Final = 1_000
_TURNS: Final = 11
_MESSAGES: Final = 3
# Thousandths of a processor: a twentieth of it.
_SHARE: Final = 50
# Milliseconds.
_FIRST: Final = 1_000
_NAMESPACE: Final = "town"
_MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="benchmark")
# Opens pages, and prints a line when each is open, and when each has got another message.
_READER: Final = r"""
import asyncio, sys
host, port, count, token = sys.argv[1], *map(int, sys.argv[2:4]), sys.argv[4]
head = f"GET /changes?of=owners HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
async def opened():
    reader, writer = await asyncio.open_connection(host, port, limit=2**24)
    writer.write(head.encode())
    assert b" 200 OK" in await reader.readuntil(b"\r\n\r\n")
    return reader, writer
async def message(reader):
    while b"data: " not in await reader.readuntil(b"\n\n\r\n"):
        pass
async def main():
    pages = await asyncio.gather(*(opened() for _ in range(count)))
    while True:
        print("seen", flush=True)
        await asyncio.gather(*(message(reader) for reader, _ in pages))
asyncio.run(main())
"""


class _Selector(selectors.DefaultSelector):
    """Counts the seconds that it has waited."""

    waited = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = time.monotonic()
        try:
            return super().select(timeout)
        finally:
            waited = time.monotonic() - began
            self.waited += waited if timeout is None else min(waited, max(0.0, timeout))


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose time is that in which it works or waits."""

    def __init__(self) -> None:
        self._waits = _Selector()
        super().__init__(self._waits)

    def time(self) -> float:
        return time.process_time() + self._waits.waited


class _Spec(CamelModel):
    motto: str = "open"


class Shop(CustomResource[_Spec], group="example.com", version="v1"):
    """An owner of two objects."""

    spec: _Spec = _Spec()


class _Process:
    """A running operator, and its cluster."""

    def __init__(self, owners: int) -> None:
        self._owners = [f"shop-{number}" for number in range(owners)]
        self._cluster = EmbeddedCluster(namespaces=(_NAMESPACE,))
        self._reconciles = self._changes = 0

    @asynccontextmanager
    async def running(self, page: PageOptions | None) -> AsyncIterator[str]:
        """Run it; yield the address of its page, empty without one."""
        await self._cluster.apply(Shop.definition(), field_manager="benchmark")
        for name in self._owners:
            made = {"metadata": {"name": name, "namespace": _NAMESPACE}, "spec": {}}
            await self._cluster.create(
                {"apiVersion": "example.com/v1", "kind": "Shop", **made}, field_manager="benchmark"
            )
        operator = Operator(name="shops", owner=OwnerType.of(Shop), components=self._components)
        async with running(self._cluster, operator, options=ManagerOptions(listen=None, page=page)) as manager:
            await manager.started()
            await self._until(len(self._owners))
            yield manager.page.address.url if manager.page is not None and manager.page.address is not None else ""

    def _components(self, owner: Shop) -> Component:
        self._reconciles += 1
        settings: Manifest = {"metadata": {"name": f"{owner.metadata.name}-settings"}}
        access: Manifest = {"metadata": {"name": f"{owner.metadata.name}-access"}, "stringData": {"password": "a" * 20}}
        return (
            component.Builder("web", owner=owner.key, condition_type="WebReady")
            .with_resource(secret.Builder(access))
            .with_resource(configmap.Builder({**settings, "data": {"motto": owner.spec.motto}}))
            .build()
        )

    async def _until(self, count: int) -> None:
        await until(
            lambda: self._reconciles >= count, lambda: f"{count} reconciles; {self._reconciles} began", every=0.001
        )

    async def token(self) -> str:
        """Return a token for a caller of the page."""
        account: Manifest = {"apiVersion": "v1", "kind": "ServiceAccount"}
        account["metadata"] = {"name": "viewer", "namespace": _NAMESPACE}
        await self._cluster.apply(account, field_manager="benchmark")
        made = await self._cluster.create({**account, "spec": {}}, field_manager="me", subresource=Subresource.TOKEN)
        return str(made["status"]["token"])

    async def change(self) -> float:
        """Change all owners; return the microseconds of CPU for each reconcile."""
        before, began = self._reconciles, time.process_time()
        for name in self._owners:
            self._changes += 1
            key = ObjectKey("example.com/v1", "Shop", name, _NAMESPACE)
            await self._cluster.patch(key, {"spec": {"motto": f"number {self._changes}"}}, _MERGE)
        await self._until(before + len(self._owners))
        return (time.process_time() - began) * 1e6 / len(self._owners)


@dataclass(frozen=True, slots=True)
class _Pages:
    """Open pages in another process."""

    process: asyncio.subprocess.Process
    count: int

    async def seen(self) -> None:
        """Wait until each is open, or has got a message since the last time."""
        assert self.process.stdout is not None
        async with waiting_for(lambda: f"{self.count} open pages, or a message to each"):
            if await self.process.stdout.readline() != b"seen\n":
                raise RuntimeError(f"the process with {self.count} open pages has ended")


@asynccontextmanager
async def _open_pages(url: str, token: str, count: int) -> AsyncIterator[_Pages]:
    """Open pages for as long as the block runs."""
    host, _, port = url.removeprefix("http://").partition(":")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _READER, host, port, str(count), token, stdout=asyncio.subprocess.PIPE
    )
    pages = _Pages(process, count)
    try:
        await pages.seen()
        yield pages
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@dataclass(frozen=True, slots=True)
class _Found:
    """Microseconds of CPU for a reconcile without and with the page, and what open pages take of a processor."""

    off: float
    on: float
    share: float


async def _measure(owners: int, pages: int, turns: int, messages: int) -> _Found:
    async with AsyncExitStack() as stack:
        without, with_page = _Process(owners), _Process(owners)
        await stack.enter_async_context(without.running(None))
        url = await stack.enter_async_context(with_page.running(PageOptions(port=0)))
        off, on = zip(*[(await without.change(), await with_page.change()) for _ in range(turns)], strict=True)
        readers = await stack.enter_async_context(_open_pages(url, await with_page.token(), pages))
        loop, shares = asyncio.get_running_loop(), list[float]()
        await readers.seen()
        for _ in range(messages):
            began = loop.time()
            await with_page.change()
            used = time.process_time()
            await readers.seen()
            shares.append((time.process_time() - used) / (loop.time() - began))
    return _Found(median(off), median(on), median(shares))


async def _first_page(owners: int) -> float:
    """Return the milliseconds until a caller has the first page of an operator that is at rest."""
    async with AsyncExitStack() as stack:
        process = _Process(owners)
        url = await stack.enter_async_context(process.running(PageOptions(port=0)))
        headers = {"Authorization": f"Bearer {await process.token()}"}
        client = await stack.enter_async_context(aiohttp.ClientSession(headers=headers, raise_for_status=True))
        began = time.perf_counter()
        async with client.get(url) as answer:
            await answer.read()
        return (time.perf_counter() - began) * 1000


@contextmanager
def _suite(owners: int, pages: int, turns: int, messages: int, most: int | None) -> Iterator[Suite]:
    @cache
    def found() -> _Found:
        with asyncio.Runner(loop_factory=_Loop) as runner:
            return runner.run(_measure(owners, pages, turns, messages))

    what = "µs of CPU for a reconcile of an operator"
    yield [
        Count(name="page.off", what=f"{what} without a page", value=lambda: round(found().off)),
        Count(name="page.on", what=f"{what} with a page", value=lambda: round(found().on), against="page.off"),
        Count(
            name="page.open",
            what=f"thousandths of a processor that {pages} open pages take while all owners change",
            value=lambda: round(found().share * 1000),
            limit=most,
        ),
        Count(
            name="page.first",
            what=f"milliseconds until the first page of an operator with {owners * _CROWD} owners is there",
            value=lambda: round(asyncio.run(_first_page(owners * _CROWD))),
            limit=_FIRST if most is not None else None,
        ),
    ]


suite = partial(_suite, _OWNERS, _PAGES, _TURNS, _MESSAGES, _SHARE)
"""Give the counts."""
small_suite = partial(_suite, 5, 3, 1, 1, None)
"""Give them with few pages, for a run that only shows that everything works."""
