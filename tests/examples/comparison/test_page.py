"""The page of the comparison has the lines as they are counted now."""

import pytest

from scripts.generate.comparison import PAGE, code_lines, lines_table, replaced


def test_the_lines_on_the_page_are_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert replaced(page, "lines", lines_table()) == page, "run: python -m scripts.generate.comparison"


@pytest.mark.parametrize(
    ("text", "suffix", "lines"),
    [
        pytest.param('"""A page."""\n\nONE = 1\n\n\n# two\nTWO = 2  # two\n', ".py", 2, id="Python"),
        pytest.param('def one():\n    """Return.\n\n    One.\n    """\n    return 1\n', ".py", 2, id="docstring"),
        pytest.param("ONE = '''\none\n\ntwo'''\n", ".py", 4, id="text of several lines"),
        pytest.param("// Package one.\npackage one\n\n\t// two\nvar x = 1 // x\n", ".go", 2, id="Go"),
        pytest.param("# a\na: 1\n\nb: 2 # b\n", ".yaml", 2, id="YAML"),
    ],
)
def test_lines_of_code_are_neither_blank_nor_comments_nor_docstrings(text: str, suffix: str, lines: int) -> None:
    assert code_lines(text, suffix) == lines


@pytest.mark.parametrize("page", ["", "<!-- begin: lines --><!-- end: lines -->" * 2])
def test_a_page_must_have_its_place_once(page: str) -> None:
    with pytest.raises(ValueError, match="once, found"):
        replaced(page, "lines", "")
