"""Programs of regular expressions: instructions, and functions that combine programs.

A text matches if an execution leads from the first instruction past the last one. Source:
https://swtch.com/~rsc/regexp/regexp2.html.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from ocf_server.cel.unicode_classes import UnicodeClass
from ocf_server.cel.unsupported import unsupported_feature

__all__ = [
    "Assertion",
    "Characters",
    "Fork",
    "Fragment",
    "Instruction",
    "Item",
    "choice",
    "one",
    "repeated",
    "sequence",
]

_MAX_INSTRUCTIONS: Final = 10_000
"""The limit of the embedded cluster: each character of a text takes at most one step for each instruction."""
_AFTER_LETTERS: Final = 0x1E944
"""The first code point after all letters with an upper and a lower case."""


@dataclass(frozen=True, slots=True)
class Characters:
    """An instruction that consumes one character of a set.

    Args:
        items: Ranges of characters, each with its first and its last character; Unicode classes; other sets.
        negated: Whether the set contains all other characters instead.
        fold: Whether the set also contains the other cases of its letters.
    """

    items: "tuple[Item, ...]"
    negated: bool = False
    fold: bool = False

    def has(self, char: str) -> bool:
        """Return whether a character belongs to the set."""
        cases = _cases().get(char, char) if self.fold else char
        return any(_belongs(case, item) for case in cases for item in self.items) is not self.negated


Item: TypeAlias = tuple[str, str] | UnicodeClass | Characters


def _belongs(char: str, item: Item) -> bool:
    if isinstance(item, Characters | UnicodeClass):
        return item.has(char)
    first, last = item
    return first <= char <= last


@dataclass(frozen=True, slots=True)
class Assertion:
    r"""An instruction that succeeds only at certain positions.

    Args:
        name: The assertion in a regular expression: `\A`, `\z`, `\b` or `\B`; `^` and `$` for start and end of a line.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Fork:
    """An instruction that jumps to one or more other instructions.

    Args:
        offsets: Relative positions of these instructions, the preferred one first.
    """

    offsets: tuple[int, ...]


Instruction: TypeAlias = Characters | Assertion | Fork


@cache
def _cases() -> Mapping[str, str]:
    """Return all cases of each letter with more than one case."""
    groups: defaultdict[str, str] = defaultdict(str)
    for char in map(chr, range(_AFTER_LETTERS)):
        if not char.casefold() == char.lower() == char.upper() == char:
            groups[_folded(char)] += char
    return {char: cases for cases in groups.values() for char in cases}


def _folded(char: str) -> str:
    """Return the folded case of a letter, the same for all its cases; also for `ß`, whose upper case is `SS`."""
    return next((folded for folded in (char.casefold(), char.lower()) if len(folded) == 1), char)


@dataclass(frozen=True, slots=True)
class Fragment:
    """The program of a part of a regular expression.

    Args:
        is_optional: Whether it can match the empty text.

    Raises:
        BadRequestError: If it has too many instructions.
    """

    code: tuple[Instruction, ...] = ()
    is_optional: bool = True
    copies: int = 1

    def __post_init__(self) -> None:
        _check_size(len(self.code))


def _check_size(size: int) -> None:
    if size > _MAX_INSTRUCTIONS:
        raise unsupported_feature(f"regular expressions that need more than {_MAX_INSTRUCTIONS} instructions")


def one(char: str, *, fold: bool) -> Fragment:
    """Return the program for one character."""
    return Fragment((Characters(((char, char),), fold=fold),), is_optional=False)


def sequence(parts: Iterable[Fragment]) -> Fragment:
    """Return the program for several parts in sequence."""
    found = [*parts]
    return Fragment(
        tuple(instruction for part in found for instruction in part.code),
        all(part.is_optional for part in found),
        max((part.copies for part in found), default=1),
    )


def choice(options: list[Fragment]) -> Fragment:
    """Return the program for one of several options; it prefers the first."""
    if len(options) == 1:
        return options[0]
    starts: list[int] = []
    code: list[Instruction] = []
    left = sum(len(option.code) + 1 for option in options)
    for option in options:
        starts.append(len(code) + 1)
        code += option.code
        code.append(Fork((left - len(code),)))
    any_is = any(option.is_optional for option in options)
    return Fragment((Fork(tuple(starts)), *code), any_is, max(option.copies for option in options))


def _fork(first: int, second: int, *, greedy: bool) -> Fork:
    return Fork((first, second) if greedy else (second, first))


def repeated(part: Fragment, least: int, most: int | None, *, greedy: bool) -> Fragment:
    """Return the program for a repeated part.

    Args:
        most: Maximum number of repetitions; None for no limit.
        greedy: Whether to prefer more repetitions.
    """
    if most == 0:
        return Fragment()
    code, size = part.code, len(part.code)
    _check_size((size + 1) * max(least, most or 0))
    if most is None and least:
        return Fragment((*code * least, _fork(-size, 1, greedy=greedy)), part.is_optional, part.copies)
    if most is None and part.is_optional:
        # One or more, made optional: if the part prefers the empty text, so must the repetition.
        return repeated(repeated(part, 1, None, greedy=greedy), 0, 1, greedy=greedy)
    if most is None:
        return Fragment((_fork(1, size + 2, greedy=greedy), *code, Fork((-size - 1,))), copies=part.copies)
    rest = (most - least) * (size + 1)
    optional = [(_fork(1, rest - at, greedy=greedy), *code) for at in range(0, rest, size + 1)]
    whole = (*code * least, *(instruction for copy in optional for instruction in copy))
    return Fragment(whole, least == 0 or part.is_optional, part.copies)
