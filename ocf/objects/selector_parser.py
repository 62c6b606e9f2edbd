"""Parser of the text form of label selectors, `app=web,tier in (front,back),!canary`.

The grammar is that of the API server, including its edge cases: a missing value is empty, and `in` and `notin` are
ordinary labels and values where no operator is expected. Parsing takes linear time.
"""

import re
from collections.abc import Iterator
from typing import Final

from ocf.errors import FieldProblem, ManifestError
from ocf.objects.label_requirements import Requirement, SelectorOperator, shown

__all__ = ["SUBJECT", "read_requirements"]

SUBJECT: Final = "label selector"
"""Subject of the errors."""

_TOKEN: Final = re.compile(r"[^=!(),<> \t\r\n]+|==|!=|[=!(),<>]")
_SYMBOLS: Final = frozenset("=!(),<>")
_SETS: Final = frozenset({SelectorOperator.IN, SelectorOperator.NOT_IN})
_BINARY: Final = {
    operator.value: operator
    for operator in SelectorOperator
    if operator not in {SelectorOperator.EXISTS, SelectorOperator.DOES_NOT_EXIST}
}


def read_requirements(text: str) -> list[Requirement]:
    """Parse the text form of a label selector.

    Returns:
        The requirements in their order in the text.

    Raises:
        ManifestError: If `text` cannot be parsed, or contains an invalid label or value.
    """
    return list(_Reader(text).read())


class _Reader:
    """Parser of the text form; its errors contain the position."""

    def __init__(self, text: str) -> None:
        self._tokens = [(match[0], match.start()) for match in _TOKEN.finditer(text)]
        self._tokens.append(("", len(text)))
        self._at = 0

    def read(self) -> Iterator[Requirement]:
        if not self._next:
            return
        yield self._requirement()
        while self._next:
            self._expect(",")
            yield self._requirement()

    @property
    def _next(self) -> str:
        return self._tokens[self._at][0]

    def _requirement(self) -> Requirement:
        position = self._tokens[self._at][1]
        requirement = self._unchecked()
        for problem in requirement.problems():
            raise self._error(problem.detail, position)
        return requirement

    def _unchecked(self) -> Requirement:
        if self._next == "!":
            self._at += 1
            return Requirement(self._word("a label"), SelectorOperator.DOES_NOT_EXIST)
        key = self._word("a label")
        if self._next in {"", ","}:
            return Requirement(key, SelectorOperator.EXISTS)
        operator = _BINARY.get(self._next)
        if operator is None:
            raise self._unexpected("one of in, notin, =, ==, !=, >, <")
        self._at += 1
        if operator in _SETS:
            return Requirement(key, operator, self._values())
        return Requirement(key, operator, (self._value("", ","),))

    def _values(self) -> tuple[str, ...]:
        self._expect("(")
        values = {self._value(",", ")")}
        while self._next == ",":
            self._at += 1
            values.add(self._value(",", ")"))
        self._expect(")")
        return tuple(sorted(values))

    def _value(self, *ends: str) -> str:
        """Return the next value; empty if it is missing."""
        return "" if self._next in ends else self._word("a value")

    def _word(self, expected: str) -> str:
        word = self._next
        if not word or word[0] in _SYMBOLS:
            raise self._unexpected(expected)
        self._at += 1
        return word

    def _expect(self, symbol: str) -> None:
        if self._next != symbol:
            raise self._unexpected(f"'{symbol}'")
        self._at += 1

    def _unexpected(self, expected: str) -> ManifestError:
        token, position = self._tokens[self._at]
        return self._error(f"{expected} expected, not {shown(token) if token else 'the end'}", position)

    def _error(self, detail: str, position: int) -> ManifestError:
        return ManifestError(SUBJECT, [FieldProblem("", f"at character {position + 1}: {detail}")])
