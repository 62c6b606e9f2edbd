"""A text has a problem exactly if it is not JSON, and the problem does not depend on Python's version."""

import json
import re
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.json_syntax import json_problem

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
_WORDS = ["true", "fals", "null", "nulls", "00e9", "0", "12", "-1", "1.5e3", '"a"', "NaN", "é", "\\", "\\u"]
_TOKENS = st.sampled_from([*'{}[]:,"- \n.eE+', *_WORDS])


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refuse)
    except ValueError:
        return False
    return True


@given(value=_JSON, indent=st.none() | st.integers(0, 2), ascii_only=st.booleans())
def test_json_has_no_problem(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    assert json_problem(text.encode("utf-8", "surrogatepass")).message == ""


@given(text=st.text() | st.lists(_TOKENS, max_size=12).map("".join))
def test_a_text_has_a_problem_exactly_if_it_is_not_json(text: str) -> None:
    body = text.encode("utf-8", "surrogatepass")

    problem = json_problem(body)

    assert (problem.message == "") == _is_json(text)
    assert 0 <= problem.offset <= len(body)


@given(value=_JSON, cut=st.integers(min_value=0))
def test_a_text_is_read_up_to_where_it_was_cut_off(value: object, cut: int) -> None:
    body = json.dumps([value]).encode()
    start = body[: cut % len(body)]

    assert re.match("unexpected end of JSON input|invalid character ' ' (in|after)", json_problem(start).message)
    assert json_problem(start).offset == len(start)


@pytest.mark.parametrize("closing", ["", "]" * 100_000])
def test_deep_texts_are_read(closing: str) -> None:
    body = b"[" * 100_000 + closing.encode()

    assert (json_problem(body).message == "") == bool(closing)
