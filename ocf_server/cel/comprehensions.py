"""Comprehensions of CEL: macros over the items of a list or the entries of a map, with one or two variables.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#macros and
https://pkg.go.dev/github.com/google/cel-go/ext#TwoVarComprehensions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from ocf_server.cel.assignability import Bindings
from ocf_server.cel.issues import MacroError
from ocf_server.cel.literals import RuleSyntaxError
from ocf_server.cel.runtime import Checked, Frame, Run, first_answer, require_bool
from ocf_server.cel.syntax_tree import Call, Identifier, Node, Selection
from ocf_server.cel.types import ANY, BOOL, INT, CelType, list_of, map_of
from ocf_server.cel.values import EvaluationError, kind_name, require_valid

__all__ = ["COMPREHENSIONS", "ExpressionChecker", "Loop", "Macro"]


class ExpressionChecker(Protocol):
    """Type checker of the arguments of a macro."""

    def check(self, node: Node) -> Checked:
        """Check the types of an expression and compile it."""
        ...

    def report(self, text: str, at: int) -> None:
        """Record a type error."""
        ...

    def field(self, kind: CelType, node: Selection) -> tuple[str, CelType]:
        """Return a field of a type: its name in manifests, and its type."""
        ...

    @property
    def bindings(self) -> Bindings:
        """The types of the type variables."""
        ...

    def accepts(self, kind: CelType, wanted: CelType) -> bool:
        """Return whether a value of a type can be used where another one is wanted."""
        ...

    def within(self, name: str, kind: CelType) -> "ExpressionChecker":
        """Return a checker with one more variable."""
        ...


Macro: TypeAlias = Callable[[ExpressionChecker, Call], Checked]

_GO_TYPES: Final = {
    "bool": "Bool",
    "double": "Double",
    "int": "Int",
    "null_type": "Null",
    "string": "String",
    "uint": "Uint",
}


@dataclass(frozen=True, slots=True)
class Loop:
    """The variables of a comprehension and what it goes over.

    Args:
        names: Names of one or two variables; of two, the first one is the index or key, the second one the item or
            value.
        inside: The checker of the expressions with the variables.
    """

    names: tuple[str, ...]
    kinds: tuple[CelType, ...]
    span: Checked
    inside: ExpressionChecker
    rest: tuple[Node, ...]

    @classmethod
    def of(cls, checker: ExpressionChecker, call: Call, variables: int, at: int | None = None) -> "Loop":
        """Check the variables and the target of a macro; `at` is where it reports a target without items."""
        names = _variables(call.arguments[:variables])
        target = call.target
        if target is None:  # pragma: no cover  # the keys of MACROS exclude it
            raise MacroError("Syntax error: a macro needs something it goes over", call.at)
        span = checker.check(target)
        kinds = _kinds(checker, span.kind, target.at if at is None else at, variables)
        inside = checker
        for name, kind in zip(names, kinds, strict=True):
            inside = inside.within(name, kind)
        return cls(names, kinds, span, inside, call.arguments[variables:])

    def enter(self, frame: Frame) -> tuple[Frame, Iterator[tuple[Any, ...]]]:
        """Return the frame of the expressions inside, and the values of the variables for each item.

        The iterator sets the variables in the frame before it yields their values.
        """
        values = self.span.run(frame)
        if not isinstance(values, list | dict):
            raise EvaluationError(_not_iterable(values, len(self.names)))
        inner = frame.within(**dict.fromkeys(self.names))
        pairs = values.items() if isinstance(values, dict) else enumerate(values)
        return inner, self._each(inner, pairs if len(self.names) > 1 else zip(values))

    def _each(self, inner: Frame, pairs: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        for pair in pairs:
            inner.spend()
            inner.values.update(zip(self.names, pair, strict=True))
            yield pair


def _not_iterable(value: Any, variables: int) -> str:
    go_type = f"types.{_GO_TYPES.get(kind_name(value), 'Dyn')}"
    if variables > 1:
        return f"unsupported comprehension range type: {go_type}"
    return f"got '{go_type}', expected iterable type"


def _variables(nodes: Sequence[Node]) -> tuple[str, ...]:
    names: list[str] = []
    for node in nodes:
        if not isinstance(node, Identifier):
            raise MacroError("argument must be a simple name", node.at)
        if node.name in names:
            raise MacroError(f"duplicate variable name: {node.name}", node.at)
        names.append(node.name)
    return tuple(names)


def _kinds(checker: ExpressionChecker, kind: CelType, at: int, variables: int) -> tuple[CelType, ...]:
    match kind.name:
        case "list":
            both = (INT, kind.of[0])
            return both if variables > 1 else both[1:]
        case "map":
            return kind.of[:variables]
        case _ if kind.is_open:
            checker.accepts(ANY, kind)
        case _:
            text = f"expression of type '{kind}' cannot be range of a comprehension (must be list, map, or dynamic)"
            checker.report(text, at)
    return (ANY,) * variables


def _condition(checker: ExpressionChecker, node: Node) -> Run:
    checked = checker.check(node)
    if not checker.accepts(checked.kind, BOOL):
        raise RuleSyntaxError(f"expected type 'bool' but found '{checked.kind}'", node.at)
    return checked.run


def _choice(checker: ExpressionChecker, node: Node, call: Call, made: CelType) -> Run:
    """Check the condition of a macro that a real API server expands to a conditional operator.

    Its operands are the new result and the previous one, both of type `made`.
    """
    checked = checker.check(node)
    if not checker.accepts(checked.kind, BOOL):
        condition, result = (checker.bindings.resolved(kind, final=True) for kind in (checked.kind, made))
        text = f"found no matching overload for '_?_:_' applied to '({condition}, {result}, {result})'"
        raise RuleSyntaxError(text, call.at)
    return checked.run


def _found(variables: int, *, answer: bool) -> Macro:
    """Return the macro that searches for an item for which a condition is true (`exists`) or false (`all`)."""

    def macro(checker: ExpressionChecker, call: Call) -> Checked:
        loop = Loop.of(checker, call, variables)
        condition = _condition(loop.inside, loop.rest[0])

        def run(frame: Frame) -> bool:
            inner, items = loop.enter(frame)
            return first_answer(answer, (condition for _ in items), inner)

        return Checked(BOOL, run)

    return macro


def _one(variables: int) -> Macro:
    def macro(checker: ExpressionChecker, call: Call) -> Checked:
        loop = Loop.of(checker, call, variables)
        condition = _choice(loop.inside, loop.rest[0], call, INT)

        def run(frame: Frame) -> bool:
            inner, items = loop.enter(frame)
            return sum(require_bool(condition(inner)) for _ in items) == 1

        return Checked(BOOL, run)

    return macro


def _filter(checker: ExpressionChecker, call: Call) -> Checked:
    loop = Loop.of(checker, call, 1)
    condition = _choice(loop.inside, loop.rest[0], call, list_of(loop.kinds[0]))

    def run(frame: Frame) -> list[Any]:
        inner, items = loop.enter(frame)
        return [require_valid(value) for (value,) in items if require_bool(condition(inner))]

    return Checked(list_of(loop.kinds[0]), run)


def _selected(loop: Loop, call: Call, made: CelType) -> Callable[[Frame], Iterator[tuple[Frame, tuple[Any, ...]]]]:
    """Return the loop over the items that fulfil the conditions of a macro, whose last argument is another one."""
    conditions = [_choice(loop.inside, node, call, made) for node in loop.rest[:-1]]

    def each(frame: Frame) -> Iterator[tuple[Frame, tuple[Any, ...]]]:
        inner, items = loop.enter(frame)
        for pair in items:
            if all(require_bool(condition(inner)) for condition in conditions):
                yield inner, pair

    return each


def _map(variables: int) -> Macro:
    """Return `map`, or with two variables `transformList`."""

    def macro(checker: ExpressionChecker, call: Call) -> Checked:
        loop = Loop.of(checker, call, variables)
        made = loop.inside.check(loop.rest[-1])
        each = _selected(loop, call, list_of(made.kind))
        return Checked(list_of(made.kind), lambda frame: [made.run(inner) for inner, _ in each(frame)])

    return macro


def _transform_map(checker: ExpressionChecker, call: Call) -> Checked:
    loop = Loop.of(checker, call, 2)
    made = loop.inside.check(loop.rest[-1])
    kind = map_of(loop.kinds[0], made.kind)
    each = _selected(loop, call, kind)
    return Checked(kind, lambda frame: {key: made.run(inner) for inner, (key, _) in each(frame)})


def _transform_entries(checker: ExpressionChecker, call: Call) -> Checked:
    loop = Loop.of(checker, call, 2)
    made = loop.inside.check(loop.rest[-1])
    if made.kind.name != "map" and not made.kind.is_open:
        text = f"found no matching overload for 'cel.@mapInsert' applied to '({map_of(ANY, ANY)}, {made.kind})'"
        raise RuleSyntaxError(text, call.at)
    each = _selected(loop, call, made.kind)

    def run(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for inner, _ in each(frame):
            for key, value in made.run(inner).items():
                if key in found:
                    raise EvaluationError(f"insert failed: key {key} already exists")
                found[key] = value
        return found

    return Checked(made.kind, run)


COMPREHENSIONS: Final[Mapping[tuple[str, bool, int], Macro]] = {
    ("filter", True, 2): _filter,
    ("map", True, 2): _map(1),
    ("map", True, 3): _map(1),
    **{
        (name, True, variables + 1): macro
        for variables in (1, 2)
        for name, macro in {
            "all": _found(variables, answer=False),
            "exists": _found(variables, answer=True),
            "exists_one": _one(variables),
            "existsOne": _one(variables),
        }.items()
    },
    **{
        (name, True, arguments): macro
        for arguments in (3, 4)
        for name, macro in {
            "transformList": _map(2),
            "transformMap": _transform_map,
            "transformMapEntry": _transform_entries,
        }.items()
    },
}
"""The macros by name, whether they have a target, and their number of arguments."""
