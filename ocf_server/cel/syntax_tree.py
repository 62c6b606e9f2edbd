"""Syntax tree of CEL expressions; each node has its position in the expression, for error messages."""

from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = [
    "Call",
    "Entries",
    "Entry",
    "Field",
    "Identifier",
    "Item",
    "Listing",
    "Literal",
    "Node",
    "Selection",
    "Struct",
    "qualified_name",
]


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
    """A field of an operand; `optional` with a question mark, which gives an optional value."""

    operand: "Node"
    name: str
    at: int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function, an operator or a macro, with its target, if any."""

    name: str
    target: "Node | None"
    arguments: tuple["Node", ...]
    at: int


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list literal; an `optional` one is left out if it has no value."""

    node: "Node"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """A list literal."""

    items: tuple[Item, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a map literal; an `optional` one is left out if its value has no value."""

    key: "Node"
    value: "Node"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Entries:
    """A map literal."""

    entries: tuple[Entry, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object literal."""

    name: str
    value: "Node"
    at: int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Struct:
    """An object literal, `Object.metadata{name: 'x'}`."""

    name: str
    fields: tuple[Field, ...]
    at: int


Node: TypeAlias = Literal | Identifier | Selection | Call | Listing | Entries | Struct


def qualified_name(node: Node) -> str | None:
    """Return a name with its prefixes, `a.b.c`; None if the expression is not such a name."""
    if isinstance(node, Identifier):
        return node.name
    if isinstance(node, Selection) and not node.optional:
        before = qualified_name(node.operand)
        return before and f"{before}.{node.name}"
    return None
