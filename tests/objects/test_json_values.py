"""JSON values: what Python's encoder sends is converted, everything else is an error with field, type and remedy.

Values of Python that no API server can receive, in other projects:
https://github.com/kubernetes-client/python/issues/2089 (datetime), https://github.com/meltano/sdk/issues/3787
(Decimal), https://github.com/dask/dask-kubernetes/pull/295 (enum), https://github.com/socketio/engine.io-parser/pull/82
(half of a surrogate pair).
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ocf.errors import ManifestError
from ocf.objects.json_values import encode_json, to_json


class Phase(StrEnum):
    READY = "Ready"


class Level(IntEnum):
    HIGH = 3


class Color(Enum):
    RED = "red"


class Count(int):
    """An integer of another library."""


class Size(BaseModel):
    width: int = 1


@dataclass
class Point:
    x: int = 1


class Closed(dict[str, int]):
    """A map that reads its items when asked, and cannot."""

    def items(self) -> Any:
        raise OSError("hunter2")


CONVERTED = [
    pytest.param(Phase.READY, "Ready", id="a member of a StrEnum"),
    pytest.param(Level.HIGH, 3, id="a member of an IntEnum"),
    pytest.param(Count(3), 3, id="a subclass of int"),
    pytest.param((1, (2,)), [1, [2]], id="tuples"),
    pytest.param(OrderedDict(a=1), {"a": 1}, id="a subclass of dict"),
    pytest.param({Phase.READY: {Phase.READY: 1}}, {"Ready": {"Ready": 1}}, id="members of a StrEnum as keys"),
]


@pytest.mark.parametrize(("value", "converted"), CONVERTED)
def test_what_the_encoder_sends_is_converted(value: Any, converted: Any) -> None:
    given_value = {"spec": [{"value": value}]}
    plain = to_json(given_value, "Shop corner")

    assert plain == {"spec": [{"value": converted}]}
    assert types_in(plain) <= {dict, list, str, int, float, bool, type(None)}
    assert given_value["spec"][0]["value"] is value


def types_in(value: Any) -> set[type]:
    """Return the exact types in a value."""
    below = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return {type(value)}.union(*map(types_in, below))


WRONG = [
    pytest.param(datetime(2026, 1, 1, tzinfo=UTC), "a datetime is not .*format_time", id="datetime"),
    pytest.param(date(2026, 1, 1), "a date is not .*isoformat", id="date"),
    pytest.param(timedelta(1), "a timedelta is not .*total_seconds", id="timedelta"),
    pytest.param(Decimal("1.5"), r"a Decimal is not .*str\(value\)", id="Decimal"),
    pytest.param({"a"}, r"a set is not .*sorted\(value\)", id="set"),
    pytest.param(frozenset({"a"}), "a frozenset is not .*sorted", id="frozenset"),
    pytest.param(b"hunter2", r"a bytes is not .*value.decode\(\)", id="bytes"),
    pytest.param(Color.RED, "a Color is not .*value.value", id="a member of another Enum"),
    pytest.param(Size(), "a Size is not .*model_dump", id="pydantic model"),
    pytest.param(Point(), "a Point is not .*dataclasses.asdict", id="dataclass"),
    pytest.param(MappingProxyType({"a": 1}), "a mappingproxy is not .*a dict", id="mapping that is not a dict"),
    pytest.param(object(), "an object is not .*a text, a number", id="object"),
    pytest.param(float("nan"), "nan is not a JSON number", id="not a number"),
    pytest.param(float("-inf"), "-inf is not a JSON number", id="infinity"),
    pytest.param({("a", 1): 2}, "has a key of type tuple; a key must be a text", id="a tuple as key"),
    pytest.param({1: 2}, r"has a key of type int; a key must be a text, for example str\(key\)", id="a number as key"),
    pytest.param({"1": 1, 1: 2}, "has a key of type int", id="a number as key beside its text"),
    pytest.param({None: 2}, "has a key of type NoneType", id="None as key"),
    pytest.param({"\ud800": 2}, r"has the key '\\ud800', which has half of a surrogate pair", id="half a pair as key"),
    pytest.param("\ud83d", "a text with half of a surrogate pair", id="the first half of a pair"),
    pytest.param("a\udc00b", "a text with half of a surrogate pair", id="the second half of a pair"),
    pytest.param(10**400, r"an integer of 1329 bits is beyond .* 1\.8e\+308", id="an integer of 401 digits"),
    pytest.param(-(10**5000), "an integer of 16610 bits is beyond", id="an integer that Python does not print"),
]


@pytest.mark.parametrize(("value", "problem"), WRONG)
def test_what_the_encoder_cannot_send_is_an_error(value: Any, problem: str) -> None:
    for convert in (to_json, encode_json):
        with pytest.raises(ManifestError, match=rf"^Shop corner: spec\.sizes\[1\]\.of: {problem}") as caught:
            convert({"spec": {"sizes": [0, {"of": value}]}}, "Shop corner")
        assert "hunter2" not in str(caught.value)


SENT = [
    pytest.param("\U0001f600", id="a text of a pair"),
    pytest.param("\x00", id="the character 0"),
    pytest.param(2**64 + 1, id="an integer that the API server reads as a float"),
    pytest.param(int(sys.float_info.max), id="the largest integer"),
    pytest.param(-sys.float_info.max, id="the lowest number"),
]


@pytest.mark.parametrize("value", SENT)
def test_what_json_has_is_sent(value: Any) -> None:
    assert json.loads(encode_json({"a": value}, "")) == {"a": value}
    assert to_json(value, "") is value


def test_a_map_that_fails_is_an_error() -> None:
    for convert in (to_json, encode_json):
        with pytest.raises(ManifestError, match=r"^Shop corner: status: is not a JSON value: it raises OSError$"):
            convert({"a": Closed(b=1)}, "Shop corner", ("status",))


def test_every_field_is_named() -> None:
    with pytest.raises(ManifestError) as caught:
        to_json({"a": {1}, "b": ({2},), "c": 1}, "Shop corner", ("status",))
    assert [problem.path for problem in caught.value.problems] == ["status.a", "status.b[0]"]


def test_a_value_that_contains_itself_is_an_error() -> None:
    endless: list[Any] = []
    endless += [endless, endless]
    for convert in (to_json, encode_json):
        with pytest.raises(ManifestError, match="Shop corner: status: contains itself, or has too many levels"):
            convert(endless, "Shop corner", ("status",))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
PLAIN = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(PLAIN)
def test_a_plain_value_is_not_copied(value: Any) -> None:
    assert to_json(value, "") is value


ODD = st.recursive(
    SCALARS | st.sampled_from([Phase.READY, Level.HIGH, Count(3)]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.just(Phase.READY), inner, max_size=3)
    ),
)


@given(ODD)
def test_a_value_becomes_what_a_request_carries(value: Any) -> None:
    plain = to_json(value, "")
    assert plain == json.loads(encode_json(value, ""))
    assert to_json(plain, "") is plain
