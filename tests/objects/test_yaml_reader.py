"""YAML is read safely, within bounds and strictly."""

import tracemalloc
from typing import Any

import pytest
import yaml

from ocf.errors import ManifestError
from ocf.objects import yaml_reader
from ocf.objects.document_limits import MAX_DEPTH, MAX_VALUES
from ocf.objects.yaml_reader import read_yaml


@pytest.fixture(params=["SafeLoader", "CSafeLoader"])
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything holds without the C library as well."""
    if not hasattr(yaml, request.param):
        pytest.skip("PyYAML was built without its C library")
    monkeypatch.setattr(yaml_reader, "_Loader", getattr(yaml, request.param))


pytestmark = pytest.mark.usefixtures("_loader")


def read(text: str) -> Any:
    (document,) = read_yaml(text, "document")
    return document


def refusal(text: str) -> str:
    with pytest.raises(ManifestError) as caught:
        list(read_yaml(text, "document {}"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: {b: [1, x, null], c: {}, d: []}", {"a": {"b": [1, "x", None], "c": {}, "d": []}}, id="nested"),
        pytest.param("a:\nb: ~", {"a": None, "b": None}, id="null"),
        pytest.param("'1': \"yes\"\n\"on\": '2'", {"1": "yes", "on": "2"}, id="quoted scalars are texts"),
        pytest.param("a: |\n  yes\nb: >\n  1\n  2", {"a": "yes\n", "b": "1 2"}, id="blocks are texts"),
        pytest.param("a: ! 5\nb: !!str 5", {"a": "5", "b": "5"}, id="tags of a text"),
        pytest.param("a: !!int '5'\nb: !!float 5\nc: !!bool 'yes'", {"a": 5, "b": 5, "c": True}, id="tags of JSON"),
        pytest.param("!!map {a: !!seq [!!null '']}", {"a": [None]}, id="tags of collections"),
        pytest.param("since: 2001-12-14", {"since": "2001-12-14"}, id="dates are texts"),
        pytest.param("a: =\nb: [=]", {"a": "=", "b": ["="]}, id="equals signs are texts"),
        pytest.param("a: <<\nb: '<<'", {"a": "<<", "b": "<<"}, id="merge signs as values are texts"),
        pytest.param("'<<': {a: 1}", {"<<": {"a": 1}}, id="quoted merge sign is a key"),
        pytest.param("just a text", "just a text", id="scalar"),
        pytest.param("- 1\n- 2", [1, 2], id="list"),
    ],
)
def test_reads(text: str, expected: Any) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: &x [1]\nb: *x", {"a": [1], "b": [1]}, id="alias"),
        pytest.param("a: &x 1\nb: *x", {"a": 1, "b": 1}, id="alias of a scalar"),
        pytest.param("&x a: 1\nb: *x", {"a": 1, "b": "a"}, id="alias of a key"),
        pytest.param("a: &x k\n*x : 1", {"a": "k", "k": 1}, id="alias as a key"),
        pytest.param("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}, id="the last anchor counts"),
        pytest.param("<<: {a: 1, b: 1}\nb: 2", {"b": 2, "a": 1}, id="later keys go before merged ones"),
        pytest.param("b: 2\n<<: {a: 1, b: 1}", {"b": 1, "a": 1}, id="merged keys go before earlier ones"),
        pytest.param("b: 2\n<<: [{a: 1}, {a: 2, c: 3}]", {"b": 2, "a": 1, "c": 3}, id="the first merged map counts"),
        pytest.param("a: &x {k: {l: 1}}\nb: {<<: *x}", {"a": {"k": {"l": 1}}, "b": {"k": {"l": 1}}}, id="merged alias"),
    ],
)
def test_aliases_and_merges_are_resolved(text: str, expected: Any) -> None:
    assert read(text) == expected


@pytest.mark.parametrize("text", ["a: &x {k: [1]}\nb: *x", "a: &x {k: [1]}\nb:\n  <<: *x"])
def test_nothing_is_shared(text: str) -> None:
    """A change in one place must not show up in another."""
    document = read(text)
    document["a"]["k"].append(2)

    assert document["b"] == {"k": [1]}


def test_documents_are_read_one_by_one() -> None:
    assert list(read_yaml("a: &x 1\n---\n---\n# nothing\n---\n[2]\n...\n", "document {}")) == [
        {"a": 1},
        None,
        None,
        [2],
    ]


def test_an_anchor_ends_with_its_document() -> None:
    assert refusal("a: &x 1\n---\nb: *x") == "document 2: line 3: the alias *x repeats nothing that ends before it"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: 1\nb: {c: 1,\n  c: 2}", "line 3: the key c is given twice", id="key twice"),
        pytest.param("<<: {a: 1}\n<<: {b: 1}", "line 2: the key << is given twice", id="merged twice"),
        pytest.param(
            "on: 1", "line 1: the key on means true; a key must be a text, put it in quotes", id="boolean key"
        ),
        pytest.param("a:\n  1: x", "line 2: the key 1 means 1", id="number as a key"),
        pytest.param("~: x", "line 1: the key ~ means null", id="null as a key"),
        pytest.param("? [a]\n: 1", "line 1: a key must be a text, not a list", id="list as a key"),
        pytest.param("? {a: 1}\n: 1", "line 1: a key must be a text, not a map", id="map as a key"),
        pytest.param(
            "a: &x [1]\n*x : 1", "line 2: the key *x means list; a key must be a text", id="alias of a list as a key"
        ),
        pytest.param("a: !foo 1", "line 1: the tag !foo is not supported", id="tag of one's own"),
        pytest.param("a: !!python/object:os.system x", "the tag tag:yaml.org,2002:python/object", id="tag of Python"),
        pytest.param("a: !!python/tuple [1]", "the tag tag:yaml.org,2002:python/tuple", id="tag of Python on a list"),
        pytest.param("a: !!binary aGk=", "the tag tag:yaml.org,2002:binary is not", id="tag without a value in JSON"),
        pytest.param("a: !!set {x}", "the tag tag:yaml.org,2002:set is not", id="set"),
        pytest.param("a: !!seq {x: 1}", "the tag tag:yaml.org,2002:seq is not", id="map tagged as a list"),
        pytest.param("a: !!int x", "the tag tag:yaml.org,2002:int is not", id="text tagged as a number"),
        pytest.param("a: !!int yes", "the tag tag:yaml.org,2002:int is not", id="boolean tagged as a number"),
        pytest.param("a: .inf", "line 1: .inf is not a JSON number", id="infinity"),
        pytest.param("a: -.INF", "line 1: -.INF is not a JSON number", id="negative infinity"),
        pytest.param("a: 1\nb: .nan", "line 2: .nan is not a JSON number", id="not a number"),
        pytest.param("<<: 5", "line 1: << must be followed by a map", id="merged number"),
        pytest.param("<<: [{a: 1}, 5]", "line 1: << must be followed by a map", id="merged list with a number"),
        pytest.param("a: &x [1, *x]", "line 1: the alias *x repeats nothing that ends before it", id="list in itself"),
        pytest.param("a: *x", "line 1: the alias *x repeats nothing", id="alias of nothing"),
        pytest.param("a:\n\tb: 1", "line 2: found character", id="tab"),
        pytest.param("a: b: c", "line 1: mapping values are not allowed", id="two colons"),
        pytest.param("a: 1\n'b", "line 2: found unexpected end of stream", id="open quote"),
        pytest.param("a: [", "line ", id="open list"),
        pytest.param("a: 1\nb: 2\nc: \x07", "line 3: ", id="control character"),
        pytest.param("é: 1\nb: \x07", "line 2: ", id="control character behind a long one"),
    ],
)
def test_rejects_with_the_line(text: str, problem: str) -> None:
    assert refusal(text).startswith("document 1: line ")
    assert problem in refusal(text)


def nested(levels: int) -> str:
    return "[" * levels + "x" + "]" * levels


def test_depth_is_bounded() -> None:
    read(nested(MAX_DEPTH))

    assert refusal(nested(MAX_DEPTH + 1)) == "document 1: line 1: nested more than 100 levels deep"


def test_the_depth_behind_an_alias_counts() -> None:
    read(f"[&x {nested(MAX_DEPTH - 2)}, [*x]]")

    assert "levels deep" in refusal(f"[&x {nested(MAX_DEPTH - 2)}, [[*x]]]")


def test_the_number_of_values_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, values, maps and lists count, and an alias as much as what it stands for."""
    monkeypatch.setattr(yaml_reader, "MAX_VALUES", 13)
    read("a: &x {b: 1}\nc: *x\nd: *x\n")

    assert refusal("a: &x {b: 1}\nc: *x\nd: *x\n---\n") == (
        "document 2: line 5: more than 13 values, counting an alias as what it stands for"
    )
    assert "more than 13 values" in refusal("a: &x [1, 2]\nb: &y [*x, *x]\nc: *y")


def bomb(levels: int, fan: int) -> str:
    lines = ["a0: &a0 [x]"]
    for level in range(levels):
        aliases = ", ".join([f"*a{level}"] * fan)
        lines.append(f"a{level + 1}: &a{level + 1} [{aliases}]")
    return "\n".join(lines)


def merge_bomb(levels: int) -> str:
    lines = (f"a{level + 1}: &a{level + 1} {{<<: [*a{level}, *a{level}], k{level}: 1}}" for level in range(levels))
    return "\n".join(["a0: &a0 {k: 1}", *lines])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(bomb(9, 9), id="nine to the ninth"),
        pytest.param(bomb(99, 2), id="two to the ninety-ninth"),
        pytest.param(merge_bomb(90), id="merged maps"),
    ],
)
def test_an_alias_bomb_is_counted_and_not_expanded(text: str) -> None:
    tracemalloc.start()
    try:
        assert f"more than {MAX_VALUES} values" in refusal(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 2 * 2**20


@pytest.mark.parametrize("start", ["a: [", "[", "{a: ", "- ", "? ", "a: !", "a: *"])
def test_long_texts_end_early_with_a_short_message(start: str) -> None:
    assert len(refusal(start * 20_000)) < 250
