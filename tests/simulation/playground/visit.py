"""A visit of the playground in a browser: all that its tests look at, in one go, since the page is slow to load."""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.devtools import Tab, opened_tab, served

__all__ = ["SHOWN", "STATE", "Visit", "visited"]

GIVEN: Final = {"hpa": "kind: HorizontalPodAutoscaler\n", "scenario": "duration: 1h\n", "load": "# ü€\n"}
STATE: Final = """new Promise((done) => {
  const root = document.documentElement, final = () => /^(done|invalid|failed)$/.test(root.dataset.state);
  if (final()) return done(root.dataset.state);
  const observer = new MutationObserver(() => final() && done(root.dataset.state));
  observer.observe(root, {attributes: true});
})"""
SHOWN: Final = """(() => {
  const text = (selector) => document.querySelector(selector)?.textContent;
  const values = Object.fromEntries(["load", "hpa", "scenario"].map((id) => [id, document.getElementById(id).value]));
  return {values, status: text("#status"), old: document.getElementById("result").className === "old",
    titles: [...document.querySelectorAll("#result h2")].map((each) => each.textContent),
    problems: [...document.querySelectorAll(".problems li")].map((each) => [each.parentElement.id, each.textContent]),
    wrong: [...document.querySelectorAll(".gutter .wrong")].map((each) => each.textContent),
    invalid: [...document.querySelectorAll("textarea[aria-invalid=true]")].map((each) => each.id),
    actions: [...document.querySelectorAll("#actions tbody tr")].map((each) => each.textContent),
    slider: document.getElementById("curve").getAttribute("aria-valuetext"),
    lines: [...document.querySelectorAll("#result figure[data-chart='1'] path.series")].map(
      (each) => each.getAttribute("d")),
    range: text("#range"), opened: document.querySelectorAll("#result section > details[open]").length,
    scrolled: document.documentElement.scrollWidth, width: document.documentElement.clientWidth,
    outside: [...document.querySelectorAll("body *")].filter((each) => !each.closest(".scroll, textarea, details"))
      .filter((each) => each.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
      .map((each) => each.outerHTML.slice(0, 80)),
    colours: [...document.querySelectorAll("h1, h2, p, label, dt, dd, button:enabled, textarea, pre, #curve text")]
      .map((each) => [each instanceof SVGElement ? getComputedStyle(each).fill : getComputedStyle(each).color,
        each.outerHTML.slice(0, 80)]),
    paper: getComputedStyle(document.body).backgroundColor};
})()"""
FILES: Final = """import("./files.js").then(({filesOf, PARTS}) =>
  filesOf(Object.fromEntries(PARTS.map((id) => [id, document.getElementById(id).value]))))"""
SAVED: Final = """new Promise((done) => {
  URL.createObjectURL = (blob) => { blob.text().then(done); return "data:,"; };
  HTMLAnchorElement.prototype.click = () => {};
  document.getElementById("save-csv").click();
})"""


def fragment(texts: Mapping[str, str]) -> str:
    """Return the part of an address that has the input of the page."""
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    data = deflate.compress(json.dumps(texts).encode()) + deflate.flush()
    return f"1.{base64.urlsafe_b64encode(data).decode().rstrip('=')}"


def until(condition: str) -> str:
    """Return a promise in JavaScript that waits for a condition."""
    return (
        f"new Promise((done) => {{ const look = () => {condition} ? done() : requestAnimationFrame(look); look(); }})"
    )


@dataclass
class Visit:
    """What a visit found.

    Attributes:
        shown: What the page shows after each step.
        files: The files of each example.
        csv: The time series of each example.
        parts: What the modules return that need no engine.
        queue: What the queue of the engine does with a worker that only keeps what it is sent.
        nodes: The nodes for assistive technology, each with role and name.
        complaints: What was written to the console.
        requests: The addresses that were requested.
        origin: The address of the server.
        link: The fragment of the address of the corrected input.
    """

    shown: dict[str, Any] = field(default_factory=dict)
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    csv: dict[str, str] = field(default_factory=dict)
    parts: Any = None
    queue: Any = None
    nodes: list[tuple[str, str]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    origin: str = ""
    link: str = ""


async def visited(chromium: str, built: Path, folder: Path) -> Visit:
    """Visit the page.

    Args:
        chromium: The program of the browser.
        built: The folder with the page.
        folder: Folder for the profile of the browser.
    """
    found = Visit()
    with served(built) as found.origin:
        async with opened_tab(chromium, folder) as tab:
            await _Steps(tab, found).run()
            found.complaints, found.requests = tab.complaints, tab.requests
    return found


class _Steps:
    def __init__(self, tab: Tab, found: Visit) -> None:
        self._tab = tab
        self._found = found

    async def run(self) -> None:
        await self._tab.open(f"{self._found.origin}index.html#{fragment(GIVEN)}")
        # Python is not loaded for it, which takes seconds.
        await self._tab.evaluate(until("document.getElementById('hpa').value"))
        self._found.shown["given"] = await self._tab.evaluate(SHOWN)
        await self._tab.open(f"{self._found.origin}index.html?")
        await self._tab.evaluate(until("document.querySelector('#actions')"))
        self._found.shown["recorded"] = await self._tab.evaluate(SHOWN)
        await self._note("opened")
        self._found.nodes = [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in (await self._tab.send("Accessibility.getFullAXTree"))["nodes"]
            if not node["ignored"]
        ]
        await self._examples()
        await self._curve()
        await self._problems()
        await self._links()
        self._found.parts = await self._tab.evaluate(PARTS)
        self._found.queue = await self._tab.evaluate(QUEUE)

    async def _note(self, name: str) -> Any:
        await self._tab.evaluate(STATE)
        self._found.shown[name] = shown = await self._tab.evaluate(SHOWN)
        return shown

    async def _choose(self, example: int) -> None:
        await self._tab.evaluate(
            f"examples.value = '{example}'; examples.dispatchEvent(new Event('change')); {STATE}",
        )

    async def _examples(self) -> None:
        for example in range(await self._tab.evaluate("examples.options.length - 1")):
            await self._choose(example)
            files = await self._tab.evaluate(FILES)
            name = await self._tab.evaluate(f"examples.options[{example + 1}].textContent")
            self._found.files[name] = files
            self._found.csv[name] = await self._tab.evaluate(SAVED)

    async def _curve(self) -> None:
        await self._choose(0)
        await self._tab.evaluate("document.querySelector('#result section > details').open = true")
        await self._tab.evaluate("document.querySelector('[data-command=in]').click()")
        box = await self._tab.evaluate("document.getElementById('curve').getBoundingClientRect().toJSON()")
        left, right, top = box["x"] + box["width"] * 0.6, box["x"] + box["width"] * 0.9, box["y"] + 30
        await self._tab.drag((left, top), ((left + right) / 2, top), (right, top))
        await self._note("dragged")
        await self._tab.evaluate("document.getElementById('undo').click()")
        await self._note("undone")
        await self._tab.evaluate("document.getElementById('curve').focus()")
        for key in ("Home", "ArrowRight", "ArrowUp"):
            await self._tab.press(key)
        await self._note("pressed")

    async def _type(self, part: str, old: str, new: str) -> None:
        script = f"{part}.value = {part}.value.replace({json.dumps(old)}, {json.dumps(new)})"
        await self._tab.evaluate(f"{script}; {part}.dispatchEvent(new Event('input'))")

    async def _problems(self) -> None:
        await self._choose(0)
        await self._type("hpa", "maxReplicas: 20", "maxReplicas: 1")
        await self._note("invalid")
        await self._tab.evaluate("document.querySelector('#hpa-problems button').click()")
        selected = "hpa.value.slice(hpa.selectionStart, hpa.selectionEnd)"
        self._found.shown["selected"] = await self._tab.evaluate(selected)
        await self._choose(0)
        await self._type("load", "peak: 80", "peak: high")
        await self._note("invalid load")
        await self._type("load", "peak: high", "peak: 40")
        await self._note("corrected")

    async def _links(self) -> None:
        await self._tab.evaluate("document.getElementById('copy-link').click()")
        await self._tab.evaluate(until("/the link/.test(document.getElementById('status').textContent)"))
        self._found.link = await self._tab.evaluate("location.hash")
        await self._choose(1)
        await self._tab.evaluate("location.hash = '#1.AAAA'")
        await self._tab.evaluate(until("/link/.test(document.getElementById('status').textContent)"))
        await self._note("broken link")
        await self._choose(1)
        await self._tab.evaluate(f"location.hash = '{self._found.link}'")
        await self._tab.evaluate(until("/peak: 40/.test(document.getElementById('load').value)"))
        await self._tab.resize(390, dark=True)
        await self._note("shared")


PARTS: Final = """Promise.all([import("./files.js"), import("./share.js")]).then(async ([files, share]) => {
  const texts = {scenario: "a: 1\\nb: 2", hpa: "c", load: "- d\\n\\n- e\\n"};
  const names = Object.keys(texts).sort(), bomb = {load: "0".repeat(600000), hpa: "", scenario: ""};
  const refused = async (fragment) => share.decoded(fragment, names).then(() => "", (error) => error.message);
  return {
    files: files.filesOf(texts),
    places: [["hpa.yaml", 3], ["scenario.yaml", null], ["scenario.yaml", 1], ["scenario.yaml", 3], ["scenario.yaml", 4],
      ["scenario.yaml", 5], ["scenario.yaml", 7]].map((place) => Object.values(files.placeOf(texts, ...place))),
    durations: [0, 59, 60, 3660, 7200.5].map(files.durationText),
    curve: files.loadOfCurve({rates: [1, 1, 2], end: 90, fixed: true}),
    ending: files.loadOfCurve({rates: [1, 1, 2], end: 90, fixed: false}),
    shared: await share.decoded(await share.encoded({...texts, hpa: "ü€😀"}), names),
    refused: [await refused("2.AAAA"), await refused(await share.encoded(bomb)),
      await refused(await share.encoded({hpa: ""}))],
  };
})"""
QUEUE: Final = """import("./engine.js").then(async ({Engine}) => {
  const real = self.Worker, workers = [], found = [];
  class Fake {
    constructor() { this.sent = []; this.stopped = false; workers.push(this); }
    postMessage({number}) { this.sent.push(number); }
    terminate() { this.stopped = true; }
    say(message) { this.onmessage({data: {number: this.sent.at(-1), ...message}}); }
  }
  const on = Object.fromEntries(["loading", "starting", "ready", "running", "view", "failed", "broken"]
    .map((name) => [name, (...values) => found.push([name, ...values])]));
  const answer = {type: "answer", answer: '{"problems": []}'};
  self.Worker = Fake;
  const engine = new Engine(on), [worker] = workers;
  engine.view("first");
  engine.view("second");
  const text = engine.text("third", "csv");
  engine.view("fourth");
  const before = worker.sent.length;
  worker.say({type: "ready"});
  worker.say({type: "progress", share: 0.5});
  worker.say(answer);
  const kept = await text;
  worker.say(answer);
  engine.view("fifth");
  engine.view("sixth");
  worker.say(answer);
  worker.say({type: "failed", text: "why"});
  engine.view("seventh");
  engine.stop();
  self.Worker = real;
  workers[1].say({type: "ready"});
  return {before, sent: worker.sent, kept, found, stopped: worker.stopped, afterwards: workers[1].sent};
})"""
