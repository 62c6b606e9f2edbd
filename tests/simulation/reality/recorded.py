"""Recorded runs: the syncs of the real HPA controller in a scenario, and the pods that it had."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from tests.simulation.reality.scenarios import DATA

__all__ = ["RecordedPod", "RecordedRun", "RecordedSync", "load_run", "save_run"]


@dataclass(frozen=True, slots=True)
class RecordedSync:
    """A sync of the real controller.

    Args:
        at: Seconds since the start of the run, when the controller read the metric.
        samples: The values that it got: cores or units of each pod, or the total of an external metric.
        ready: Number of ready pods.
        replicas: `spec.replicas` after the sync.
    """

    at: float
    samples: tuple[float, ...]
    ready: int
    replicas: int


@dataclass(frozen=True, slots=True)
class RecordedPod:
    """A pod that was created in the run.

    Args:
        created: Seconds since the start of the run, when a watch reported its creation.
        started: When a watch reported `status.startTime`; None if it never did.
        ready: When a watch reported that it is ready; None if it never did.
    """

    created: float
    started: float | None
    ready: float | None


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run of a scenario on a real control plane.

    Args:
        start: Time of its first sync, in RFC 3339.
        syncs: The syncs.
        pods: The pods that were created after the start.
    """

    start: str
    syncs: Sequence[RecordedSync]
    pods: Sequence[RecordedPod]

    @property
    def began(self) -> datetime:
        """The instant of the first sync."""
        return datetime.fromisoformat(self.start)

    @property
    def sync_period(self) -> timedelta:
        """The mean time between two syncs: the controller waits for its period after each sync."""
        return timedelta(seconds=round((self.syncs[-1].at - self.syncs[0].at) / (len(self.syncs) - 1), 6))

    @property
    def actions(self) -> list[tuple[float, int, int]]:
        """Time, and replicas before and after each sync that scaled."""
        return [
            (new.at, old.replicas, new.replicas) for old, new in pairwise(self.syncs) if old.replicas != new.replicas
        ]


def save_run(name: str, run: RecordedRun) -> None:
    """Write a run.

    Args:
        name: Name of the scenario.
        run: The run.
    """
    syncs = ",\n".join(f"  {json.dumps([*asdict(each).values()])}" for each in run.syncs)
    pods = ",\n".join(f"  {json.dumps([*asdict(each).values()])}" for each in run.pods)
    text = f'{{"start": {json.dumps(run.start)},\n"syncs": [\n{syncs}\n],\n"pods": [\n{pods}\n]}}\n'
    (DATA / f"{name}.json").write_text(text, encoding="utf-8")


def load_run(name: str) -> RecordedRun:
    """Read a run.

    Args:
        name: Name of the scenario.
    """
    found = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return RecordedRun(
        start=found["start"],
        syncs=[RecordedSync(at, tuple(samples), ready, replicas) for at, samples, ready, replicas in found["syncs"]],
        pods=[RecordedPod(*each) for each in found["pods"]],
    )
