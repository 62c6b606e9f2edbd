"""A page that outlives the operators that it shows, as that of `ocf dev --reload`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession

from ocf.concepts import SystemClock
from ocf.runtime.operator import ManagerOptions, Operator
from ocf.runtime.operator.manager import Manager
from ocf.runtime.operator.run import running_manager
from ocf.runtime.page import PageOptions, server
from ocf.runtime.page.process import Page
from ocf_server import EmbeddedCluster
from tests.runtime.operator.conftest import DEFINITION, NAMESPACE, SHOPS, components_of, shop
from tests.runtime.page.test_server import OWNER, OwnerEditor
from tests.support import until

OPERATOR = Operator(name="shops", owner=SHOPS, components=components_of)


@asynccontextmanager
async def operating(cluster: EmbeddedCluster, page: Page) -> AsyncIterator[None]:
    before = page.timeline.count
    manager = Manager(cluster, [OPERATOR], ManagerOptions(listen=None), page=page)
    async with running_manager(manager):
        await manager.started()
        await until(lambda: page.timeline.count > before)
        yield


@asynccontextmanager
async def page_of(cluster: EmbeddedCluster) -> AsyncIterator[tuple[Page, ClientSession]]:
    await cluster.apply(DEFINITION, field_manager="kubectl")
    await cluster.create(shop(), field_manager="kubectl")
    page = Page(PageOptions(port=0, editor=OwnerEditor()), SystemClock())
    async with page.serving(cluster):
        assert page.address is not None
        async with ClientSession(page.address.url) as session:
            yield page, session


async def text(session: ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as answer:
        return answer.status, await answer.text()


async def test_what_is_open_in_a_browser_is_that_of_the_next_operators() -> None:
    cluster = EmbeddedCluster(namespaces=[NAMESPACE])
    async with page_of(cluster) as (page, session):
        async with operating(cluster, page):
            _, before = await text(session, OWNER)
            stream = await session.get(f"/changes?of={OWNER[1:]}")
            key = re.findall(r'name="key" value="([\w-]+)"', before)[0]
        late = [asyncio.create_task(text(session, path)) for path in (OWNER, "/")]
        await text(session, "/page.css")
        async with operating(cluster, page):
            statuses = [status for status, _ in await asyncio.gather(*late)]
            _, after = await text(session, OWNER)
            form = {"do": "write", "spec": "motto: new", "generation": "1", "key": key}
            async with session.post(OWNER, data=form, allow_redirects=False) as answer:
                assert answer.status == 303
            assert await stream.content.readuntil(b"\n\n")
            stream.close()
    assert statuses == [200, 200]
    assert "Last 2 reconciles" in after


async def test_an_error_of_the_code_is_on_every_page_until_it_is_repaired() -> None:
    cluster = EmbeddedCluster(namespaces=[NAMESPACE])
    paths = ["/", "/activity", OWNER]
    async with page_of(cluster) as (page, session), operating(cluster, page):
        page.view.notice = "half <b>( was never closed"
        broken = [await text(session, path) for path in paths]
        page.view.notice = ""
        repaired = [await text(session, path) for path in paths]
    alert = '<p class="missed" role="alert"><bdi>half &lt;b&gt;( was never closed</bdi></p>'
    assert [alert in body for _, body in broken] == [True] * 3
    assert [body.count('role="alert"') for _, body in repaired] == [0] * 3


async def test_a_page_without_operators_is_served_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_RELOAD", 0.0)
    async with page_of(EmbeddedCluster(namespaces=[NAMESPACE])) as (page, session):
        page.view.notice = "no operator runs"
        answers = [await text(session, path) for path in ("/", "/activity", OWNER)]
    assert [status for status, _ in answers] == [200, 200, 404]
    assert ["no operator runs" in body for _, body in answers] == [True, True, False]
