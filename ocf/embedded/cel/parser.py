"""The syntax of rules: an expression as a small tree.

The grammar is that of cel-python; here its parse tree loses the levels that only say what binds tighter, and each node
learns where it is, for the messages of a server.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ocf.embedded.cel.literals import LITERALS, RuleSyntaxError

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    _Tree: TypeAlias = Tree[Token]

__all__ = ["Call", "Entries", "Identifier", "Listing", "Literal", "Node", "Selection", "parse"]


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is written out."""

    value: Any
    at: int


@dataclass(frozen=True, slots=True)
class Identifier:
    """The name of a variable or a type."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Selection:
    """A field of something."""

    operand: "Node"
    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function, an operator or a macro, with what it is called on."""

    name: str
    target: "Node | None"
    arguments: tuple["Node", ...]
    at: int


@dataclass(frozen=True, slots=True)
class Listing:
    """A list that is written out."""

    items: tuple["Node", ...]
    at: int


@dataclass(frozen=True, slots=True)
class Entries:
    """A map that is written out."""

    entries: tuple[tuple["Node", "Node"], ...]
    at: int


Node: TypeAlias = Literal | Identifier | Selection | Call | Listing | Entries


def parse(text: str) -> Node:
    """Read an expression.

    Args:
        text: The expression.

    Returns:
        What it says.

    Raises:
        RuleSyntaxError: If it is none.
        ImportError: If cel-python is not installed.
    """
    grammar = _grammar()
    from lark.exceptions import UnexpectedInput

    try:
        tree = _parser(grammar).parse(text)
    except UnexpectedInput as error:
        at: Any = error.pos_in_stream  # none, and no line, at the end
        place = len(text) if at is None or error.line < 1 else at
        raise RuleSyntaxError("Syntax error: the expression cannot be read here", place) from None
    try:
        return _Reader(text).read(tree)
    except RecursionError:
        raise RuleSyntaxError("expression recursion limit exceeded: 250", 0) from None


def _grammar() -> Path:
    """Return where cel-python has its grammar; the rest of it, which is slow to import, is not needed."""
    found = find_spec("celpy")
    if found is None or not found.submodule_search_locations:
        raise ImportError("cel-python is not installed")
    return Path(found.submodule_search_locations[0]) / "cel.lark"


@cache
def _parser(grammar: Path) -> "Lark":
    from lark import Lark

    return Lark(
        grammar.read_text(encoding="utf-8"),
        parser="lalr",
        start="expr",
        g_regex_flags=re.MULTILINE,
        lexer_callbacks={"IDENT": _named},
        propagate_positions=True,
        maybe_placeholders=False,
        priority="invert",
    )


def _named(token: "Token") -> "Token":
    """Tell the two truth values from names; the grammar leaves that to whoever uses it."""
    return token.update(type="BOOL_LIT") if token in ("true", "false") else token


_OPERATORS: Final = {
    "relation_lt": "_<_",
    "relation_le": "_<=_",
    "relation_gt": "_>_",
    "relation_ge": "_>=_",
    "relation_eq": "_==_",
    "relation_ne": "_!=_",
    "relation_in": "@in",
    "addition_add": "_+_",
    "addition_sub": "_-_",
    "multiplication_mul": "_*_",
    "multiplication_div": "_/_",
    "multiplication_mod": "_%_",
}
_WIDTHS: Final = {"_<=_": 2, "_>=_": 2, "_==_": 2, "_!=_": 2, "@in": 2}
_SPACE: Final = re.compile(r"(?:[\t\n\f\r ]|//.*)*")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns a parse tree into nodes.

    Args:
        text: The expression.
    """

    text: str

    def read(self, tree: "_Tree") -> Node:
        """Return the node of a tree."""
        read: Callable[[Any], Node] | None = getattr(self, f"_{tree.data}", None)
        if read is not None:
            return read(tree)
        first, *rest = (each for each in tree.children if not isinstance(each, str))
        if not rest:
            return self.read(first)
        return self._binary(first, rest[0])

    def _after(self, end: int) -> int:
        """Return where the next word begins."""
        found = _SPACE.match(self.text, end)
        return found.end() if found else end

    def _binary(self, operator: "_Tree", right: "_Tree") -> Node:
        name = _OPERATORS[str(operator.data)]
        left: Any = operator.children[0]
        at = (operator.meta.end_pos or 0) - _WIDTHS.get(name, 1)
        return Call(name, None, (self.read(left), self.read(right)), at)

    def _expr(self, tree: "_Tree") -> Node:
        trees: list[Any] = tree.children
        if len(trees) == 1:
            return self.read(trees[0])
        at = self._after(trees[0].meta.end_pos)
        return Call("_?_:_", None, tuple(map(self.read, trees)), at)

    def _conditionalor(self, tree: "_Tree") -> Node:
        return self._logical(tree, "_||_")

    def _conditionaland(self, tree: "_Tree") -> Node:
        return self._logical(tree, "_&&_")

    def _logical(self, tree: "_Tree", name: str) -> Node:
        trees: list[Any] = tree.children
        if len(trees) == 1:
            return self.read(trees[0])
        at = self._after(trees[0].meta.end_pos)
        return Call(name, None, tuple(map(self.read, trees)), at)

    def _unary(self, tree: "_Tree") -> Node:
        trees: list[Any] = tree.children
        if len(trees) == 1:
            return self.read(trees[0])
        inner = trees[1].children
        if inner[0].data == trees[0].data:
            # Two of a kind are none, whatever stands after them.
            return self.read(inner[1])
        name = "!_" if trees[0].data == "unary_not" else "-_"
        return Call(name, None, (self.read(trees[1]),), tree.meta.start_pos or 0)

    def _member_dot(self, tree: "_Tree") -> Node:
        operand: Any = tree.children[0]
        return Selection(self.read(operand), str(tree.children[1]), self._after(operand.meta.end_pos))

    def _member_dot_arg(self, tree: "_Tree") -> Node:
        trees: list[Any] = tree.children
        at = self._after(trees[1].end_pos)
        return Call(str(trees[1]), self.read(trees[0]), self._arguments(trees[2:]), at)

    def _member_index(self, tree: "_Tree") -> Node:
        trees: list[Any] = tree.children
        at = self._after(trees[0].meta.end_pos)
        return Call("_[_]", None, (self.read(trees[0]), self.read(trees[1])), at)

    def _member_object(self, tree: "_Tree") -> Node:
        raise RuleSyntaxError("undeclared reference: a rule cannot make messages", tree.meta.start_pos or 0)

    def _ident(self, tree: "_Tree") -> Node:
        return Identifier(str(tree.children[0]), tree.meta.start_pos or 0)

    _dot_ident = _ident

    def _ident_arg(self, tree: "_Tree") -> Node:
        trees: list[Any] = tree.children
        return Call(str(trees[0]), None, self._arguments(trees[1:]), self._after(trees[0].end_pos))

    _dot_ident_arg = _ident_arg

    def _list_lit(self, tree: "_Tree") -> Node:
        return Listing(self._arguments(tree.children), tree.meta.start_pos or 0)

    def _map_lit(self, tree: "_Tree") -> Node:
        below: list[Any] = tree.children
        nodes = iter([self.read(each) for each in below[0].children] if below else [])
        return Entries(tuple(zip(nodes, nodes, strict=True)), tree.meta.start_pos or 0)

    def _arguments(self, trees: list[Any]) -> tuple[Node, ...]:
        return tuple(self.read(each) for each in trees[0].children) if trees else ()

    def _literal(self, tree: "_Tree") -> Node:
        token: Any = tree.children[0]
        at = tree.meta.start_pos or 0
        return Literal(LITERALS[token.type](str(token), at), at)
