"""Macros of CEL: `has`, and the comprehensions over the items of a list or the keys of a map.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#macros.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from ocf.embedded.cel.literals import RuleSyntaxError
from ocf.embedded.cel.operators import require_valid
from ocf.embedded.cel.parser import Call, Identifier, Node, Selection
from ocf.embedded.cel.runtime import Checked, Frame, Run, require_bool
from ocf.embedded.cel.types import ANY, BOOL, INT, CelType, list_of
from ocf.embedded.cel.values import EvaluationError, kind_name

__all__ = ["MACROS", "ExpressionChecker"]


class ExpressionChecker(Protocol):
    """Type checker of the arguments of a macro."""

    def check(self, node: Node) -> Checked:
        """Check the types of an expression and compile it."""
        ...

    def field(self, kind: CelType, node: Selection) -> tuple[str, CelType]:
        """Return a field of a type: its name in manifests, and its type."""
        ...

    def within(self, name: str, kind: CelType) -> "ExpressionChecker":
        """Return a checker with one more variable."""
        ...


_GO_TYPES: Final = {"bool": "Bool", "double": "Double", "int": "Int", "null_type": "Null", "string": "String"}


def _has(checker: ExpressionChecker, call: Call) -> Checked:
    field = call.arguments[0]
    if not isinstance(field, Selection):
        raise RuleSyntaxError("invalid argument to has() macro", field.at)
    operand = checker.check(field.operand)
    name, _ = checker.field(operand.kind, replace(field, at=call.at))

    def run(frame: Frame) -> bool:
        value = operand.run(frame)
        return isinstance(value, dict) and name in value

    return Checked(BOOL, run)


def _over(checker: ExpressionChecker, call: Call) -> tuple[str, Checked, CelType]:
    """Return the variable of a comprehension, its range, and the type of the variable."""
    name = call.arguments[0]
    if not isinstance(name, Identifier):
        raise RuleSyntaxError("argument must be a simple name", name.at)
    if call.target is None:  # pragma: no cover  # the keys of MACROS exclude it
        raise RuleSyntaxError("Syntax error: a macro needs something it goes over", call.at)
    span = checker.check(call.target)
    if span.kind == ANY:
        return name.name, span, ANY
    if span.kind.name in ("list", "map"):
        return name.name, span, span.kind.of[0]
    text = f"expression of type '{span.kind}' cannot be range of a comprehension (must be list, map, or dynamic)"
    raise RuleSyntaxError(text, call.target.at)


def _condition(checker: ExpressionChecker, node: Node) -> Run:
    checked = checker.check(node)
    if checked.kind not in (BOOL, ANY):
        raise RuleSyntaxError(f"expected type 'bool' but found '{checked.kind}'", node.at)
    return checked.run


def _choice(checker: ExpressionChecker, node: Node, call: Call, made: CelType) -> Run:
    """Check the condition of a macro that a real API server expands to a conditional operator.

    Its operands are the new result and the previous one, both of type `made`.
    """
    checked = checker.check(node)
    if checked.kind not in (BOOL, ANY):
        text = f"found no matching overload for '_?_:_' applied to '({checked.kind}, {made}, {made})'"
        raise RuleSyntaxError(text, call.at)
    return checked.run


def _each(frame: Frame, span: Checked, name: str) -> Iterator[tuple[Frame, Any]]:
    values = span.run(frame)
    if not isinstance(values, list | dict):
        go_type = _GO_TYPES.get(kind_name(values), "Dyn")
        raise EvaluationError(f"got 'types.{go_type}', expected iterable type")
    inner = frame.within(**{name: None})
    for value in values:
        frame.spend()
        inner.values[name] = value
        yield inner, value


def _found(answer: bool) -> Callable[[ExpressionChecker, Call], Checked]:  # noqa: FBT001
    """Return the macro that searches for an item for which a condition is true (`exists`) or false (`all`)."""

    def macro(checker: ExpressionChecker, call: Call) -> Checked:
        name, span, kind = _over(checker, call)
        condition = _condition(checker.within(name, kind), call.arguments[1])

        def run(frame: Frame) -> bool:
            failed: EvaluationError | None = None
            for inner, _ in _each(frame, span, name):
                try:
                    if require_bool(condition(inner)) is answer:
                        return answer
                except EvaluationError as error:
                    failed = failed or error
            if failed is not None:
                raise failed
            return not answer

        return Checked(BOOL, run)

    return macro


def _one(checker: ExpressionChecker, call: Call) -> Checked:
    name, span, kind = _over(checker, call)
    condition = _choice(checker.within(name, kind), call.arguments[1], call, INT)
    return Checked(
        BOOL, lambda frame: sum(require_bool(condition(inner)) for inner, _ in _each(frame, span, name)) == 1
    )


def _filter(checker: ExpressionChecker, call: Call) -> Checked:
    name, span, kind = _over(checker, call)
    condition = _choice(checker.within(name, kind), call.arguments[1], call, list_of(kind))

    def run(frame: Frame) -> list[Any]:
        return [require_valid(value) for inner, value in _each(frame, span, name) if require_bool(condition(inner))]

    return Checked(list_of(kind), run)


def _map(checker: ExpressionChecker, call: Call) -> Checked:
    name, span, kind = _over(checker, call)
    inside = checker.within(name, kind)
    *conditions, last = call.arguments[1:]
    made = inside.check(last)
    given = [_choice(inside, node, call, list_of(made.kind)) for node in conditions]

    def run(frame: Frame) -> list[Any]:
        frames = (inner for inner, _ in _each(frame, span, name))
        return [made.run(inner) for inner in frames if all(require_bool(condition(inner)) for condition in given)]

    return Checked(list_of(made.kind), run)


_ALL, _EXISTS = _found(answer=False), _found(answer=True)

MACROS: Final[Mapping[tuple[str, bool, int], Callable[[ExpressionChecker, Call], Checked]]] = {
    ("has", False, 1): _has,
    ("all", True, 2): _ALL,
    ("exists", True, 2): _EXISTS,
    ("exists_one", True, 2): _one,
    ("existsOne", True, 2): _one,
    ("filter", True, 2): _filter,
    ("map", True, 2): _map,
    ("map", True, 3): _map,
}
"""The macros by name, whether they have a target, and their number of arguments."""
