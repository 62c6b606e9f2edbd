"""The page in a browser, at the widths of a desktop and of a phone: it can be read, follows changes, and runs nothing.

Public reports that are rebuilt here: https://github.com/freenet/freenet-core/issues/5213 (six open pages take all
connections of a browser), https://github.com/posit-dev/publisher/issues/283 (pages that are hidden hold connections).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.errors import OcfError
from ocf.objects import ObjectKey
from ocf.ownership import OwnerExplanation
from ocf.runtime.page import PageOptions
from ocf.runtime.page.options import SpecText
from tests.browser import SUFFICIENT_CONTRAST, contrast
from tests.devtools import Tab, opened_tab
from tests.runtime.operator.conftest import shop
from tests.runtime.page.conftest import Process, broken, elsewhere, processing
from tests.support import eventually

OWNER: Final = "Shop.example.com/town/corner"
PAGES: Final = ["", "activity", OWNER]
TEXTS: Final = """
[...document.querySelectorAll("body *")]
  .filter((one) => !one.closest("title,desc,.skip,details:not([open]) > :not(summary)") &&
    [...one.childNodes].some((node) => node.nodeType == 3 && node.data.trim()))
  .map((one) => {
    const style = getComputedStyle(one), drawn = one instanceof SVGElement, box = one.getBoundingClientRect();
    const svg = one.ownerSVGElement;
    const factor = drawn ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    return {text: one.textContent.trim().slice(0, 40), right: box.right, size: parseFloat(style.fontSize) * factor,
            colour: drawn ? style.fill : style.color};
  })
"""


class OwnerEditor:
    """The spec of an owner, without a cluster."""

    async def explain(self, owner: ObjectKey) -> OwnerExplanation:
        raise OcfError(f"only what is in memory of {owner}")

    async def spec(self, owner: ObjectKey) -> SpecText:
        return SpecText(f"motto: open # {owner.name}\n", "1")

    async def planned(self, owner: ObjectKey, edited: SpecText) -> tuple[()]:
        assert owner.name in edited.text
        return ()

    async def write(self, owner: ObjectKey, edited: SpecText) -> None:
        raise NotImplementedError(owner, edited)


@asynccontextmanager
async def browsing(chromium: str, folder: Path, *, editor: bool = True) -> AsyncIterator[tuple[Process, Tab]]:
    """Open a browser for the page of a process with two shops, one of them in trouble."""
    options = PageOptions(port=0, editor=OwnerEditor() if editor else None)
    async with processing(options) as process, opened_tab(chromium, folder) as tab:
        await process.made(shop("corner"), broken("quay"))
        await process.page.view.look()
        yield process, tab


async def shown(tab: Tab, script: str) -> Any:
    """Wait until an expression holds in the page, or in the one that it leads to."""
    return await eventually(lambda: tab.evaluate(script), ignore=(RuntimeError,))


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=["desktop", "phone in the dark"])
async def test_every_page_can_be_read(chromium: str, tmp_path: Path, width: int, *, dark: bool) -> None:
    async with browsing(chromium, tmp_path) as (process, tab):
        for path in PAGES:
            await tab.open(f"{process.url}/{path}", width=width, dark=dark)
            await tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            paper = await tab.evaluate("getComputedStyle(document.body).backgroundColor")
            texts = await tab.evaluate(TEXTS)
            sizes = await tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
            assert sizes[0] == sizes[1]
            assert not [one for one in texts if contrast(one["colour"], paper) < SUFFICIENT_CONTRAST]
            assert min(one["size"] for one in texts) >= 10
            assert len(texts) > 10
        assert tab.complaints == []


async def test_a_page_follows_changes_and_keeps_what_the_reader_does(chromium: str, tmp_path: Path) -> None:
    async with browsing(chromium, tmp_path) as (process, tab):
        await tab.open(f"{process.url}/activity")
        await shown(tab, "document.getElementById('live').textContent != 'as of the load of the page'")
        await tab.evaluate(
            "document.querySelector('#r1 summary').click(); document.querySelector('#r1 summary').focus()"
        )
        await process.made(elsewhere("cottage"))
        await shown(tab, "document.getElementById('reconciles').textContent.includes('cottage')")
        assert await tab.evaluate("document.getElementById('r1').open")
        assert await tab.evaluate("document.activeElement === document.querySelector('#r1 summary')")
        assert tab.complaints == []


async def test_what_is_typed_into_the_search_stays(chromium: str, tmp_path: Path) -> None:
    async with browsing(chromium, tmp_path) as (process, tab):
        await tab.open(f"{process.url}/")
        await tab.evaluate("document.getElementById('q').focus(); document.getElementById('q').value = 'cot'")
        await process.made(elsewhere("cottage"))
        await shown(tab, "document.getElementById('owners').textContent.includes('cottage')")
        assert await tab.evaluate("[document.activeElement.id, document.getElementById('q').value]") == ["q", "cot"]
        await tab.evaluate("document.querySelector('form[role=search] button').click()")
        await shown(tab, "location.search == '?q=cot' && document.querySelectorAll('ol.owners li').length == 1")


async def test_a_hidden_page_holds_no_connection(chromium: str, tmp_path: Path) -> None:
    async with browsing(chromium, tmp_path) as (process, tab):
        await tab.open(f"{process.url}/")
        await shown(tab, "document.getElementById('live').textContent != 'as of the load of the page'")
        hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true})"
        event = "document.dispatchEvent(new Event('visibilitychange'))"
        await tab.evaluate(f"{hide % 'true'}; {event}")
        assert await tab.evaluate("document.getElementById('live').textContent") == "stopped while hidden"
        await process.made(elsewhere("cottage"))
        await tab.evaluate(f"{hide % 'false'}; {event}")
        await shown(tab, "document.getElementById('owners').textContent.includes('cottage')")


async def test_the_keyboard_reaches_everything_and_a_plan_is_shown_before_a_write(
    chromium: str, tmp_path: Path
) -> None:
    async with browsing(chromium, tmp_path) as (process, tab):
        await tab.open(f"{process.url}/{OWNER}")
        places = "[...document.querySelectorAll('a,button,input,textarea,summary')].filter((one) => one.tabIndex < 0)"
        assert await tab.evaluate(f"{places}.length") == 0
        assert await tab.evaluate("document.querySelectorAll('[onclick],[onload],script:not([src]),style').length") == 0
        await tab.evaluate("document.querySelector('#edit summary').click()")
        assert await tab.evaluate("document.querySelectorAll('#edit button').length") == 1
        await tab.evaluate("document.querySelector('#edit button').click()")
        await shown(tab, "document.querySelectorAll('#edit button').length == 2")
        assert "Nothing would be written." in await tab.evaluate("document.getElementById('edit').textContent")


async def test_without_a_script_the_page_is_a_state(chromium: str, tmp_path: Path) -> None:
    async with browsing(chromium, tmp_path) as (process, tab):
        await tab.send("Emulation.setScriptExecutionDisabled", value=True)
        for path in PAGES:
            await tab.open(f"{process.url}/{path}", width=390)
            text = await tab.evaluate("document.body.innerText")
            assert "corner" in text
            assert "as of the load of the page" in text
        assert not [one for one in tab.requests if "/changes" in one]


async def test_a_browser_logs_in_and_follows_as_the_user_of_the_token(chromium: str, tmp_path: Path) -> None:
    async with browsing(chromium, tmp_path, editor=False) as (process, tab):
        token = await process.token("all", all_shops=["get", "list"])
        await tab.open(f"{process.url}/")
        assert await tab.evaluate("document.body.innerText.includes('corner')") is False
        await tab.evaluate(f"document.getElementById('token').value = '{token}'; document.forms[0].requestSubmit()")
        await shown(tab, "document.querySelectorAll('ol.owners li').length == 2")
        await asyncio.gather(
            shown(tab, "document.querySelectorAll('ol.owners li').length == 3"), process.made(elsewhere("cottage"))
        )
