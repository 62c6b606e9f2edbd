"""Sizes of ReplicaSets during a rolling update and while a Deployment is scaled.

Sources: pkg/controller/deployment/rolling.go and sync.go of Kubernetes 1.36.
"""

from collections.abc import Sequence
from typing import TypeAlias

from ocf.objects import Manifest
from ocf_server.controllers.replica_sets import (
    DESIRED,
    MAX,
    ReplicaSets,
    max_surge,
    max_unavailable,
    spec_replicas,
)

__all__ = ["new_replicas", "old_scales", "proportional_scales"]

Scales: TypeAlias = Sequence[tuple[Manifest, int]]
"""ReplicaSets with the replicas that they should have."""


def new_replicas(owner: Manifest, sets: ReplicaSets) -> int:
    """Return the replicas that the new ReplicaSet should have now.

    Args:
        sets: Its ReplicaSets; the new one need not exist.
    """
    desired = spec_replicas(owner)
    present = spec_replicas(sets.new) if sets.new is not None else 0
    if present >= desired or owner["spec"]["strategy"].get("type") == "Recreate":
        return desired
    free = desired + max_surge(owner) - sum(map(spec_replicas, sets.all))
    return present + min(free, desired - present) if free > 0 else present


def old_scales(owner: Manifest, sets: ReplicaSets) -> Scales:
    """Return the replicas that old ReplicaSets should have now; pods that are not available go first."""
    new = sets.new
    assert new is not None  # noqa: S101 (old ones are scaled down only after the new one was created)
    required = spec_replicas(owner) - max_unavailable(owner)
    # New pods that are not available yet take no place of old ones: they may never become so.
    pending = spec_replicas(new) - _available(new)
    allowed = sum(map(spec_replicas, sets.all)) - required - pending
    if allowed <= 0:
        return ()
    counts = [spec_replicas(each) for each in sets.old]
    for index, each in enumerate(sets.old):
        removed = min(max(allowed, 0), counts[index] - _available(each)) if counts[index] else 0
        counts[index] -= max(removed, 0)
        allowed -= max(removed, 0)
    # Counted anew, in available pods: those that were just removed have served no requests.
    surplus = sum(map(_available, sets.all)) - required
    for index, count in enumerate(counts):
        removed = min(count, max(surplus, 0))
        counts[index] -= removed
        surplus -= removed
    return [(each, count) for each, count in zip(sets.old, counts, strict=True) if count != spec_replicas(each)]


def proportional_scales(owner: Manifest, sets: ReplicaSets) -> Scales:
    """Return the replicas of all ReplicaSets after the replicas of the Deployment have changed.

    During a rollout, the difference is distributed in proportion to their sizes.
    """
    desired = spec_replicas(owner)
    single = _active_or_latest(sets)
    if single is not None:
        return [(single, desired)] if spec_replicas(single) != desired else ()
    if sets.new is not None and _is_saturated(sets.new, desired):
        # The rollout is over but for the old pods that wait for their removal.
        return [(each, 0) for each in sets.old if spec_replicas(each)]
    if owner["spec"]["strategy"].get("type") != "RollingUpdate":
        return ()
    return _proportional(owner, sets.active)


def _active_or_latest(sets: ReplicaSets) -> Manifest | None:
    active = sets.active
    if not active:
        return sets.new or (sets.old[-1] if sets.old else None)
    return active[0] if len(active) == 1 else None


def _is_saturated(new: Manifest, desired: int) -> bool:
    annotated = (new["metadata"].get("annotations") or {}).get(DESIRED)
    return spec_replicas(new) == desired and annotated == str(desired) and _available(new) == desired


def _proportional(owner: Manifest, active: Sequence[Manifest]) -> Scales:
    desired = spec_replicas(owner)
    allowed = desired + max_surge(owner) if desired else 0
    to_add = allowed - sum(map(spec_replicas, active))
    # By size; among those of one size, the newer one grows first and the older one shrinks first.
    newest_first = sorted(active, key=lambda each: each["metadata"]["creationTimestamp"], reverse=to_add > 0)
    ordered = sorted(newest_first, key=lambda each: -spec_replicas(each))
    counts, added = [], 0
    for each in ordered:
        share = _share(owner, each, to_add, added) if to_add else 0
        counts.append(max(spec_replicas(each) + share, 0))
        added += share
    if to_add and counts:
        # What rounding has left over goes to the largest one.
        counts[0] = max(counts[0] + to_add - added, 0)
    return list(zip(ordered, counts, strict=True))


def _share(owner: Manifest, each: Manifest, to_add: int, added: int) -> int:
    if not spec_replicas(each) or to_add == added:
        return 0
    left, fraction = to_add - added, _fraction(owner, each)
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def _fraction(owner: Manifest, each: Manifest) -> int:
    desired, size = spec_replicas(owner), spec_replicas(each)
    if not desired:
        return -size
    annotated = (each["metadata"].get("annotations") or {}).get(MAX, "")
    # The size when it was last scaled, as its share of the whole was that of then.
    before = int(annotated) if annotated.isdecimal() else owner["status"].get("replicas", 0)
    if not before:
        return 0
    # Rounded half away from zero, as Go does.
    return int(size * (desired + max_surge(owner)) / before + 0.5) - size


def _available(each: Manifest) -> int:
    count: int = each["status"].get("availableReplicas", 0)
    return count
