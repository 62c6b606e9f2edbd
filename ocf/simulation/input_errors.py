"""Errors in the files of a simulation: the file, the line, the field, the value seen and the value allowed."""

from collections.abc import Iterable
from dataclasses import dataclass

from ocf.errors import ConfigError

__all__ = ["InputError", "InputProblem"]


@dataclass(frozen=True, slots=True)
class InputProblem:
    """A problem of a file.

    Args:
        file: The file, as the user named it.
        detail: The problem, with the value seen and the value allowed.
        line: The line, from 1; None if it is not known.
        field: The field or the column; empty for the file as a whole.

    Example:
        >>> str(InputProblem("load.csv", "must be a finite number of at least 0, got '-3'", line=17, field="requests"))
        "load.csv:17: requests: must be a finite number of at least 0, got '-3'"
    """

    file: str
    detail: str
    line: int | None = None
    field: str = ""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.field, self.detail) if part)


class InputError(ConfigError):
    """A file of a simulation cannot be used.

    Args:
        problems: All problems, at least one; the message has a line for each.
    """

    def __init__(self, problems: Iterable[InputProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.messages))

    @property
    def messages(self) -> tuple[str, ...]:
        """The message of each problem."""
        return tuple(map(str, self.problems))
