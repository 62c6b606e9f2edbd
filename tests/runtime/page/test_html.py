"""The page as HTML: pages of owners, and texts of others that stay texts.

Public reports that are rebuilt here: https://github.com/argoproj/argo-cd/pull/5797 (a list that is not complete looks
like one that is), https://github.com/argoproj/argo-cd/issues/14947 (all owners on one page), and
https://github.com/kubernetes-retired/dashboard/issues/5091 (a long annotation breaks the page).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Final

import pytest

from ocf.objects import ObjectKey
from ocf.ownership import CauseStep, OwnerExplanation, State, TreeNode, UnreadKind
from ocf.runtime.page import html
from ocf.runtime.page.html import Frame, Listing
from ocf.runtime.page.options import SpecText
from ocf.runtime.page.timeline import FieldChange, Reconcile, Step, Write
from ocf.runtime.page.view import QueueNumbers, WatchNumbers

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOSTILE: Final = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "]]></title></textarea></style><svg onload=alert(1)>",
    "javascript:alert(1)",
    "\x00\x1b[2J\x9b\ud800",
    "\u202e\u2066gnirts\u2069",
    "&lt;b&gt;",
    "w" * 5000,
]


def key_of(name: str, namespace: str = "town") -> ObjectKey:
    return ObjectKey("example.com/v1", "Shop", name, namespace)


def explained(key: ObjectKey, state: State = State.READY, text: str = "") -> OwnerExplanation:
    child = TreeNode(f"ConfigMap {key.name}", state, ObjectKey("v1", "ConfigMap", key.name, key.namespace), NOON, text)
    root = TreeNode(f"Shop {key.name}", state, key, NOON, text, (text,), 1, (child,))
    return OwnerExplanation(
        root, (CauseStep(f"{key.name} is {state}{text}", key),), (text,), (UnreadKind("pods", "", text),)
    )


class Elements(HTMLParser):
    """The elements of a page, and whether all are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.addresses: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.addresses += [value or "" for name, value in attrs if name in {"href", "src", "action"}]
        if tag not in {"meta", "link", "input"}:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    @classmethod
    def of(cls, page: str) -> Elements:
        found = cls()
        found.feed(page)
        found.close()
        assert found._open == []
        return found


def pages(text: str, name: str) -> list[str]:
    """Return each page with a text in every place that others fill."""
    key = key_of(name, name)
    part = ObjectKey("v1", name, name, name)
    write = Write(name, part, text, text, (FieldChange(text, text, text),), text)
    record = Reconcile(1, text, key, NOON, 0.1, (text,), (Step(text, part, text),), (write,), text)
    frame = Frame(text, "../../", text, "changes")
    queue, watch = QueueNumbers(text, 1, 2, 3, 4), WatchNumbers("v1", text, text, 1, text)
    found = explained(key, State.FAILING, text)
    return [
        html.document(frame, html.owners_parts({key: found}, Listing(search="", state=State.FAILING), text)),
        html.document(frame, html.owners_parts({key: found}, Listing(search=text))),
        html.document(frame, html.owner_parts(key, found, [record], lambda _: True)),
        html.document(frame, html.activity_parts([queue], [watch], 0.5, [record], lambda _: False)),
        html.document(frame, {}, after=html.edit_form(SpecText(text, text), text, problem=text)),
        html.document(frame, {"login": html.login_form(text, "")}),
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_others_is_an_element_or_an_attribute(text: str) -> None:
    for plain, hostile in zip(pages("words", "corner"), pages(text, text), strict=True):
        known, found = Elements.of(plain), Elements.of(hostile)
        # A longer text has more lines in the picture.
        assert {*found.names} == {*known.names}
        assert {*found.attributes} == {*known.attributes}
        assert not [one for one in found.addresses if one.startswith(("javascript:", "//", "http"))]
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", hostile)


def names(parts: dict[str, str]) -> list[str]:
    return re.findall(r"<bdi>town/(shop-\d+)</bdi>", parts["owners"])


def test_a_list_is_in_pages_by_trouble() -> None:
    keys = [key_of(f"shop-{number:03}") for number in range(120)]
    owners = {key: explained(key, State.FAILING if key.name == "shop-077" else State.READY) for key in keys}
    first, second = (html.owners_parts(owners, Listing(page=page)) for page in (0, 1))
    assert (len(names(first)), len(names(second)), names(first)[:2]) == (100, 20, ["shop-077", "shop-000"])
    assert names(html.owners_parts(owners, Listing(page=99_999))) == names(second)
    assert names(html.owners_parts(owners, Listing(search="SHOP-11 town"))) == [f"shop-11{one}" for one in range(10)]
    assert names(html.owners_parts(owners, Listing(state="failing"))) == ["shop-077"]
    assert "119 of 120 owners ready" in first["summary"]
    assert "1 to 100 of 120" in first["owners"]
    assert 'href="?page=1"' in first["owners"]


@pytest.mark.parametrize(
    ("note", "shown"), [("", "There is no owner."), ("The owners are still being read.", "")], ids=["none", "not yet"]
)
def test_an_empty_list_says_whether_it_is_complete(note: str, shown: str) -> None:
    parts = html.owners_parts({}, Listing(), note)
    assert parts["owners"] == f"<p>{shown}</p>"
    assert note in parts["summary"]


@pytest.mark.parametrize("state", list(State))
def test_each_state_is_a_word_and_a_sign_beside_its_colour(state: State) -> None:
    parts = html.owners_parts({key_of("corner"): explained(key_of("corner"), state)}, Listing())
    signs = {re.findall(r"<span aria-hidden=\"true\">(.)</span> \w+</b> <a", parts["owners"])[0]}
    assert f"</span> {state}</b>" in parts["owners"]
    assert len(signs) == 1


def test_a_failed_reconcile_is_a_mark_below_the_line_of_the_chart() -> None:
    one = Reconcile(1, "shops", key_of("corner"), NOON, 0.5, (), (), (), "")
    calm, failed = (
        html.activity_parts([], [], 0.0, [one._replace(problem=text)], lambda _: True)["reconciles"]
        for text in ("", "no")
    )
    assert (calm.count("<rect"), failed.count("<rect")) == (1, 2)
    assert "0.5 s at most, 1 failed" in failed


@pytest.mark.parametrize(("shown", "expected"), [(True, True), (False, False)])
def test_fields_are_shown_to_who_may_read_the_object(*, shown: bool, expected: bool) -> None:
    settings = ObjectKey("v1", "ConfigMap", "settings", "town")
    write = Write("apply", settings, "", "", (FieldChange("data.motto", "open", "closed"),), "")
    record = Reconcile(1, "shops", key_of("corner"), NOON, 0.5, (), (), (write,), "")
    parts = html.owner_parts(
        key_of("corner"), explained(key_of("corner")), [record], lambda key: shown and key == settings
    )
    assert ("closed" in parts["reconciles"]) is expected
    assert ("an object that you may not read" in parts["reconciles"]) is not expected
