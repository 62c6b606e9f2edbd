"""The PodDisruptionBudget of a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.memcached.naming import labels, named
from ocf.feature import BooleanGate
from ocf.primitives import pdb

if TYPE_CHECKING:
    from examples.memcached.model import DisruptionBudget, Memcached
    from ocf.concepts import Resource
    from ocf.feature import Gate

__all__ = ["budget", "protected"]


def protected(cache: Memcached) -> Gate:
    """Return the gate of the budget."""
    return BooleanGate(cache.budget.enabled)


def budget(cache: Memcached) -> Resource:
    """Return the PodDisruptionBudget.

    Args:
        cache: The owner.
    """
    base = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": named(cache),
        "spec": {"selector": {"matchLabels": labels(cache)}, **_limit(cache.budget)},
    }
    return pdb.Builder(base).build()


def _limit(given: DisruptionBudget) -> dict[str, int | str]:
    """Return one of the two mutually exclusive limits; `minAvailable: 1` if neither is set."""
    if given.min_available is None and given.max_unavailable is not None:
        return {"maxUnavailable": given.max_unavailable}
    return {"minAvailable": 1 if given.min_available is None else given.min_available}
