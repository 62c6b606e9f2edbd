"""A requirement matches labels, and knows what the API server refuses in it."""

import pytest

from ocf.objects.label_requirements import Requirement, SelectorOperator

LABELS = {"tier": "back", "weight": "7", "low": "-3", "plus": "+6", "huge": "99999999999999999999", "empty": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        pytest.param("tier", SelectorOperator.EXISTS, (), True, id="exists, there"),
        pytest.param("empty", SelectorOperator.EXISTS, (), True, id="exists, there without a value"),
        pytest.param("none", SelectorOperator.EXISTS, (), False, id="exists, absent"),
        pytest.param("tier", SelectorOperator.DOES_NOT_EXIST, (), False, id="does not exist, there"),
        pytest.param("none", SelectorOperator.DOES_NOT_EXIST, (), True, id="does not exist, absent"),
        pytest.param("tier", SelectorOperator.IN, ("back", "front"), True, id="in, listed"),
        pytest.param("tier", SelectorOperator.IN, ("front",), False, id="in, not listed"),
        pytest.param("none", SelectorOperator.IN, ("",), False, id="in, absent is not the empty value"),
        pytest.param("tier", SelectorOperator.NOT_IN, ("back", "front"), False, id="not in, listed"),
        pytest.param("tier", SelectorOperator.NOT_IN, ("front",), True, id="not in, not listed"),
        pytest.param("none", SelectorOperator.NOT_IN, ("",), True, id="not in, absent"),
        pytest.param("empty", SelectorOperator.EQUALS, ("",), True, id="equals the empty value"),
        pytest.param("tier", SelectorOperator.EQUALS, ("front",), False, id="equals another value"),
        pytest.param("tier", SelectorOperator.DOUBLE_EQUALS, ("back",), True, id="double equals"),
        pytest.param("none", SelectorOperator.DOUBLE_EQUALS, ("",), False, id="double equals, absent"),
        pytest.param("tier", SelectorOperator.NOT_EQUALS, ("back",), False, id="not equals, equal"),
        pytest.param("tier", SelectorOperator.NOT_EQUALS, ("front",), True, id="not equals, different"),
        pytest.param("none", SelectorOperator.NOT_EQUALS, ("back",), True, id="not equals, absent"),
        pytest.param("weight", SelectorOperator.GREATER_THAN, ("6",), True, id="greater than, above"),
        pytest.param("weight", SelectorOperator.GREATER_THAN, ("7",), False, id="greater than, equal"),
        pytest.param(
            "weight", SelectorOperator.GREATER_THAN, ("10",), False, id="greater than compares numbers, not texts"
        ),
        pytest.param("weight", SelectorOperator.LESS_THAN, ("10",), True, id="less than, below"),
        pytest.param("weight", SelectorOperator.LESS_THAN, ("7",), False, id="less than, equal"),
        pytest.param("low", SelectorOperator.LESS_THAN, ("0",), True, id="less than, negative"),
        pytest.param("plus", SelectorOperator.GREATER_THAN, ("5",), True, id="greater than, signed"),
        pytest.param("tier", SelectorOperator.GREATER_THAN, ("0",), False, id="greater than, no number"),
        pytest.param("tier", SelectorOperator.LESS_THAN, ("0",), False, id="less than, no number"),
        pytest.param("huge", SelectorOperator.GREATER_THAN, ("0",), False, id="greater than, beyond 64 bits"),
        pytest.param("none", SelectorOperator.LESS_THAN, ("0",), False, id="less than, absent"),
    ],
)
def test_matching(key: str, operator: SelectorOperator, values: tuple[str, ...], *, expected: bool) -> None:
    assert Requirement(key, operator, values).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        pytest.param(Requirement("a", SelectorOperator.EXISTS), "a", id="exists"),
        pytest.param(Requirement("a", SelectorOperator.DOES_NOT_EXIST), "!a", id="does not exist"),
        pytest.param(Requirement("a", SelectorOperator.IN, ("", "x", "y")), "a in (,x,y)", id="in"),
        pytest.param(Requirement("a", SelectorOperator.NOT_IN, ("x",)), "a notin (x)", id="not in"),
        pytest.param(Requirement("a", SelectorOperator.EQUALS, ("",)), "a=", id="equals"),
        pytest.param(Requirement("a", SelectorOperator.DOUBLE_EQUALS, ("x",)), "a==x", id="double equals"),
        pytest.param(Requirement("a", SelectorOperator.NOT_EQUALS, ("x",)), "a!=x", id="not equals"),
        pytest.param(Requirement("a", SelectorOperator.GREATER_THAN, ("1",)), "a>1", id="greater than"),
        pytest.param(Requirement("a", SelectorOperator.LESS_THAN, ("1",)), "a<1", id="less than"),
    ],
)
def test_printing(requirement: Requirement, expected: str) -> None:
    assert str(requirement) == expected


@pytest.mark.parametrize(
    "key",
    ["a", "A", "9", "a-b_c.D", "in", "n" * 63, "example.com/name", "a/b", "0.1/x", f"{'x' * 253}/name", "a-b.c/Name_1"],
)
def test_a_label_is_a_name_with_an_optional_prefix(key: str) -> None:
    assert list(Requirement(key, SelectorOperator.EXISTS).problems()) == []


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("", id="empty"),
        pytest.param("-a", id="starts with a dash"),
        pytest.param("a.", id="ends with a point"),
        pytest.param("n" * 64, id="too long"),
        pytest.param("a b", id="space"),
        pytest.param("é", id="not ASCII"),
        pytest.param("٣", id="a digit, but not an ASCII one"),
        pytest.param("a\n", id="line end"),
        pytest.param("/a", id="empty prefix"),
        pytest.param("a/", id="empty name"),
        pytest.param("a/b/c", id="two slashes"),
        pytest.param("Example.com/a", id="capital in the prefix"),
        pytest.param("a..b/c", id="empty part in the prefix"),
        pytest.param("-a.b/c", id="prefix starts with a dash"),
        pytest.param(f"{'x' * 254}/name", id="prefix too long"),
        pytest.param("a_b/c", id="underscore in the prefix"),
    ],
)
def test_other_labels_are_rejected(key: str) -> None:
    assert [problem.path for problem in Requirement(key, SelectorOperator.EXISTS).problems()][:1] == ["key"]


@pytest.mark.parametrize(
    ("operator", "values", "path"),
    [
        pytest.param(SelectorOperator.IN, (), "values", id="in without values"),
        pytest.param(SelectorOperator.NOT_IN, (), "values", id="not in without values"),
        pytest.param(SelectorOperator.EXISTS, ("x",), "values", id="exists with a value"),
        pytest.param(SelectorOperator.DOES_NOT_EXIST, ("x",), "values", id="does not exist with a value"),
        pytest.param(SelectorOperator.EQUALS, (), "values", id="equals without a value"),
        pytest.param(SelectorOperator.NOT_EQUALS, ("x", "y"), "values", id="not equals with two values"),
        pytest.param(SelectorOperator.LESS_THAN, ("1", "2"), "values", id="less than with two values"),
        pytest.param(SelectorOperator.IN, ("x", "-y"), "values[1]", id="malformed value"),
        pytest.param(SelectorOperator.EQUALS, ("v" * 64,), "values[0]", id="value too long"),
        pytest.param(SelectorOperator.EQUALS, ("v\n",), "values[0]", id="value with a line end"),
        pytest.param(SelectorOperator.GREATER_THAN, ("x",), "values[0]", id="no number"),
        pytest.param(SelectorOperator.GREATER_THAN, ("",), "values[0]", id="empty number"),
        pytest.param(SelectorOperator.LESS_THAN, ("9223372036854775808",), "values[0]", id="number beyond 64 bits"),
        pytest.param(SelectorOperator.LESS_THAN, ("1_0",), "values[0]", id="number with an underscore"),
    ],
)
def test_values_must_fit_the_operator(operator: SelectorOperator, values: tuple[str, ...], path: str) -> None:
    assert [problem.path for problem in Requirement("a", operator, values).problems()] == [path]


@pytest.mark.parametrize("value", ["", "a", "7", "a-b_c.D", "v" * 63])
def test_a_value_is_a_name_or_nothing(value: str) -> None:
    assert list(Requirement("a", SelectorOperator.IN, (value,)).problems()) == []


def test_a_long_text_is_shortened_in_messages() -> None:
    (problem,) = Requirement("a" * 100_000, SelectorOperator.EXISTS).problems()

    assert len(problem.detail) < 250
