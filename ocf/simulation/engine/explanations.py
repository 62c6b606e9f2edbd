"""Explanations of scaling actions, rendered when they are read."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import overload

from ocf.autoscaling.algorithm import Decision, History, Settings

__all__ = ["Explained"]


class Explained(Sequence[str]):
    """The lines of the explanation of a decision, in the words of `ocf explain`.

    A long run has thousands of actions, and few of them are read; so the lines are rendered on first use.

    Args:
        decision: The decision.
        history: The history that it used.
        settings: The controller's settings.
    """

    __slots__ = ("_decision", "_history", "_lines", "_settings")

    def __init__(self, decision: Decision, history: History, settings: Settings) -> None:
        # The trace has all numbers; pods and samples would keep the memory of a whole cluster for each action.
        slim = replace(decision.snapshot, pods=(), metric_values=())
        self._decision = decision._replace(snapshot=slim)
        self._history = history
        self._settings = settings
        self._lines: tuple[str, ...] | None = None

    def _rendered(self) -> tuple[str, ...]:
        if self._lines is None:
            from ocf.autoscaling.explain import explain_decision, render_steps

            explained = explain_decision(self._decision, self._history, settings=self._settings)
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
