"""Triggers, as they are asked, and what their answers mean: how much there is to do, for how many replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout

from ocf.component import ContextKey
from ocf.concepts import Clock
from tests.operators.scaler.model import Fallback, Trigger, Window

__all__ = ["READINGS", "Reading", "Readings", "activity"]

_LIMIT: Final = ClientTimeout(total=5)


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer of a trigger.

    Args:
        at: When it was asked for.
        value: How much there is to do; None if the trigger could not be asked.
        problem: Why not.
    """

    trigger: Trigger
    at: datetime
    value: float | None
    problem: str = ""

    def with_fallback(self, fallback: Fallback | None, since: datetime | None) -> Reading:
        """Return what it counts for.

        Args:
            since: Since when the trigger could not be asked; None if it was not known before.
        """
        if self.value is not None or fallback is None:
            return self
        if self.at - (since or self.at) < timedelta(seconds=fallback.after_seconds):
            return self
        value = float(fallback.replicas * self.trigger.per_replica)
        return Reading(self.trigger, self.at, value, self.problem)


@dataclass
class Readings:
    """The last answers, each of which is used for as long as a trigger is not to be asked again.

    Args:
        session: Opens the connections.
        clock: The times of windows, and of the answers.
    """

    session: ClientSession
    clock: Clock
    _last: dict[str, Reading] = field(default_factory=dict)

    async def read(self, triggers: Iterable[Trigger], period: timedelta) -> list[Reading]:
        """Return an answer of each trigger that is younger than a period."""
        return list(await asyncio.gather(*(self._read(one, period) for one in triggers)))

    async def _read(self, trigger: Trigger, period: timedelta) -> Reading:
        now = self.clock.now()
        if trigger.window:
            return Reading(trigger, now, float(trigger.window.replicas if _is_within(trigger.window, now) else 0))
        source = trigger.model_dump_json(exclude={"name"})
        last = self._last.get(source)
        if last is None or now - last.at >= period:
            last = self._last[source] = await self._ask(trigger, now)
        return Reading(trigger, last.at, last.value, last.problem)

    async def _ask(self, trigger: Trigger, now: datetime) -> Reading:
        try:
            return Reading(trigger, now, await self._value(trigger))
        except (ClientError, OSError, TimeoutError, LookupError, TypeError, ValueError) as error:
            # The text of the error may have the URL, with a password in it.
            return Reading(trigger, now, None, f"{trigger.name} gave no value ({type(error).__name__})")

    async def _value(self, trigger: Trigger) -> float:
        url, query = (trigger.queue.url, {}) if trigger.queue else _asked(trigger)
        async with self.session.get(url, params=query, timeout=_LIMIT) as answer:
            answer.raise_for_status()
            body = await answer.json()
        found = float(body["length"] if trigger.queue else body["data"]["result"][0]["value"][1])
        if not 0 <= found < float("inf"):
            raise ValueError("no amount")
        return found


READINGS: Final = ContextKey[Readings]("readings")


def activity(readings: Iterable[Reading]) -> bool | None:
    """Return whether there is something to do; None if that is not known."""
    found = [None if one.value is None else one.value > one.trigger.activation for one in readings]
    return True if True in found else None if None in found else False


def _asked(trigger: Trigger) -> tuple[str, dict[str, str]]:
    assert trigger.metric is not None, "the definition allows no trigger without a source"
    return f"{trigger.metric.server}/api/v1/query", {"query": trigger.metric.query}


def _is_within(window: Window, now: datetime) -> bool:
    time = f"{now:%H:%M}"
    if window.start <= window.end:
        return window.start <= time < window.end
    return time >= window.start or time < window.end
