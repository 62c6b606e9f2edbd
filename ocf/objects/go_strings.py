"""Strings in the form in which Go prints them in error messages.

Source: https://pkg.go.dev/strconv#Quote.
"""

from typing import Final

__all__ = ["go_quoted"]

_ESCAPES: Final = {char: f"\\{letter}" for char, letter in zip('\a\b\f\n\r\t\v"\\', 'abfnrtv"\\', strict=True)}
_TWO_BYTES: Final = 2**16


def go_quoted(text: str) -> str:
    r"""Return a text in quotes as `%q` of Go does, with escape sequences for characters that are not printable.

    Example:
        >>> print(go_quoted('a"ä\x7f'))
        "a\"ä\x7f"
    """
    return f'"{"".join(map(_character, text))}"'


def _character(char: str) -> str:
    if char in _ESCAPES or char.isprintable():
        return _ESCAPES.get(char, char)
    code = ord(char)
    if char.isascii():
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _TWO_BYTES else f"\\U{code:08x}"
