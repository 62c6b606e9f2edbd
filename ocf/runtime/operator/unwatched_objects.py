"""Objects that a reconcile has read or written, and whose changes start no reconcile, because their kind has no watch.

A right to read objects of a kind by name does not include the one to list and watch them. Such an owner is reconciled
as well as any other, but what it depends on may change without a reconcile. Its condition says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ocf.cluster.cache.selective import BEYOND
from ocf.component.owner_status import owner_event
from ocf.objects.conditions import ConditionStatus, find_condition

if TYPE_CHECKING:
    from datetime import timedelta

    from ocf.cluster.cache import CachedCluster
    from ocf.component import ReconcileContext
    from ocf.objects import ObjectKey
    from ocf.runtime.operator.observed_versions import Followed, ObservedVersions

__all__ = ["UNWATCHED", "show_unwatched", "unwatched_objects"]

UNWATCHED: Final = "ChangesNotWatched"
"""Reason of the condition and of the event about objects whose changes start no reconcile."""
_MOST_NAMED: Final = 5


def unwatched_objects(observed: ObservedVersions, cache: CachedCluster, resync: timedelta | None) -> str:
    """Return which changes start no reconcile, why, and what to do; empty if all do.

    Args:
        observed: What the reconcile has observed so far.
        cache: The cache with the watches.
        resync: The resync period of the operator; None for never.
    """
    causes = {scope: cause for scope in observed.followed if (cause := _cause(cache, scope))}
    problems = [problem for scope in sorted(causes) if (problem := _problem(observed, scope, causes[scope]))]
    shown = {scope[:2] for scope in causes}
    alone = {key: cause for key in observed.versions if key[:2] not in shown and (cause := cache.unwatched(key))}
    for kind, cause in sorted({(key[:2], cause) for key, cause in alone.items()}):
        names = ", ".join(_named(sorted(key for key, one in alone.items() if (key[:2], one) == (kind, cause))))
        problems.append(f"{kind[1]} ({kind[0]}) {names}: {cause}")
    if not problems:
        return ""
    unselected = "or have its `Selection` select the objects, " if BEYOND in alone.values() else ""
    latest = f", at the latest by the resync, every {resync}" if resync is not None else ""
    return (
        f"The owner is reconciled, but a change of these objects starts no reconcile: {'; '.join(problems)}. Give the "
        f"operator the right to list and watch the kind, {unselected}or name it in `uncached` if this is intended. "
        f"Until then a change is seen when the owner is reconciled for another reason{latest}."
    )


def show_unwatched(context: ReconcileContext, condition_type: str, problem: str) -> None:
    """Stage the condition about unwatched objects, or remove it; one that is new is an event as well.

    Args:
        problem: From `unwatched_objects`; empty if there is none.
    """
    if not problem:
        context.clear_failure(condition_type)
        return
    stored = find_condition((context.owner.get("status") or {}).get("conditions"), condition_type) or {}
    context.set_condition(condition_type, status=ConditionStatus.TRUE, reason=UNWATCHED, message=problem)
    if stored.get("reason") != UNWATCHED:
        context.recorder.happened(owner_event(context.owned_by, UNWATCHED, problem, action="Reconcile"))


def _cause(cache: CachedCluster, scope: Followed) -> str:
    api_version, kind, namespace = scope
    states = cache.informers_of(api_version, kind)
    return next((state.unwatched for state in states if state.namespace == namespace), "")


def _problem(observed: ObservedVersions, scope: Followed, cause: str) -> str:
    """Return the objects of a scope that a reconcile has observed, and why it has no watch; empty without objects."""
    api_version, kind, namespace = scope

    def is_meant(where: str) -> bool:
        return namespace in ("", where)

    keys = sorted(
        key for key in observed.versions if (key.api_version, key.kind) == scope[:2] and is_meant(key.namespace)
    )
    listed = sorted(
        {
            one.namespace
            for one in observed.lists
            if (one.api_version, one.kind) == scope[:2] and is_meant(one.namespace)
        }
    )
    named = [*_named(keys), *(f"those that are listed in {where or 'all namespaces'}" for where in listed)]
    return f"{kind} ({api_version}) {', '.join(named)}: {cause}" if named else ""


def _named(keys: Iterable[ObjectKey]) -> Iterator[str]:
    names = [f"{key.namespace}/{key.name}" if key.namespace else key.name for key in keys]
    yield from names[:_MOST_NAMED]
    if len(names) > _MOST_NAMED:
        yield f"and {len(names) - _MOST_NAMED} more"
