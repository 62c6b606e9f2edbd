"""A diagram of an owner: boxes within boxes with their states and notes, and arrows between them; as Mermaid text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ocf.objects.printable import printable, visible
from ocf.ownership import values
from ocf.ownership.tree import OwnerExplanation, State, TreeNode

__all__ = ["Arrow", "Box", "Diagram", "component_identity", "diagram_of", "to_mermaid"]

_MOST_BOXES: Final = 200
_MOST_CHILDREN: Final = 50
# A Secret is used by what names it: its data flows to there.
_BACKWARDS: Final = frozenset({"uses"})
_MERMAID: Final = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\\": "#92;"}


@dataclass(frozen=True, slots=True)
class Box:
    """An object or a component in a diagram.

    Args:
        name: What it is called: `Deployment web`.
        identity: What arrows name it by, unique in the diagram.
        state: Its state; None for what is only declared.
        text: Why it is in its state; may be empty.
        notes: What else is known: its gate, its guard, what it uses.
        children: What belongs to it, in order.
        order: Its place in the order in which an operator reconciles it, from 1; 0 if that is not known.
    """

    name: str
    identity: str
    state: State | None = None
    text: str = ""
    notes: tuple[str, ...] = ()
    children: tuple[Box, ...] = ()
    order: int = 0

    @property
    def title(self) -> str:
        """Its name, after its place in the order."""
        return f"{self.order}. {self.name}" if self.order else self.name

    def walk(self) -> Iterator[Box]:
        """Yield it and all boxes in it, from top to bottom."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Arrow:
    """What flows from one box to another, or which one acts on the other.

    Args:
        source: Identity of the box where it begins.
        target: Identity of the box where it ends.
        label: A data cell, a condition, or a verb.
        is_required: Whether the target waits for it.
    """

    source: str
    target: str
    label: str
    is_required: bool = True


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes and arrows.

    Args:
        title: One sentence about the whole.
        root: The owner, with everything in it.
        arrows: Those between boxes of the diagram.
    """

    title: str
    root: Box
    arrows: tuple[Arrow, ...] = ()


def component_identity(name: str) -> str:
    """Return the identity of the box of a component."""
    return f"component {name}"


def diagram_of(found: OwnerExplanation) -> Diagram:
    """Return the diagram of an explanation.

    What is fine is one box without its parts, and of very many boxes only the first ones are in it: those that are
    not ready before the others.

    Args:
        found: The explanation. What only the operator's code knows, such as its guards and data cells, is not in it.
    """
    boxes = _Boxes()
    root = boxes.box(found.root, depth=0)
    shown = {one.identity: one.name for one in root.walk()}
    arrows: dict[Arrow, None] = {}
    notes: dict[str, list[str]] = {}
    for node in _walk(found.root):
        own = _identity(node)
        for verb, key in node.links:
            other = str(key)
            if own in shown and other in shown and own != other:
                ends = (other, own) if verb in _BACKWARDS else (own, other)
                arrows[Arrow(*ends, verb)] = None
                notes.setdefault(own, []).append(f"{verb} {shown[other]}")
    return Diagram(found.sentence, _noted(root, notes), tuple(arrows))


class _Boxes:
    """Makes boxes of nodes until there are enough."""

    def __init__(self) -> None:
        self.made = 0

    def box(self, node: TreeNode, depth: int) -> Box:
        self.made += 1
        is_whole = node.is_fine and node.key is not None and depth > 0
        children = () if is_whole else node.children
        # Objects of a component have an order, those of a workload do not.
        by_trouble = len(children) > _MOST_CHILDREN
        listed = sorted(children, key=lambda one: -one.state.trouble) if by_trouble else children
        boxes = [self.box(child, depth + 1) for child in listed[:_MOST_CHILDREN] if self.made < _MOST_BOXES]
        more = len(node.children) - len(boxes)
        notes = [f"also written by {', '.join(node.writers)}"] if node.writers else []
        notes += [f"{values.plural_count(node.warnings, 'warning')} in the last hour"] if node.warnings else []
        notes += [values.plural_count(node.size, "object")] if is_whole and node.size else []
        notes += [f"and {values.plural_count(more, 'more object')}"] if more and not is_whole else []
        text = node.text if node.state is not State.READY or node.key is None else ""
        return Box(node.name, _identity(node), node.state, text, tuple(notes), tuple(boxes))


def _identity(node: TreeNode) -> str:
    return node.name if node.key is None else str(node.key)


def _walk(node: TreeNode) -> Iterator[TreeNode]:
    yield node
    for child in node.children:
        yield from _walk(child)


def _noted(box: Box, notes: dict[str, list[str]]) -> Box:
    own = dict.fromkeys([*notes.get(box.identity, ()), *box.notes])
    return replace(box, notes=tuple(own), children=tuple(_noted(one, notes) for one in box.children))


def to_mermaid(diagram: Diagram) -> str:
    """Return a diagram as a flowchart of Mermaid, which GitHub and many other pages draw.

    Source of the escapes: the documentation of Mermaid, "Entity codes to escape characters".

    Example:
        >>> web = Box("Deployment web", "web", notes=("needs password",))
        >>> print(to_mermaid(Diagram("", Box("Shop corner", "shop", children=(web,)))))
        flowchart TB
          subgraph n0["Shop corner"]
            n1["Deployment web<br>needs password"]
          end
    """
    boxes = [*diagram.root.walk()]
    numbers = {box.identity: f"n{number}" for number, box in enumerate(boxes)}
    lines = ["flowchart TB", *_mermaid(diagram.root, numbers, 1)]
    for arrow in diagram.arrows:
        line = "-->" if arrow.is_required else "-.->"
        lines.append(f'  {numbers[arrow.source]} {line}|"{_escaped([arrow.label])}"| {numbers[arrow.target]}')
    return "\n".join(lines)


def _mermaid(box: Box, numbers: dict[str, str], depth: int) -> Iterator[str]:
    indent, number = "  " * depth, numbers[box.identity]
    state = f"{box.state}: {box.text}" if box.state is not None and box.text else str(box.state or box.text)
    label = _escaped([box.title, state, *box.notes])
    if not box.children:
        yield f'{indent}{number}["{label}"]'
        return
    yield f'{indent}subgraph {number}["{label}"]'
    for child in box.children:
        yield from _mermaid(child, numbers, depth + 1)
    yield f"{indent}end"


def _escaped(lines: Sequence[str]) -> str:
    return "<br>".join("".join(_MERMAID.get(one, one) for one in visible(printable(line))) for line in lines if line)
