"""Field sets: set operations, path elements, and the order of fields."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.schema.builtin import struct
from ocf_server.managedfields.fieldset import (
    FieldSet,
    contains,
    difference,
    insert,
    intersection,
    key_element,
    path_text,
    paths,
    recursive_difference,
    serialized,
    subset,
    union,
    value_element,
    with_named_fields,
)

ELEMENTS = ["f:a", 'k:{"name":"x"}', "v:1", "f:b", 'k:{"name":"y"}', 'v:"z"']
# Longer paths have fewer elements, so that one often begins with another one. They are listed, because drawing an item
# of a list costs less than drawing a list.
PATHS = st.sampled_from(
    [path for size in range(1, 5) for path in product(ELEMENTS if size < 3 else ELEMENTS[:3], repeat=size)]
)
PATH_SETS = st.sets(PATHS, max_size=12)


def built(found: set[tuple[str, ...]]) -> FieldSet:
    fields: FieldSet = {}
    for path in sorted(found):
        insert(fields, path)
    return fields


@given(PATH_SETS)
def test_a_set_contains_exactly_the_inserted_fields(found: set[tuple[str, ...]]) -> None:
    assert set(paths(built(found))) == found


@given(PATH_SETS, st.randoms())
def test_the_order_of_insertion_has_no_effect(found: set[tuple[str, ...]], random: Any) -> None:
    shuffled = sorted(found)
    random.shuffle(shuffled)
    fields: FieldSet = {}
    for path in shuffled:
        insert(fields, path)

    assert fields == built(found)


@given(PATH_SETS, PATH_SETS)
def test_union_is_the_union_of_the_paths(left: set[tuple[str, ...]], right: set[tuple[str, ...]]) -> None:
    assert union(built(left), built(right)) == built(left | right)


@given(PATH_SETS, PATH_SETS)
def test_difference_is_the_difference_of_the_paths(left: set[tuple[str, ...]], right: set[tuple[str, ...]]) -> None:
    assert difference(built(left), built(right)) == built(left - right)


@given(PATH_SETS, PATH_SETS)
def test_intersection_is_the_intersection_of_the_paths(left: set[tuple[str, ...]], right: set[tuple[str, ...]]) -> None:
    assert intersection(built(left), built(right)) == built(left & right)


@given(PATH_SETS, PATH_SETS)
def test_recursive_difference_also_removes_fields_below(
    left: set[tuple[str, ...]], right: set[tuple[str, ...]]
) -> None:
    kept = {path for path in left if not any(path[: end + 1] in right for end in range(len(path)))}

    assert recursive_difference(built(left), built(right)) == built(kept)


@given(PATH_SETS, st.sampled_from(ELEMENTS))
def test_a_subset_contains_the_fields_below_an_element(found: set[tuple[str, ...]], element: str) -> None:
    below = {path[1:] for path in found if path[0] == element and len(path) > 1}

    assert subset(built(found), element) == built(below)


@given(PATH_SETS, PATHS)
def test_contains_ignores_fields_above_and_below(found: set[tuple[str, ...]], path: tuple[str, ...]) -> None:
    assert contains(built(found), path) is (path in found)


@given(PATH_SETS, PATH_SETS)
def test_operations_do_not_change_their_operands(left: set[tuple[str, ...]], right: set[tuple[str, ...]]) -> None:
    first, second = built(left), built(right)
    for operation in (union, difference, intersection, recursive_difference):
        operation(first, second)

    assert (first, second) == (built(left), built(right))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(["f:spec", "f:replicas"], ".spec.replicas", id="fields"),
        pytest.param(['k:{"containerPort":80,"protocol":"TCP"}'], '[containerPort=80,protocol="TCP"]', id="keys"),
        pytest.param(["f:finalizers", 'v:"a.io/x"'], '.finalizers[="a.io/x"]', id="value"),
        pytest.param(["f:spec", "i:3"], ".spec[3]", id="index"),
    ],
)
def test_path_text_is_that_of_error_messages(path: list[str], text: str) -> None:
    assert path_text(path) == text


@pytest.mark.parametrize(
    ("value", "element"),
    [
        pytest.param("a<b>&é", 'v:"a\\u003cb\\u003e\\u0026é"', id="characters of HTML are escaped"),
        pytest.param(80.0, "v:80", id="float that is an integer"),
        pytest.param(0.5, "v:0.5", id="fraction"),
        pytest.param(True, "v:true", id="boolean"),
        pytest.param('a"b', 'v:"a\\"b"', id="quote"),
    ],
)
def test_a_value_element_is_json(value: Any, element: str) -> None:
    assert value_element(value) == element


def test_a_key_element_contains_all_key_fields() -> None:
    assert key_element([("name", "a<b")]) == 'k:{"name":"a\\u003cb"}'


def test_paths_sort_fields_before_items_and_numbers_before_texts() -> None:
    fields: FieldSet = {'v:"b"': {}, 'v:"a"': {}, "v:10": {}, "v:9": {}, 'k:{"n":"x"}': {}, "f:z": {}, "f:a": {}}

    order = [path[0] for path in paths(fields)]

    assert order == ["f:a", "f:z", 'k:{"n":"x"}', "v:9", "v:10", 'v:"a"', 'v:"b"']


def test_paths_sort_a_level_before_the_fields_below() -> None:
    assert list(paths({"f:a": {".": {}, "f:x": {}}, "f:b": {}})) == [("f:a",), ("f:b",), ("f:a", "f:x")]


def test_with_named_fields_adds_declared_fields_with_children() -> None:
    fields: FieldSet = {"f:spec": {"f:template": {"f:metadata": {"f:labels": {"f:a": {}}}}}}

    named = with_named_fields(fields, struct("apps.v1.Deployment"))

    template: FieldSet = {".": {}, "f:metadata": {".": {}, "f:labels": {".": {}, "f:a": {}}}}
    assert named == {"f:spec": {".": {}, "f:template": template}}


def test_a_set_is_written_in_the_order_of_the_server() -> None:
    """Itself, fields, keys by value (numbers as numbers), values; a text that begins another one comes first."""
    ports = ['k:{"port":80}', 'k:{"port":443}', 'k:{"port":8080}']
    names = ['k:{"name":"a"}', 'k:{"name":"a b"}', 'k:{"name":"a-b"}']
    wanted: FieldSet = {
        "f:a": {".": {}, **{key: {} for key in ports}},
        "f:a.b": {key: {} for key in names},
        'v:"x"': {},
    }
    mixed = {key: dict(reversed(node.items())) for key, node in reversed(wanted.items())}
    assert json.dumps(serialized(mixed)) == json.dumps(wanted)
    assert serialized(wanted) is wanted


@given(PATH_SETS, st.randoms())
def test_each_level_is_written_in_the_order_of_its_paths(found: set[tuple[str, ...]], random: Any) -> None:
    def check(written: FieldSet) -> None:
        names = [name for name in written if name != "."]
        random.shuffle(names)
        itself = ["."] if "." in written else []
        assert [*written] == [*itself, *(element for (element,) in paths({name: {} for name in names}))]
        for below in written.values():
            check(below)

    check(serialized(built(found)))
