"""Runtime of compiled expressions: the counter of steps, and the logical operators with their handling of errors.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#logical-operators.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ocf_server.cel.types import CelType
from ocf_server.cel.values import EvaluationError

__all__ = [
    "MAX_STEPS",
    "Checked",
    "Frame",
    "Run",
    "StepMeter",
    "TooExpensiveError",
    "all_of",
    "any_of",
    "either",
    "first_answer",
    "require_bool",
]

MAX_STEPS: Final = 1_000_000
"""Maximum number of steps of an expression; the cost limit of a real API server, whose units are of similar size."""

_TEXT_OF_A_STEP: Final = 10


class TooExpensiveError(Exception):
    """An expression exceeds the maximum number of steps."""


@dataclass(slots=True)
class StepMeter:
    """Counter of steps."""

    left: int = MAX_STEPS


@dataclass(slots=True)
class Frame:
    """Variables and step counter of an evaluation."""

    values: dict[str, Any]
    meter: StepMeter

    def spend(self, steps: int = 1) -> None:
        """Count steps.

        Raises:
            TooExpensiveError: If no steps remain.
        """
        self.meter.left -= steps
        if self.meter.left < 0:
            raise TooExpensiveError

    def measured(self, value: Any) -> None:
        """Count the steps for reading a whole value."""
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
    """A compiled expression."""

    kind: CelType
    run: Run


def require_bool(value: Any) -> bool:
    """Return a boolean after a check of its type.

    Raises:
        EvaluationError: If the value is not a boolean.
    """
    if not isinstance(value, bool):
        raise EvaluationError("no such overload")
    return value


def first_answer(answer: bool, conditions: Iterable[Run], frame: Frame) -> bool:  # noqa: FBT001
    """Evaluate conditions up to the first that has an answer.

    Args:
        conditions: The conditions; the iterable may change the variables of the frame in between.

    Returns:
        The answer; its opposite if no condition has it.

    Raises:
        EvaluationError: If no condition has the answer; the error of the first condition that cannot be evaluated.
    """
    failed: EvaluationError | None = None
    for condition in conditions:
        try:
            if require_bool(condition(frame)) is answer:
                return answer
        except EvaluationError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return not answer


def _operator(answer: bool, parts: Sequence[Run]) -> Run:  # noqa: FBT001
    def run(frame: Frame) -> bool:
        frame.spend()
        return first_answer(answer, parts, frame)

    return run


def all_of(parts: Sequence[Run]) -> Run:
    """Return the logical and of some operands."""
    return _operator(False, parts)  # noqa: FBT003


def any_of(parts: Sequence[Run]) -> Run:
    """Return the logical or of some operands."""
    return _operator(True, parts)  # noqa: FBT003


def either(condition: Run, yes: Run, no: Run) -> Run:
    """Return the conditional operator, which evaluates only one of two operands."""

    def run(frame: Frame) -> Any:
        frame.spend()
        return yes(frame) if require_bool(condition(frame)) else no(frame)

    return run
