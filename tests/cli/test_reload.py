"""`ocf dev --reload`: what runs after each save, and that the cluster stays as it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.cli.owner_check import apply_definitions
from ocf.cli.reload import Reloading
from ocf.cli.source_code import SourceCode
from ocf.cluster import PatchOptions, PatchType
from ocf.objects import ObjectKey
from ocf.runtime.operator import ManagerOptions, Operator, running
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.cli.test_source_code import folder

__all__ = ["folder"]

pytestmark = pytest.mark.usefixtures("folder")

FILE: Final = "rl_shop.py"
SHOP: Final = """
import os
import signal
from ocf import component
from ocf.primitives import configmap
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import Operator, OwnerType

class ShopSpec(CamelModel):
    motto: str = "open"

class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    spec: ShopSpec = ShopSpec()

def components(shop: Shop) -> component.Component:
    sign = configmap.Builder({"data": {"sign": f"first {shop.spec.motto}"}})
    return component.Builder("web", owner=shop.key).with_resource(sign).build()

shops = Operator(name="shops", owner=OwnerType.of(Shop), components=components)
"""
CORNER: Final = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "default"}}
SIGN: Final = ObjectKey("v1", "ConfigMap", "corner", "default")
NAMES: Final = """
from ocf.runtime.operator import Operator, OwnerType
operator = Operator(name="{}", owner=OwnerType("example.com/v1", "Shop"), components=lambda shop: ())
"""


def save(text: str) -> None:
    """Write a file as editors do that replace it, so that its number differs whatever the clock says."""
    Path(f"{FILE}.new").write_text(text, encoding="utf-8")
    Path(f"{FILE}.new").replace(FILE)


@dataclass
class Trial:
    """Runs versions, whose operators say by their names what becomes of them; logs what happened."""

    log: list[str] = field(default_factory=list)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    starts: dict[str, int] = field(default_factory=dict)

    @asynccontextmanager
    async def start(self, operators: Sequence[Operator[Any]]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        name = operators[0].name
        self.starts[name] = self.starts.get(name, 0) + 1
        if name == "broken" or (name == "once" and self.starts[name] > 1):
            raise RuntimeError(f"{name} cannot start")
        self.log.append(f"+{name}")
        try:
            # As `running` does when an operator ends by itself.
            async with asyncio.timeout(5 if name == "mortal" else None):
                yield partial(asyncio.sleep, 3600 if name == "endless" else 0)
        finally:
            self.log.append(f"-{name}")

    def failed(self, problem: str) -> None:
        self.log.append(problem.rpartition("; ")[2].removesuffix(" until a save repairs it"))

    async def after(self, *texts: str) -> list[str]:
        """Return the log after saves, ten seconds after one another."""
        save(texts[0])
        source = SourceCode(FILE)
        reloading = Reloading(source, self.start, self.log.append, self.failed)
        run = asyncio.create_task(reloading.run(source.load(), self.stop))
        for text in texts[1:]:
            await asyncio.sleep(10)
            save(text)
        await asyncio.sleep(10)
        self.stop.set()
        await run
        return self.log


GOES_ON: Final = "the operators of before go on"
STOPPED: Final = "no operator runs"


@pytest.mark.parametrize(
    ("names", "log"),
    [
        pytest.param("a", "+a -a", id="no save"),
        pytest.param("a b c", f"+a -a +b {FILE} -b +c {FILE} -c", id="saves"),
        pytest.param("a ( b", f"+a {GOES_ON} -a +b {FILE} -b", id="a syntax error"),
        pytest.param("a ( ( a", f"+a {GOES_ON} {GOES_ON} -a +a {FILE} -a", id="two errors"),
        pytest.param("a broken b", f"+a -a {GOES_ON} +a -a +b {FILE} -b", id="cannot start"),
        pytest.param("a endless", "+a -a +endless -endless", id="stopped while it starts"),
        pytest.param("a endless b", f"+a -a +endless -endless +b {FILE} -b", id="a save while it starts"),
        pytest.param("a endless ( b", f"+a -a +endless {GOES_ON} -endless +b {FILE} -b", id="an error while it starts"),
        pytest.param("once broken b", f"+once -once {GOES_ON} {STOPPED} +b {FILE} -b", id="neither can start"),
        pytest.param("mortal b", f"+mortal -mortal {STOPPED} +b {FILE} -b", id="ends by itself"),
        pytest.param("mortal ( b", f"+mortal -mortal {STOPPED} {STOPPED} +b {FILE} -b", id="an error afterwards"),
    ],
)
def test_what_runs_after_each_save(names: str, log: str) -> None:
    """The next save repairs an error, whatever it was, which is what users miss where a reloader ends.

    uvicorn: https://github.com/Kludex/uvicorn/issues/425
    """
    texts = ["def half(" if name == "(" else NAMES.format(name) for name in names.split()]

    async def test() -> list[str]:
        return await Trial().after(*texts)

    assert " ".join(run_in_virtual_time(test())) == log


def test_the_first_version_must_start() -> None:
    async def test() -> None:
        await Trial().after(NAMES.format("broken"))

    with pytest.raises(RuntimeError, match="broken cannot start"):
        run_in_virtual_time(test())


def in_cluster(work: Callable[[EmbeddedCluster, list[str]], Coroutine[Any, Any, None]]) -> None:
    """Run the code of the file on a cluster that lives longer, in virtual time, while work saves it."""

    async def test() -> None:
        save(SHOP)
        source = SourceCode(FILE)
        first = source.load()
        cluster, said, stop = EmbeddedCluster(), list[str](), asyncio.Event()

        @asynccontextmanager
        async def start(operators: Sequence[Operator[Any]]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
            await apply_definitions(cluster, [one for each in operators for one in each.all_definitions])
            options = ManagerOptions(listen=None, clock=LoopClock())
            async with running(cluster, *operators, options=options) as manager:
                yield manager.started

        run = asyncio.create_task(Reloading(source, start, said.append, said.append).run(first, stop))
        await asyncio.sleep(10)
        await cluster.create(CORNER, field_manager="kubectl")
        await asyncio.sleep(10)
        await work(cluster, said)
        stop.set()
        await run

    run_in_virtual_time(test())


async def saved(cluster: EmbeddedCluster, text: str) -> str:
    """Return what the operator has written some time after a save."""
    save(text)
    await asyncio.sleep(10)
    return str((await cluster.get(SIGN))["data"]["sign"])


def test_objects_and_their_status_survive_a_change_of_the_code() -> None:
    async def work(cluster: EmbeddedCluster, said: list[str]) -> None:
        before = [await cluster.get(SIGN), await cluster.get(ObjectKey.of(CORNER))]
        assert await saved(cluster, SHOP.replace("first", "second")) == "second open"
        after = [await cluster.get(SIGN), await cluster.get(ObjectKey.of(CORNER))]

        assert [one["metadata"]["uid"] for one in after] == [one["metadata"]["uid"] for one in before]
        assert before[1]["status"] == after[1]["status"]
        assert said == [FILE]

    in_cluster(work)


def test_a_field_of_the_definition_is_added_and_used() -> None:
    async def work(cluster: EmbeddedCluster, said: list[str]) -> None:
        more = SHOP.replace('motto: str = "open"', 'motto: str = "open"\n    hours: str = "nine to five"')
        assert await saved(cluster, more.replace("shop.spec.motto", "shop.spec.hours")) == "first nine to five"
        assert said == [FILE]

    in_cluster(work)


def test_a_definition_that_the_api_server_rejects_leaves_the_one_of_before() -> None:
    async def work(cluster: EmbeddedCluster, said: list[str]) -> None:
        rejected = SHOP.replace('version="v1"', 'version="v1", scope="Cluster"').replace("first", "second")
        assert await saved(cluster, rejected) == "first open"
        (problem,) = said
        await cluster.patch(
            ObjectKey.of(CORNER),
            {"spec": {"motto": "closed"}},
            PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl"),
        )
        assert await saved(cluster, rejected) == "first closed"
        assert await saved(cluster, SHOP.replace("first", "third")) == "third closed"
        assert "scope" in problem

    in_cluster(work)


def test_a_signal_ends_an_import_that_does_not_return() -> None:
    async def work(cluster: EmbeddedCluster, said: list[str]) -> None:
        endless = f"{SHOP}\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass\n"
        assert await saved(cluster, endless) == "first open"
        assert said == [f"interrupted while the code was imported; {GOES_ON} until a save repairs it"]

    in_cluster(work)
