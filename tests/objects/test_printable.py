"""Texts of others in output: terminals and CI runs show them, and obey nothing in them.

The cases are those of other command lines: https://github.com/kubernetes/kubernetes/issues/101695 and
https://github.com/kubernetes/kubernetes/issues/107617 (escape sequences in names and annotations),
https://github.com/kubernetes/kubernetes/pull/112553 (carriage returns), https://github.com/google/osv-scanner/pull/2750
and https://github.com/osprey-oss/deptry/pull/1556 (workflow commands in names of files),
https://github.com/kjanat/actionlint/issues/78 (forged lines).
"""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects import dump_document, load_document
from ocf.objects.printable import acts, printable, printable_json, visible

TEXTS = st.one_of(
    st.text(),
    st.text(st.sampled_from("a :#[]\n\r\t\x1b\x9b\u202e\u2028\ufeff\U000e0041'\"\\%")),
    st.sampled_from(
        ["::error::x", "\t ::set-output name=a::b", "##[error]x", "x\n  ::stop-commands::y", "###[[group]"]
    ),
)
RUNNER = re.compile(r"^\s*::|##\[", re.MULTILINE)


def is_harmless(text: str) -> bool:
    """Whether a text neither acts on a terminal nor is a command of the runner; line ends and tabs are allowed."""
    kinds = {unicodedata.category(each) for each in text.replace("\n", "").replace("\t", "")}
    turns = {unicodedata.bidirectional(each) for each in text} & {"LRE", "RLE", "LRO", "RLO", "LRI", "RLI", "FSI"}
    return not kinds & {"Cc", "Zl", "Zp", "Cs"} and not turns and not RUNNER.search(text)


@given(TEXTS)
def test_a_text_is_one_harmless_line(text: str) -> None:
    shown = printable(text)

    assert is_harmless(shown)
    assert "\n" not in shown
    assert len(f"x{shown}x".splitlines()) == 1


@given(TEXTS)
def test_a_printed_text_is_printed_again_as_it_is(text: str) -> None:
    assert printable(printable(text)) == printable(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("Größe, 東京 🚀 ::", "Größe, 東京 🚀 ::", id="letters, signs and colons"),
        pytest.param("👩\u200d🚀", "👩\u200d🚀", id="a joined emoji"),
        pytest.param(r"C:\new", r"C:\new", id="a backslash"),
        pytest.param("a\r\nb\tc", r"a\r\nb\tc", id="line ends and tabs"),
        pytest.param("a\x1b[31mb\x9b2J", r"a\x1b[31mb\x9b2J", id="escape sequences"),
        pytest.param("a\u202eb\u2066c", r"a\u202eb\u2066c", id="marks of direction"),
        pytest.param("\ud800", r"\ud800", id="half of a surrogate pair"),
        pytest.param("  ::add-mask::a", r"  \x3a:add-mask::a", id="a workflow command"),
        pytest.param("a ##[error]b", r"a \x23#[error]b", id="a workflow command of the old form"),
    ],
)
def test_the_form_of_a_text(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.dictionaries(TEXTS, TEXTS), st.sampled_from([None, 2]))
def test_json_means_the_same(value: dict[str, str], indent: int | None) -> None:
    shown = printable_json(json.dumps(value, ensure_ascii=False, indent=indent))

    assert json.loads(shown) == value
    assert is_harmless(shown)


@given(st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS), min_size=1))
def test_yaml_means_the_same(value: dict[str, object]) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    shown = dump_document(value)

    assert load_document(shown) == value
    assert is_harmless(shown)


@given(TEXTS)
def test_a_text_acts_exactly_if_it_is_harmful(text: str) -> None:
    if not is_harmless(text):
        assert acts(text)


@given(st.text())
def test_source_code_has_no_character_without_a_glyph(text: str) -> None:
    shown = visible(text)

    assert {unicodedata.category(each) for each in shown if each not in "\n\t"}.isdisjoint(
        {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    )
    assert visible(shown) == shown
    kept = [each for each in text if each.isprintable() or each in "\n\t" or unicodedata.category(each) == "Zs"]
    assert [each for each in kept if each not in shown] == []
