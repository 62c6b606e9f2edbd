"""Macros of CEL: `has`, `sortBy`, those of optional values, and the comprehensions.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#macros.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ocf_server.cel.comprehensions import COMPREHENSIONS, ExpressionChecker, Loop, Macro
from ocf_server.cel.functions import SORTED_KINDS, sorted_by
from ocf_server.cel.issues import MacroError
from ocf_server.cel.literals import RuleSyntaxError
from ocf_server.cel.optional_values import Maybe
from ocf_server.cel.runtime import Checked, Frame
from ocf_server.cel.syntax_tree import Call, Entries, Identifier, Literal, Selection
from ocf_server.cel.types import ANY, BOOL, ERROR, CelType, optional_of, unwrapped
from ocf_server.cel.values import EvaluationError

__all__ = ["MACROS"]


def _has(checker: ExpressionChecker, call: Call) -> Checked:
    field = call.arguments[0]
    if not isinstance(field, Selection) or field.optional:
        raise MacroError("invalid argument to has() macro", field.at)
    operand = checker.check(field.operand)
    name, _ = checker.field(unwrapped(operand.kind)[0], replace(field, at=call.at))

    def run(frame: Frame) -> bool:
        value = operand.run(frame)
        content = value.content if isinstance(value, Maybe) else value
        return isinstance(content, dict) and name in content

    return Checked(BOOL, run)


def _sort_by(checker: ExpressionChecker, call: Call) -> Checked:
    if isinstance(call.target, Literal | Entries):
        text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(text, call.target.at)
    if not isinstance(call.arguments[0], Identifier):
        raise MacroError("argument is not an identifier", call.arguments[0].at)
    loop = Loop.of(checker, call, 1, call.at)
    key, target = loop.inside.check(loop.rest[0]), loop.span.kind
    is_list = target.name == "list" or target.is_open
    if not is_list or not any(checker.accepts(key.kind, CelType(kind)) for kind in SORTED_KINDS):
        # What is not a list has no items.
        shown = checker.bindings.resolved(key.kind, final=True) if is_list or target.name == "map" else ERROR
        applied = f"{checker.bindings.resolved(target, final=True)}.(list({shown}))"
        raise RuleSyntaxError(f"found no matching overload for '@sortByAssociatedKeys' applied to '{applied}'", call.at)

    def run(frame: Frame) -> list[Any]:
        inner, items = loop.enter(frame)
        pairs = [(value, key.run(inner)) for (value,) in items]
        return sorted_by([value for value, _ in pairs], [each for _, each in pairs])

    return Checked(loop.span.kind, run)


def _content(checker: ExpressionChecker, kind: CelType, call: Call) -> CelType:
    """Return the type of the value of an optional value; report if the type is that of something else."""
    if not checker.accepts(kind, optional_of(ANY)):
        for name in ("hasValue", "value"):
            checker.report(f"found no matching overload for '{name}' applied to '{kind}.()'", call.at)
        return ERROR
    content, is_optional = unwrapped(kind)
    return content if is_optional else ANY


def _flattened(checker: ExpressionChecker, made: CelType, inside: CelType, call: Call) -> CelType:
    """Return the type of the result of `optFlatMap`, which may also be an optional value without a value."""
    gives = checker.bindings.joined(optional_of(checker.bindings.fresh()), made)
    if gives is None:
        shown = checker.bindings.resolved(made, final=True)
        applied = f"({ERROR if inside == ERROR else BOOL}, {shown}, {optional_of(ANY)})"
        raise RuleSyntaxError(f"found no matching overload for '_?_:_' applied to '{applied}'", call.at)
    return gives


def _with_value(*, flat: bool) -> Macro:
    """Return `optMap`, whose result is made optional, or `optFlatMap`, whose result is optional already."""

    def macro(checker: ExpressionChecker, call: Call) -> Checked:
        variable, body = call.arguments
        if not isinstance(variable, Identifier):
            raise MacroError(f"{call.name}() variable name must be a simple identifier", variable.at)
        if call.target is None:  # pragma: no cover  # the keys of MACROS exclude it
            raise MacroError("Syntax error: a macro needs a target", call.at)
        target = checker.check(call.target)
        inside = _content(checker, target.kind, call)
        made = checker.within(variable.name, inside).check(body)
        gives = _flattened(checker, made.kind, inside, call) if flat else optional_of(made.kind)

        def run(frame: Frame) -> Any:
            found = target.run(frame)
            if not isinstance(found, Maybe):
                raise EvaluationError("no such overload")
            if not found.is_present:
                return found
            value = made.run(frame.within(**{variable.name: found.value()}))
            return value if flat else Maybe(value)

        return Checked(gives, run)

    return macro


MACROS: Final[Mapping[tuple[str, bool, int], Macro]] = {
    ("has", False, 1): _has,
    ("sortBy", True, 2): _sort_by,
    ("optMap", True, 2): _with_value(flat=False),
    ("optFlatMap", True, 2): _with_value(flat=True),
    **COMPREHENSIONS,
}
"""The macros by name, whether they have a target, and their number of arguments."""
