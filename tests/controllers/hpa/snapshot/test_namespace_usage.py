"""`NamespaceUsage`: a selector selects what matching every entry selects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.controllers.hpa.snapshot.namespace_usage import NamespaceUsage
from ocf.objects.selectors import LabelSelector
from tests.controllers.hpa.snapshot.test_label_index import KEYS, SELECTORS, VALUES


def entry(number: int, labels: Any) -> dict[str, Any]:
    return {"metadata": {"name": f"pod-{number}", "labels": labels}}


@given(st.lists(st.dictionaries(KEYS, VALUES, min_size=1)), SELECTORS)
def test_entries_are_selected_in_the_order_of_the_response(
    labels: list[dict[str, str]], selector: LabelSelector
) -> None:
    entries = [entry(number, each) for number, each in enumerate(labels)]
    usage = NamespaceUsage.of(entries)
    assert usage is not None
    selected = usage.select(selector)
    assert [each.entry for each in selected] == [one for one in entries if selector.matches(one["metadata"]["labels"])]
    again = usage.select(selector)
    assert all(one is other for one, other in zip(selected, again, strict=True))


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(entry(1, None), id="no labels"),
        pytest.param(entry(1, {}), id="empty labels"),
        pytest.param(entry(1, {"app": 1}), id="a number"),
        pytest.param(entry(1, {"app": ["web"]}), id="a list"),
        pytest.param(entry(1, ["app"]), id="no map"),
        pytest.param({"metadata": None}, id="no metadata"),
        pytest.param("nonsense", id="a text"),
    ],
)
def test_one_entry_without_usable_labels_makes_the_api_apply_selectors(odd: Any) -> None:
    assert NamespaceUsage.of([entry(0, {"app": "web"}), odd]) is None
