"""What the Jobs of a JobSet mean for it: functions of values, without a cluster.

`child_of` reads what a Job reports, and `decide` what follows: whether the JobSet goes on, restarts, or has ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from examples.jobset.model import PREFIX, Action, FailureRule, JobSet, JobSetStatus, ReplicatedJobStatus
from ocf.objects import Manifest

__all__ = ["Child", "Decision", "Transition", "child_of", "decide", "refreshed", "waits"]

_COUNTS: Final = ("job_restarts", "job_restarts_count_towards_max")


@dataclass(frozen=True, slots=True)
class Child:
    """A Job of a JobSet, as it was read.

    Args:
        index: Its number among the Jobs of its template.
        attempt: The restart of the JobSet that it was made after; -1 if it does not say.
        own_attempt: The restart of its own that it was made after.
        end: `Complete` or `Failed` once it has ended; before that empty.
        failed_at: When it failed, as text of the API; empty if it does not say.
        can_change: Whether it reports that it is suspended, so that its pod template can be changed.
        is_ending: Whether it is being deleted.
    """

    name: str
    uid: str
    replicated_job: str
    index: int
    attempt: int
    own_attempt: int
    end: str
    reason: str
    message: str
    failed_at: str
    is_ready: bool
    is_active: bool
    is_suspended: bool
    can_change: bool
    is_ending: bool


def child_of(job: Manifest) -> Child:
    """Return a Job as a child. Its labels are those of the pod template, which no client can change while it runs."""
    metadata, spec, status = job["metadata"], job["spec"], job.get("status", {})
    labels = spec["template"].get("metadata", {}).get("labels", {})
    conditions = {one["type"]: one for one in status.get("conditions", ()) if one["status"] == "True"}
    end = next((each for each in ("Failed", "Complete") if each in conditions), "")
    ended = conditions.get(end, {})
    pods = min(spec.get("parallelism", 1), spec.get("completions", spec.get("parallelism", 1)))

    def number(name: str, default: int) -> int:
        text = labels.get(f"{PREFIX}{name}", "")
        return int(text) if text.isdecimal() else default

    return Child(
        name=metadata["name"],
        uid=metadata["uid"],
        replicated_job=labels.get(f"{PREFIX}replicatedjob-name", ""),
        index=number("job-index", 0),
        attempt=number("restart-attempt", -1),
        own_attempt=number("job-restart-attempt", 0),
        end=end,
        reason=ended.get("reason") or "",
        message=ended.get("message") or "",
        failed_at=ended.get("lastTransitionTime") or "",
        is_ready=status.get("succeeded", 0) + status.get("ready", 0) >= pods,
        is_active=status.get("active", 0) > 0,
        is_suspended=spec.get("suspend", False),
        can_change="Suspended" in conditions,
        is_ending="deletionTimestamp" in metadata,
    )


class Transition(NamedTuple):
    """A condition that changes, with an event; without a type, there is only the event."""

    type: str
    status: Literal["True", "False"]
    reason: str
    message: str


class Decision(NamedTuple):
    """What follows from the Jobs of a JobSet.

    Args:
        status: The status to store, beside the conditions.
        transitions: The conditions that change, and the events.
        obsolete: Jobs to delete: of earlier attempts, and once the JobSet has ended, all that still run.
        children: The other Jobs.
    """

    status: JobSetStatus
    transitions: tuple[Transition, ...]
    obsolete: tuple[Child, ...]
    children: tuple[Child, ...]


def decide(jobset: JobSet, jobs: Sequence[Child]) -> Decision:
    """Decide what follows from the Jobs.

    Restarts are counted in the status before the Jobs of the former attempt are deleted. If the status is lost, as in a
    backup without statuses, the count is found in the Jobs.
    """
    conditions = {one.type: one for one in jobset.conditions}
    status = _counted(jobset, jobs)
    ends = (each for each in ("Completed", "Failed") if each in conditions and conditions[each].status == "True")
    terminal = next(ends, status.terminal_state)
    changes: list[Transition] = []
    if not terminal:
        status, changes = _outcome(jobset, status, _current(jobs, status))
        terminal = next((one.type for one in changes if one.type in {"Completed", "Failed"}), None)
    status = refreshed(status.model_copy(update={"terminal_state": terminal}), jobs)
    children = _current(jobs, status)
    if not terminal and not changes:
        changes = list(_progress(jobset, status.replicated_jobs_status))

    def is_news(one: Transition) -> bool:
        stored = conditions.get(one.type)
        if one.status == "False":  # a condition that was never True does not become False
            return stored is not None and stored.status == "True"
        return stored is None or (stored.status, stored.reason, stored.message) != (one.status, one.reason, one.message)

    obsolete = tuple(job for job in jobs if job not in children)
    return Decision(status, tuple(filter(is_news, changes)), obsolete, tuple(children))


def _counted(jobset: JobSet, jobs: Sequence[Child]) -> JobSetStatus:
    """Return the stored status with the restarts that the Jobs show, and an entry for each replicated Job."""
    stored = jobset.status or JobSetStatus()
    entries = {one.name: one for one in stored.replicated_jobs_status}
    found = [entries.get(one.name) or ReplicatedJobStatus(name=one.name) for one in jobset.spec.replicated_jobs]
    restarts = max([stored.restarts, *(job.attempt for job in jobs)])
    return stored.model_copy(update={"restarts": restarts, "replicated_jobs_status": found})


def _current(jobs: Sequence[Child], status: JobSetStatus) -> list[Child]:
    """Return the Jobs of the present attempt, and once the JobSet has ended, those of them that have ended, too."""

    def is_current(job: Child) -> bool:
        return job.attempt == status.restarts and job.own_attempt >= status.restarts_of(job.replicated_job, job.index)

    return [job for job in jobs if is_current(job) and (job.end or not status.terminal_state)]


def refreshed(status: JobSetStatus, jobs: Sequence[Child]) -> JobSetStatus:
    """Return a status with the numbers of Jobs as they are now."""
    numbers = [_numbers(one, _current(jobs, status)) for one in status.replicated_jobs_status]
    return status.model_copy(update={"replicated_jobs_status": numbers})


def _numbers(entry: ReplicatedJobStatus, jobs: Sequence[Child]) -> ReplicatedJobStatus:
    mine = [job for job in jobs if job.replicated_job == entry.name]
    going_on = [job for job in mine if not job.end]
    states = {
        "ready": sum(job.is_ready for job in going_on),
        "succeeded": sum(job.end == "Complete" for job in mine),
        "failed": sum(job.end == "Failed" for job in mine),
        "active": sum(job.is_active for job in going_on),
        "suspended": sum(job.is_suspended for job in going_on),
    }
    return entry.model_copy(update=states)


def _outcome(jobset: JobSet, status: JobSetStatus, jobs: Sequence[Child]) -> tuple[JobSetStatus, list[Transition]]:
    """Return what the Jobs of an attempt lead to: an end, a restart with its count, or nothing."""
    failed = sorted((job for job in jobs if job.end == "Failed"), key=lambda job: job.failed_at)
    if failed:
        return _failure(jobset, status, failed)
    policy = jobset.spec.success_policy
    names = policy.target_replicated_jobs or [one.name for one in jobset.spec.replicated_jobs]
    targets = {one.name: one.replicas for one in jobset.spec.replicated_jobs if one.name in names}
    completed = sum(job.end == "Complete" and job.replicated_job in targets for job in jobs)
    if any(job.end for job in jobs) and completed >= (1 if policy.operator == "Any" else sum(targets.values())):
        text = "jobset completed successfully"
        return status, [Transition("Completed", "True", "AllJobsCompleted", text), _over("JobSetCompleted", text)]
    return status, []


def _over(reason: str, message: str) -> Transition:
    return Transition("RestartingJobSet", "False", reason, message)


def _failure(jobset: JobSet, status: JobSetStatus, failed: Sequence[Child]) -> tuple[JobSetStatus, list[Transition]]:
    """Return what failed Jobs lead to, of which the first one failed first."""
    policy = jobset.spec.failure_policy
    rules = policy.rules if policy else []
    rule, job = next(((rule, job) for rule in rules for job in failed if _matches(rule, job)), (None, failed[0]))
    action: Action = rule.action if rule else "RestartJobSet"
    is_counted = action in {"RestartJobSet", "RestartJob"}
    reason, text = f"{action}FailurePolicyAction", f"applying {action} failure policy action"
    if policy is None:
        reason, text = "FailedJobs", "jobset failed due to one or more job failures"
    elif is_counted and status.counted_restarts >= policy.max_restarts:
        reason, text = "ReachedMaxRestarts", "jobset failed due to reaching max number of restarts"
    elif action != "FailJobSet":
        event = Transition("", "True", reason, f"{text} (first failed job: {job.name})")
        if action in {"RestartJob", "RestartJobAndIgnoreMaxRestarts"}:
            return _job_restarted(status, job, _COUNTS if is_counted else _COUNTS[:1]), [event]
        cause = f"FailurePolicy_{rule.name}" if rule else "DefaultFailurePolicy"
        count = {"restarts": status.restarts + 1}
        count["restarts_count_towards_max"] = status.restarts_count_towards_max + is_counted
        return status.model_copy(update=count), [event, Transition("RestartingJobSet", "True", cause, event.message)]
    failure = Transition("Failed", "True", reason, f"{text} (first failed job: {job.name})")
    return status, [failure, _over("JobSetFailed", "jobset failed")]


def _job_restarted(status: JobSetStatus, job: Child, fields: Sequence[str]) -> JobSetStatus:
    entries = []
    for one in status.replicated_jobs_status:
        counts: dict[str, list[int]] = {
            field: list(getattr(one, field) or ()) for field in fields if one.name == job.replicated_job
        }
        for numbers in counts.values():
            numbers.extend([0] * (job.index + 1 - len(numbers)))
            numbers[job.index] += 1
        entries.append(one.model_copy(update=counts))
    return status.model_copy(update={"replicated_jobs_status": entries})


def _matches(rule: FailureRule, job: Child) -> bool:
    named = ((rule.on_job_failure_reasons, job.reason), (rule.target_replicated_jobs, job.replicated_job))
    patterns = rule.on_job_failure_message_patterns
    is_named = all(not names or name in names for names, name in named)
    return is_named and (not patterns or any(_found(pattern, job.message) for pattern in patterns))


def _found(pattern: str, message: str) -> bool:
    """Return whether a pattern is found in a message; one that is not valid is not."""
    with suppress(re.error):
        return re.search(pattern, message) is not None
    return False


def _progress(jobset: JobSet, numbers: Sequence[ReplicatedJobStatus]) -> Iterator[Transition]:
    """Yield the conditions of a JobSet that goes on."""
    if jobset.spec.suspend:
        yield Transition("Suspended", "True", "SuspendedJobs", "jobset is suspended")
        yield _over("JobSetSuspended", "jobset is suspended")
        return
    yield Transition("Suspended", "False", "ResumeJobs", "jobset is resumed")
    wanted = [one.replicas for one in jobset.spec.replicated_jobs]
    if [one.ready + one.succeeded for one in numbers] == wanted:
        yield _over("JobsReady", "all jobs are ready")
    if jobset.spec.is_in_order:
        has_started = not waits(jobset, numbers, len(numbers))
        for name, holds, text in (
            ("Completed", has_started, "has completed"),
            ("InProgress", not has_started, "is in progress"),
        ):
            reason, message = f"InOrderStartupPolicy{name}", f"in order startup policy {text}"
            yield Transition(f"StartupPolicy{name}", "True" if holds else "False", reason, message)


def waits(jobset: JobSet, numbers: Sequence[ReplicatedJobStatus], place: int) -> bool:
    """Return whether the startup policy holds the replicated Job of a place back."""
    before = zip(jobset.spec.replicated_jobs[:place], numbers, strict=False)
    return jobset.spec.is_in_order and any(number.started != one.replicas for one, number in before)
