"""Parser of version constraints.

The grammar is exactly that of Go's Masterminds/semver 3.4, with the length limits added in 3.5, so that the Go and the
Python parts of a product evaluate a constraint in the same way. This is the reason for two unusual steps: a hyphen
range is replaced by two comparators in the text before parsing, and everything after an `x` is ignored instead of being
an error.

The patterns do not backtrack (possessive quantifiers), so that, with the length limit, invalid input is cheap.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ocf.errors import ConstraintError
from ocf.feature.comparators import OPERATORS, Comparator, Operand
from ocf.feature.versions import read_version, shown, version_order

__all__ = ["parse_constraint"]

_MAX_LENGTH: Final = 512
_MAX_ALTERNATIVES: Final = 32
_ALLOWED: Final = (
    "a comparator is one of = != > >= => < <= =< ~ ~> ^ (or nothing) before a version such as 1.2.3, 1.2, 1.x or *; "
    "commas or spaces join comparators that must all hold, || joins alternatives, '1.2 - 1.4' is a range"
)
_WILDCARDS: Final = frozenset("xX*")

# Go's \s, which has no vertical tab.
_BLANKS: Final = "\t\n\f\r "
_SPACE: Final = f"[{_BLANKS}]"
# The | is a bug of the reference: it makes `1.x.|` a valid constraint, and the range of `1||2 - 3` start at 1.
_NUMBER: Final = r"[0-9xX*|]++"
_WORDS: Final = r"[0-9A-Za-z-]++(?:\.[0-9A-Za-z-]++)*+"
# Groups: major, minor, patch, prerelease with its hyphen.
_VERSION: Final = rf"v?+({_NUMBER})(?:\.({_NUMBER}))?+(?:\.({_NUMBER}))?+(-{_WORDS})?+(?:\+{_WORDS})?+"
_OPERATOR: Final = "|".join(sorted(map(re.escape, [*OPERATORS, "!="]), key=len, reverse=True))

_COMPARATOR: Final = re.compile(rf"({_OPERATOR}){_SPACE}*+({_VERSION})")
_HYPHEN_RANGE: Final = re.compile(rf"{_SPACE}*+({_VERSION}){_SPACE}++-{_SPACE}++({_VERSION}){_SPACE}*+")
_TWO_COMPARATORS: Final = r">= \1, <= \6 "
_SEPARATOR: Final = re.compile(rf"{_SPACE}*+,{_SPACE}*+|{_SPACE}++")


class _UnreadableError(Exception):
    """A part of the text is invalid; the argument contains the part and the reason."""


def parse_constraint(text: str) -> tuple[tuple[Comparator, ...], ...]:
    """Parse a constraint.

    Args:
        text: The constraint, at most 512 characters and 32 alternatives.

    Returns:
        The alternatives, each with its comparators, which must all hold.

    Raises:
        ConstraintError: If the text is not a constraint; the message contains the text, the invalid part and the
            allowed syntax.

    Example:
        >>> [[each.operator for each in group] for group in parse_constraint(">=1.2, <2 || ^3")]
        [['>=', '<'], ['^']]
    """
    if not isinstance(text, str):
        raise ConstraintError(f"a version constraint has to be text, got {shown(text)}")
    if len(text) > _MAX_LENGTH:
        raise ConstraintError(f"version constraint {shown(text)} is too long: {_MAX_LENGTH} characters at most")
    expanded = _HYPHEN_RANGE.sub(_TWO_COMPARATORS, text)
    alternatives = expanded.split("||")
    if len(alternatives) > _MAX_ALTERNATIVES:
        raise ConstraintError(
            f"version constraint {shown(text)} has {len(alternatives)} alternatives: {_MAX_ALTERNATIVES} at most"
        )
    try:
        return tuple(tuple(_comparators(alternative)) for alternative in alternatives)
    except _UnreadableError as problem:
        read_as = "" if expanded == text else f" (read as {shown(expanded)})"
        raise ConstraintError(f"version constraint {shown(text)}{read_as}: {problem}; {_ALLOWED}") from None


def _comparators(alternative: str) -> Iterator[Comparator]:
    alternative = alternative.strip(_BLANKS)
    position = 0
    if not alternative:
        raise _UnreadableError("nothing to compare with, the text or one side of || is empty")
    while True:
        match = _COMPARATOR.match(alternative, position)
        if match is None:
            raise _UnreadableError(_complaint(alternative[position:]))
        yield Comparator(match[1], _operand(match))
        if match.end() == len(alternative):
            return
        separator = _SEPARATOR.match(alternative, match.end())
        if separator is None:
            raise _UnreadableError(_complaint(alternative[match.end() :], behind=match[0]))
        position = separator.end()


def _complaint(rest: str, behind: str = "") -> str:
    if not rest:
        return "nothing follows the last comma"
    word = _SEPARATOR.split(rest, maxsplit=1)[0]
    return f"cannot read {shown(behind + (word or rest))}"


def _operand(match: re.Match[str]) -> Operand:
    _, text, *numbers, prerelease = match.groups()
    counting = _numbers_that_count(numbers)
    version = read_version(".".join([*counting, "0", "0", "0"][:3]) + (prerelease or ""))
    if version is None:
        raise _UnreadableError(f"{shown(text)} is not a version")
    return Operand(version_order(version), len(counting))


def _numbers_that_count(numbers: Iterable[str | None]) -> list[str]:
    written = []
    for number in numbers:
        if number is None or number in _WILDCARDS:
            break
        written.append(number)
    return written
