"""Parsing and type check of one expression, with the error texts of a real API server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ocf_server.cel.checker import Checker
from ocf_server.cel.literals import RuleSyntaxError
from ocf_server.cel.parser import parse
from ocf_server.cel.runtime import Checked
from ocf_server.cel.types import CelType
from ocf_server.cel.unsupported import missing_library

__all__ = ["CheckedExpression", "ExpressionError", "checked_expression"]

_WIDE_DOT: Final = "\N{FULLWIDTH FULL STOP}"
_WIDE_MARK: Final = "\N{FULLWIDTH CIRCUMFLEX ACCENT}"


class ExpressionError(Exception):
    """An expression is invalid.

    Args:
        text: The error text of a real API server.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True, slots=True)
class CheckedExpression:
    """A compiled expression.

    Args:
        checked: Its type, and the function that evaluates it.
        program_problem: The error text if it cannot be prepared for its evaluation, which a real API server finds after
            the check of the type of the result; empty if it can.
    """

    checked: Checked
    used: frozenset[str]
    program_problem: str


def checked_expression(text: str, variables: Mapping[str, CelType], *, mutates: bool = False) -> CheckedExpression:
    """Check the types of an expression and compile it.

    Args:
        mutates: Whether it is a mutation, which can use object literals.

    Returns:
        The compiled expression.

    Raises:
        ExpressionError: If the expression is invalid.
        BadRequestError: If it uses a feature that the embedded cluster does not support.
    """
    checker = Checker(variables, mutates=mutates)
    try:
        checked = checker.check_all(parse(text))
    except ImportError:
        raise missing_library() from None
    except RuleSyntaxError as error:
        raise ExpressionError(f"compilation failed: {_pointed(text, error)}") from None
    except RecursionError:
        text = "compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
        raise ExpressionError(text) from None
    if problems := checker.issues.compile_problems():
        raise ExpressionError("compilation failed: " + "\n".join(_pointed(text, problem) for problem in problems))
    program = next(iter(checker.issues.program), "")
    return CheckedExpression(
        checked, frozenset(checker.used), f"program instantiation failed: {program}" if program else ""
    )


def _pointed(text: str, error: RuleSyntaxError) -> str:
    """Return the text of an error with its line and a mark at its position, as a real API server does."""
    before = text[: error.at]
    line, column = before.count("\n"), error.at - (before.rfind("\n") + 1)
    shown = text.split("\n")[line].replace("\t", " ")
    dots = "".join("." if char.isascii() else _WIDE_DOT for char in shown[:column])
    mark = "^" if shown[column : column + 1].isascii() else _WIDE_MARK
    return f"ERROR: <input>:{line + 1}:{column + 1}: {error.text}\n | {shown}\n | {dots}{mark}"
