"""Parser of CEL expressions.

The grammar is in `cel.lark`. Each node of the syntax tree has its position in the expression, for error messages.
"""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from ocf_server.cel.literals import LITERALS, RuleSyntaxError
from ocf_server.cel.syntax_tree import (
    Call,
    Entries,
    Entry,
    Field,
    Identifier,
    Item,
    Listing,
    Literal,
    Node,
    Selection,
    Struct,
    qualified_name,
)
from ocf_server.cel.types import RESERVED

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    _Tree: TypeAlias = Tree[Token]

__all__ = ["parse"]


_MAX_DEPTH: Final = 250
"""Maximum depth of nested expressions; the limit of a real API server."""


@lru_cache(maxsize=1024)
def parse(text: str) -> Node:
    """Parse an expression.

    That takes most of the time to compile it, and each cluster of a run of tests compiles the same ones: the trees of
    the last ones are kept.

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

    grammar = files("ocf_server.cel").joinpath("cel.lark").read_text(encoding="utf-8")
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
    return above.data in ("arguments", "entry", "field", "group", "item")


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
    # The parser of cel-go lets pairs of operators cancel each other out, too.
    if "".join(operators).count(sign) % 2 == 0:
        return _node(operand)
    return Call(f"{sign}_", None, (_node(operand),), _at(operators[0]))


def _selection(_: "_Tree", operand: "_Tree", dot: "Token", *rest: "Token") -> Node:
    return Selection(_node(operand), _name(rest[-1]), _at(dot), len(rest) > 1)


def _name(token: "Token") -> str:
    if token.type == "QUOTED":
        raise RuleSyntaxError("unsupported syntax: '`'", _at(token))
    return str(token)


def _method(_: "_Tree", target: "_Tree", __: "Token", name: "Token", arguments: "_Tree") -> Node:
    return Call(str(name), _node(target), _nodes(arguments), _start(arguments))


def _index(_: "_Tree", operand: "_Tree", bracket: "Token", *rest: Any) -> Node:
    *mark, index = rest
    return Call("_[?_]" if mark else "_[_]", None, (_node(operand), _node(index)), _at(bracket))


def _struct(_: "_Tree", operand: "_Tree", brace: "Token", *fields: "_Tree") -> Node:
    name = qualified_name(_node(operand))
    if name is None:
        raise RuleSyntaxError("Syntax error: the expression cannot be read here", _at(brace))
    return Struct(name, tuple(map(_field, fields)), _at(brace))


def _field(tree: "_Tree") -> Field:
    *marks, name, colon, value = tree.children
    return Field(_name(cast("Token", name)), _node(cast("_Tree", value)), _at(cast("Token", colon)), bool(marks))


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


def _listing(tree: "_Tree", *items: "_Tree") -> Node:
    return Listing(
        tuple(Item(_node(cast("_Tree", each.children[-1])), len(each.children) > 1) for each in items), _start(tree)
    )


def _entries(tree: "_Tree", *entries: "_Tree") -> Node:
    return Entries(tuple(map(_entry, entries)), _start(tree))


def _entry(tree: "_Tree") -> Entry:
    *marks, key, value = tree.children
    return Entry(_node(cast("_Tree", key)), _node(cast("_Tree", value)), bool(marks))


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
    "message": _struct,
    "group": _group,
    "identifier": _identifier,
    "function": _function,
    "list": _listing,
    "map": _entries,
    "literal": _literal,
}
"""Functions that convert a tree of lark to a node, by the name of the tree in the grammar."""
