"""The page of an explanation: what it says, and that it needs nothing from elsewhere."""

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Final
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from ocf.autoscaling.algorithm import Autoscaler, History, Recommendation, Scale, Settings, Snapshot, Status
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.explain import KnownHistory, explain, explain_unknown, render, standalone_svg, to_html
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.text import Section
from ocf.autoscaling.explain.timeline import timeline
from tests.autoscaling.algorithm.test_properties import HISTORIES, NOON, SETTINGS, SNAPSHOTS
from tests.autoscaling.explain.test_rendering import STATUSES
from tests.autoscaling.explain.test_uncertainty import status_with
from tests.autoscaling.explain.values import QUEUE

NAMESPACE: Final = {"svg": "http://www.w3.org/2000/svg"}


def held() -> Explanation:
    """Explain a workload that wants 3, and is held at 5 by a recommendation."""
    web = Autoscaler(
        namespace="shop", name="web", kind="Deployment", target="web", minimum=2, maximum=9, metrics=(QUEUE,)
    )
    snapshot = Snapshot(autoscaler=web, scale=Scale(5, 5, "app=web"), metric_values=((3000,),))
    past = ((5, 200), (5, 185), (5, 170), (4, 100))
    known = tuple(Recommendation(count, NOON - timedelta(seconds=ago)) for count, ago in past)
    return explain(snapshot, History(known, (ScaleEvent(2, NOON - timedelta(seconds=60)),)), now=NOON)


class _Page(HTMLParser):
    """The text of a page, and the elements that are still open."""

    VOID: Final = frozenset({"meta"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def plain(line: str) -> str:
    """Return a line as the page has it: the columns of an indented one are separated by a colon."""
    if line.startswith("  "):
        line = re.sub(r" {2,}", ": ", line.strip().removeprefix("> "))
    return " ".join(line.split())


def check(explanation: Explanation) -> _Page:
    """Check that a page is well-formed, needs nothing from elsewhere, and says all that the text says."""
    source = to_html(explanation)
    page = _Page(source)
    assert page.open == []
    assert not re.search(r"<(script|link|img|iframe|object)|url\(|@import", source)
    assert not [each for each in page.attributes if each[1] in {"src", "href", "xlink:href", "srcset"}]
    for section in render(explanation):
        for line in section.lines:
            assert plain(line) in page.text
    identifiers = [value for _, name, value in page.attributes if name == "id"]
    assert len(identifiers) == len(set(identifiers))
    for bound in (explanation, explanation.most):
        window = None if bound is None else timeline(bound)
        if window is not None:
            ET.fromstring(standalone_svg(window, "a & b").encode())  # noqa: S314 (ours)
    return page


@settings(max_examples=30)
@given(snapshot=SNAPSHOTS, history=HISTORIES, flags=SETTINGS)
def test_the_page_of_a_known_history(snapshot: Snapshot, history: History, flags: Settings) -> None:
    check(explain(snapshot, history, settings=flags, now=NOON))


@settings(max_examples=30)
@given(snapshot=SNAPSHOTS, status=STATUSES, flags=SETTINGS)
def test_the_page_of_an_unknown_history(snapshot: Snapshot, status: Status, flags: Settings) -> None:
    check(explain_unknown(snapshot, KnownHistory(status, NOON), settings=flags, now=NOON))


def test_the_page_begins_with_the_result_and_the_numbers() -> None:
    text = check(held()).text
    assert "shop/web scales Deployment web at 2026-01-31 12:00:00 UTC" in text
    assert "now 5 wanted 3 next 5 minReplicas 2 maxReplicas 9" in text


def test_the_chart_has_a_text_alternative() -> None:
    """It is an image with a title and a description; and its values are in a table, equal ones in one row."""
    page = to_html(held())
    [picture] = re.findall(r"<svg[^>]*role=.*?</svg>", page, re.DOTALL)
    root = ET.fromstring(picture)  # noqa: S314 (ours)
    named = {each.get("id"): each.text for each in root.iter() if each.get("id")}
    assert [named[each] for each in root.attrib["aria-labelledby"].split()] == [
        "The recommendation window",
        (
            "5 replicas now, 3 wanted by the metrics, 5 next. From 11:55:00 to 12:00:00 UTC, 4 recommendations."
            " 5 was recommended at 11:57:10 and holds the replicas."
        ),
    ]
    assert "<td>11:56:40 to 11:57:10, 3 times</td><td>5 recommended</td>" in page
    assert "<td>11:59:00</td><td>2 added</td>" in page


def test_every_recommendation_and_change_is_drawn() -> None:
    window = timeline(held())
    assert window is not None
    root = ET.fromstring(standalone_svg(window, "x").encode())  # noqa: S314 (ours)
    marks = [each.get("class") for each in root.iter()]
    assert (marks.count("point"), marks.count("holder"), marks.count("up"), marks.count("next")) == (5, 1, 1, 1)
    texts = [each.text for each in root.iterfind("svg:text", NAMESPACE)]
    assert {"2", "3", "4", "5", "6", "11:55:00", "12:00:00", "+2"} <= set(texts)


def test_both_ends_of_a_range_have_a_chart() -> None:
    status = status_with("ScaleDownStabilized", "DesiredWithinRange", 5, 5)
    snapshot = held().decision.snapshot
    page = to_html(explain_unknown(snapshot, KnownHistory(status, NOON), now=NOON))
    assert page.count('role="img"') == 2
    assert "may have been recommended" in page


def test_names_and_messages_are_escaped() -> None:
    page = to_html(held(), reported=[Section("a <b>", ("<script>alert(1)</script>",))])
    assert "<h2>a &lt;b&gt;</h2>" in page
    assert "<script" not in page


def test_equal_explanations_give_equal_pages() -> None:
    assert to_html(held()) == to_html(held())


@pytest.mark.parametrize("replicas", [1, 60, 2**31 - 1])
def test_the_axis_has_few_whole_numbers(replicas: int) -> None:
    web = Autoscaler(name="web", minimum=1, maximum=2**31 - 1, metrics=(QUEUE,))
    snapshot = Snapshot(autoscaler=web, scale=Scale(replicas, replicas, "app=web"), metric_values=((1000,),))
    window = timeline(explain(snapshot, now=datetime(2026, 1, 31, tzinfo=UTC)))
    assert window is not None
    lines = standalone_svg(window, "x").count('class="grid"')
    assert 2 <= lines <= 8
