"""What is wrong with a text that is not JSON, in the words of Go's decoder, in which API servers are written.

Python's decoder words its errors otherwise in each release, and finds some of them at other characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ocf.objects.go_strings import go_quoted

__all__ = ["JsonProblem", "json_problem"]


@dataclass(frozen=True, slots=True)
class JsonProblem:
    """What is wrong with a text.

    Args:
        message: The message of Go's decoder; empty if the text is JSON.
        offset: Number of bytes, in UTF-8, before the first one that cannot follow.
    """

    message: str
    offset: int


def json_problem(body: bytes) -> JsonProblem:
    """Return what is wrong with a text that should be JSON.

    The depth of the value and the size of its numbers are not checked.

    Args:
        body: The text in UTF-8; Go's decoder reads single bytes.
    Source: https://pkg.go.dev/encoding/json.

    Example:
        >>> json_problem(b'{"a": 1,}').message
        "invalid character '}' looking for beginning of object key string"
    """
    # As Latin-1 each character is a byte, and Go's messages show a byte as that character.
    return _Scanner(body.decode("latin-1")).problem()


_SPACE: Final = re.compile(r"[ \t\r\n]*")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')
_DIGITS: Final = re.compile(r"[0-9]*")
_HEX_DIGITS: Final = re.compile(r"[0-9A-Fa-f]{0,4}")
_WORDS: Final = {"t": "true", "f": "false", "n": "null"}
_ESCAPES: Final = frozenset('bfnrt\\/"')

# Places where no space may follow. Go's decoder reads one at the end of a text, to find out whether it is complete.
_INSIDE: Final = ("in literal", "in numeric", "after decimal", "in exponent", "in string escape", "in \\u")
_VALUE: Final = "looking for beginning of value"
_KEY: Final = "looking for beginning of object key string"


class _UnexpectedError(Exception):
    """A character that cannot follow; its argument is the place where the decoder meets it."""


class _Scanner:
    """Reads a text from left to right until a character cannot follow; without recursion, since texts may be deep."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def problem(self) -> JsonProblem:
        """Return what is wrong with the text."""
        try:
            self._document()
        except _UnexpectedError as error:
            place = str(error)
            if self._at == len(self._text) and not place.startswith(_INSIDE):
                return JsonProblem("unexpected end of JSON input", self._at)
            return JsonProblem(
                f"invalid character {_shown(self._text[self._at : self._at + 1] or ' ')} {place}", self._at
            )
        return JsonProblem("", self._at)

    def _document(self) -> None:
        opened: list[str] = []
        self._begin(opened)
        while opened:
            closing = opened[-1]
            self._skip_space()
            if self._take(closing):
                opened.pop()
            elif not self._take(","):
                raise _UnexpectedError("after array element" if closing == "]" else "after object key:value pair")
            else:
                if closing == "}":
                    self._key()
                self._begin(opened)
        self._skip_space()
        if self._at < len(self._text):
            raise _UnexpectedError("after top-level value")

    def _begin(self, opened: list[str]) -> None:
        """Read a value up to its first part that is complete; append how what it has opened is closed."""
        while True:
            self._skip_space()
            if self._take("["):
                self._skip_space()
                if self._take("]"):
                    return
                opened.append("]")
            elif self._take("{"):
                self._skip_space()
                if self._take("}"):
                    return
                opened.append("}")
                self._key()
            else:
                self._scalar()
                return

    def _key(self) -> None:
        self._skip_space()
        if not self._take('"'):
            raise _UnexpectedError(_KEY)
        self._string()
        self._skip_space()
        if not self._take(":"):
            raise _UnexpectedError("after object key")

    def _scalar(self) -> None:
        first = self._text[self._at : self._at + 1]
        if self._take('"'):
            self._string()
        elif first in _WORDS:
            for expected in _WORDS[first]:
                if not self._take(expected):
                    raise _UnexpectedError(f"in literal {_WORDS[first]} (expecting '{expected}')")
        elif first == "-" or first.isdecimal():
            self._number()
        else:
            raise _UnexpectedError(_VALUE)

    def _string(self) -> None:
        """Read the rest of a string, whose first quote has been read."""
        while True:
            self._skip(_PLAIN)
            if self._take('"'):
                return
            if not self._take("\\"):
                raise _UnexpectedError("in string literal")
            if self._take("u"):
                before = self._at
                self._skip(_HEX_DIGITS)
                if self._at < before + 4:
                    raise _UnexpectedError("in \\u hexadecimal character escape")
            elif self._text[self._at : self._at + 1] in _ESCAPES:
                self._at += 1
            else:
                raise _UnexpectedError("in string escape code")

    def _number(self) -> None:
        self._take("-")
        if not self._take("0"):
            self._digits("in numeric literal")
        if self._take("."):
            self._digits("after decimal point in numeric literal")
        if self._take("e") or self._take("E"):
            if not self._take("+"):
                self._take("-")
            self._digits("in exponent of numeric literal")

    def _digits(self, place: str) -> None:
        before = self._at
        self._skip(_DIGITS)
        if self._at == before:
            raise _UnexpectedError(place)

    def _skip_space(self) -> None:
        self._skip(_SPACE)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found is not None else self._at

    def _take(self, character: str) -> bool:
        """Read a character if it is the next one."""
        if not self._text.startswith(character, self._at):
            return False
        self._at += 1
        return True


def _shown(character: str) -> str:
    """Return a character in quotes, as Go's decoder shows it."""
    if character in "'\"":
        return {"'": r"'\''", '"': "'\"'"}[character]
    return f"'{go_quoted(character)[1:-1]}'"
