"""Which replica should hold which slot. A pure function, which every replica computes for itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

__all__ = ["assign"]


def assign(holders: Sequence[str], replicas: Collection[str]) -> tuple[str, ...]:
    """Return the replica that should hold each slot: as evenly as possible, with as few moves as possible.

    A replica keeps what it holds up to its share. The first of the larger shares, where the slots cannot be divided
    evenly, go to the replicas that hold most. So a replica that joins moves its share and no more, and one that leaves
    only what it held.

    Args:
        holders: The present holder of each slot, by its number; empty for a slot that is free.
        replicas: The replicas that are alive.

    Returns:
        The holder of each slot; all empty without replicas.

    Example:
        >>> assign(["a", "a", "a", ""], ["a", "b"])
        ('a', 'a', 'b', 'b')
        >>> assign(["a", "a", "b", "b"], ["b"])
        ('b', 'b', 'b', 'b')
    """
    if not replicas:
        return ("",) * len(holders)
    held = Counter(holder for holder in holders if holder in replicas)
    # All replicas sort in the same way, so that they agree.
    ordered = sorted(replicas, key=lambda replica: (-held[replica], replica))
    share, larger = divmod(len(holders), len(ordered))
    left = {replica: share + (number < larger) for number, replica in enumerate(ordered)}
    target: list[str] = []
    for holder in holders:
        keeps = left.get(holder, 0) > 0
        target.append(holder if keeps else "")
        if keeps:
            left[holder] -= 1
    takers = (replica for replica in ordered for _ in range(left[replica]))
    return tuple(holder or next(takers) for holder in target)
