"""YAML is written so that people can read it and Kubernetes reads what was meant."""

from collections import OrderedDict
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ManifestError
from ocf.objects.document_limits import MAX_DEPTH
from ocf.objects.yaml_reader import read_yaml
from ocf.objects.yaml_writer import write_yaml

texts = st.text(st.characters(codec="utf-8"), max_size=20) | st.text(
    "0123456789_.+-eExob:~ \n#'\"|>&*!%@[]{}", max_size=8
)
scalars = (
    texts
    | st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=20
)


class Mode(StrEnum):
    AUTO = "Auto"


def test_a_manifest_is_written_as_people_write_it() -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web", "labels": {}, "finalizers": []},
        "data": {"motd": "Hello\nworld\n", "script": "a\n  b", "empty": "", "long": "word " * 60 + "end"},
        "numbers": [1, -0.5, 1e22, True, None, [1], {"a": 1, "b": 2}],
    }

    assert (
        write_yaml(manifest, "document")
        == f"""\
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  labels: {{}}
  finalizers: []
data:
  motd: |
    Hello
    world
  script: |-
    a
      b
  empty: ''
  long: {"word " * 60}end
numbers:
- 1
- -0.5
- 1.0e+22
- true
- null
- - 1
- a: 1
  b: 2
"""
    )


@pytest.mark.parametrize(
    "text",
    [
        "y",
        "n",
        "yes",
        "No",
        "on",
        "OFF",
        "true",
        "null",
        "~",
        "1",
        "-1",
        "1.5",
        "1.",
        ".5",
        "1e3",
        "1E-3",
        "0x1F",
        "0o14",
        "0b11",
        "0755",
        "1_000",
        ".inf",
        "2001-12-14",
        "12:30:45",
        "=",
        "<<",
    ],
)
def test_a_text_that_could_be_taken_for_something_else_is_quoted(text: str) -> None:
    """By Kubernetes, or by any other reader of YAML 1.1."""
    assert write_yaml({text: text}, "document") == f"'{text}': '{text}'\n"


@pytest.mark.parametrize("text", ["web", "apps/v1", "1.2.3", "500m", "10.0.0.0/8", "a b", "http://x:80", "é", "1e400"])
def test_other_texts_stay_bare(text: str) -> None:
    assert write_yaml([text], "document") == f"- {text}\n"


def test_what_appears_twice_is_written_twice() -> None:
    shared = {"a": [1]}

    assert "&" not in write_yaml({"x": shared, "z": shared}, "document")


def test_a_text_of_a_derived_class_is_a_text() -> None:
    assert write_yaml({Mode.AUTO: Mode.AUTO}, "document") == "Auto: Auto\n"


def test_a_map_of_a_derived_class_is_a_map() -> None:
    assert write_yaml(OrderedDict(b=1, a=2), "document") == "b: 1\na: 2\n"


@given(values)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert list(read_yaml(write_yaml(value, "document"), "document")) == [value]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param({"a": {"b": [1, {2}]}}, "document: a.b[1]: set is not a JSON value", id="set"),
        pytest.param({"a": (1,)}, "document: a: tuple is not a JSON value", id="tuple"),
        pytest.param({"a": b"x"}, "document: a: bytes is not a JSON value", id="bytes"),
        pytest.param({"a": datetime(2001, 1, 1, tzinfo=UTC)}, "document: a: datetime is not a JSON value", id="date"),
        pytest.param({"a": float("nan")}, "document: a: nan is not a JSON value", id="not a number"),
        pytest.param({"a": float("-inf")}, "document: a: -inf is not a JSON value", id="infinity"),
        pytest.param({"a": {1: "x"}}, "document: a: the key 1 must be a text", id="number as a key"),
        pytest.param({"a": {None: "x"}}, "document: a: the key None must be a text", id="null as a key"),
        pytest.param({"a": "\ud800"}, "document: a: a text contains half of a surrogate pair", id="surrogate"),
        pytest.param({"\ud800": 1}, "document: a text contains half of a surrogate pair", id="surrogate in a key"),
    ],
)
def test_a_value_that_is_not_json_is_rejected_with_its_path(value: Any, problem: str) -> None:
    with pytest.raises(ManifestError) as caught:
        write_yaml(value, "document")

    assert str(caught.value) == problem


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(ManifestError) as caught:
        write_yaml({"a": {1}, "b": [b""]}, "document")

    assert [problem.path for problem in caught.value.problems] == ["a", "b[0]"]


def test_a_value_that_contains_itself_is_rejected() -> None:
    value: dict[str, Any] = {}
    value["a"] = [value, value]

    with pytest.raises(
        ManifestError, match=r"^document: a\[0\]\.a: nested more than 100 levels deep, or contains itself$"
    ):
        write_yaml(value, "document")


def test_depth_is_that_of_the_reader() -> None:
    deepest: Any = []
    for _ in range(MAX_DEPTH - 1):
        deepest = [deepest]

    assert list(read_yaml(write_yaml(deepest, "document"), "document")) == [deepest]
    with pytest.raises(ManifestError):
        write_yaml([deepest], "document")


def test_another_reader_reads_the_same() -> None:
    manifest = {"kind": "ConfigMap", "data": {"on": "yes", "n": "0755", "t": "12:30:45", "d": "2001-12-14", "e": "="}}

    assert yaml.safe_load(write_yaml(manifest, "document")) == manifest
