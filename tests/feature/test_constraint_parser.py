"""A constraint that cannot be read is refused with its text, the part that is wrong, and what is allowed."""

from contextlib import suppress
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ConstraintError
from ocf.feature.constraint_parser import parse_constraint


def refusal(text: object) -> str:
    with pytest.raises(ConstraintError) as caught:
        parse_constraint(cast("Any", text))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("==1.2.3", "cannot read '==1.2.3'", id="an operator of another language"),
        pytest.param(">=1, foo, <2", "cannot read 'foo'", id="the word, not what surrounds it"),
        pytest.param(">= 1.2.3.4, <2", "cannot read '>= 1.2.3.4'", id="too many numbers"),
        pytest.param("1.2.3-é", "cannot read '1.2.3-é'", id="a letter no version has"),
        pytest.param(">=1.2.0,", "nothing follows the last comma", id="a trailing comma"),
        pytest.param(",1", "cannot read ',1'", id="a leading comma"),
        pytest.param("\v", r"cannot read '\x0b'", id="white space that Go does not know"),
        pytest.param("1x", "'1x' is not a version", id="a number with a wildcard"),
        pytest.param("1.2.3-01", "'1.2.3-01' is not a version", id="a prerelease with a leading zero"),
        pytest.param("18446744073709551616", "'18446744073709551616' is not a version", id="more than 64 bits"),
        pytest.param("", "the text or one side of || is empty", id="empty"),
        pytest.param(">=1 ||", "the text or one side of || is empty", id="an empty alternative"),
        pytest.param("1 - 2 - 3", "(read as '>= 1, <= 2 - 3'): cannot read '-'", id="a range of three"),
    ],
)
def test_the_message_names_the_text_the_part_and_what_is_allowed(text: str, problem: str) -> None:
    message = refusal(text)

    assert message.startswith(f"version constraint {text!r}")
    assert problem in message
    assert "one of = != > >= => < <= =< ~ ~> ^" in message


@pytest.mark.parametrize(
    ("value", "named"),
    [
        pytest.param(None, "None", id="none"),
        pytest.param(1.2, "float 1.2", id="a number from YAML"),
        pytest.param([">=1"], "list ['>=1']", id="a list"),
    ],
)
def test_only_text_is_a_constraint(value: object, named: str) -> None:
    assert refusal(value) == f"a version constraint has to be text, got {named}"


@pytest.mark.parametrize("unit", ["1", " ", "1.", "1 - ", "1, ", " 1", "1||", "-", "|", "é"])
def test_a_megabyte_of_garbage_is_rejected_unparsed(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))

    message = refusal(text)

    assert "too long: 512 characters at most" in message
    assert len(message) < 500


@given(text=st.one_of(st.text(), st.text(alphabet="0123xX*|.-+v=<>!~^, \t\nab", max_size=40)))
def test_every_text_is_parsed_or_rejected(text: str) -> None:
    """Nothing but a ConstraintError comes out, also of a text made of the grammar's own characters."""
    with suppress(ConstraintError):
        assert all(parse_constraint(text))


def test_the_longest_text_is_read() -> None:
    assert len(parse_constraint("1," * 255 + "12")[0]) == 256
    assert "too long" in refusal("1," * 256 + "1")


def test_alternatives_are_counted() -> None:
    assert len(parse_constraint("||".join("1" * 32))) == 32
    assert "33 alternatives: 32 at most" in refusal("||".join("1" * 33))


def test_groups_and_operators_are_kept_apart() -> None:
    groups = parse_constraint(">= 1.2 <2 || ~>3.0.0, != 3.1 || *")

    assert [[(each.operator, each.operand.places) for each in group] for group in groups] == [
        [(">=", 2), ("<", 1)],
        [("~>", 3), ("!=", 2)],
        [("", 0)],
    ]
