"""Status of node groups: what steers scaling beyond one reconcile.

It is passed in and returned, never kept in memory, so that a restart or another leader changes no decision.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ocf.nodegroups.model.gaps import LONGEST_GAP, TypeGap

__all__ = ["FIRST_BACKOFF", "LONGEST_BACKOFF", "GroupStatus", "TypeRefusal"]

# Both as in the cluster autoscaler, `--initial-node-group-backoff-duration` and `--max-node-group-backoff-duration`.
FIRST_BACKOFF: Final = timedelta(minutes=5)
"""How long an instance type is left alone after the provider refused it for the first time."""

LONGEST_BACKOFF: Final = timedelta(minutes=30)
"""How long it is left alone at most; the time doubles with each refusal."""


class TypeRefusal(NamedTuple):
    """A refusal of the provider to create nodes of a type.

    Args:
        instance_type: The name of the instance type.
        at: When it was refused.
        until: Until when it is left alone.
    """

    instance_type: str
    zone: str
    at: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """The status of a group that steers scaling.

    Args:
        last_scale_up: When nodes were added last; None if never.
        last_scale_down: When a node was removed last; None if never.
        low_since: Since when each underutilized node has been, by its name.
        refusals: The refusals of the provider.
        draining: The names of the nodes that are being drained.
        replaced: The names of the nodes that cheaper ones replace: they are removed before any other node of the group.
        gaps: What nodes of an instance type lack of what the type promises.
    """

    last_scale_up: datetime | None = None
    last_scale_down: datetime | None = None
    low_since: Mapping[str, datetime] = field(default_factory=dict)
    refusals: tuple[TypeRefusal, ...] = ()
    draining: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    gaps: tuple[TypeGap, ...] = ()

    @property
    def last_scale(self) -> datetime | None:
        """When the group was scaled last, in either direction."""
        return max(filter(None, (self.last_scale_up, self.last_scale_down)), default=None)

    def until(self, now: datetime) -> "GroupStatus":
        """Return the status with instants of the future moved to now: the clock was set back.

        Args:
            now: The time of the reconcile.
        """
        return replace(
            self,
            last_scale_up=_past(self.last_scale_up, now),
            last_scale_down=_past(self.last_scale_down, now),
            low_since={name: min(at, now) for name, at in self.low_since.items()},
            refusals=tuple(
                # A refusal of the future could keep a type away for as long as the clock was wrong.
                each if each.at <= now else each._replace(at=now, until=min(each.until, now + LONGEST_BACKOFF))
                for each in self.refusals
            ),
            gaps=tuple(
                each if each.until is None else replace(each, until=min(each.until, now + LONGEST_GAP))
                for each in self.gaps
            ),
        )

    def backed_off(self, now: datetime, *, times: int = 1) -> frozenset[tuple[str, str]]:
        """Return the types and zones that are left alone at the moment.

        Args:
            now: The time of the reconcile.
            times: How many times as long they are left alone.
        """
        return frozenset(
            (each.instance_type, each.zone) for each in self.refusals if now < each.at + times * (each.until - each.at)
        )

    def refused(self, instance_type: str, zone: str, now: datetime) -> "GroupStatus":
        """Return the status after the provider refused a type in a zone.

        Args:
            instance_type: The name of the instance type.
            now: The time of the refusal.

        Example:
            >>> from datetime import UTC
            >>> now = datetime(2026, 1, 31, tzinfo=UTC)
            >>> once = GroupStatus().refused("small", "a", now)
            >>> again = once.refused("small", "a", now)
            >>> [str(status.refusals[0].until - now) for status in (once, again)]
            ['0:05:00', '0:10:00']
        """
        wait = FIRST_BACKOFF
        kept: list[TypeRefusal] = []
        for each in self.refusals:
            if (each.instance_type, each.zone) == (instance_type, zone):
                wait = min(2 * (each.until - each.at), LONGEST_BACKOFF)
            else:
                kept.append(each)
        return replace(self, refusals=_sorted((*kept, TypeRefusal(instance_type, zone, now, now + wait))))

    def accepted(self, instance_type: str, zone: str) -> "GroupStatus":
        """Return the status after the provider created a node of a type in a zone."""
        kept = (each for each in self.refusals if (each.instance_type, each.zone) != (instance_type, zone))
        return replace(self, refusals=_sorted(kept))


def _sorted(refusals: Iterable[TypeRefusal]) -> tuple[TypeRefusal, ...]:
    return tuple(sorted(refusals, key=lambda each: (each.instance_type, each.zone)))


def _past(at: datetime | None, now: datetime) -> datetime | None:
    return None if at is None else min(at, now)
