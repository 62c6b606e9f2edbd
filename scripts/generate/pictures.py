"""Draw the pictures of the documentation from what they show: pages that commands and operators serve, and diagrams.

    python -m scripts.generate.pictures [NAME...]

A page becomes a picture as it is, cut off below: its HTML within an SVG, without scripts and without what is folded.
"""

import argparse
import asyncio
import json
import logging
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from textwrap import indent
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, TreeBuilder, tostring

import yaml
from click.testing import CliRunner

from examples.web.operator import components
from examples.web.shop import Shop
from ocf.autoscaling.explain.html_page import COLOURS, STYLE
from ocf.cli.app import app
from ocf.concepts.backoff import ExponentialBackoff
from ocf.objects import Manifest, ObjectKey, load_document
from ocf.ownership import OwnerExplanation, OwnerSnapshot, explain_owner
from ocf.ownership.picture import standalone_svg
from ocf.runtime.component_diagram import component_diagram
from ocf.runtime.operator import ManagerOptions, Operator, running
from ocf.runtime.page import html
from ocf.simulation.browser import answer
from ocf.simulation.report.page import report_part
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from ocf_server.controllers.settings import ControllerSettings
from scripts.record.dashboard_parts.run import readme_operator

__all__ = ["PICTURES", "framed", "path_of"]

ROOT: Final = Path(__file__).parents[2]
_DOCS: Final = ROOT / "docs"
_FILE: Final = re.compile(r"^`(?P<name>[\w.-]+)`:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_STYLE: Final = re.compile(r"<style>\n(.*?)</style>", re.DOTALL)
_VOID: Final = frozenset({"br", "hr", "img", "input", "link", "meta"})
_CASES: Final = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}
"""Attributes of SVG, which a parser of HTML returns in small letters."""
_SVG: Final = "http://www.w3.org/2000/svg"
_FRAME: Final = (
    ".frame{fill:var(--paper);stroke:var(--line)}html,body{height:100%;overflow:hidden}"
    "main section:first-child h2{margin-top:.2rem}"
)


@dataclass(frozen=True)
class Cut:
    """What of a page its picture shows.

    Args:
        width: Of the page in pixels.
        height: Where it is cut off.
        sections: Titles of the sections that are shown; None for all.
        alone: Whether nothing but these sections is shown.
    """

    width: int
    height: int
    sections: tuple[str, ...] | None = None
    alone: bool = False


class _Page(HTMLParser):
    """The body of a page as a tree."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self._builder = TreeBuilder()
        self._builder.start("page", {})
        self.feed(page)
        self.close()
        self._builder.end("page")
        body = self._builder.close().find(".//body")
        if body is None:
            raise ValueError("the page has no body")
        self.body: Final = body

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {_CASES.get(name, name): name if value is None else value for name, value in attrs}
        self._builder.start(tag, names | ({"xmlns": _SVG} if tag == "svg" else {}))
        if tag in _VOID:
            self._builder.end(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._builder.end(tag)

    def handle_endtag(self, tag: str) -> None:
        self._builder.end(tag)

    def handle_data(self, data: str) -> None:
        self._builder.data(data)


def framed(page: str, cut: Cut, title: str, style: str = "") -> str:
    """Return the picture of a page.

    Args:
        page: The page; its own style sheets are kept.
        cut: What of it is shown.
        title: The alternative text of the picture where it stands alone.
        style: Style sheets that the page loads.
    """
    body = _Page(page).body
    for parent in [*body.iter()]:
        for child in [*parent]:
            if not _is_shown(parent, child, cut):
                parent.remove(child)
    document = Element("html", {"xmlns": "http://www.w3.org/1999/xhtml"})
    document.append(body)
    size = {"width": str(cut.width), "height": str(cut.height)}
    picture = Element("svg", {"xmlns": _SVG, "viewBox": f"0 0 {cut.width} {cut.height}", **size})
    picture.attrib |= {"role": "img", "aria-label": title}
    SubElement(picture, "style").text = "".join(_STYLE.findall(page)) + style + _FRAME
    SubElement(picture, "rect", {"class": "frame", "x": ".5", "y": ".5", "rx": "8"} | _inner(cut))
    SubElement(picture, "foreignObject", size).append(document)
    return tostring(picture, encoding="unicode") + "\n"


def _inner(cut: Cut) -> dict[str, str]:
    return {"width": str(cut.width - 1), "height": str(cut.height - 1)}


def _is_shown(parent: Element, child: Element, cut: Cut) -> bool:
    if child.tag in {"script", "link"} or "hidden" in child.attrib or child.get("class") == "skip":
        return False
    if parent.tag == "details":
        return child.tag == "summary"
    heading = child.find("h2") if child.tag == "section" else None
    if heading is None or cut.sections is None:
        return not (cut.alone and parent.tag == "main")
    return "".join(heading.itertext()) in cut.sections


# Pages of commands.


def _written(page: str, *command: str, more: Mapping[str, str] | None = None) -> str:
    """Return the page that a command writes, run on the files of a page of the documentation.

    Args:
        page: Where the files are, below `docs/`. Of files with the same name the first is taken.
        command: The command, whose last argument is the file that it writes.
        more: Texts that are put at the end of files, by name.
    """
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for found in reversed([*_FILE.finditer((_DOCS / page).read_text(encoding="utf-8"))]):
            Path(found["name"]).write_text(found["text"] + (more or {}).get(found["name"], ""), encoding="utf-8")
        done = CliRunner().invoke(app, [*command])
        if not Path(command[-1]).exists():
            raise SystemExit(f"ocf {' '.join(command)} wrote no page: {done.output}")
        return Path(command[-1]).read_text(encoding="utf-8")


_NODES: Final = """\
nodeGroups:
- name: workers
  maxNodes: 4
  instanceTypes: [{name: small, cpu: 800m, memory: 16Gi, price: 0.5}]
  boot: {mean: 60s}
"""


def _report(nodes: str = "") -> str:
    return _written("autoscaling/simulate.md", "simulate", "web.yaml", "--report", "r.html", more={"web.yaml": nodes})


def _tuning() -> str:
    return _written("autoscaling/tune.md", "tune", "web.yaml", "--search", "search.yaml", "--report", "tuning.html")


def _explained() -> str:
    return _written(
        "autoscaling/explain-hpa.md", "explain", "-f", "web.yaml", "-f", "busy.yaml", "--picture", "web.html"
    )


# The page of an operator.

_NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
_SHOPS: Final[Mapping[str, Mapping[str, Any]]] = {
    "corner": {"version": "2.3.1"},
    "harbour": {"version": "2.3.1", "suspended": True},
    "market": {"version": "latest"},
    "station": {"version": "1.9.0"},
    "museum": {"version": "2.3.1"},
}
_LATE: Final = "museum"
"""The shop that is created last, whose pods are not ready yet."""


def _owners() -> Mapping[ObjectKey, OwnerExplanation]:
    """Return the explanations of the shops that the operator of the README runs on an embedded cluster."""
    logging.disable(logging.CRITICAL)
    try:
        objects = run_in_virtual_time(_played(*readme_operator()))
    finally:
        logging.disable(logging.NOTSET)
    now = _NOON + timedelta(minutes=10, seconds=20)
    snapshot = OwnerSnapshot(objects=objects, now=now)
    shops = [ObjectKey.of(each) for each in objects if each["kind"] == "Shop"]
    return {key: explain_owner(snapshot, key) for key in shops}


def _in_the_middle() -> float:
    """Return the random number of every jitter, so that each run is the same."""
    return 0.5


async def _played(operator: Operator[Any], definition: Manifest) -> list[Manifest]:
    """Run the operator for ten minutes; return all that is in its cluster then."""
    clock = LoopClock(_NOON)
    cluster = EmbeddedCluster(now=clock.now)
    await cluster.apply(definition, field_manager="kubectl")
    controllers = cluster.controllers(ControllerSettings(ready_after=timedelta(seconds=45)))
    options = ManagerOptions(listen=None, clock=clock, random=_in_the_middle)
    shops = replace(operator, rate_limiter=ExponentialBackoff(random=_in_the_middle))
    async with controllers.running(), running(cluster, shops, options=options):
        for name, spec in _SHOPS.items():
            await asyncio.sleep(600 if name == _LATE else 1)
            metadata = {"name": name, "namespace": "default"}
            shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": spec}
            await cluster.create(shop, field_manager="kubectl")
        await asyncio.sleep(16)
        kinds = [("example.com/v1", "Shop"), ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("v1", "Pod")]
        return [each for kind in kinds for each in (await cluster.list(*kind)).items]


def _operator_page(cut: Cut, *left_out: str) -> str:
    parts = html.owners_parts(_owners(), html.Listing())
    shown = {name: part for name, part in parts.items() if name not in left_out}
    page = html.document(html.Frame("Owners", ""), shown)
    return framed(page, cut, "The page of an operator: its owners by trouble", html.style())


def _components() -> str:
    shop = Shop.model_validate(load_document((ROOT / "examples" / "web" / "shop.yaml").read_text(encoding="utf-8")))
    return standalone_svg(component_diagram(f"Shop {shop.key.name}", components(shop)))


# The playground.


def _playground(cut: Cut) -> str:
    """Return the playground with its first example, as it is when it is opened."""
    folder = _DOCS / "playground"
    [example, *_] = yaml.safe_load((folder / "examples.yaml").read_text(encoding="utf-8"))
    scenario = f"hpa: hpa.yaml\n{example['scenario']}load:\n{indent(example['load'], '  ')}"
    request = {"files": {"hpa.yaml": example["hpa"], "scenario.yaml": scenario}}
    found = json.loads(answer(json.dumps(request)))
    page = (folder / "index.html").read_text(encoding="utf-8")
    for part in ("load", "hpa", "scenario"):
        text = example[part]
        numbers = "".join(f"{number}\n" for number in range(1, text.count("\n") + 2))
        before, start, rest = page.partition(f'</pre>\n<textarea id="{part}"')
        tag, end, after = rest.partition(">")
        page = f"{before}{numbers}{start}{tag}{end}{text}{after}"
    box = 'viewBox="0 0 60 100" preserveAspectRatio="none"'
    page = re.sub(r'(<svg id="curve"[^>]*)>', lambda at: f"{at[1]} {box}>{_curve(found['curve'])}", page)
    page = re.sub(r"<img [^>]*>|<noscript>.*?</noscript>|<progress.*?</progress>", "", page, flags=re.DOTALL)
    page = page.replace(">Loading<", f">{found['title']}: {found['summary']}<")
    page = page.replace('<section id="result" aria-label="Result">', f"<section>{found['body']}")
    columns = ".playground main{grid-template-columns:minmax(0,2fr) minmax(0,3fr)}.inputs{padding:0 .2rem}"
    style = COLOURS + report_part("charts.css") + STYLE + (folder / "page.css").read_text(encoding="utf-8") + columns
    return framed(page, cut, "The playground", style)


def _curve(curve: Mapping[str, Any]) -> str:
    rates = curve["rates"]
    line = "".join(f"V{100 - 90 * rate / max(rates):.3g}H{number}" for number, rate in enumerate(rates, 1))
    return f'<path class="part" d="M0 100{line}V100z"></path>'


_CHARTS: Final = ("Load and capacity, load units per second", "Replicas")

_INPUTS: Final = ("Load", "HorizontalPodAutoscaler, hpa.yaml")

PICTURES: Final[Mapping[str, Callable[[], str]]] = {
    "components": _components,
    "explained": lambda: framed(_explained(), Cut(720, 640), "An explained HorizontalPodAutoscaler"),
    "front": lambda: framed(_tuning(), Cut(720, 900), "The page of a search: the winner, and the front"),
    "nodes": lambda: framed(_report(_NODES), Cut(720, 620, ("Nodes",)), "The report of a simulation with nodes"),
    "operator": lambda: _operator_page(Cut(720, 560)),
    "playground": lambda: _playground(Cut(1200, 760, (*_INPUTS, "Objectives", _CHARTS[0]))),
    "report": lambda: framed(_report(), Cut(720, 950, _CHARTS), "The report of a simulation"),
    "door-autoscalers": lambda: framed(_report(), Cut(400, 300, ("Replicas",), alone=True), "Replicas under a spike"),
    "door-nodes": lambda: framed(_report(_NODES), Cut(400, 300, ("Nodes",), alone=True), "Nodes under a spike"),
    "door-operators": lambda: _operator_page(Cut(400, 300), "search"),
}
"""What draws each picture, by its name."""


def path_of(name: str) -> Path:
    """Return the file of a picture."""
    return _DOCS / "pictures" / f"{name}.svg"


def main() -> None:
    """Draw the pictures that are named, or all."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the documentation.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(PICTURES)}; by default all")
    for name in parser.parse_args().names or PICTURES:
        path_of(name).write_text(PICTURES[name](), encoding="utf-8")


if __name__ == "__main__":
    main()
