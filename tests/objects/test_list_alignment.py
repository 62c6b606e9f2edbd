"""Entries of lists are matched by what they are, not by where they stand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.list_alignment import aligned, entry_labels


def metric(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": name, **more}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}], [1, 0], id="reordered"),
        pytest.param([{"name": "a"}], [{"name": "new"}, {"name": "a"}], [None, 0], id="one in front"),
        pytest.param([{"name": "a"}, {"name": "b"}], [{"name": "b"}], [1], id="the first removed"),
        pytest.param([{"name": "a", "i": 1}], [{"name": "b", "i": 1}], [0], id="renamed"),
        pytest.param([{"name": "a", "i": 1}], [{"name": "b", "i": 2}], [None], id="another one"),
        pytest.param([{"name": "a"}], [{"name": "b"}], [None], id="nothing in common"),
        pytest.param(
            [{"name": "a", "i": 1}, {"name": "b", "i": 2}],
            [{"name": "c", "i": 2}, {"name": "d", "i": 1}],
            [1, 0],
            id="two renamed, each follows the one that is most like it",
        ),
        pytest.param([{"name": "a"}, {"name": "a"}], [{"name": "a"}, {"name": "a"}], [0, 1], id="a key given twice"),
        pytest.param(
            [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}],
            [{"containerPort": 80, "protocol": "UDP"}],
            [1],
            id="a key of two fields",
        ),
        pytest.param([metric("cpu"), metric("memory")], [metric("memory", target=1)], [1], id="metrics"),
        pytest.param(["-a", "-b"], ["-b"], [1], id="texts"),
        pytest.param(["-l=1", "-b"], ["-l=2", "-b"], [0, 1], id="a text replaced"),
        pytest.param(
            [{"key": "a", "operator": "Exists"}, {"operator": "Exists"}],
            [{"operator": "Exists"}],
            [1],
            id="entries without keys are matched by content",
        ),
        pytest.param([1, {"name": "a"}, None], [{"name": "a"}], [1], id="a mixture"),
        pytest.param([], ["-a"], [None], id="from nothing"),
        pytest.param(["-a"], [], [], id="to nothing"),
    ],
)
def test_each_entry_is_found_again(before: list[Any], after: list[Any], expected: list[int | None]) -> None:
    assert aligned(before, after) == expected


ENTRIES = st.lists(
    st.one_of(
        st.sampled_from(["-a", "-b", "-c"]),
        st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"i": st.integers(0, 2)}),
        st.fixed_dictionaries({"containerPort": st.integers(80, 82)}, optional={"protocol": st.just("UDP")}),
    ),
    max_size=5,
)


@given(ENTRIES, ENTRIES)
def test_no_entry_is_found_twice(before: list[Any], after: list[Any]) -> None:
    found = aligned(before, after)
    places = [place for place in found if place is not None]
    assert len(found) == len(after)
    assert len(places) == len(set(places))
    assert all(0 <= place < len(before) for place in places)


@given(ENTRIES)
def test_an_unchanged_list_is_itself(entries: list[Any]) -> None:
    assert aligned(entries, entries) == list(range(len(entries)))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([{"name": "a", "uid": "1"}], ["uid=1"], id="an owner is its uid"),
        pytest.param([metric("cpu")], ["type=Resource,name=cpu"], id="a metric is type and name"),
        pytest.param([{"name": "a"}, {"b": 1}], ["0", "1"], id="positions where one has no key"),
    ],
)
def test_labels(entries: list[Any], expected: list[str]) -> None:
    assert entry_labels(entries) == expected
