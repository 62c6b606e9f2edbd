"""Parser of CEL expressions.

The grammar is in `cel.lark`. Each node of the syntax tree has its position in the expression, for error messages.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ocf.embedded.cel.literals import LITERALS, RuleSyntaxError
from ocf.embedded.cel.types import RESERVED

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    _Tree: TypeAlias = Tree[Token]

__all__ = ["Call", "Entries", "Identifier", "Listing", "Literal", "Node", "Selection", "parse"]


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal."""

    value: Any
    at: int


@dataclass(frozen=True, slots=True)
class Identifier:
    """The name of a variable or a type."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Selection:
    """A field of an operand."""

    operand: "Node"
    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function, an operator or a macro, with its target, if any."""

    name: str
    target: "Node | None"
    arguments: tuple["Node", ...]
    at: int


@dataclass(frozen=True, slots=True)
class Listing:
    """A list literal."""

    items: tuple["Node", ...]
    at: int


@dataclass(frozen=True, slots=True)
class Entries:
    """A map literal."""

    entries: tuple[tuple["Node", "Node"], ...]
    at: int


Node: TypeAlias = Literal | Identifier | Selection | Call | Listing | Entries


_MAX_DEPTH: Final = 250
"""Maximum depth of nested expressions; the limit of a real API server."""


def parse(text: str) -> Node:
    """Parse an expression.

    Args:
        text: The expression.

    Returns:
        Its root.

    Raises:
        RuleSyntaxError: If it does not follow the grammar.
        RecursionError: If the expressions are nested too deeply.
        ImportError: If lark is not installed.
    """
    from lark import UnexpectedInput, UnexpectedToken

    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
        at: Any = len(text) if at_end else error.pos_in_stream
        raise RuleSyntaxError("Syntax error: the expression cannot be read here", at) from None
    _check_depth(tree)
    return _node(tree)


@cache
def _parser() -> "Lark":
    from lark import Lark

    grammar = files("ocf.embedded.cel").joinpath("cel.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", start="expression", propagate_positions=True, maybe_placeholders=False)


def _check_depth(tree: "_Tree") -> None:
    left: list[tuple[Any, int]] = [(tree, 1)]
    while left:
        node, depth = left.pop()
        if depth > _MAX_DEPTH:
            raise RecursionError
        left += [(below, depth + _is_nested(below, node)) for below in node.children if not isinstance(below, str)]


def _is_nested(tree: "_Tree", above: "_Tree") -> bool:
    """Return whether a tree is a nested expression, not only an operand of the expression above."""
    if above.data in ("conditional", "index"):
        return tree is above.children[-1]
    return above.data in ("arguments", "field", "group", "list", "map")


def _node(tree: "_Tree") -> Node:
    return _NODES[tree.data](tree, *tree.children)


def _start(tree: "_Tree") -> int:
    return tree.meta.start_pos or 0


def _at(token: "Token") -> int:
    return token.start_pos or 0


def _nodes(tree: "_Tree") -> tuple[Node, ...]:
    below: list[Any] = tree.children
    return tuple(map(_node, below))


_NAMES: Final = {"in": "@in"}


def _conditional(_: "_Tree", condition: "_Tree", mark: "Token", yes: "_Tree", no: "_Tree") -> Node:
    return Call("_?_:_", None, (_node(condition), _node(yes), _node(no)), _at(mark))


def _binary(_: "_Tree", left: "_Tree", operator: "Token", right: "_Tree") -> Node:
    name = _NAMES.get(str(operator), f"_{operator}_")
    return Call(name, None, (_node(left), _node(right)), _at(operator))


def _unary(_: "_Tree", *parts: Any) -> Node:
    *operators, operand = parts
    sign = operators[0][0]
    if "".join(operators).count(sign) % 2 == 0:
        return _node(operand)
    return Call(f"{sign}_", None, (_node(operand),), _at(operators[0]))


def _selection(_: "_Tree", operand: "_Tree", dot: "Token", name: "Token") -> Node:
    return Selection(_node(operand), str(name), _at(dot))


def _method(_: "_Tree", target: "_Tree", __: "Token", name: "Token", arguments: "_Tree") -> Node:
    return Call(str(name), _node(target), _nodes(arguments), _start(arguments))


def _index(_: "_Tree", operand: "_Tree", bracket: "Token", index: "_Tree") -> Node:
    return Call("_[_]", None, (_node(operand), _node(index)), _at(bracket))


def _message(tree: "_Tree", *_: "_Tree") -> Node:
    raise RuleSyntaxError("undeclared reference: a rule cannot make messages", _start(tree))


def _group(_: "_Tree", inner: "_Tree") -> Node:
    return _node(inner)


def _identifier(tree: "_Tree", *tokens: "Token") -> Node:
    at = _start(tree)
    return Identifier(_unreserved(tokens[-1], at), at)


def _function(tree: "_Tree", *parts: Any) -> Node:
    *_, name, arguments = parts
    return Call(_unreserved(name, _start(tree)), None, _nodes(arguments), _start(arguments))


def _unreserved(name: "Token", at: int) -> str:
    if name in RESERVED:
        raise RuleSyntaxError(f"reserved identifier: {name}", at)
    return str(name)


def _listing(tree: "_Tree", *_: "_Tree") -> Node:
    return Listing(_nodes(tree), _start(tree))


def _entries(tree: "_Tree", *_: "_Tree") -> Node:
    nodes = iter(_nodes(tree))
    return Entries(tuple(zip(nodes, nodes, strict=True)), _start(tree))


def _literal(_: "_Tree", token: "Token") -> Node:
    at = _at(token)
    return Literal(LITERALS[token.type](str(token), at), at)


_NODES: Final[Mapping[str, Callable[..., Node]]] = {
    "conditional": _conditional,
    "binary": _binary,
    "unary": _unary,
    "selection": _selection,
    "method": _method,
    "index": _index,
    "message": _message,
    "group": _group,
    "identifier": _identifier,
    "function": _function,
    "list": _listing,
    "map": _entries,
    "literal": _literal,
}
"""Functions that convert a tree of lark to a node, by the name of the tree in the grammar."""
