"""Fields and values with which the replicas change once stabilization windows and policies have run out.

In a steady state every recommendation in the window equals the present size, so nothing gives fewer replicas at the
next sync. What a reader asks for is the value that does once that window has passed. It is found without a history, and
then tried on the real one: the syncs that follow run in virtual time, with the value and with the one next to it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, Decision, Settings, decide
from ocf.autoscaling.explain.levers import Lever, tried_levers
from ocf.autoscaling.explain.next_syncs import RUN_OUT, HoldRelease, first_release, latest_release

__all__ = ["LaterLever", "later_levers"]


class LaterLever(NamedTuple):
    """A field with which the replicas change after the next sync, if no measurement changes.

    Args:
        release: The first sync with another number of replicas, if the field has the value from the next sync on.
    """

    lever: Lever
    release: HoldRelease


def later_levers(
    decisions: Sequence[Decision], found: Iterable[Lever], settings: Settings, *, elsewhere: bool
) -> Iterator[LaterLever]:
    """Find the fields with which the replicas change later, and not at this sync.

    Args:
        decisions: The decision of this sync with each possible history, all with the same result.
        found: The levers of this sync, which are left out.
        settings: The controller's settings.
        elsewhere: Whether another controller runs the autoscaler, so that the release is the latest possible one.

    Yields:
        Levers; none if the replicas change at this sync, or later by time alone.
    """
    first = decisions[0]
    current, snapshot, now = first.trace.current, first.snapshot, first.trace.now
    if current is None or any(each.desired != current for each in decisions):
        return
    settled = decide(snapshot, RUN_OUT, settings=settings, now=now)
    if settled.desired != current:
        return
    known = {(each.field, each.change > 0) for each in found}

    def release(changed: tuple[Autoscaler, Settings], direction: int) -> HoldRelease | None:
        autoscaler, flags = changed
        then = replace(snapshot, autoscaler=autoscaler)
        if elsewhere:
            return latest_release(decisions, flags, then=then, direction=direction)
        return first_release(first, flags, then=then, direction=direction)

    for lever, changed, step_less in tried_levers(settled, (RUN_OUT,), settings=settings, now=now):
        direction = 1 if lever.change > 0 else -1
        at = None if (lever.field, lever.change > 0) in known else release(changed, direction)
        if at is not None and (step_less is None or release(step_less, direction) is None):
            yield LaterLever(lever, at)
