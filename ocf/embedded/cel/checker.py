"""Type checker of CEL expressions, which compiles them to functions.

A real API server rejects a rule with an undeclared field, or with a comparison of a number and a string; so does the
checker, with the same texts. Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#gradual-type-checking.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ocf.embedded.cel.format_function import checked_format, formatted
from ocf.embedded.cel.functions import FUNCTIONS, pattern
from ocf.embedded.cel.literals import NO_POSITION, RuleSyntaxError
from ocf.embedded.cel.macros import MACROS
from ocf.embedded.cel.operators import require_valid
from ocf.embedded.cel.overloads import Function, chosen, fitting, joined
from ocf.embedded.cel.parser import Call, Entries, Identifier, Listing, Literal, Node, Selection
from ocf.embedded.cel.runtime import Checked, Frame, Run, all_of, any_of, either
from ocf.embedded.cel.types import ANY, BOOL, BYTES, DOUBLE, INT, NULL, STRING, TYPE, CelType, list_of, map_of
from ocf.embedded.cel.unsupported import UNSUPPORTED_FUNCTIONS, unsupported_feature
from ocf.embedded.cel.values import EvaluationError, kind_name, read_duration, read_instant

__all__ = ["Checker"]

_LITERALS: Final[Mapping[type, CelType]] = {
    bool: BOOL,
    int: INT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
_TYPES: Final = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type"})
_CONVERSIONS: Final = frozenset({"bool", "double", "int"})
_TWO_VARIABLES: Final = frozenset({"all", "exists", "exists_one", "existsOne"})
_LITERAL_CHECKS: Final[Mapping[tuple[str, int], Callable[[str], Any]]] = {
    ("matches", 1): pattern,
    ("duration", 0): read_duration,
    ("timestamp", 0): read_instant,
}


@dataclass(frozen=True, slots=True)
class _TypeName:
    """A type as a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Checker:
    """Type checker of expressions.

    Args:
        variables: Types of the variables, by name.
        used: Names of the variables that the checked expressions use; the checker adds to it.
        local: Names of the variables that macros declare.
    """

    variables: Mapping[str, CelType]
    used: set[str] = field(default_factory=set)
    local: frozenset[str] = frozenset()

    def within(self, name: str, kind: CelType) -> "Checker":
        """Return a checker with one more variable, for the arguments of a macro."""
        return replace(self, variables={**self.variables, name: kind}, local=self.local | {name})

    def check(self, node: Node) -> Checked:
        """Check the types of an expression and compile it.

        Args:
            node: The root of its syntax tree.

        Returns:
            The compiled expression, with the type of its value.

        Raises:
            RuleSyntaxError: If its types do not match.
            BadRequestError: If it uses a feature that the embedded cluster does not support.
        """
        match node:
            case Literal(value):
                return Checked(_LITERALS[type(value)], lambda _: value)
            case Identifier():
                return self._identifier(node)
            case Selection():
                return self._selection(node)
            case Listing():
                return self._listing(node)
            case Entries():
                return self._entries(node)
            case Call():
                return self._call(node)

    def _identifier(self, node: Identifier) -> Checked:
        name = node.name
        kind = self.variables.get(name)
        if kind is None:
            if name not in _TYPES:
                raise RuleSyntaxError(f"undeclared reference to '{name}' (in container '')", node.at)
            return Checked(TYPE, lambda _: _TypeName(name))
        if name not in self.local:
            self.used.add(name)

        def run(frame: Frame) -> Any:
            frame.spend()
            return require_valid(frame.values[name])

        return Checked(kind, run)

    def field(self, kind: CelType, node: Selection) -> tuple[str, CelType]:
        """Return a field of a type: its name in manifests, and its type.

        Raises:
            RuleSyntaxError: If the type does not have the field.
        """
        if kind == ANY:
            return node.name, ANY
        if kind.name == "map":
            return node.name, kind.of[1]
        if kind.fields is None:
            raise RuleSyntaxError(f"type '{kind}' does not support field selection", node.at)
        found = kind.fields.get(node.name)
        if found is None:
            raise RuleSyntaxError(f"undefined field '{node.name}'", node.at)
        return found

    def _selection(self, node: Selection) -> Checked:
        qualified = _qualified(node)
        if qualified in self.variables and qualified is not None:
            return self._identifier(Identifier(qualified, node.at))
        if qualified in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            name = node.name.lower()
            return Checked(TYPE, lambda _: _TypeName(name))
        operand = self.check(node.operand)
        name, kind = self.field(operand.kind, node)

        def run(frame: Frame) -> Any:
            value = operand.run(frame)
            frame.spend()
            if not isinstance(value, dict) or name not in value:
                raise EvaluationError(f"no such key: {node.name}")
            return require_valid(value[name])

        return Checked(kind, run)

    def _listing(self, node: Listing) -> Checked:
        items = [self.check(item) for item in node.items]
        runs = [item.run for item in items]

        def run(frame: Frame) -> list[Any]:
            frame.spend(len(runs) + 1)
            return [item(frame) for item in runs]

        return Checked(list_of(_common([item.kind for item in items], node.items)), run)

    def _entries(self, node: Entries) -> Checked:
        keys = [self.check(key) for key, _ in node.entries]
        values = [self.check(value) for _, value in node.entries]
        key_kind = _common([key.kind for key in keys], [key for key, _ in node.entries])
        value_kind = _common([value.kind for value in values], [value for _, value in node.entries])
        pairs = [(key.run, value.run) for key, value in zip(keys, values, strict=True)]

        def run(frame: Frame) -> dict[Any, Any]:
            frame.spend(len(pairs) + 1)
            return {_key(key(frame)): value(frame) for key, value in pairs}

        return Checked(map_of(key_kind, value_kind), run)

    def _call(self, node: Call) -> Checked:
        if macro := MACROS.get((node.name, node.target is not None, len(node.arguments))):
            return macro(self, node)
        name = self._name(node)
        has_two_variables = name in _TWO_VARIABLES and node.target is not None and len(node.arguments) == 3  # noqa: PLR2004
        if name in UNSUPPORTED_FUNCTIONS or has_two_variables:
            raise unsupported_feature(f"{name}()")
        nodes = node.arguments if node.target is None or name != node.name else (node.target, *node.arguments)
        if name == "type" and len(nodes) == 1 and node.target is None:
            return self._type(nodes[0])
        if name == "format" and node.target is not None:
            return self._format(node, node.target)
        checked = [self.check(each) for each in nodes]
        special = self._special(node, name, checked)
        return special or self._function(node, name, checked)

    def _name(self, node: Call) -> str:
        """Return the name of a function, with its prefix if that is a part of the name (`sets.contains`)."""
        if isinstance(node.target, Identifier | Selection):
            prefix = _qualified(node.target)
            whole = f"{prefix}.{node.name}"
            if (
                prefix
                and prefix.partition(".")[0] not in self.variables
                and (whole in FUNCTIONS or whole in UNSUPPORTED_FUNCTIONS)
            ):
                return whole
        return node.name

    def _type(self, node: Node) -> Checked:
        checked = self.check(node)
        return Checked(TYPE, lambda frame: _TypeName(kind_name(checked.run(frame))))

    def _special(self, node: Call, name: str, checked: list[Checked]) -> Checked | None:
        """Check the operators that do not evaluate all operands; return None for any other call."""
        runs = [each.run for each in checked]
        kinds = [each.kind for each in checked]
        if name in ("_&&_", "_||_"):
            for found, part in zip(kinds, node.arguments, strict=True):
                if found not in (BOOL, ANY):
                    raise RuleSyntaxError(f"expected type 'bool' but found '{found}'", part.at)
            return Checked(BOOL, all_of(runs) if name == "_&&_" else any_of(runs))
        if name == "_?_:_" and kinds[0] in (BOOL, ANY) and (kind := joined(*kinds[1:])):
            return Checked(kind, either(*runs))
        return None

    def _format(self, node: Call, target: Node) -> Checked:
        text = target.value if isinstance(target, Literal) else None
        given = node.arguments[0] if len(node.arguments) == 1 else None
        items = [self.check(item) for item in given.items] if isinstance(given, Listing) else None
        checked_format(text, None if items is None else [item.kind for item in items])
        return Checked(STRING, lambda frame: formatted(str(text), [item.run(frame) for item in items or ()]))

    def _function(self, node: Call, name: str, checked: list[Checked]) -> Checked:
        known = FUNCTIONS.get(name)
        kinds = [each.kind for each in checked]
        if known is None and name not in ("_?_:_", "format", "type"):
            raise RuleSyntaxError(f"undeclared reference to '{name}' (in container '')", node.at)
        member = node.target is not None and name == node.name
        found, kind = fitting([each for each in known or () if each.member is member], kinds)
        if not found:
            raise RuleSyntaxError(
                f"found no matching overload for '{name}' applied to '{_applied(kinds, member)}'", node.at
            )
        _check_literals(name, node, member=member)
        if name in _CONVERSIONS and isinstance(node.arguments[0], Literal):
            _convert(found, node.arguments[0])
        return Checked(kind, _called(found, [each.run for each in checked], known=ANY not in kinds))


def _key(value: Any) -> Any:
    if not isinstance(value, str | bool | int):
        raise EvaluationError("unsupported key type")
    return value


def _qualified(node: Node) -> str | None:
    if isinstance(node, Identifier):
        return node.name
    if isinstance(node, Selection):
        before = _qualified(node.operand)
        return before and f"{before}.{node.name}"
    return None


def _applied(kinds: Sequence[CelType], member: bool) -> str:  # noqa: FBT001
    first, rest = (f"{kinds[0]}.", kinds[1:]) if member else ("", kinds)
    return f"{first}({', '.join(map(str, rest))})"


def _common(kinds: Sequence[CelType], nodes: Sequence[Node]) -> CelType:
    """Return the common type of the items of a list literal, or of the keys or values of a map literal."""
    if not kinds:
        return ANY
    kind = kinds[0]
    for other, node in zip(kinds[1:], nodes[1:], strict=True):
        both = joined(kind, other)
        if both is None:
            raise RuleSyntaxError(f"expected type '{kind}' but found '{other}'", node.at)
        kind = both
    return kind


def _check_literals(name: str, node: Call, *, member: bool) -> None:
    """Raise RuleSyntaxError for an invalid literal argument: a regular expression, a duration or a timestamp."""
    for index, given in enumerate(node.arguments, start=member):
        check = _LITERAL_CHECKS.get((name, index))
        if check is None or not isinstance(given, Literal) or not isinstance(given.value, str):
            continue
        try:
            check(given.value)
        except (ValueError, OverflowError, EvaluationError):
            raise RuleSyntaxError(f"invalid {name} argument", given.at) from None


def _convert(functions: list[Function], given: Literal) -> None:
    """Raise RuleSyntaxError for a literal that cannot be converted; a real API server finds this at compile time."""
    try:
        functions[0].run(given.value)
    except EvaluationError as error:
        raise RuleSyntaxError(str(error), NO_POSITION) from None


def _called(functions: list[Function], arguments: list[Run], *, known: bool) -> Run:
    only = functions[0].run if known and len(functions) == 1 else None

    def run(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        frame.spend()
        for value in values:
            frame.measured(value)
        fits = only is not None and all(value is not None for value in values)
        return only(*values) if only and fits else chosen(functions, values).run(*values)

    return run
