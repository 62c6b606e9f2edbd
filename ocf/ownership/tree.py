"""The result of an explanation: a tree of objects with their states, and the chain of causes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from ocf.objects import ObjectKey
from ocf.ownership.snapshot import UnreadKind

__all__ = ["CauseStep", "Link", "OwnerExplanation", "State", "TreeNode"]


class State(StrEnum):
    """State of an object or a component.

    Example:
        >>> max(State.READY, State.FAILING, key=lambda state: state.trouble)
        <State.FAILING: 'failing'>
    """

    READY = "ready"
    SUPERSEDED = "superseded"
    UNKNOWN = "unknown"
    PROGRESSING = "progressing"
    GONE = "gone"
    FAILING = "failing"

    @property
    def trouble(self) -> int:
        """How much trouble it is: 0 for ready, 5 for failing."""
        return list(State).index(self)


class Link(NamedTuple):
    """What the spec of an object names: `uses` a Secret, `scales` a Deployment.

    Args:
        verb: `uses`, `scales`, `targets`, `selects` or `routes to`.
        key: The object that is named.
    """

    verb: str
    key: ObjectKey


@dataclass(frozen=True, slots=True)
class TreeNode:
    """An object, or a component of an owner, in the tree.

    Args:
        name: Kind and name, `Deployment web`; `component web` for a component.
        key: The object; None for a component.
        since: Since when it is in its state, or exists; None if that is not known.
        text: Why it is in its state; may be empty.
        writers: The field managers beside its component's that have written it outside of its status; empty for an
            object that no component of ocf has applied.
        warnings: Number of events of type Warning about it in the last hour.
        children: What belongs to it, in order.
        links: The objects in the tree that its spec names.
    """

    name: str
    state: State
    key: ObjectKey | None = None
    since: datetime | None = None
    text: str = ""
    writers: tuple[str, ...] = ()
    warnings: int = 0
    children: tuple[TreeNode, ...] = ()
    links: tuple[Link, ...] = ()

    @property
    def size(self) -> int:
        """Number of objects below it."""
        return sum((each.key is not None) + each.size for each in self.children)

    @property
    def is_fine(self) -> bool:
        """Whether it and everything below it is ready or superseded, without a warning."""
        return (
            self.state in {State.READY, State.SUPERSEDED}
            and not self.warnings
            and all(each.is_fine for each in self.children)
        )


@dataclass(frozen=True, slots=True)
class CauseStep:
    """A fact in the chain of causes.

    Args:
        text: The fact as a clause.
        key: The object that it is about; None for the operator.
    """

    text: str
    key: ObjectKey | None = None


@dataclass(frozen=True, slots=True)
class OwnerExplanation:
    """Why an owner is ready or not.

    Args:
        root: The owner.
        cause: The chain of causes, the most specific fact first and the owner last; one step if it is ready.
        remarks: What else matters, as sentences: a pause, what could not be read where that may be the cause.
        unread: What could not be read.
        has_given_up: Whether its controller has failed for good, and does not try again before the owner is changed.
    """

    root: TreeNode
    cause: tuple[CauseStep, ...]
    remarks: tuple[str, ...] = ()
    unread: tuple[UnreadKind, ...] = ()
    has_given_up: bool = False

    @property
    def sentence(self) -> str:
        """The chain of causes as one sentence."""
        text = "; so ".join(each.text for each in self.cause)
        return f"{text[:1].upper()}{text[1:].rstrip('.')}."
