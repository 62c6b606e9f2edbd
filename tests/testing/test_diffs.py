"""Diffs show every difference with three lines of context."""

import pytest

from ocf.testing.diffs import unified


def diff(before: str, after: str) -> list[str]:
    return unified(before, after, before_name="a", after_name="b").splitlines()[2:]


def test_equal_texts_have_no_diff() -> None:
    assert diff("a: 1\n", "a: 1\n") == []


def test_a_diff_has_three_lines_of_context() -> None:
    lines = [f"{number}\n" for number in range(9)]
    found = diff("".join(lines), "".join([*lines[:4], "x\n", *lines[5:]]))
    assert found == ["@@ -2,7 +2,7 @@", " 1", " 2", " 3", "-4", "+x", " 5", " 6", " 7"]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        pytest.param("a\n", "a", "+(no line feed at the end)", id="the last line feed"),
        pytest.param("", "a\n", "+a", id="something for nothing"),
        pytest.param("a\n", "", "-a", id="nothing for something"),
        pytest.param("a\r\n", "a\n", "-a\r", id="line ends"),
        pytest.param("a\n", "a \n", "+a ", id="blanks"),
    ],
)
def test_every_difference_is_shown(before: str, after: str, shown: str) -> None:
    found = unified(before, after, before_name="a", after_name="b").split("\n")
    assert shown in found


def test_lines_are_separated_by_line_feeds_only() -> None:
    """Other separators may be part of a value."""
    assert diff("a\u2028b\n", "a\u2028b\n") == []
    assert "-a\x0bb" in unified("a\x0bb\n", "c\n", before_name="a", after_name="b").split("\n")
