"""Checks of literal arguments, which a real API server does before it evaluates an expression."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ocf_server.cel.functions import pattern
from ocf_server.cel.issues import Issues
from ocf_server.cel.literals import RuleSyntaxError
from ocf_server.cel.overloads import Function
from ocf_server.cel.syntax_tree import Call, Literal
from ocf_server.cel.values import EvaluationError, read_duration, read_instant

__all__ = ["check_literals"]

_CONVERSIONS: Final = frozenset({"bool", "double", "int", "uint"})
_CHECKS: Final[Mapping[tuple[str, int], Callable[[str], Any]]] = {
    ("matches", 1): pattern,
    ("duration", 0): read_duration,
    ("timestamp", 0): read_instant,
}


def check_literals(issues: Issues, functions: Sequence[Function], node: Call, name: str) -> None:
    """Check the literal arguments of a call: regular expressions, durations, timestamps, and converted values.

    Args:
        issues: The problems of the expression, to which those of the arguments are added.
        functions: The overloads of the function that accept the types of the arguments.
        node: The call.
        name: The name of the function, with its prefix.
    """
    if name in _CONVERSIONS and isinstance(node.arguments[0], Literal):
        try:
            functions[0].run(node.arguments[0].value)
        except EvaluationError as error:
            issues.program.append(str(error))
    for index, given in enumerate(node.arguments, start=functions[0].member):
        check = _CHECKS.get((name, index))
        if check is None or not isinstance(given, Literal) or not isinstance(given.value, str):
            continue
        try:
            check(given.value)
        except (ValueError, OverflowError, EvaluationError) as error:
            if name == "matches" and not functions[0].member:
                issues.program.append(str(error))
            else:
                issues.literals.append(RuleSyntaxError(f"invalid {name} argument", given.at))
