"""Reads of an autoscaler in a cluster, once or repeatedly, and the history that they reveal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ocf.autoscaling.algorithm import History, Scale, Settings, Snapshot, Unavailable, decide
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.explain import KnownHistory
from ocf.cli.explain.surroundings import role_command
from ocf.cli.output import echo
from ocf.concepts import Clock
from ocf.controllers.hpa.modes import OWN
from ocf.controllers.hpa.parsed_autoscaler import to_autoscaling_v2
from ocf.controllers.hpa.snapshot import SnapshotReader
from ocf.controllers.hpa.snapshot.scale_getter import ScaleGetter
from ocf.controllers.metrics_client import RESTMapper
from ocf.errors import ApiError, ForbiddenError, NotFoundError
from ocf.objects import ObjectKey
from ocf.ownership.snapshot import FORBIDDEN

if TYPE_CHECKING:
    from ocf.cluster import Cluster

__all__ = ["InputsForbiddenError", "ObservedAutoscaler", "collect_history"]

_RETRY: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ObservedAutoscaler:
    """An autoscaler in a cluster, with everything that is needed to read it.

    Args:
        kinds: Finds the resource of a kind; None if every kind that is asked for is served.
    """

    cluster: Cluster
    reader: SnapshotReader
    scales: ScaleGetter
    key: ObjectKey
    clock: Clock
    kinds: RESTMapper | None = None

    async def read(self, settings: Settings | None = None) -> Snapshot:
        """Return the snapshot that a sync would use now.

        Args:
            settings: The settings for this autoscaler; None for those of the reader.
        """
        live = await self.cluster.get(self.key)
        hpa = to_autoscaling_v2(live) if self.key.kind == OWN[1] else live
        return _require_permission((await self.reader.observe(hpa, settings=settings)).snapshot)


class InputsForbiddenError(ForbiddenError):
    """The right to read an input of a sync is missing.

    Args:
        snapshot: The snapshot, without these inputs.
        forbidden: The messages of the API server, each with the verb and the resource.
    """

    def __init__(self, snapshot: Snapshot, forbidden: tuple[str, ...]) -> None:
        printed = role_command(snapshot.autoscaler.namespace)
        message = (
            f"explain needs the read permissions of the controller, which {printed} prints: {'; '.join(forbidden)}"
        )
        super().__init__(message, code=403, reason="Forbidden")
        self.snapshot, self.forbidden = snapshot, forbidden


def _require_permission(snapshot: Snapshot) -> Snapshot:
    """Raise if a read is forbidden.

    The controller has the permission, so its decision would be different from what we could explain.
    """
    failures = [each.message for each in (snapshot.scale, *snapshot.metric_values) if isinstance(each, Unavailable)]
    forbidden = tuple(dict.fromkeys(each for each in failures if FORBIDDEN in each))
    if forbidden:
        raise InputsForbiddenError(snapshot, forbidden)
    return snapshot


async def collect_history(
    autoscaler: ObservedAutoscaler, period: timedelta, settings: Settings
) -> tuple[KnownHistory, Snapshot]:
    """Read an autoscaler repeatedly, and collect the history that its controller collects in that time.

    Args:
        period: For how long; zero reads once.
        settings: The controller's settings; the autoscaler is read once per sync period.
    """
    since = autoscaler.clock.now()
    snapshot = await autoscaler.read(settings)
    before, history = snapshot.status, History(())
    if not period:
        return KnownHistory(before, since), snapshot
    with _progress(period, settings.sync_period) as update:
        while (remaining := since + period - autoscaler.clock.now()) > timedelta():
            history = _recommended(snapshot, history, settings, autoscaler.clock.now())
            await asyncio.sleep(min(remaining, settings.sync_period).total_seconds())
            last, snapshot = snapshot, await _read_with_retry(autoscaler, settings)
            history = _changed(last, snapshot, history)
            update(autoscaler.clock.now() - since)
    return KnownHistory(before, since, history), snapshot


async def _read_with_retry(autoscaler: ObservedAutoscaler, settings: Settings) -> Snapshot:
    """Read; if the API server does not answer, retry for one sync period, to keep the collected history."""
    end = autoscaler.clock.now() + settings.sync_period
    while True:
        try:
            return await autoscaler.read(settings)
        except (NotFoundError, ForbiddenError):
            raise
        except ApiError:
            if autoscaler.clock.now() >= end:
                raise
        await asyncio.sleep(_RETRY.total_seconds())


def _recommended(snapshot: Snapshot, history: History, settings: Settings, now: datetime) -> History:
    """Add the recommendation of the controller's sync at about this time."""
    recommended = decide(snapshot, history, settings=settings, now=now).history.recommendations
    return history._replace(recommendations=recommended)


def _changed(before: Snapshot, after: Snapshot, history: History) -> History:
    """Add a change that the controller made between two reads."""
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
    """Show the progress: a bar in a terminal, otherwise one line."""
    total = period.total_seconds()
    if not sys.stderr.isatty():
        text = f"watching for {total:g}s, every {every.total_seconds():g}s"
        echo(text, err=True)
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("collecting the history", total=total)
        yield lambda elapsed: bar.update(task, completed=elapsed.total_seconds())
