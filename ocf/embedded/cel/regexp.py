"""Searches with regular expressions, in a time that grows only linearly with the text.

All ways to match are followed at once, from character to character, so a search never backtracks. A character takes at
most one step for each instruction of the program, of which there are at most 10 000, and one lookup if the same was met
before. Large counts still take time: `a{1,1000}b` takes about a second for a text of 5 000 characters.
Source: https://swtch.com/~rsc/regexp/regexp2.html.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from ocf.embedded.cel.regexp_program import Assertion, Characters, Fork, Instruction
from ocf.embedded.cel.regexp_syntax import parse_regexp

__all__ = ["Regexp"]

_MOST_REMEMBERED: Final = 1_000_000
"""How many steps are remembered, each counted with the positions in the program that it leads to."""

_END: Final = ""
"""What stands in place of a character before and after the text."""


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


_ASSERTIONS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "\\A": lambda before, _: before == _END,
    "\\z": lambda _, after: after == _END,
    "^": lambda before, _: before in (_END, "\n"),
    "$": lambda _, after: after in (_END, "\n"),
    "\\b": lambda before, after: _is_word(before) is not _is_word(after),
    "\\B": lambda before, after: _is_word(before) is _is_word(after),
}
"""Whether a position fits, by the characters before and after it."""


def _before(char: str) -> str:
    """Return a character that is the same to every assertion."""
    return "_" if _is_word(char) else char if char in (_END, "\n") else " "


class _Step(NamedTuple):
    """What a character leads to.

    Args:
        matched: The way that matches before the character; None if none does.
        sources: Of each way that goes on, which one it was before.
        state: The ways that go on.
    """

    matched: int | None
    sources: tuple[int, ...]
    state: "_State"


@dataclass(slots=True, eq=False)
class _State:
    """The ways to match that are open between two characters.

    Args:
        ways: The next instruction of each, the preferred one first.
        before: The character before; all that are the same to assertions count as one.
        starts: Whether a match may start here; then it is one more way, the last one.
        steps: What characters lead to, as far as it is known.
    """

    ways: tuple[int, ...]
    before: str
    starts: bool
    steps: dict[str, _Step] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Regexp:
    """A regular expression, which prefers what Go's does: the leftmost match, and of those the first in its order.

    Args:
        code: Its instructions.
    """

    code: tuple[Instruction, ...]
    _states: dict[tuple[tuple[int, ...], str, bool], _State] = field(default_factory=dict)
    _remembered: int = 0

    @classmethod
    def parse(cls, text: str) -> "Regexp":
        """Parse a regular expression.

        Raises:
            RegexpSyntaxError: If the text does not follow the syntax.
            BadRequestError: If it uses what only a real server knows.
        """
        return cls(parse_regexp(text))

    def matches(self, text: str) -> bool:
        """Return whether a part of a text matches.

        Example:
            >>> Regexp.parse("^(a+)+$").matches("a" * 1000 + "b")
            False
        """
        state = self._state((), _END, starts=True)
        for char in chain(text, (_END,)):
            step = state.steps.get(char) or self._step(state, char)
            if step.matched is not None:
                return True
            state = step.state
        return False

    def find(self, text: str) -> str | None:
        """Return the first part of a text that matches; None if none does.

        Example:
            >>> Regexp.parse("[0-9]+").find("from 10 to 20")
            '10'
        """
        found = self._search(text, 0)
        return text[slice(*found)] if found else None

    def find_all(self, text: str) -> Iterator[str]:
        """Yield the parts of a text that match and do not overlap; an empty one does not follow another directly.

        Example:
            >>> [*Regexp.parse("a*").find_all("baac")]
            ['', 'aa', '']
        """
        at, last = 0, -1
        while at <= len(text) and (found := self._search(text, at)):
            start, end = found
            if not start == end == last:
                yield text[start:end]
            at, last = max(end, at + 1), end

    def _search(self, text: str, at: int) -> tuple[int, int] | None:
        found = None
        starts: list[int] = []
        state = self._state((), _before(text[at - 1]) if at else _END, starts=True)
        for place, char in enumerate(chain(text[at:], (_END,)), at):
            step = state.steps.get(char) or self._step(state, char)
            starts.append(place)
            if step.matched is not None:
                found = starts[step.matched], place
            starts = [starts[source] for source in step.sources]
            state = step.state
            if not (starts or state.starts):
                break
        return found

    def _state(self, ways: tuple[int, ...], before: str, *, starts: bool) -> _State:
        key = ways, before, starts
        if key not in self._states:
            self._states[key] = _State(*key)
        return self._states[key]

    def _step(self, state: _State, char: str) -> _Step:
        """Return what a character leads to, and remember it."""
        matched = None
        sources: dict[int, int] = {}
        for source, at in self._followed(state, char):
            if at == len(self.code):
                matched = source  # no way that is less preferred goes on
                break
            instruction = self.code[at]
            if char and isinstance(instruction, Characters) and instruction.has(char):
                sources.setdefault(at + 1, source)
        if self._remembered > _MOST_REMEMBERED:
            self._states.clear()
            self._remembered = 0
        self._remembered += 1 + len(sources)
        after = self._state(tuple(sources), _before(char), starts=state.starts and matched is None)
        state.steps[char] = step = _Step(matched, tuple(sources.values()), after)
        return step

    def _followed(self, state: _State, after: str) -> Iterator[tuple[int, int]]:
        """Follow all ways up to what consumes a character, the preferred one first."""
        ways = (*state.ways, 0) if state.starts else state.ways
        left = [*enumerate(ways)][::-1]
        seen: set[int] = set()
        while left:
            source, at = left.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = self.code[at] if at < len(self.code) else None
            if isinstance(instruction, Fork):
                left.extend((source, at + offset) for offset in reversed(instruction.offsets))
            elif not isinstance(instruction, Assertion):
                yield source, at
            elif _ASSERTIONS[instruction.name](state.before, after):
                left.append((source, at + 1))
