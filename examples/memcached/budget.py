"""The PodDisruptionBudget of a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.memcached.naming import labels
from ocf.feature import BooleanGate
from ocf.primitives import pdb

if TYPE_CHECKING:
    from examples.memcached.model import DisruptionBudget, Memcached
    from ocf.feature import Gate

__all__ = ["budget", "protected"]


def protected(cache: Memcached) -> Gate:
    """Return the gate of the budget."""
    return BooleanGate(cache.budget.enabled)


def budget(cache: Memcached) -> pdb.Builder:
    """Return the PodDisruptionBudget.

    Args:
        cache: The owner.
    """
    spec = {"selector": {"matchLabels": labels(cache)}, **_limit(cache.budget)}
    return pdb.Builder({"metadata": {"name": cache.metadata.name}, "spec": spec})


def _limit(given: DisruptionBudget) -> dict[str, int | str]:
    """Return one of the two mutually exclusive limits; `minAvailable: 1` if neither is set."""
    if given.min_available is None and given.max_unavailable is not None:
        return {"maxUnavailable": given.max_unavailable}
    return {"minAvailable": 1 if given.min_available is None else given.min_available}
