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
from ocf_server.cel.overloads import joined
from ocf_server.cel.runtime import Checked, Frame
from ocf_server.cel.syntax_tree import Call, Identifier, Literal, Selection
from ocf_server.cel.types import ANY, BOOL, OPTIONAL, list_of, optional_of, unwrapped
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
    if isinstance(call.target, Literal):
        text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(text, call.target.at)
    if not isinstance(call.arguments[0], Identifier):
        raise MacroError("argument is not an identifier", call.arguments[0].at)
    loop = Loop.of(checker, call, 1)
    key = loop.inside.check(loop.rest[0])
    if key.kind != ANY and key.kind.name not in SORTED_KINDS:
        applied = f"{loop.span.kind}.({list_of(key.kind)})"
        raise RuleSyntaxError(f"found no matching overload for '@sortByAssociatedKeys' applied to '{applied}'", call.at)

    def run(frame: Frame) -> list[Any]:
        inner, items = loop.enter(frame)
        pairs = [(value, key.run(inner)) for (value,) in items]
        return sorted_by([value for value, _ in pairs], [each for _, each in pairs])

    return Checked(loop.span.kind, run)


def _with_value(*, flat: bool) -> Macro:
    """Return `optMap`, whose result is made optional, or `optFlatMap`, whose result is optional already."""

    def macro(checker: ExpressionChecker, call: Call) -> Checked:
        variable, body = call.arguments
        if not isinstance(variable, Identifier):
            raise MacroError(f"{call.name}() variable name must be a simple identifier", variable.at)
        if call.target is None:  # pragma: no cover  # the keys of MACROS exclude it
            raise MacroError("Syntax error: a macro needs a target", call.at)
        target = checker.check(call.target)
        kind = unwrapped(target.kind)[0]
        if target.kind.name not in (OPTIONAL, ANY.name):
            for name in ("hasValue", "value"):
                checker.report(f"found no matching overload for '{name}' applied to '{target.kind}.()'", call.at)
            kind = ANY
        made = checker.within(variable.name, kind).check(body)
        gives = joined(made.kind, optional_of(ANY)) if flat else optional_of(made.kind)
        if gives is None:
            applied = f"({BOOL}, {made.kind}, {optional_of(ANY)})"
            raise RuleSyntaxError(f"found no matching overload for '_?_:_' applied to '{applied}'", call.at)

        def run(frame: Frame) -> Any:
            found = target.run(frame)
            if not isinstance(found, Maybe):
                raise EvaluationError("no such overload")
            if not found.is_present:
                return found
            value = made.run(frame.within(**{variable.name: found.value()}))
            return value if flat else Maybe(value)

        return Checked(made.kind if flat and made.kind != ANY else gives, run)

    return macro


MACROS: Final[Mapping[tuple[str, bool, int], Macro]] = {
    ("has", False, 1): _has,
    ("sortBy", True, 2): _sort_by,
    ("optMap", True, 2): _with_value(flat=False),
    ("optFlatMap", True, 2): _with_value(flat=True),
    **COMPREHENSIONS,
}
"""The macros by name, whether they have a target, and their number of arguments."""
