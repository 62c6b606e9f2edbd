"""The formulas for the number of nodes."""

from datetime import datetime, timedelta

__all__ = ["calculate_desired_nodes", "calculate_nodes_to_add", "is_in_cooldown"]


def calculate_nodes_to_add(desired: int, current: int, max_nodes: int, batch_size: int = 0) -> int:
    """Return how many nodes are added in one reconcile.

    Args:
        desired: The desired number of nodes.
        current: The current number, including nodes in flight.
        max_nodes: The most nodes.
        batch_size: How many nodes are added in one reconcile at most; 0 for no limit.

    Returns:
        The number, never negative: a group with too many nodes adds none.

    Example:
        >>> calculate_nodes_to_add(10, 2, 20, 3), calculate_nodes_to_add(2, 5, 10)
        (3, 0)
    """
    missing = min(desired, max_nodes) - current
    return max(min(missing, batch_size) if batch_size > 0 else missing, 0)


def calculate_desired_nodes(current: int, needed: int, min_nodes: int, max_nodes: int) -> int:
    """Return the desired number of nodes.

    It is computed from what is there and what is missing now, never from its own former result: `current` counts the
    nodes in flight, and `needed` is what remains after pods were packed onto them. Otherwise it would grow with every
    reconcile while a node boots.

    Args:
        current: The current number, including nodes in flight.
        needed: How many more nodes the pods need.
        min_nodes: The fewest nodes.
        max_nodes: The most nodes; if it is below `min_nodes`, it wins.

    Example:
        >>> calculate_desired_nodes(3, 2, 1, 10), calculate_desired_nodes(0, 0, 10, 5)
        (5, 5)
    """
    return max(min(max(current + needed, min_nodes), max_nodes), 0)


def is_in_cooldown(now: datetime, last: datetime | None, cooldown: timedelta) -> bool:
    """Return whether a cooldown is not over yet.

    Args:
        now: The time of the reconcile.
        last: The last scaling; None if there was none. An instant of the future counts as now.
        cooldown: The cooldown; 0 for none.

    Example:
        >>> now = datetime(2026, 1, 31, 12)
        >>> [is_in_cooldown(now, now - timedelta(seconds=age), timedelta(minutes=10)) for age in (599, 600)]
        [True, False]
    """
    # Exactly as old as the cooldown is over.
    return last is not None and now - min(last, now) < cooldown
