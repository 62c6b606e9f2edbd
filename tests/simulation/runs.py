"""Simulated runs made by hand."""

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from ocf.simulation import Action, Columns, SimulationResult

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_FLOATS: Final = ("time", "load", "capacity", "served", "queue", "dropped", "utilization")


def columns(time: Sequence[float], **given: Sequence[float]) -> Columns:
    """Return columns; those that are not given are 0, but each row is a sync, and replicas are the ready pods."""
    zeros = [0] * len(time)
    ready = given.get("ready", zeros)
    rest: dict[str, Sequence[float]] = {"synced": [1] * len(time), "replicas": ready, "time": time, **given}
    rest = {**{name: rest.get("replicas", zeros) for name in ("wanted", "stabilized", "desired")}, **rest}
    values: dict[str, Any] = {
        name: array("d" if name in _FLOATS else "q", rest.get(name, zeros)) for name in Columns.__dataclass_fields__
    }
    return Columns(**values)


def run(
    time: Sequence[float], *, duration: float, actions: Sequence[Action] = (), **given: Sequence[float]
) -> SimulationResult:
    """Return a run with the given columns."""
    return SimulationResult(
        name="web",
        start=START,
        duration=duration,
        columns=columns(time, **given),
        actions=tuple(actions),
        bounds=(1, 20),
    )


def scaled(time: float, before: int, after: int, reason: str = "cpu resource utilization above target") -> Action:
    return Action(time=time, before=before, after=after, reason=reason, rule="Total")
