"""Explanations of scaling actions, rendered when they are read."""

from collections.abc import Iterator, Sequence
from typing import overload

from ocf.simulation.engine.moments import Moment, Subject

__all__ = ["Explained"]


class Explained(Sequence[str]):
    """The lines of the explanation of a decision, in the words of `ocf explain`.

    A long run has thousands of actions, and few of them are read; so the lines are rendered on first use.

    Args:
        moment: The instant of the action.
        subject: What is the same in all syncs.
    """

    __slots__ = ("_lines", "_moment", "_subject")

    def __init__(self, moment: Moment, subject: Subject) -> None:
        self._moment = moment
        self._subject = subject
        self._lines: tuple[str, ...] | None = None

    def _rendered(self) -> tuple[str, ...]:
        if self._lines is None:
            from ocf.autoscaling.explain import explain_decision, render_steps

            decision, history = self._moment.decide(self._subject)
            explained = explain_decision(decision, history, settings=self._subject.settings)
            self._lines = tuple(render_steps(explained))
        return self._lines

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        """Return a line, or some of them."""
        return self._rendered()[index]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the lines."""
        return iter(self._rendered())

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._rendered())

    def __eq__(self, other: object) -> bool:
        """Return whether another sequence has the same lines."""
        return isinstance(other, Sequence) and self._rendered() == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the lines."""
        return hash(self._rendered())

    def __repr__(self) -> str:
        """Return the lines as a tuple shows them."""
        return repr(self._rendered())
