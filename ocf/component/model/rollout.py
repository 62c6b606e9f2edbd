"""A rollout over several resources: which of them may be changed now.

Everything here is a function of values.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ocf.objects import Manifest

__all__ = ["BeforeUpdate", "Member", "Rollout", "next_member"]

BeforeUpdate: TypeAlias = Callable[[Manifest, Any], Awaitable[str | None]]
"""Prepares the update of a member, given its live object and the context; returns why it has to wait, or None."""


@dataclass(frozen=True, slots=True, eq=False)
class Rollout:
    """Resources that are changed a few at a time; each of them holds the same rollout.

    Args:
        max_unavailable: How many of them may be unavailable while another one is changed.
        before_update: Called before a change of a member that is available; None for nothing.
    """

    max_unavailable: int
    before_update: BeforeUpdate | None = None


class Member(NamedTuple):
    """The state of one member.

    Attributes:
        is_ready: Whether it has converged, to the present or an earlier desired state.
        is_down: Whether nothing of it is available: it does not exist, is suspended, or its grace status says so.
        is_pending: Whether an apply would change it.
    """

    is_ready: bool
    is_down: bool
    is_pending: bool


def next_member(members: Sequence[Member], max_unavailable: int) -> int | None:
    """Return which member is changed next; None if each that is left has to wait.

    A member that is down has nothing to lose, and its change may be the repair that the others wait for. One that is
    partly available comes next, unless others are being changed. One that is ready waits until enough others are.

    Example:
        >>> ready, broken, absent = Member(True, False, True), Member(False, False, True), Member(False, True, True)
        >>> [next_member(each, 1) for each in ([ready, broken, absent], [ready, broken], [ready, ready])]
        [2, 1, 0]
        >>> updating = Member(False, False, False)
        >>> [next_member([updating, each], 1) for each in (ready, broken, absent)]
        [None, None, 1]
    """

    def first(*, is_ready: bool) -> int | None:
        return next((at for at, one in enumerate(members) if one.is_pending and one.is_ready is is_ready), None)

    down = next((at for at, one in enumerate(members) if one.is_pending and one.is_down), None)
    if down is not None:
        return down
    unavailable = [one for one in members if not one.is_ready]
    broken = first(is_ready=False)
    if broken is not None:
        return broken if sum(not one.is_pending for one in unavailable) < max_unavailable else None
    return first(is_ready=True) if len(unavailable) < max_unavailable else None
