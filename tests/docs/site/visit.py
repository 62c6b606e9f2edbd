"""A visit of the built site in a browser: pages on a phone, and the search."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.devtools import Tab, opened_tab, served
from tests.simulation.playground.visit import SHOWN, STATE

__all__ = ["PHONE", "SCREEN", "Opened", "Seen", "Visit", "opened_playground", "search", "visited"]

PHONE: Final = 390
"""Width of the pages on a phone, in pixels."""
SCREEN: Final = 1280
"""Width of the pages on a small screen."""

OPEN: Final = """(() => {
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) { return attach.call(this, {...options, mode: "open"}); };
})()"""
"""Lets the tests look into the diagrams, which the theme encloses."""

DRAWN: Final = """new Promise((done) => {
  let failed = "";
  addEventListener("unhandledrejection", (event) => { failed = String(event.reason); });
  const look = () => failed || !document.querySelector("pre.mermaid") ? done(failed) : requestAnimationFrame(look);
  look();
})"""
SEEN: Final = """(() => {
  const wide = document.documentElement.clientWidth + 0.5, content = document.querySelector(".md-content");
  const scrolls = ".md-typeset__scrollwrap, pre, .highlight, .md-sidebar, .md-tabs";
  return {
    title: document.title, scrolled: document.documentElement.scrollWidth, width: document.documentElement.clientWidth,
    paper: getComputedStyle(document.body).backgroundColor,
    text: getComputedStyle(document.querySelector(".md-typeset")).color,
    diagrams: [...document.querySelectorAll("div.mermaid")].map((each) => {
      const drawn = each.shadowRoot.querySelector("svg");
      return 16 * Math.min(1, drawn.getBoundingClientRect().width / drawn.viewBox.baseVal.width);
    }),
    nameless: [...document.querySelectorAll(".md-typeset img:not([alt])")].map((each) => each.outerHTML.slice(0, 80)),
    copied: [...document.querySelectorAll(".highlight code")]
      .filter((each) => each.textContent.startsWith("$ ")).map((each) => {
      each.setAttribute("data-md-copying", "");
      const text = each.innerText;
      each.removeAttribute("data-md-copying");
      return text;
    }),
    outside: [...content.querySelectorAll("*")].filter((each) => !each.parentElement.closest(scrolls))
      .filter((each) => each.getBoundingClientRect().right > wide).map((each) => each.outerHTML.slice(0, 120)),
  };
})()"""
LAYOUT: Final = """(() => {
  const breaks = (element) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), range = new Range(), found = [];
    const bottom = (node, at) => {
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      return range.getBoundingClientRect().bottom;
    };
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (let at = 1; at < node.data.length; at++) {
        const pair = node.data.slice(at - 1, at + 1);
        if (/^[A-Za-z0-9]{2}$/.test(pair) && bottom(node, at) > bottom(node, at - 1) + 4) found.push(node.data);
      }
    }
    return found;
  };
  const all = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.getClientRects().length);
  const plain = (each) => (each?.textContent ?? "").replace("¶", "").replace(/\\s+/g, " ").trim();
  const colour = (selector) => getComputedStyle(document.querySelector(selector)).color;
  const inText = all(".md-content code").filter((each) => !each.closest("pre") && each.getClientRects().length > 1);
  const blocks = all(".md-content pre > code").filter((each) => each.scrollWidth > each.clientWidth);
  return {
    broken: [...inText, ...all(".md-content :is(h1, h2, h3), .md-nav .md-ellipsis")].flatMap(breaks),
    cut: blocks.map((each) => each.textContent.split("\\n").sort((one, two) => two.length - one.length)[0]),
    heading: plain(document.querySelector(".md-content h1")), grey: colour(".md-content h1") !== colour(".md-typeset"),
    entry: plain(all(".md-nav--primary a.md-nav__link--active .md-ellipsis").pop()),
  };
})()"""
ENTRIES: Final = """Object.fromEntries([...document.querySelectorAll(".md-nav--primary a")]
  .map((each) => [each.textContent.trim(), each.href]).filter(([text]) => text === "Playground"))"""
HITS: Final = """((question) => new Promise((done) => {
  const field = document.querySelector(".md-search__input"), toggle = document.getElementById("__search");
  toggle.checked = true;
  toggle.dispatchEvent(new Event("change"));
  field.focus();
  field.value = question;
  field.dispatchEvent(new Event("input", {bubbles: true}));
  field.dispatchEvent(new Event("keyup", {bubbles: true}));
  const look = () => {
    const hits = [...document.querySelectorAll(".md-search-result__article")]
      .filter((each) => each.getClientRects().length);
    if (hits.length < 3) return requestAnimationFrame(look);
    const size = parseFloat(getComputedStyle(hits[0]).fontSize);
    done(hits.map((each) => ({lines: each.getBoundingClientRect().height / size, text: each.innerText})));
  };
  look();
}))(%s)"""
"""Types into the field of the search; the heights are in letters."""
FOUND: Final = """((questions) => new Promise((done, fail) => {
  const config = JSON.parse(document.getElementById("__config").textContent);
  const worker = new Worker(new URL(config.search, location)), found = [];
  const ask = () => worker.postMessage({type: 2, data: questions[found.length]});
  worker.onerror = fail;
  worker.onmessage = ({data: {type, data}}) => {
    if (type === 3) found.push(data.items.slice(0, 3).map((hits) => hits.map((hit) => hit.location)));
    found.length < questions.length ? ask() : done(found);
  };
  fetch(new URL("search/search_index.json", location)).then((answer) => answer.json())
    .then((index) => worker.postMessage({type: 0, data: {...index, options: {suggest: false}}}), fail);
}))(%s)"""
"""Asks the script that searches for the field of the page: 0 sends it the index, 2 a question, and 3 is an answer."""


@dataclass(frozen=True)
class Seen:
    """One page.

    Attributes:
        measured: Sizes and colours.
        complaints: What it wrote to the console.
        failed: Why a diagram could not be drawn; empty if all were.
        layout: What breaks, is cut off or has another name, by the width of the page.
    """

    measured: Any
    complaints: Sequence[str]
    failed: str
    layout: Mapping[int, Any]


@dataclass
class Visit:
    """What a visit found.

    Attributes:
        phone: Each page on a phone in dark mode, by its address without that of the site.
        light: Some pages in light mode, likewise.
        answers: By question the first pages, each with its sections from the best one on.
        hits: The hits of one question as the page shows them, by the width of the page.
        requests: All addresses that were requested, those of the site without its own.
    """

    phone: dict[str, Seen] = field(default_factory=dict)
    light: dict[str, Seen] = field(default_factory=dict)
    answers: dict[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    hits: dict[int, Any] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Opened:
    """The playground, opened from the navigation of the site.

    Attributes:
        origin: The address of the site.
        address: The address of the playground.
        entries: The addresses of its entries in the navigation, by their texts.
        state: The state of the page: `done` after a simulation.
        shown: What it shows.
        complaints: What it wrote to the console.
        requests: All addresses that were requested.
    """

    origin: str
    address: str
    entries: Any
    state: str
    shown: Any
    complaints: Sequence[str]
    requests: Sequence[str]


async def opened_playground(chromium: str, site: Path, folder: Path) -> Opened:
    """Open the playground on a phone.

    Args:
        chromium: The program of the browser.
        site: The folder of the site.
        folder: Folder for the profile of the browser.
    """
    async with opened_tab(chromium, folder) as tab:
        with served(site) as origin:
            await tab.open(f"{origin}using-the-playground/", width=PHONE)
            entries = await tab.evaluate(ENTRIES)
            await tab.go(f"{origin}playground/")
            state = await tab.evaluate(STATE)
            shown = await tab.evaluate(SHOWN)
            return Opened(origin, f"{origin}playground/", entries, state, shown, tab.complaints, tab.requests)


def without_index(site: Path, folder: Path) -> Path:
    """Return a copy of the site whose search finds nothing: every page would build the index, which takes a second."""
    copy = folder / "site"
    copy.mkdir()
    for each in site.iterdir():
        if each.name != "search":
            (copy / each.name).symlink_to(each)
    (copy / "search").mkdir()
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    (copy / "search" / "search_index.json").write_text(json.dumps({**index, "docs": []}), encoding="utf-8")
    return copy


async def visited(chromium: str, site: Path, folder: Path, pages: Sequence[str], questions: Sequence[str]) -> Visit:
    """Visit the site.

    Args:
        chromium: The program of the browser.
        site: The folder of the site.
        folder: Folder for the profile of the browser, and for a copy of the site.
        pages: The addresses of the pages to look at, relative to that of the site.
        questions: What to search for.
    """
    found = Visit()
    async with opened_tab(chromium, folder) as tab:
        await tab.send("Page.enable")
        await tab.send("Page.addScriptToEvaluateOnNewDocument", source=OPEN)
        with served(without_index(site, folder)) as origin:
            await tab.open(origin, width=PHONE, dark=True)
            for page in pages:
                found.phone[page] = await _seen(tab, f"{origin}{page}", dark=True)
            await tab.resize(PHONE)
            for page in pages[:3]:
                found.light[page] = await _seen(tab, f"{origin}{page}")
            found.requests = [each.removeprefix(origin) for each in tab.requests]
        with served(site) as origin:
            await tab.open(origin)
            found.answers = dict(zip(questions, await search(tab, questions), strict=True))
            for width in (PHONE, SCREEN):
                await tab.open(f"{origin}reference/settings/", width=width)
                found.hits[width] = await tab.evaluate(HITS % json.dumps("reconcile_timeout"))
    return found


async def _seen(tab: Tab, address: str, *, dark: bool = False) -> Seen:
    before = len(tab.complaints)
    await tab.go(address)
    failed = await tab.evaluate(DRAWN)
    measured, layout = await tab.evaluate(SEEN), {PHONE: await tab.evaluate(LAYOUT)}
    await tab.resize(SCREEN, dark=dark)
    layout[SCREEN] = await tab.evaluate(LAYOUT)
    await tab.resize(PHONE, dark=dark)
    return Seen(measured, tab.complaints[before:], failed, layout)


async def search(tab: Tab, questions: Sequence[str]) -> Any:
    """Return for each question the first pages that an open page of the site finds, each with its sections."""
    return await tab.evaluate(FOUND % json.dumps(questions))
