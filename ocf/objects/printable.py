"""Texts of others in output: a terminal and the log of a CI run show them, and obey nothing in them.

Names and values of manifests may contain escape sequences of terminals, line ends that forge further lines, marks that
turn the direction of writing, and commands of GitHub workflows (`::error::` at the start of a line, `##[error]`
anywhere in it).
"""

import re
import unicodedata
from typing import Final

__all__ = ["acts", "printable", "printable_json", "printable_yaml", "visible"]

# Controls, soft hyphen, marks of direction, signs without width, separators of lines, halves of surrogate pairs, tags.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Controls, marks of format, separators of lines; halves of surrogate pairs, private and unassigned characters.
_WITHOUT_GLYPH: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
_LAYOUT: Final = str.maketrans({"\n": "\\n", "\t": "\\t"})
# The runner skips the blanks before a command: https://github.com/actions/runner, src/Runner.Common/ActionCommand.cs.
_COMMAND: Final = re.compile(r"^(\s*):(?=:)")
_OLD_COMMAND: Final = "##["
_OF_ANY_LINE: Final = re.compile(r"^\s*::|##\[", re.MULTILINE)


def printable(text: str) -> str:
    r"""Return a text as one line in which nothing acts on a terminal or on a CI run.

    Returns:
        The text with what is not visible in it, and the start of workflow commands, as escapes of Python.

    Example:
        >>> print(printable("web\x1b[2J\n::error::no"))
        web\x1b[2J\n::error::no
        >>> print(printable("::error::no"))
        \x3a:error::no
    """
    shown = text if text.isprintable() else _HIDDEN.sub(_python, text.translate(_LAYOUT))
    return _COMMAND.sub(r"\1\\x3a", shown).replace(_OLD_COMMAND, r"\x23#[")


def visible(text: str) -> str:
    r"""Return a text of several lines for source code, in which no character is without a glyph.

    More than `printable` escapes: marks that join letters belong to some scripts, but source code is for review.

    Args:
        text: The text; its line ends and tabs stay.

    Returns:
        The text with every other character without a glyph as an escape of Python.

    Example:
        >>> print(visible("on\u202ee\U000e0001\ntwo\ue000"))
        on\u202ee\U000e0001
        two\ue000
    """
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in _WITHOUT_GLYPH and character not in "\n\t"
        else character
        for character in text
    )


def printable_json(text: str) -> str:
    r"""Return a JSON text that means the same, in which nothing acts on a terminal or on a CI run.

    Example:
        >>> print(printable_json('{"a": "\u202e##[error]"}'))
        {"a": "\u202e\u0023#[error]"}
    """
    return (text if text.isascii() else _HIDDEN.sub(_json, text)).replace(_OLD_COMMAND, r"\u0023#[")


def printable_yaml(text: str) -> str:
    r"""Return a YAML text that means the same, in which nothing acts on a terminal or on a CI run.

    Args:
        text: The text; each scalar that `acts` is in double quotes, which alone have escapes.
    """
    return _HIDDEN.sub(_json, text).replace(_OLD_COMMAND, r"\x23#[")


def acts(text: str) -> bool:
    r"""Return whether a text would act on a terminal or on a CI run if it was printed as it is.

    Args:
        text: The text; its line ends and tabs alone do not act.

    Example:
        >>> acts("a\n::error::b"), acts("a::b\n\tc")
        (True, False)
    """
    return _OF_ANY_LINE.search(text) is not None or (not text.isprintable() and _HIDDEN.search(text) is not None)


def _python(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
