"""Places of fields as `managedFields` lists them: walking, reading and setting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.managed_fields import union
from ocf.objects.owned_paths import (
    ABSENT,
    dropped_fields,
    is_below,
    owned_fields,
    path_label,
    undeclared_fields,
    value_at,
    with_value_at,
    without_value_at,
)

if TYPE_CHECKING:
    from ocf.objects import Manifest

PORT: Final = 'k:{"containerPort":53,"protocol":"UDP"}'
FIELDS: Final[Manifest] = {
    "f:spec": {
        "f:replicas": {},
        "f:nodes": {},
        "f:containers": {
            'k:{"name":"web"}': {".": {}, "f:image": {}, "f:name": {}, "f:ports": {PORT: {".": {}, "f:name": {}}}}
        },
        "f:finalizers": {'v:"a"': {}},
    }
}
MANIFEST: Final[Manifest] = {
    "spec": {
        "replicas": 3,
        "nodes": {"pool": "a"},
        "containers": [
            {"name": "proxy", "image": "proxy:1"},
            {
                "name": "web",
                "image": "web:1",
                "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}],
            },
        ],
        "finalizers": ["a"],
    }
}


def labels(paths: Any) -> list[str]:
    return [path_label(path) for path in paths]


def test_the_innermost_places_are_listed_in_order() -> None:
    assert labels(owned_fields(FIELDS)) == [
        "spec.replicas",
        "spec.nodes",
        "spec.containers[name=web].image",
        "spec.containers[name=web].name",
        "spec.containers[name=web].ports[containerPort=53,protocol=UDP].name",
        "spec.finalizers[a]",
    ]


def test_values_are_found_by_their_keys() -> None:
    values = [value_at(MANIFEST, path) for path in owned_fields(FIELDS)]
    assert values == [3, {"pool": "a"}, "web:1", "web", "dns", "a"]
    assert value_at({"spec": None}, ("f:spec", "f:replicas")) is ABSENT
    assert value_at({"spec": {"containers": {}}}, ("f:spec", "f:containers", 'k:{"name":"web"}')) is ABSENT


def test_places_that_are_no_longer_declared_are_listed() -> None:
    assert not list(dropped_fields(FIELDS, MANIFEST))
    less = {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}
    assert labels(dropped_fields(FIELDS, less)) == [
        "spec.replicas",
        "spec.nodes",
        "spec.containers[name=web].ports[containerPort=53,protocol=UDP].name",
        "spec.finalizers[a]",
    ]


@pytest.mark.parametrize(
    ("other", "fields", "expected"),
    [
        pytest.param(
            {"spec": {"containers": [{"name": "web", "image": "web:1"}]}},
            FIELDS,
            ["spec.replicas", "spec.nodes"],
            id="entries are matched by key, maps that merge as a whole are one field",
        ),
        pytest.param(
            ABSENT,
            FIELDS,
            ["spec.replicas", "spec.nodes", "spec.containers[name=web].name", "spec.containers[name=web].image"],
            id="everything, if nothing is declared",
        ),
        pytest.param(
            ABSENT,
            None,
            ["spec.replicas", "spec.nodes.pool", "spec.containers", "spec.finalizers"],
            id="without owners, maps merge by key and lists as a whole",
        ),
        pytest.param({"spec": 1}, None, ["spec.replicas", "spec.nodes.pool"], id="a map in place of a number"),
    ],
)
def test_places_that_another_object_does_not_declare(other: Any, fields: Manifest | None, expected: list[str]) -> None:
    desired: Manifest = {
        "spec": {
            "replicas": 0,
            "nodes": {"pool": "b"},
            "containers": [{"name": "web", "image": "web:1"}, {"name": "new", "image": "new:1"}],
            "finalizers": ["b"],
        }
    }
    if other == {"spec": 1}:
        desired = {"spec": {"replicas": 0, "nodes": {"pool": "b"}}}
    assert sorted(labels(undeclared_fields(desired, other, fields))) == sorted(expected)


def test_a_place_lies_in_itself_and_in_its_parents() -> None:
    path = ("f:spec", "f:replicas")
    assert is_below(path, [("f:spec",)])
    assert is_below(path, [path])
    assert not is_below(path, [(*path, "f:more"), ("f:status",)])


NAMES = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'k:{"name":"y","port":1}'])
TREES: st.SearchStrategy[Manifest] = st.recursive(
    st.just({}), lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
).map(lambda tree: {"f:root": _consistent(tree)})


def _consistent(tree: Manifest, *, is_entry: bool = False) -> Manifest:
    """Keep only one kind of keys at each level, and only fields in an entry, as in a real `fieldsV1`."""
    kind = "f:" if is_entry else next(iter(tree), "")[:2]
    return {name: _consistent(inner, is_entry=kind == "k:") for name, inner in tree.items() if name[:2] == kind}


@given(tree=TREES, values=st.lists(st.integers(), min_size=16, max_size=16))
def test_values_that_are_set_are_read_back(tree: Manifest, values: list[int]) -> None:
    """An object that is built from places has a value at each of them, and nothing is dropped."""
    fields = [path for path in owned_fields(tree) if path[-1].startswith("f:")]
    manifest: Manifest = {}
    for path, value in zip(fields, values, strict=False):
        manifest = with_value_at(manifest, path, value)
    known = fields[: len(values)]
    assert [value_at(manifest, path) for path in known] == values[: len(known)]
    assert not [path for path in dropped_fields(tree, manifest) if path in known]
    for path in known:
        manifest = without_value_at(manifest, path)
        assert value_at(manifest, path) is ABSENT


@given(tree=TREES, other=TREES)
def test_a_union_lists_what_one_of_both_lists(tree: Manifest, other: Manifest) -> None:
    both = union(tree, other)
    assert union(both, tree, other) == both
    assert set(owned_fields(both)) <= {*owned_fields(tree), *owned_fields(other)}
