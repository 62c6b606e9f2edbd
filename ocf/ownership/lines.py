"""An explanation as lines of text, and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from ocf.objects.timestamps import format_time
from ocf.ownership import values
from ocf.ownership.snapshot import FORBIDDEN, UnreadKind
from ocf.ownership.tree import OwnerExplanation, State, TreeNode

__all__ = ["by_trouble", "explanation_json", "explanation_lines", "trouble_lines"]

_MOST_UNREAD: Final = 8


def explanation_lines(found: OwnerExplanation, now: datetime) -> Iterator[tuple[int, str]]:
    """Yield the lines of an explanation with their indentation: the sentence, the remarks and the tree.

    What is ready is one line, with the number of objects that belong to it.
    """
    yield 0, found.sentence
    yield from ((0, remark) for remark in found.remarks)
    yield 0, ""
    yield from _tree(found.root, now, 0)
    if found.unread:
        yield 0, ""
        yield 0, "Not read, so that causes may be missing:"
        yield from ((1, f"{each}: {each.why}") for each in found.unread[:_MOST_UNREAD])
        more = len(found.unread) - _MOST_UNREAD
        if more > 0:
            yield 1, f"and {values.plural_count(more, 'more kind')}"
        yield from ((0, f"The role that allows it is printed by {each}") for each in _role_commands(found.unread))


def _role_commands(unread: Sequence[UnreadKind]) -> Iterator[str]:
    """Yield for each namespace the command that prints the role with the missing rights."""
    forbidden = [each for each in unread if FORBIDDEN in each.why]
    for namespace in dict.fromkeys(each.namespace for each in forbidden):
        kinds = ",".join(dict.fromkeys(each.resource for each in forbidden if each.namespace == namespace))
        role = f"role ocf-explain --namespace={namespace}" if namespace else "clusterrole ocf-explain"
        yield f"kubectl create {role} --verb=get,list --resource={kinds} --dry-run=client --output=yaml"


def _tree(node: TreeNode, now: datetime, depth: int) -> Iterator[tuple[int, str]]:
    since = f" for {values.age(node.since, now)}" if node.since is not None else ""
    # Since when it is wrong stands in the text of a cause.
    since = "" if since and since in node.text else since
    text = f"{node.name}: {node.state}{since}"
    if node.text and node.state is not State.READY:
        text += f"; {node.text}"
    if node.warnings:
        text += f"; {values.plural_count(node.warnings, 'warning')} in the last hour"
    if node.writers:
        text += f"; also written by {', '.join(node.writers)}"
    if node.is_fine and node.children and depth:
        yield depth, f"{text}; {values.plural_count(node.size, 'object')}"
        return
    yield depth, text
    for child in node.children:
        yield from _tree(child, now, depth + 1)


def trouble_lines(found: Sequence[OwnerExplanation]) -> Iterator[str]:
    """Yield a line for each of several owners, those with the most trouble first."""
    ready = sum(one.root.state is State.READY for one in found)
    yield f"{ready} of {values.plural_count(len(found), 'owner')} ready"
    for one in by_trouble(found):
        yield f"{one.root.state}: {one.sentence}"


def by_trouble(found: Sequence[OwnerExplanation]) -> list[OwnerExplanation]:
    """Return explanations in order: those with the most trouble first, then by name."""
    return sorted(found, key=lambda one: (-one.root.state.trouble, one.root.name))


def explanation_json(found: OwnerExplanation) -> dict[str, Any]:
    """Return an explanation as JSON values."""
    return {
        "sentence": found.sentence,
        "cause": [{"text": each.text, "object": None if each.key is None else str(each.key)} for each in found.cause],
        "remarks": list(found.remarks),
        "tree": _json(found.root),
        "unread": [
            {"resource": each.resource, "namespace": each.namespace, "why": values.one_line(each.why)}
            for each in found.unread
        ],
    }


def _json(node: TreeNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "object": None if node.key is None else str(node.key),
        "state": str(node.state),
        "since": None if node.since is None else format_time(node.since),
        "text": node.text,
        "writers": list(node.writers),
        "warnings": node.warnings,
        "links": [{"verb": each.verb, "object": str(each.key)} for each in node.links],
        "children": [_json(each) for each in node.children],
    }
