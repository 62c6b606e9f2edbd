"""Regular expressions: syntax and order of preference of Go, and linear search."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import BadRequestError
from ocf_server.cel.functions import FUNCTIONS, pattern
from ocf_server.cel.regexp import Regexp
from ocf_server.cel.regexp_syntax import RegexpSyntaxError, parse_regexp


@pytest.mark.parametrize(
    ("expression", "text", "found"),
    [
        pytest.param("b", "abc", "b", id="a part of the text is enough"),
        pytest.param("", "abc", "", id="the empty expression matches everywhere"),
        pytest.param("^b", "abc", None, id="the start of the text"),
        pytest.param("a$", "a\n", None, id="the end of the text, behind the last line break"),
        pytest.param("a\\z", "ba", "a", id="the end of the text, in letters"),
        pytest.param("\\Ab", "ab", None, id="the start of the text, in letters"),
        pytest.param("(?m)^b$", "a\nb\nc", "b", id="a line"),
        pytest.param("(?m)a\\z", "a\n", None, id="the end of the text, among lines"),
        pytest.param("a.c", "a\nc", None, id="a dot does not match a line break"),
        pytest.param("(?s)a.c", "a\nc", "a\nc", id="a dot matches a line break"),
        pytest.param("(?i)straße", "STRAẞE", "STRAẞE", id="any case"),
        pytest.param("(?i)k", "\N{KELVIN SIGN}", "\N{KELVIN SIGN}", id="a letter of three cases"),
        pytest.param("(?i)[^k]", "Kk\N{KELVIN SIGN}a", "a", id="any case, in a negated class"),
        pytest.param("(?i)a(?-i)b", "Ab", "Ab", id="a flag for the first part"),
        pytest.param("(?i:a)b", "AB", None, id="a flag for a group"),
        pytest.param("(?:(?i)a)b", "AB", None, id="a flag ends with its group"),
        pytest.param("(?is-m:a.)$", "A\n", "A\n", id="several flags"),
        pytest.param("a|ab", "ab", "a", id="the first option that matches"),
        pytest.param("b|ab", "ab", "ab", id="the leftmost match, whatever the option"),
        pytest.param("(?:a|ab)(?:c|bcd)", "abcd", "abcd", id="the first option with a following match"),
        pytest.param("a||b", "b", "", id="an empty option"),
        pytest.param("a*", "aab", "aa", id="as many as there are"),
        pytest.param("a*?b", "aab", "aab", id="as few as match"),
        pytest.param("a+?", "aa", "a", id="as few as possible"),
        pytest.param("a??b?", "ab", "", id="none preferred"),
        pytest.param("(?U)a+", "aa", "a", id="ungreedy flag"),
        pytest.param("(?U)a+?", "aa", "aa", id="ungreedy flag, inverted"),
        pytest.param("a{2}", "aaa", "aa", id="a count"),
        pytest.param("a{2,}", "aaaa", "aaaa", id="a count and more"),
        pytest.param("a{2,3}", "aaaa", "aaa", id="two counts"),
        pytest.param("a{2,3}?", "aaaa", "aa", id="two counts, as few as possible"),
        pytest.param("a{0}b", "ab", "b", id="never"),
        pytest.param("a{,2}", "a{,2}", "a{,2}", id="a count without its least number is text"),
        pytest.param("a{01}", "a{01}", "a{01}", id="a count that starts with zero is text"),
        pytest.param("(a|b*)*c", "abbac", "abbac", id="empty repetitions"),
        pytest.param("(|a)*", "aa", "", id="empty repetitions preferred"),
        pytest.param("(?P<year>[0-9]{4})", "in 2026", "2026", id="a named group"),
        pytest.param("(?<year>[0-9]{4})", "in 2026", "2026", id="a named group, in another way"),
        pytest.param("\\d+", "٣4", "4", id="digits of ASCII"),
        pytest.param("\\w+", "éa_1", "a_1", id="word characters of ASCII"),
        pytest.param("\\s", "\v\N{NO-BREAK SPACE}\f", "\f", id="space of ASCII, without vertical tabs"),
        pytest.param("\\D\\S\\W", "1a é", None, id="three kinds of other characters, in order"),
        pytest.param("\\bb", "éb", "b", id="a word starts after a letter beyond ASCII"),
        pytest.param("a\\Bb", "ab", "ab", id="no word boundary"),
        pytest.param("[a-c\\d.]+", "x.b1d", ".b1", id="a class"),
        pytest.param("[^a-c]", "abx", "x", id="other than a class"),
        pytest.param("[^a]", "\n", "\n", id="other than a class, which a line break is"),
        pytest.param("[]a]+", "a]b", "a]", id="a bracket that comes first"),
        pytest.param("[a-]+", "-ab", "-a", id="a hyphen that comes last"),
        pytest.param("[[:alpha:]_]+", "1ab_", "ab_", id="a class by its name"),
        pytest.param("[[:^digit:]]+", "1ab2", "ab", id="other than a class by its name"),
        pytest.param("[[:a]+", "b:[", ":[", id="an incomplete class name"),
        pytest.param("[^\\D5]+", "a45", "4", id="negated class with a negated class"),
        pytest.param("\\pL+", "1éß2", "éß", id="a category"),
        pytest.param("\\p{Lu}", "éÉ", "É", id="a category of two letters"),
        pytest.param("\\PL", "é1", "1", id="other than a category"),
        pytest.param("\\p{^L}", "é1", "1", id="other than a category, in another way"),
        pytest.param("\\P{^L}", "1é", "é", id="category negated twice"),
        pytest.param("(?i)\\p{Lu}", "1é", "é", id="a category, case-insensitive"),
        pytest.param("\\p{Greek}+", "aλΩb", "λΩ", id="a script"),
        pytest.param("[\\P{^Han}]+", "a漢字", "漢字", id="a script in a class"),
        pytest.param("(?i)\\p{Greek}", "µ", "µ", id="a script, case-insensitive"),
        pytest.param("\\p{upperCASE-letter}", "aÉ", "É", id="a category by another name"),
        pytest.param("\\pl", "1é", "é", id="a category in lower case"),
        pytest.param("\\p{ASCII}\\p{Assigned}\\P{Assigned}", "éa漢\u0378", "a漢\u0378", id="classes of Go"),
        pytest.param("[\\pN\\p{Any}]\\P{Any}?", "a", "a", id="any character, and none"),
        pytest.param("\\x41\\x{1F600}\\101\\0\\t", "A😀A\0\t", "A😀A\0\t", id="characters by their numbers"),
        pytest.param("\\.\\-\\_\\/\\ ", ".-_/ ", ".-_/ ", id="escaped punctuation"),
        pytest.param("\\Qa.b\\E+", "a.bb", "a.bb", id="quoted text"),
        pytest.param("\\Qa|b", "a|b", "a|b", id="quoted text up to the end"),
        pytest.param("a(?i)*", "aa", "aa", id="repetition behind flags"),
    ],
)
def test_the_first_match_is_that_of_go(expression: str, text: str, found: str | None) -> None:
    assert Regexp.parse(expression).find(text) == found
    assert Regexp.parse(expression).matches(text) is (found is not None)


@pytest.mark.parametrize(
    ("expression", "text", "found"),
    [
        ("[0-9]+", "1 22 333", ["1", "22", "333"]),
        ("a*", "baac", ["", "aa", ""]),
        ("", "ab", ["", "", ""]),
        ("$", "ab", [""]),
        ("^a", "aa", ["a"]),
        ("\\ba", "aa a", ["a", "a"]),
        ("a|b", "xy", []),
    ],
)
def test_all_matches_are_those_of_go(expression: str, text: str, found: list[str]) -> None:
    assert [*Regexp.parse(expression).find_all(text)] == found


@pytest.mark.parametrize(("most", "found"), [(-1, ["1", "2", "3"]), (0, []), (2, ["1", "2"]), (9, ["1", "2", "3"])])
def test_find_all_returns_at_most_the_requested_number(most: int, found: list[str]) -> None:
    find_all = next(each for each in FUNCTIONS["findAll"] if len(each.takes) == 3)
    assert find_all.run("123", "[0-9]", most) == found


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("a(b", "missing closing ): `a(b`", id="an open group"),
        pytest.param("a)b", "unexpected ): `a)b`", id="a group that is not open"),
        pytest.param("x[a-", "missing closing ]: `[a-`", id="an open class"),
        pytest.param("[", "missing closing ]: `[`", id="an open class at the end"),
        pytest.param("a|*", "missing argument to repetition operator: `*`", id="nothing to repeat"),
        pytest.param("(+?a)", "missing argument to repetition operator: `+?`", id="nothing to repeat in a group"),
        pytest.param("(?i)*", "missing argument to repetition operator: `*`", id="only flags to repeat"),
        pytest.param("a**", "invalid nested repetition operator: `**`", id="repeated twice"),
        pytest.param("a++", "invalid nested repetition operator: `++`", id="a possessive repetition of Python"),
        pytest.param("a{2}{3}", "invalid nested repetition operator: `{2}{3}`", id="counted twice"),
        pytest.param("a{3,2}", "invalid repeat count: `{3,2}`", id="counts in the wrong order"),
        pytest.param("a{1001}", "invalid repeat count: `{1001}`", id="a count that is too large"),
        pytest.param("a{9" + "0" * 5000 + ",}", "invalid repeat count: `{9" + "0" * 5000 + ",}`", id="a huge count"),
        pytest.param("(a{40}){26}", "invalid repeat count: `{26}`", id="counts in counts that are too large"),
        pytest.param("(a)\\1", "invalid escape sequence: `\\1`", id="a backreference of Python"),
        pytest.param("(?P<a>b)(?P=a)", "invalid or unsupported Perl syntax: `(?P`", id="one by name"),
        pytest.param("a(?=b)", "invalid or unsupported Perl syntax: `(?=`", id="a lookahead of Python"),
        pytest.param("a(?!b)", "invalid or unsupported Perl syntax: `(?!`", id="a negative one"),
        pytest.param("(?<=a)b", "invalid named capture: `(?<=a)b`", id="a lookbehind of Python"),
        pytest.param("(?<!a)b>", "invalid named capture: `(?<!a)b>`", id="a negative lookbehind"),
        pytest.param("(?>a)", "invalid or unsupported Perl syntax: `(?>`", id="an atomic group of Python"),
        pytest.param("(a)(?(1)b)", "invalid or unsupported Perl syntax: `(?(`", id="a condition of Python"),
        pytest.param("(?#a)b", "invalid or unsupported Perl syntax: `(?#`", id="a comment of Python"),
        pytest.param("(?x)a b", "invalid or unsupported Perl syntax: `(?x`", id="a flag of Python"),
        pytest.param("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`", id="no flag after the sign"),
        pytest.param("(?i", "invalid or unsupported Perl syntax: `(?i`", id="flags without an end"),
        pytest.param("(?P<a", "invalid named capture: `(?P<a`", id="a name without an end"),
        pytest.param("(?P<a b>c)", "invalid named capture: `(?P<a b>`", id="a name with a space"),
        pytest.param("(?<>a)", "invalid named capture: `(?<>`", id="an empty name"),
        pytest.param("a\\Z", "invalid escape sequence: `\\Z`", id="the end of the text in Python"),
        pytest.param("\\C", "invalid escape sequence: `\\C`", id="a byte"),
        pytest.param("\\8", "invalid escape sequence: `\\8`", id="an invalid octal number"),
        pytest.param("\\u00e9", "invalid escape sequence: `\\u`", id="a number of Python"),
        pytest.param("\\x4g", "invalid escape sequence: `\\x4g`", id="an invalid hexadecimal number"),
        pytest.param("\\x{}", "invalid escape sequence: `\\x{}`", id="no hexadecimal number"),
        pytest.param("\\x{41", "invalid escape sequence: `\\x{41`", id="one without an end"),
        pytest.param("\\x{110000}", "invalid escape sequence: `\\x{110000`", id="one that is too large"),
        pytest.param("\\x{0010FFFF0}", "invalid escape sequence: `\\x{0010FFFF0`", id="one with a digit too many"),
        pytest.param("\\x{A12345678}", "invalid escape sequence: `\\x{A12345`", id="one that is much too large"),
        pytest.param("\\é", "invalid escape sequence: `\\é`", id="a letter that needs no backslash"),
        pytest.param("a\\", "trailing backslash at end of expression: ``", id="a backslash at the end"),
        pytest.param("[z-a]", "invalid character class range: `z-a`", id="a range in the wrong order"),
        pytest.param("[a-\\d]", "invalid escape sequence: `\\d`", id="a range to a class"),
        pytest.param("[\\b]", "invalid escape sequence: `\\b`", id="a position in a class"),
        pytest.param("[[:letter:]]", "invalid character class range: `[:letter:]`", id="an unknown class"),
        pytest.param("\\pX", "invalid character class range: `\\pX`", id="an unknown category"),
        pytest.param("\\p{X}", "invalid character class range: `\\p{X}`", id="an unknown category in braces"),
        pytest.param("\\p{Old_Italic}", "invalid character class range: `\\p{Old_Italic}`", id="a script of two words"),
        pytest.param("\\p{Lu", "invalid character class range: `\\p{Lu`", id="a category without an end"),
        pytest.param("\\p", "invalid character class range: `\\p`", id="no category"),
    ],
)
def test_an_invalid_expression_has_the_error_of_go(expression: str, message: str) -> None:
    with pytest.raises(RegexpSyntaxError) as caught:
        parse_regexp(expression)
    assert str(caught.value) == message


LARGE: Final = "regular expressions that need more than 10000 instructions"


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        pytest.param("(abcdefghijk){1000}", LARGE, id="a large count"),
        pytest.param("(a{500}b{500}){2}" * 9, LARGE, id="many large counts"),
        pytest.param("(abcdefghijk){0,900}|b", LARGE, id="a large count of optional parts"),
    ],
)
def test_an_unsupported_expression_is_rejected(expression: str, what: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        parse_regexp(expression)
    assert caught.value.message.startswith(f"the embedded cluster cannot evaluate {what} in CEL expressions;")


HARD: Final = [
    *("^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(a*)*$", "^(.*.*)*b$", "(a+a+)+b", "^((a?){20}){20}$", "(a{0,90}){2}b"),
    *("^(.*)(.*)(.*)(.*)(.*)b", "(x+x+)+y|(?:a*)*(?:a*)*b"),
]


@pytest.mark.parametrize("expression", HARD)
def test_a_search_does_not_backtrack(expression: str) -> None:
    """With backtracking, these searches would exceed any time limit of the tests."""
    assert not Regexp.parse(expression).matches("a" * 950 + "!")
    assert Regexp.parse(expression).find("a" * 950 + "!") is None


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocf_server.cel.regexp._MAX_CACHE_SIZE", 50)
    found = pattern("a{1,40}b")
    assert not found.matches("a" * 500)
    assert found.find("a" * 500 + "b") == "a" * 40 + "b"
    assert found._cached < 50 + 1 + len(found.code)


ATOMS: Final = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "\\b", "^", "$", "(?:)", "\\W"])
COUNTS: Final = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,2}", "{0,2}"])


def grown(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return expressions that contain other expressions."""
    return st.one_of(
        st.lists(below, max_size=3).map("".join),
        st.lists(below, min_size=2, max_size=3).map("|".join).map("({})".format),
        st.builds(
            "(?:{}){}{}".format, st.sampled_from("abc.").flatmap(lambda char: below.map(char.__add__)), COUNTS, LAZY
        ),
    )


LAZY: Final = st.sampled_from(["", "?"])
EXPRESSIONS: Final = st.recursive(ATOMS, grown, max_leaves=6)


@given(expression=EXPRESSIONS, text=st.text("abc\n ", max_size=8))
def test_common_syntax_has_the_meaning_of_python(expression: str, text: str) -> None:
    """Only nonempty parts are repeated, because Go and Python differ in repetitions of the empty text."""
    whole = expression.replace("$", "\\Z")
    found = re.search(whole, text, re.ASCII)
    assert Regexp.parse(expression).find(text) == (found and found.group())


@given(expression=st.text("ab()[]{}*+?|\\^$.-:<>P=!i,1dpLQE", max_size=12), text=st.text("ab1", max_size=4))
def test_every_text_is_parsed_or_rejected(expression: str, text: str) -> None:
    try:
        found = Regexp.parse(expression)
    except (RegexpSyntaxError, BadRequestError) as error:
        assert str(error)  # noqa: PT017
        return
    assert all(part in text for part in found.find_all(text))
    assert found.matches(text) is (found.find(text) is not None)
