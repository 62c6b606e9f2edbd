"""`LabelIndex`: the same objects as by matching each of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ocf.controllers.hpa.snapshot.label_index import LabelIndex
from ocf.controllers.hpa.snapshot.selector_index import SelectorIndex
from ocf.objects.selectors import LabelSelector

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
LABELS = st.dictionaries(KEYS, VALUES)
TERMS = st.one_of(
    st.builds("{}={}".format, KEYS, VALUES),
    st.builds("{}=={}".format, KEYS, VALUES),
    st.builds("{}!={}".format, KEYS, VALUES),
    st.builds("{} in ({},{})".format, KEYS, VALUES, VALUES),
    st.builds("{} notin ({})".format, KEYS, VALUES),
    st.builds("!{}".format, KEYS),
    KEYS,
)
SELECTORS = st.lists(TERMS, max_size=3).map(",".join).map(LabelSelector.parse)


@given(st.lists(LABELS), SELECTORS)
def test_matches_are_found_in_order(things: list[dict[str, str]], selector: LabelSelector) -> None:
    index: LabelIndex[int, int] = LabelIndex()
    for number, labels in enumerate(things):
        index.put(number, labels, number)
    found = index.matching(selector)
    assert found == [number for number, labels in enumerate(things) if selector.matches(labels)]


CHANGES = st.lists(st.tuples(st.sampled_from(["web", "db", "all"]), SELECTORS | st.none()), max_size=8)


@given(CHANGES, st.lists(LABELS, max_size=3))
def test_other_autoscalers_match_a_pod_by_their_last_selector(
    changes: list[tuple[str, LabelSelector | None]], pods: list[dict[str, str]]
) -> None:
    known, expected = SelectorIndex(), dict[str, LabelSelector]()
    for name, selector in changes:
        if selector is None:
            known.forget("shop", name)
            expected.pop(name, None)
        else:
            known.put("shop", name, selector)
            known.put("blog", name, LabelSelector.parse(""))
            expected[name] = selector
    found = known.others("shop", "web", pods)

    assert found == {
        name: selector
        for name, selector in expected.items()
        if name != "web" and any(selector.matches(pod) for pod in pods)
    }


def test_removed_selectors_take_no_memory() -> None:
    known = SelectorIndex()
    for text in ("app=web", "app", "app in (web,db)"):
        known.put("shop", "web", LabelSelector.parse(text))
    known.forget("shop", "web")
    known.forget("shop", "never there")

    assert len(known) == 0
    assert not known._by_label
