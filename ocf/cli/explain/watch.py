"""Looking at an autoscaler of a cluster, once or for a while, and what is learnt of its history by that."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import typer

from ocf.autoscaling.algorithm import History, Scale, ScaleEvent, Settings, Snapshot, Unavailable, decide
from ocf.autoscaling.explain import KnownHistory
from ocf.concepts import Clock
from ocf.controllers.hpa.modes import OWN
from ocf.controllers.hpa.parsed_autoscaler import to_autoscaling_v2
from ocf.controllers.hpa.snapshot import ScaleGetter, SnapshotReader
from ocf.errors import ApiError, ForbiddenError, NotFoundError
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from ocf.cluster import Cluster

__all__ = ["Place", "watched"]

_FORBIDDEN: Final = " is forbidden: "
_RETRY: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an autoscaler is read.

    Args:
        cluster: The cluster.
        observer: Gathers what a round sees.
        scales: Where it reads Scales.
        key: The autoscaler.
        clock: Tells what time it is.
    """

    cluster: Cluster
    observer: SnapshotReader
    scales: ScaleGetter
    key: ObjectKey
    clock: Clock

    async def look(self, settings: Settings | None = None) -> Snapshot:
        """Return what a round would see now.

        Args:
            settings: The settings for this autoscaler; None takes those of the observer.
        """
        live = await self.cluster.get(self.key)
        hpa = to_autoscaling_v2(live) if self.key.kind == OWN[1] else live
        return _allowed((await self.observer.observe(hpa, settings=settings)).snapshot)


def _allowed(seen: Snapshot) -> Snapshot:
    """Refuse to explain what we may not read: the controller may, so it is in no trouble that we could tell of."""
    failures = [each.message for each in (seen.scale, *seen.metric_values) if isinstance(each, Unavailable)]
    forbidden = next((each for each in failures if _FORBIDDEN in each), None)
    if forbidden is not None:
        message = f"explain needs to read what the controller reads, and may not: {forbidden}"
        raise ForbiddenError(message, code=403, reason="Forbidden")
    return seen


async def watched(place: Place, period: timedelta, settings: Settings) -> tuple[KnownHistory, Snapshot]:
    """Look at an autoscaler for a while, and remember what its controller remembers of that time.

    Args:
        place: Where it is.
        period: For how long; zero looks once.
        settings: The controller's settings; looked at once per sync period.

    Returns:
        What is known of the history, and what was seen last.
    """
    since = place.clock.now()
    snapshot = await place.look(settings)
    before, history = snapshot.status, History(())
    if not period:
        return KnownHistory(before, since), snapshot
    with _progress(period, settings.sync_period) as passed:
        while (left := since + period - place.clock.now()) > timedelta():
            history = _recommended(snapshot, history, settings, place.clock.now())
            await asyncio.sleep(min(left, settings.sync_period).total_seconds())
            last, snapshot = snapshot, await _looked(place, settings)
            history = _changed(last, snapshot, history)
            passed(place.clock.now() - since)
    return KnownHistory(before, since, history), snapshot


async def _looked(place: Place, settings: Settings) -> Snapshot:
    """Look, and for a sync period again if the cluster does not answer: what was collected is worth some patience."""
    end = place.clock.now() + settings.sync_period
    while True:
        try:
            return await place.look(settings)
        except (NotFoundError, ForbiddenError):
            raise
        except ApiError:
            if place.clock.now() >= end:
                raise
        await asyncio.sleep(_RETRY.total_seconds())


def _recommended(snapshot: Snapshot, history: History, settings: Settings, now: datetime) -> History:
    """Add what the controller's own round of about this time recommended."""
    recommended = decide(snapshot, history, settings=settings, now=now).history.recommendations
    return history._replace(recommendations=recommended)


def _changed(before: Snapshot, after: Snapshot, history: History) -> History:
    """Add a change that the controller made between two looks."""
    at = after.status.last_scale_time
    if at is None or at == before.status.last_scale_time or after.autoscaler.behavior is None:
        return history
    if not isinstance(before.scale, Scale) or not isinstance(after.scale, Scale):
        return history
    change = after.scale.replicas - before.scale.replicas
    event = ScaleEvent(abs(change), at)
    if change > 0:
        return history._replace(scale_ups=(*history.scale_ups, event))
    return history._replace(scale_downs=(*history.scale_downs, event)) if change else history


@contextmanager
def _progress(period: timedelta, every: timedelta) -> Iterator[Any]:
    """Show how far it is: as a bar to a person, or as one line."""
    total = period.total_seconds()
    if not sys.stderr.isatty():
        text = f"watching for {total:g}s, every {every.total_seconds():g}s"
        typer.secho(text, err=True)
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("collecting the history", total=total)
        yield lambda passed: bar.update(task, completed=passed.total_seconds())
