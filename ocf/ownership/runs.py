"""Objects that end, such as Jobs: whether one has completed, and which ones a newer one has superseded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ocf.objects import Manifest, ObjectKey
from ocf.ownership import values

__all__ = ["ends", "has_completed", "superseded"]

_ENDS: Final = re.compile(r"^(?!Cron|Scaled|Scheduled).*(Backup|Job|Restore|Run|SparkApplication|Workflow)$")
_MAKES_RUNS: Final = re.compile(r"^(Cron|Scheduled)|Schedule$")
# When runs have ended: Jobs, runs of Tekton, workflows of Argo, jobs of Ray.
_ENDED: Final = ("completionTime", "finishedAt", "endTime")
_NUMBERED: Final = re.compile(r"(?P<stem>.+?)-?\d+$")


def ends(kind: str) -> bool:
    """Return whether objects of a kind end, and are not done while they run."""
    return _ENDS.search(kind) is not None


def has_completed(live: Manifest) -> bool:
    """Return whether a run has completed, so that attempts that failed before do not matter."""
    if any(values.time_of(live, "status", name) is not None for name in _ENDED):
        return True
    listed = (values.condition(live, one) for one in ("Complete", "Completed", "Succeeded"))
    return any(values.text(one, "status") == "True" for one in listed)


def superseded(parent: Manifest, children: Sequence[Manifest]) -> frozenset[ObjectKey]:
    """Return the runs of a parent whose result does not matter any more.

    Of what makes runs by a schedule, only the last one matters, and not even that one after a success. Of other
    parents, a run does not matter if a newer one of the same series has completed: one with the same `generateName`, or
    with the same name but for the number at its end.

    Args:
        children: What belongs to the parent, the oldest first.
    """
    by_schedule = _MAKES_RUNS.search(values.text(parent, "kind")) is not None
    series: dict[tuple[str, str, str], list[Manifest]] = {}
    for live in children:
        group, kind = values.group_kind(live)
        name = "" if by_schedule else _series(live)
        if ends(kind) and name is not None:
            series.setdefault((group, kind, name), []).append(live)
    past: list[Manifest] = []
    for runs in series.values():
        if by_schedule:
            past += runs if _has_succeeded_since(parent, runs[-1]) else runs[:-1]
        else:
            completed = [number for number, run in enumerate(runs) if _has_succeeded(run)]
            past += runs[: completed[-1]] if completed else []
    return frozenset(map(ObjectKey.of, past))


def _series(live: Manifest) -> str | None:
    generated = values.text(live, "metadata", "generateName")
    found = _NUMBERED.fullmatch(values.text(live, "metadata", "name"))
    return generated or (found["stem"] if found is not None else None)


def _has_succeeded(run: Manifest) -> bool:
    # A failed run of Tekton or Argo has a time at which it ended, too.
    listed = (values.condition(run, one) for one in ("Complete", "Completed", "Succeeded"))
    return any(values.text(one, "status") == "True" for one in listed) or values.text(run, "status", "phase") in {
        "Completed",
        "Succeeded",
    }


def _has_succeeded_since(parent: Manifest, run: Manifest) -> bool:
    failed = values.time_of(values.condition(run, "Failed") or {}, "lastTransitionTime")
    ended, success = failed or values.created(run), values.time_of(parent, "status", "lastSuccessfulTime")
    return success is not None and ended is not None and success > ended
