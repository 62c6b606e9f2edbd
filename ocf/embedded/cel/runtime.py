"""What runs when a rule is evaluated: steps are counted, and an error is only one if the answer hangs on it.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#logical-operators.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ocf.embedded.cel.types import Kind
from ocf.embedded.cel.values import EvaluationError

__all__ = ["MOST_STEPS", "Checked", "Frame", "Meter", "Run", "TooExpensiveError", "all_of", "any_of", "either", "truth"]

MOST_STEPS: Final = 1_000_000
"""How many steps an expression may take; a real server's limit, whose steps are about as large."""

_TEXT_OF_A_STEP: Final = 10


class TooExpensiveError(Exception):
    """An expression takes too many steps."""


@dataclass(slots=True)
class Meter:
    """Counts the steps of an expression.

    Args:
        left: How many there may be.
    """

    left: int = MOST_STEPS


@dataclass(slots=True)
class Frame:
    """What an expression is evaluated with.

    Args:
        values: Its variables.
        meter: Where steps are counted.
    """

    values: dict[str, Any]
    meter: Meter

    def spend(self, steps: int = 1) -> None:
        """Count steps.

        Raises:
            TooExpensiveError: If there are too many.
        """
        self.meter.left -= steps
        if self.meter.left < 0:
            raise TooExpensiveError

    def measured(self, value: Any) -> None:
        """Count the steps that looking at all of a value takes."""
        if isinstance(value, list | dict):
            self.spend(len(value))
        elif isinstance(value, str | bytes):
            self.spend(len(value) // _TEXT_OF_A_STEP)

    def within(self, **values: Any) -> "Frame":
        """Return a frame with more variables."""
        return Frame(self.values | values, self.meter)


Run: TypeAlias = Callable[[Frame], Any]


@dataclass(frozen=True, slots=True)
class Checked:
    """An expression whose types fit.

    Args:
        kind: Type of its value.
        run: What evaluates it.
    """

    kind: Kind
    run: Run


def truth(value: Any) -> bool:
    """Return a truth value.

    Raises:
        EvaluationError: If it is none.
    """
    if not isinstance(value, bool):
        raise EvaluationError("no such overload")
    return value


def _until(answer: bool, parts: Sequence[Run]) -> Run:  # noqa: FBT001
    """Evaluate until the answer is found; an error counts only where no part gives it."""

    def run(frame: Frame) -> bool:
        frame.spend()
        failed: EvaluationError | None = None
        for part in parts:
            try:
                if truth(part(frame)) is answer:
                    return answer
            except EvaluationError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return not answer

    return run


def all_of(parts: Sequence[Run]) -> Run:
    """Return what is true if all parts are."""
    return _until(False, parts)  # noqa: FBT003


def any_of(parts: Sequence[Run]) -> Run:
    """Return what is true if a part is."""
    return _until(True, parts)  # noqa: FBT003


def either(condition: Run, yes: Run, no: Run) -> Run:
    """Return what evaluates one or the other."""

    def run(frame: Frame) -> Any:
        frame.spend()
        return yes(frame) if truth(condition(frame)) else no(frame)

    return run
