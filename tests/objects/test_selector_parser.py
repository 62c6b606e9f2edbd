"""The text form of label selectors is read as the API server reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ManifestError
from ocf.objects.label_requirements import Requirement, SelectorOperator
from ocf.objects.selector_parser import read_requirements


def printed(text: str) -> str:
    return ",".join(map(str, read_requirements(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "", id="empty"),
        pytest.param(" \t\r\n", "", id="blank"),
        pytest.param("a", "a", id="exists"),
        pytest.param("!a", "!a", id="does not exist"),
        pytest.param("! a", "!a", id="space behind the exclamation mark"),
        pytest.param("a=b", "a=b", id="equals"),
        pytest.param("a==b", "a==b", id="double equals"),
        pytest.param("a!=b", "a!=b", id="not equals"),
        pytest.param(" a  !=\tb ", "a!=b", id="blanks between the parts"),
        pytest.param("a=", "a=", id="empty value at the end"),
        pytest.param("a=,b", "a=,b", id="empty value before a comma"),
        pytest.param("a!= ,b", "a!=,b", id="empty value that must not be there"),
        pytest.param("a>1,a<007", "a>1,a<007", id="comparisons"),
        pytest.param("a in (x,y)", "a in (x,y)", id="in"),
        pytest.param("a in(y,x,y)", "a in (x,y)", id="values are sorted, each once"),
        pytest.param("a notin ( x , y )", "a notin (x,y)", id="not in, with blanks"),
        pytest.param("a in ()", "a in ()", id="empty parentheses hold the empty value"),
        pytest.param("a in (,)", "a in ()", id="a lone comma too"),
        pytest.param("a in (,x)", "a in (,x)", id="empty value first"),
        pytest.param("a in (x,)", "a in (,x)", id="empty value last"),
        pytest.param("a in (x,,y)", "a in (,x,y)", id="empty value between"),
        pytest.param("in in (in,notin)", "in in (in,notin)", id="operators as label and values"),
        pytest.param("notin=in", "notin=in", id="operators beside a sign"),
        pytest.param("!in", "!in", id="operator as an absent label"),
        pytest.param("in,notin", "in,notin", id="operators as present labels"),
        pytest.param("exists", "exists", id="exists is no keyword"),
        pytest.param("x.y/z=b,a in (c),!d", "x.y/z=b,a in (c),!d", id="several, in the order written"),
    ],
)
def test_reads(text: str, expected: str) -> None:
    assert printed(text) == expected


def test_empty_parentheses_are_one_empty_value() -> None:
    assert read_requirements("a in ()") == [Requirement("a", SelectorOperator.IN, ("",))]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a,", "at character 3: a label expected, not the end", id="comma at the end"),
        pytest.param(",a", "at character 1: a label expected, not ','", id="comma at the start"),
        pytest.param("a,,b", "at character 3: a label expected, not ','", id="two commas"),
        pytest.param("!", "at character 2: a label expected, not the end", id="nothing negated"),
        pytest.param("!!a", "at character 2: a label expected, not '!'", id="negated twice"),
        pytest.param("!a=b", "at character 3: ',' expected, not '='", id="negated equality"),
        pytest.param("!a in (b)", "at character 4: ',' expected, not 'in'", id="negated set"),
        pytest.param("a b", "at character 3: one of in, notin, =, ==, !=, >, < expected, not 'b'", id="two words"),
        pytest.param("a=b c", "at character 5: ',' expected, not 'c'", id="two values"),
        pytest.param("a=b=c", "at character 4: ',' expected, not '='", id="two signs"),
        pytest.param("a===b", "at character 4: a value expected, not '='", id="three signs"),
        pytest.param("a=(b)", "at character 3: a value expected, not '('", id="set behind a sign"),
        pytest.param("a in", "at character 5: '(' expected, not the end", id="no set"),
        pytest.param("a in b", "at character 6: '(' expected, not 'b'", id="set without parentheses"),
        pytest.param("a in (b", "at character 8: ')' expected, not the end", id="open set"),
        pytest.param("a in (", "at character 7: a value expected, not the end", id="open empty set"),
        pytest.param("a in (b c)", "at character 9: ')' expected, not 'c'", id="set without comma"),
        pytest.param("a in (b,=)", "at character 9: a value expected, not '='", id="sign in a set"),
        pytest.param("a in (b))", "at character 9: ',' expected, not ')'", id="closed twice"),
        pytest.param("a IN (b)", "one of in, notin", id="operator in capitals"),
        pytest.param("a>", "must be an integer", id="no bound"),
        pytest.param("a>x", "must be an integer", id="bound is no number"),
        pytest.param("a,b=-c", "at character 3: '-c' is not a label value", id="malformed value"),
        pytest.param("a:b", "at character 1: 'a:b' is not a label", id="malformed label"),
        pytest.param("a\0", "is not a label", id="zero byte"),
        pytest.param("a\u00a0=b", "is not a label", id="a blank that is none"),
    ],
)
def test_rejects(text: str, problem: str) -> None:
    """The error says at which character, what was found and what belongs there."""
    with pytest.raises(ManifestError) as caught:
        read_requirements(text)

    assert str(caught.value).startswith("label selector: at character ")
    assert problem in str(caught.value)


@given(st.text("ab,=!()<> int", max_size=30))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    """What is read prints as a text that is read as the same."""
    try:
        requirements = read_requirements(text)
    except ManifestError:
        return
    assert read_requirements(printed(text)) == requirements


@pytest.mark.parametrize("part", ["a,", "!", "(", "a in (", "=", "a=b,"])
def test_a_long_text_leads_to_a_short_message(part: str) -> None:
    """Nothing recurses, and a message does not repeat its input."""
    with pytest.raises(ManifestError) as caught:
        read_requirements(part * 10_000)

    assert len(str(caught.value)) < 250
