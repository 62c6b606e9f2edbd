"""Search with regular expressions in linear time.

All alternatives are followed at the same time, character by character, so a search never backtracks. A character takes
at most one step for each instruction of the program (at most 10 000), or one lookup if the step is in the cache. Large
counts still take time: `a{1,1000}b` takes about a second for a text of 5 000 characters.
Source: https://swtch.com/~rsc/regexp/regexp2.html.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from ocf_server.cel.regexp_program import Assertion, Characters, Fork, Instruction
from ocf_server.cel.regexp_syntax import parse_regexp

__all__ = ["Regexp"]

_MAX_CACHE_SIZE: Final = 1_000_000
"""Maximum size of the cache: the number of steps, plus the number of threads after each of them."""

_END: Final = ""
"""The character before the start and after the end of the text."""


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
"""Functions that check an assertion at a position, by the characters before and after it."""


def _before(char: str) -> str:
    """Return a representative of all characters that are equal for every assertion."""
    return "_" if _is_word(char) else char if char in (_END, "\n") else " "


class _Step(NamedTuple):
    """Transition from a state with a character.

    Args:
        matched: Index of the thread that matches before the character; None if none matches.
        sources: For each thread of the next state, its index in this state.
    """

    matched: int | None
    sources: tuple[int, ...]
    state: "_State"


@dataclass(slots=True, eq=False)
class _State:
    """State of a search between two characters: the threads of execution of the program.

    Args:
        threads: The next instruction of each thread, the preferred thread first.
        before: The character before the position; a representative of those that are equal for assertions.
        starts: Whether a match may start here; then one more thread follows the others.
    """

    threads: tuple[int, ...]
    before: str
    starts: bool
    steps: dict[str, _Step] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Regexp:
    """A regular expression with the preference of Go: the leftmost match, and of those the first in its order."""

    code: tuple[Instruction, ...]
    _states: dict[tuple[tuple[int, ...], str, bool], _State] = field(default_factory=dict)
    _cached: int = 0

    @classmethod
    def parse(cls, text: str) -> "Regexp":
        """Parse a regular expression.

        Raises:
            RegexpSyntaxError: If the syntax is invalid.
            BadRequestError: If it uses a feature that the embedded cluster does not support.
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
        """Return the first match in a text; None if there is no match.

        Example:
            >>> Regexp.parse("[0-9]+").find("from 10 to 20")
            '10'
        """
        found = self._search(text, 0)
        return text[slice(*found)] if found else None

    def find_all(self, text: str) -> Iterator[str]:
        """Yield the matches in a text that do not overlap; an empty match does not directly follow another match.

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

    def _state(self, threads: tuple[int, ...], before: str, *, starts: bool) -> _State:
        key = threads, before, starts
        if key not in self._states:
            self._states[key] = _State(*key)
        return self._states[key]

    def _step(self, state: _State, char: str) -> _Step:
        """Return the transition with a character, and add it to the cache."""
        matched = None
        sources: dict[int, int] = {}
        for source, at in self._followed(state, char):
            if at == len(self.code):
                matched = source  # drop all threads of lower preference
                break
            instruction = self.code[at]
            if char and isinstance(instruction, Characters) and instruction.has(char):
                sources.setdefault(at + 1, source)
        if self._cached > _MAX_CACHE_SIZE:
            self._states.clear()
            self._cached = 0
        self._cached += 1 + len(sources)
        after = self._state(tuple(sources), _before(char), starts=state.starts and matched is None)
        state.steps[char] = step = _Step(matched, tuple(sources.values()), after)
        return step

    def _followed(self, state: _State, after: str) -> Iterator[tuple[int, int]]:
        """Yield the threads at their next instruction that consumes a character or matches, the preferred one first."""
        threads = (*state.threads, 0) if state.starts else state.threads
        left = [*enumerate(threads)][::-1]
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
