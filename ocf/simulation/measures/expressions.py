"""Expressions over measures, such as `overload_time > 2% or latency_p95 > 250ms`.

They have the syntax of Python: comparisons, `and`, `or`, `not`, and arithmetic. A number may have a unit: `%`, or `ms`,
`s`, `m` and `h`, which give seconds.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from typing import Final

from ocf.errors import ConfigError
from ocf.simulation.measures.catalog import MEASURES, Group
from ocf.simulation.measures.measuring import check_name

__all__ = ["Expression", "parse_expression"]

_NUMBER: Final = re.compile(r"(?<![\w.])(\d+(?:\.\d*)?|\.\d+)\s*(%|(?:ms|s|m|h)\b)")
_UNITS: Final = {"%": 0.01, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[float, float], bool]]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_LONGEST: Final = 500
# A strict bound that is met exactly is violated, although the distance is 0.
_LEAST: Final = 1e-9
_NO_LATENCY: Final = "no load was served, it is one of cores or bytes, or it arrives over `workload.connections`"
_MISSING: Final = {Group.NODES: "the scenario has no node groups"}


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition over measures.

    Args:
        tree: Its syntax tree.
        names: The measures in it, in order.
    """

    text: str
    tree: ast.expr
    names: tuple[str, ...]

    def holds(self, measures: Mapping[str, float]) -> bool:
        """Evaluate the condition.

        Args:
            measures: Values by name.

        Raises:
            ConfigError: If the run does not have a measure, or a divisor is 0.
        """
        for name in self.names:
            if name not in measures:
                reason = _MISSING.get(MEASURES[name].group, _NO_LATENCY)
                if name == "late_share":
                    reason = f"the scenario has no objective for the latency, {_NO_LATENCY}"
                raise ConfigError(f"{self.text!r}: the run has no {name}: {reason}")
        try:
            return _holds(self.tree, measures)
        except ZeroDivisionError:
            raise ConfigError(f"{self.text!r}: division by 0") from None

    def violation(self, measures: Mapping[str, float]) -> float:
        """Return how far measures are from the condition: 0 if it holds, 1 if they are twice a bound.

        Args:
            measures: Values by name.

        Raises:
            ConfigError: As `holds` does.

        Example:
            >>> rule = parse_expression("overload_time <= 2% and pod_hours <= 40")
            >>> rule.violation({"overload_time": 0.01, "pod_hours": 60})
            0.5
        """
        return 0.0 if self.holds(measures) else _violation(self.tree, measures, negated=False)


def parse_expression(text: str) -> Expression:
    """Parse a condition over measures.

    Args:
        text: The text.

    Raises:
        ConfigError: If it is not a condition, or has a name that is not a measure.

    Example:
        >>> gate = parse_expression("overload_time > 2% or latency_p95 > 250ms")
        >>> gate.names, gate.holds({"overload_time": 0.01, "latency_p95": 0.3})
        (('overload_time', 'latency_p95'), True)
    """
    text = text.strip()
    if len(text) > _LONGEST:
        raise ConfigError(f"an expression may have {_LONGEST} characters, not {len(text)}")
    # Rounded, because 35 * 0.01 is not 0.35.
    plain = _NUMBER.sub(lambda found: repr(round(float(found[1]) * _UNITS[found[2]], 12)), text)
    try:
        tree = ast.parse(plain, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # The parser of Python raises all of these, the last two for a text that is nested too deep.
        raise _invalid(text) from None
    _check_condition(tree, text)
    names = dict.fromkeys(each.id for each in ast.walk(tree) if isinstance(each, ast.Name))
    return Expression(text, tree, tuple(map(check_name, names)))


def _invalid(text: str) -> ConfigError:
    return ConfigError(f"invalid expression {text!r}: write a comparison of measures, such as 'overload_time > 2%'")


def _check_condition(tree: ast.expr, text: str) -> None:
    if isinstance(tree, ast.BoolOp):
        for each in tree.values:
            _check_condition(each, text)
    elif isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        _check_condition(tree.operand, text)
    elif isinstance(tree, ast.Compare) and all(type(each) in _COMPARISONS for each in tree.ops):
        for each in (tree.left, *tree.comparators):
            _check_number(each, text)
    else:
        raise _invalid(text)


def _check_number(tree: ast.expr, text: str) -> None:
    if isinstance(tree, ast.BinOp) and type(tree.op) in _ARITHMETIC:
        _check_number(tree.left, text)
        _check_number(tree.right, text)
    elif isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        _check_number(tree.operand, text)
    elif not isinstance(tree, ast.Name) and not (isinstance(tree, ast.Constant) and type(tree.value) in {int, float}):
        raise _invalid(text)


def _holds(tree: ast.expr, measures: Mapping[str, float]) -> bool:
    match tree:
        case ast.BoolOp(op=ast.And()):
            return all(_holds(each, measures) for each in tree.values)
        case ast.BoolOp():
            return any(_holds(each, measures) for each in tree.values)
        case ast.UnaryOp():
            return not _holds(tree.operand, measures)
        case ast.Compare():
            numbers = [_number(each, measures) for each in (tree.left, *tree.comparators)]
            pairs = zip(tree.ops, numbers, numbers[1:], strict=False)
            return all(_COMPARISONS[type(each)](left, right) for each, left, right in pairs)
    raise AssertionError(tree)


def _violation(tree: ast.expr, measures: Mapping[str, float], *, negated: bool) -> float:
    """Return the distance from a condition, or from its opposite."""
    match tree:
        case ast.BoolOp(op=op, values=values):
            parts = [_violation(each, measures, negated=negated) for each in values]
            # The opposite of `and` is an `or` of opposites, and vice versa.
            return fsum(parts) if isinstance(op, ast.And) is not negated else min(parts)
        case ast.UnaryOp(operand=operand):
            return _violation(operand, measures, negated=not negated)
        case ast.Compare():
            if _holds(tree, measures) is not negated:
                return 0.0
            numbers = [_number(each, measures) for each in (tree.left, *tree.comparators)]
            gaps = [abs(left - right) / (abs(right) or abs(left) or 1.0) for left, right in pairwise(numbers)]
            return max(*gaps, _LEAST)
    raise AssertionError(tree)


def _number(tree: ast.expr, measures: Mapping[str, float]) -> float:
    match tree:
        case ast.Name():
            return measures[tree.id]
        case ast.BinOp():
            return _ARITHMETIC[type(tree.op)](_number(tree.left, measures), _number(tree.right, measures))
        case ast.UnaryOp():
            return -_number(tree.operand, measures)
        case ast.Constant(value=int() | float() as value):
            return float(value)
    raise AssertionError(tree)
