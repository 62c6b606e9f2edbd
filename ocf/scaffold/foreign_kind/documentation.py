"""Descriptions of a schema as docstrings: one sentence for a class, all paragraphs for a field."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.objects.printable import visible

__all__ = ["docstring", "paragraphs", "summary"]

WIDTH: Final = 120
_QUOTES: Final = len('r""""""')
_LONGEST_SENTENCE: Final = 100
_LIST: Final = re.compile(r"\s|[-*+]\s|[0-9]+[.)]\s|```")
_SENTENCE: Final = re.compile(r"(.+?[.!?])(?:\s|$)")
# Linters reject letters and signs that look like those of ASCII.
_PLAIN: Final = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u2015": "-",
        "\u2212": "-",
        "\u00d7": "x",
        "\u2022": "-",
        "\u200b": "",
        "\ufeff": "",
        "\u00b4": "'",
        "\u2032": "'",
        "\u2264": "<=",
        "\u2265": ">=",
        "\u2192": "->",
        "\u21d2": "=>",
    }
)


def summary(schema: Mapping[str, Any], place: str) -> str:
    """Return the first sentence of the description, after the place.

    Args:
        place: The place, "`spec.privateKey`".

    Example:
        >>> summary({"description": "Options of the key. They are optional."}, "`spec.privateKey`")
        '`spec.privateKey`: Options of the key.'
        >>> summary({}, "Certificate")
        'Certificate.'
    """
    text = " ".join(_plain(str(schema.get("description") or "")).split())
    match = _SENTENCE.match(text)
    sentence = match[1] if match else f"{text}."
    room = _LONGEST_SENTENCE - len(place)
    if len(place) > _LONGEST_SENTENCE:
        place = f"`...{place[-_LONGEST_SENTENCE // 2 :]}"
    return f"{place}: {sentence}" if len(sentence) > 1 and len(sentence) <= room else f"{place}."


def paragraphs(text: object) -> tuple[str, ...]:
    r"""Return the paragraphs of a description; the lines of lists and of code stay lines.

    Args:
        text: The description; None is empty.

    Example:
        >>> paragraphs("One\ntwo.\n\n- a\n- b")
        ('One two.', '- a\n- b')
    """
    blocks = re.split(r"\n\s*\n", _plain(str(text or "")).strip())
    return tuple(_block(block) for block in blocks if block.strip())


def _block(block: str) -> str:
    lines = [line.rstrip() for line in block.splitlines()]
    return "\n".join(lines) if any(_LIST.match(line) for line in lines) else " ".join(map(str.strip, lines))


def _plain(text: str) -> str:
    """Return a text in characters of ASCII where they have a counterpart there; characters without a glyph are escapes.

    Such a character in source code may hide or reorder what a reviewer reads: https://trojansource.codes/.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_PLAIN))
    return visible(text.replace("\r\n", "\n").replace("\t", "    "))


def docstring(parts: Sequence[str], indent: str) -> Iterator[str]:
    r"""Yield the lines of a docstring.

    Args:
        parts: Its paragraphs, at least one.
        indent: Indentation of the lines.

    Example:
        >>> for line in docstring(["A key.", "It matches `[a-z]`."], ""):
        ...     print(line.replace('"', "'"))
        '''A key.
        <BLANKLINE>
        It matches `[a-z]`.
        '''
    """
    lines: list[str] = []
    for part in parts:
        made = [line for each in _plain(part).splitlines() for line in _wrapped(each, len(indent))]
        lines += ["", *made] if lines and made else made
    lines = [line.replace('"""', "'''") for line in lines] or ["."]
    lines[0] = lines[0].lstrip()
    # After the lines are made: neither a quote nor a backslash at the end of the last one may meet the closing quotes.
    if lines[-1].endswith(('"', "\\")):
        lines[-1] += "."
    opening = 'r"""' if any("\\" in line for line in lines) else '"""'
    if len(lines) == 1:
        yield f'{indent}{opening}{lines[0]}"""'
        return
    yield f"{indent}{opening}{lines[0]}"
    yield from (f"{indent}{line}" if line else "" for line in lines[1:])
    yield f'{indent}"""'


def _wrapped(line: str, indent: int) -> list[str]:
    margin = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(
        line.strip(),
        WIDTH - indent - _QUOTES,
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=True,
        break_on_hyphens=False,
    )
