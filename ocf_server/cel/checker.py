"""Type checker of CEL expressions, which compiles them to functions.

A real API server rejects a rule with an undeclared field, or with a comparison of a number and a string; so does the
checker, with the same texts. Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#gradual-type-checking.
Literal arguments are checked, too, before an expression is evaluated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ocf_server.cel.aggregates import list_run, map_run, struct_run
from ocf_server.cel.assignability import Bindings
from ocf_server.cel.format_function import format_problems
from ocf_server.cel.functions import FUNCTIONS, MUTATION_FUNCTIONS, pattern
from ocf_server.cel.issues import Issues, MacroError
from ocf_server.cel.literals import RuleSyntaxError
from ocf_server.cel.macros import MACROS
from ocf_server.cel.optional_values import Maybe, first_present, selected
from ocf_server.cel.overloads import Function, chosen, fitting, overload
from ocf_server.cel.patch_types import field_kind, struct_kind
from ocf_server.cel.runtime import Checked, Frame, Run, all_of, any_of, either
from ocf_server.cel.syntax_tree import (
    Call,
    Entries,
    Identifier,
    Listing,
    Literal,
    Node,
    Selection,
    Struct,
    qualified_name,
)
from ocf_server.cel.types import (
    ANY,
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    ERROR,
    INT,
    IP,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    CelType,
    list_of,
    map_of,
    optional_of,
    run_time_name,
    type_of,
    unwrapped,
)
from ocf_server.cel.values import EvaluationError, TypeName, Uint, kind_name, read_duration, read_instant, require_valid

__all__ = ["Checker"]

_CONVERSIONS: Final = frozenset({"bool", "double", "int", "uint"})
_CHECKS: Final[Mapping[tuple[str, int], Callable[[str], Any]]] = {
    ("matches", 1): pattern,
    ("duration", 0): read_duration,
    ("timestamp", 0): read_instant,
}


def _check_literals(issues: Issues, functions: Sequence[Function], node: Call, name: str) -> None:
    """Check the literal arguments of a call: regular expressions, durations, timestamps, and converted values.

    Args:
        issues: The problems of the expression, to which those of the arguments are added.
        functions: The overloads of the function that accept the types of the arguments.
        name: The name of the function, with its prefix.
    """
    if name in _CONVERSIONS and isinstance(node.arguments[0], Literal) and node.arguments[0].value is not None:
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
            # cel-go checks the pattern of the method with the types, and that of the function when it prepares the
            # program.
            if name == "matches" and not functions[0].member:
                issues.program.append(str(error))
            else:
                issues.literals.append(RuleSyntaxError(f"invalid {name} argument", given.at))


_LITERALS: Final[Mapping[type, CelType]] = {
    bool: BOOL,
    int: INT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
    Uint: UINT,
}
_TYPES: Final = {
    kind.name: kind
    for kind in (
        *(BOOL, BYTES, DOUBLE, INT, STRING, TYPE, UINT, IP, CIDR),
        *(list_of(ANY), map_of(ANY, ANY), optional_of(ANY)),
    )
} | {run_time_name(kind.name): kind for kind in (NULL, TIMESTAMP, DURATION)}
_BRANCHES: Final = ("or", "orValue")
_CONDITIONAL: Final = (overload("_?_:_: bool, A, A -> A", lambda *_: None),)


@dataclass(frozen=True, slots=True)
class Checker:
    """Type checker of expressions.

    Args:
        used: Names of the variables that the checked expressions use; the checker adds to it.
        issues: The problems; the checker adds to them.
        kinds: Types of the checked expressions, by the identity of their nodes; the checker adds to them.
        mutates: Whether the expression is a mutation, which can use object literals.
        mixed: Whether lists and maps may have items of different types, as in the arguments of `format`.
        bindings: The types of the type variables; the checker adds to them.
        literals: The items of list literals, and the keys and values of map literals; the checker adds to them.
    """

    variables: Mapping[str, CelType]
    used: set[str] = field(default_factory=set)
    local: frozenset[str] = frozenset()
    issues: Issues = field(default_factory=Issues)
    kinds: dict[int, CelType] = field(default_factory=dict)
    mutates: bool = False
    mixed: bool = False
    bindings: Bindings = field(default_factory=Bindings)
    literals: list[Sequence[tuple[Node, CelType]]] = field(default_factory=list)

    @property
    def functions(self) -> Mapping[str, Sequence[Function]]:
        """The overloads of the functions that the expression can use."""
        return MUTATION_FUNCTIONS if self.mutates else FUNCTIONS

    def within(self, name: str, kind: CelType) -> "Checker":
        """Return a checker with one more variable, for the arguments of a macro."""
        return replace(self, variables={**self.variables, name: kind}, local=self.local | {name})

    def report(self, text: str, at: int) -> None:
        """Record a type error."""
        self.issues.types.append(RuleSyntaxError(text, at))

    def accepts(self, kind: CelType, wanted: CelType) -> bool:
        """Return whether a value of a type can be used where another one is wanted."""
        return self.bindings.assign([kind], [wanted])

    def check_all(self, node: Node) -> Checked:
        """Check a whole expression and compile it; raise what `check` raises."""
        checked = self.check(node)
        for items in self.literals:
            first, *others = ((each, self.bindings.resolved(kind, final=True)) for each, kind in items)
            for each, kind in others:
                if kind != first[1]:
                    problem = f"expected type '{first[1]}' but found '{kind}'"
                    self.issues.literals.append(RuleSyntaxError(problem, each.at))
                    break
        return Checked(self.bindings.resolved(checked.kind, final=True), checked.run)

    def check(self, node: Node) -> Checked:
        """Check the types of an expression and compile it.

        Returns:
            The compiled expression, with the type of its value.

        Raises:
            MacroError: If the arguments of a macro are invalid.
            BadRequestError: If it uses a feature that the embedded cluster does not support.
        """
        try:
            checked = self._checked(node)
        except MacroError:
            raise
        except RuleSyntaxError as error:
            self.issues.types.append(error)
            checked = Checked(ERROR, lambda _: None)
        kind = self.kinds[id(node)] = self.bindings.resolved(checked.kind)
        return checked if kind is checked.kind else Checked(kind, checked.run)

    def _checked(self, node: Node) -> Checked:
        match node:
            case Literal(value):
                return Checked(_LITERALS[type(value)], lambda _: value)
            case Identifier():
                return self._identifier(node)
            case Selection():
                return self._selection(node)
            case Call():
                return self._call(node)
            case _:
                return self._aggregate(node)

    def _aggregate(self, node: Listing | Entries | Struct) -> Checked:
        match node:
            case Listing():
                return self._listing(node)
            case Entries():
                return self._entries(node)
            case Struct():
                return self._struct(node)

    def _identifier(self, node: Identifier) -> Checked:
        name = node.name
        kind = self.variables.get(name)
        if kind is None:
            if name not in _TYPES:
                raise RuleSyntaxError(f"undeclared reference to '{name}' (in container '')", node.at)
            return Checked(type_of(_TYPES[name]), lambda _: TypeName(name))
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
        if kind.is_open:
            self.accepts(ANY, kind)
            return node.name, ERROR if kind == ERROR else ANY
        if kind.name == "map":
            return node.name, kind.of[1]
        if kind.fields is None:
            if kind.is_object:
                raise RuleSyntaxError(f"unexpected failed resolution of '{kind}'", node.at)
            raise RuleSyntaxError(f"type '{kind}' does not support field selection", node.at)
        if self.mutates and struct_kind(kind.name):
            return node.name, field_kind(kind, node.name) or ANY
        found = kind.fields.get(node.name)
        if found is None:
            raise RuleSyntaxError(f"undefined field '{node.name}'", node.at)
        return found

    def _selection(self, node: Selection) -> Checked:
        qualified = qualified_name(node)
        if qualified is not None and (qualified in self.variables or qualified in _TYPES):
            return self._identifier(Identifier(qualified, node.at))
        operand = self.check(node.operand)
        target, is_optional = unwrapped(operand.kind)
        name, kind = self.field(target, node)
        gives_optional = node.optional or is_optional

        def run(frame: Frame) -> Any:
            value = operand.run(frame)
            frame.spend()
            if gives_optional or isinstance(value, Maybe):
                return selected(value, name)
            if not isinstance(value, dict) or name not in value:
                raise EvaluationError(f"no such key: {node.name}")
            return require_valid(value[name])

        return Checked(optional_of(kind) if gives_optional else kind, run)

    def _listing(self, node: Listing) -> Checked:
        items = [(self._part(item.node, optional=item.optional), item.optional) for item in node.items]
        kind = self._common([item.kind for item, _ in items], [item.node for item in node.items])
        return Checked(list_of(kind), list_run([(item.run, optional) for item, optional in items]))

    def _entries(self, node: Entries) -> Checked:
        keys = [self.check(entry.key) for entry in node.entries]
        values = [self._part(entry.value, optional=entry.optional) for entry in node.entries]
        kinds = (
            self._common([key.kind for key in keys], [entry.key for entry in node.entries]),
            self._common([value.kind for value in values], [entry.value for entry in node.entries]),
        )
        parts = zip(keys, values, node.entries, strict=True)
        return Checked(map_of(*kinds), map_run([(key.run, value.run, entry.optional) for key, value, entry in parts]))

    def _struct(self, node: Struct) -> Checked:
        kind = struct_kind(node.name) if self.mutates else None
        if kind is None:
            return self._not_a_struct(node)
        fields = [(each.name, self._part(each.value, optional=each.optional), each.optional) for each in node.fields]
        for (name, checked, _), each in zip(fields, node.fields, strict=True):
            wanted = field_kind(kind, name)
            if wanted is None or not self.accepts(wanted, checked.kind):
                shown = f"'{wanted or ''}' but provided type is '{checked.kind}'"
                self.report(f"expected type of field '{name}' is {shown}", each.at)
        return Checked(
            kind, struct_run(kind.name, [(name, checked.run, optional) for name, checked, optional in fields])
        )

    def _not_a_struct(self, node: Struct) -> Checked:
        variable = self.variables.get(node.name)
        if variable is None and node.name not in _TYPES:
            raise RuleSyntaxError(f"undeclared reference to '{node.name}' (in container '')", node.at)
        self.report(f"'{variable}' is not a type" if variable else f"'{node.name}' is not a message type", node.at)
        for each in node.fields:
            self.check(each.value)
            problem = f"unexpected failed resolution of '{node.name}'" if variable else f"undefined field '{each.name}'"
            self.report(problem, each.at)
        return Checked(ERROR, lambda _: None)

    def _part(self, node: Node, *, optional: bool) -> Checked:
        """Check a part of a literal; the type of an optional one is that of its value."""
        checked = self.check(node)
        if not optional:
            return checked
        kind, is_optional = unwrapped(checked.kind)
        if not is_optional and not kind.is_open:
            self.report(f"expected type '{optional_of(kind)}' but found '{kind}'", node.at)
        return Checked(kind, checked.run)

    def _common(self, kinds: Sequence[CelType], nodes: Sequence[Node]) -> CelType:
        """Return the common type of the items of a list literal, or of the keys or values of a map literal."""
        if not kinds:
            return self.bindings.fresh()
        if not self.mixed:
            self.literals.append(list(zip(nodes, kinds, strict=True)))
        common = kinds[0]
        for kind in kinds[1:]:
            common = self.bindings.joined(common, kind) or ANY
        return common

    def _call(self, node: Call) -> Checked:
        if macro := MACROS.get((node.name, node.target is not None, len(node.arguments))):
            return macro(self, node)
        name = self._name(node)
        nodes = node.arguments if node.target is None or name != node.name else (node.target, *node.arguments)
        if name == "type" and len(nodes) == 1 and node.target is None:
            return self._type(nodes[0])
        # Its arguments are a list of anything.
        inside = replace(self, mixed=True) if name == "format" else self
        checked = [inside.check(each) for each in nodes]
        return self._special(node, name, checked) or self._function(node, name, checked)

    def _name(self, node: Call) -> str:
        """Return the name of a function, with its prefix if that is a part of the name (`sets.contains`)."""
        if isinstance(node.target, Identifier | Selection):
            prefix = qualified_name(node.target)
            whole = f"{prefix}.{node.name}"
            if prefix and prefix.partition(".")[0] not in self.variables and whole in self.functions:
                return whole
        return node.name

    def _type(self, node: Node) -> Checked:
        checked = self.check(node)
        return Checked(type_of(checked.kind), lambda frame: TypeName(run_time_name(kind_name(checked.run(frame)))))

    def _kind_of(self, node: Node) -> CelType:
        """Return what is known of the type of an expression that was checked."""
        return self.bindings.resolved(self.kinds[id(node)])

    def _special(self, node: Call, name: str, checked: list[Checked]) -> Checked | None:
        """Check the operators that do not evaluate all operands; return None for any other call."""
        runs = [each.run for each in checked]
        kinds = [each.kind for each in checked]
        if name in ("_&&_", "_||_"):
            wrong = [index for index, kind in enumerate(kinds) if not self.accepts(kind, BOOL)]
            for index in wrong:
                self.report(f"expected type 'bool' but found '{kinds[index]}'", node.arguments[index].at)
            return Checked(ERROR if wrong else BOOL, all_of(runs) if name == "_&&_" else any_of(runs))
        if name == "_?_:_":
            fits, kind = fitting(_CONDITIONAL, kinds, self.bindings)
            return Checked(kind, either(*runs)) if fits else None
        return None

    def _function(self, node: Call, name: str, checked: list[Checked]) -> Checked:
        known = self.functions.get(name)
        kinds = [each.kind for each in checked]
        if known is None and name not in ("_?_:_", "type"):
            raise RuleSyntaxError(f"undeclared reference to '{name}' (in container '')", node.at)
        member = node.target is not None and name == node.name
        found, kind = fitting([each for each in known or () if each.member is member], kinds, self.bindings)
        if not found:
            kinds = [self.bindings.resolved(kind, final=True) for kind in kinds]
            raise RuleSyntaxError(
                f"found no matching overload for '{name}' applied to '{_applied(kinds, member)}'", node.at
            )
        _check_literals(self.issues, found, node, name)
        if name == "format" and isinstance(node.target, Literal) and isinstance(node.arguments[0], Listing):
            items = [item.node for item in node.arguments[0].items]
            text = str(node.target.value)
            self.issues.literals.extend(format_problems(text, items, self._kind_of, node.at))
        runs = [each.run for each in checked]
        if name in _BRANCHES and member:
            return Checked(kind, first_present(*runs, unwrap=name == "orValue"))
        return Checked(kind, _called(found, runs, known=not any(each.is_open for each in kinds)))


def _applied(kinds: Sequence[CelType], member: bool) -> str:  # noqa: FBT001
    first, rest = (f"{kinds[0]}.", kinds[1:]) if member else ("", kinds)
    return f"{first}({', '.join(map(str, rest))})"


def _called(functions: list[Function], arguments: list[Run], *, known: bool) -> Run:
    # With known types there is nothing to choose, except for a null, which types do not show.
    only = functions[0].run if known and len(functions) == 1 else None

    def run(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        frame.spend()
        for value in values:
            frame.measured(value)
        fits = only is not None and all(value is not None for value in values)
        return only(*values) if only and fits else chosen(functions, values).run(*values)

    return run
