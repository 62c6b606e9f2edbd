"""Job controller.

Source: pkg/controller/job of Kubernetes 1.36. Pod failure policies, success policies, backoff limits per index and
elastic indexed Jobs are not evaluated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

from ocf.objects import Manifest, parse_time
from ocf.objects.conditions import find_condition, is_condition_true
from ocf_server.controllers.actions import Action, Event, Outcome, create, delete, update_status
from ocf_server.controllers.job_pods import (
    ended_at,
    index_of,
    is_tracked,
    pod_of_job,
    read_indexes,
    untracked,
    write_indexes,
)
from ocf_server.controllers.ownership import controlled, is_deleted
from ocf_server.controllers.pods import deletion_order, is_active, is_finished, is_ready
from ocf_server.controllers.view import ClusterView

__all__ = ["is_job_finished", "reconcile_job"]

# DefaultJobPodFailureBackOff and MaxJobPodFailureBackOff.
_FIRST_BACKOFF: Final = timedelta(seconds=10)
_LONGEST_BACKOFF: Final = timedelta(minutes=10)


def is_job_finished(job: Manifest) -> bool:
    """Return whether a Job is complete or has failed."""
    conditions = job["status"].get("conditions")
    return is_condition_true(conditions, "Complete") or is_condition_true(conditions, "Failed")


def reconcile_job(view: ClusterView, owner: Manifest) -> Outcome:
    """Create pods until enough of them have succeeded, or too many have failed."""
    pods = controlled(view, owner, "Pod")
    if is_job_finished(owner) or is_deleted(owner):
        return Outcome(tuple(map(untracked, filter(is_tracked, pods))))
    return _Run(view, owner, pods).outcome()


@dataclass(frozen=True)
class _Run:
    """One reconcile of a Job."""

    view: ClusterView
    owner: Manifest
    pods: Sequence[Manifest]

    def outcome(self) -> Outcome:
        """Return the writes that are due: first the count of finished pods, then the pods, at last the conditions."""
        status = self.owner["status"]
        counted = self._count(status)
        if counted is not None:
            return Outcome(tuple(counted))
        verdict = self._verdict()
        if verdict is not None:
            return self._finish(*verdict)
        suspended = self._suspension()
        actions = tuple(self._deletes(len(self._active))) if self.owner["spec"].get("suspend") else None
        at = self._deadline()
        if actions is None:
            retry = self._retry_at()
            if retry is not None and retry > self.view.now:
                actions, at = (), min(filter(None, (retry, at)))
            else:
                actions = tuple(self._scale())
        new = {**self._with_counts(status), **suspended}
        event = self._suspension_event(new)
        return Outcome((*update_status(self.owner, new), *actions), at, event)

    @cached_property
    def _active(self) -> list[Manifest]:
        return [pod for pod in self.pods if is_active(pod)]

    def _phase(self, pod: Manifest) -> str:
        """Return how a pod counts; unless the Job replaces only failed pods, one that is being deleted has failed."""
        if is_finished(pod):
            return str(pod["status"]["phase"])
        waits = self.owner["spec"].get("podReplacementPolicy") == "Failed"
        return "Failed" if is_deleted(pod) and not waits else ""

    @property
    def _indexed(self) -> bool:
        return bool(self.owner["spec"].get("completionMode") == "Indexed")

    def _count(self, status: Manifest) -> list[Action] | None:
        """Count finished pods: note their uids, release them, then add them up, so that each counts exactly once."""
        noted: Mapping[str, list[str]] = status.get("uncountedTerminatedPods") or {}
        uids = {uid for each in noted.values() for uid in each}
        tracked = [pod for pod in self.pods if is_tracked(pod) and self._phase(pod)]
        new = [pod for pod in tracked if pod["metadata"]["uid"] not in uids]
        if new:
            wanted = {
                name: [*noted.get(name, []), *(pod["metadata"]["uid"] for pod in new if self._phase(pod) == phase)]
                for name, phase in (("succeeded", "Succeeded"), ("failed", "Failed"))
            }
            listed = {name: found for name, found in wanted.items() if found}
            counted = self._with_counts(status) | {"uncountedTerminatedPods": listed}
            if self._indexed:
                done = self._indexes | {index_of(pod) for pod in new if self._phase(pod) == "Succeeded"}
                counted |= {"completedIndexes": write_indexes(done)} if done else {}
            return list(update_status(self.owner, counted))
        if tracked:
            return [untracked(pod) for pod in tracked]
        if uids:
            totals = {name: status.get(name, 0) + len(found) for name, found in noted.items()}
            if self._indexed:
                # An index that two pods have completed counts once.
                totals["succeeded"] = len(self._indexes)
            kept = {name: count for name, count in totals.items() if count}
            return list(update_status(self.owner, {**self._with_counts(status), **kept, "uncountedTerminatedPods": {}}))
        return None

    @cached_property
    def _indexes(self) -> set[int]:
        """The completed indexes."""
        return read_indexes(self.owner["status"].get("completedIndexes", ""))

    def _with_counts(self, status: Manifest) -> Manifest:
        """Return the status with the numbers of pods that exist now."""
        terminating = sum(is_deleted(pod) and not is_finished(pod) for pod in self.pods)
        counts = {"active": len(self._active), "terminating": terminating, "ready": sum(map(is_ready, self._active))}
        kept = {name: value for name, value in status.items() if name not in counts}
        started = (
            {} if self.owner["spec"].get("suspend") else {"startTime": status.get("startTime", self.view.timestamp)}
        )
        numbers = {name: count for name, count in counts.items() if count or name != "active"}
        return {**started, **kept, **numbers, "uncountedTerminatedPods": status.get("uncountedTerminatedPods") or {}}

    def _verdict(self) -> tuple[str, str, str] | None:
        """Return the type, reason and message of the condition that ends the Job; None if it goes on."""
        spec, status = self.owner["spec"], self.owner["status"]
        completions, succeeded = spec.get("completions"), status.get("succeeded", 0)
        deadline = self._deadline()
        restarts = sum(
            each.get("restartCount", 0)
            for pod in self._active
            for each in pod["status"].get("containerStatuses") or ()
            if pod["spec"].get("restartPolicy") == "OnFailure"
        )
        failed, limit = status.get("failed", 0), spec.get("backoffLimit", 6)
        # Restarts are compared otherwise than failed pods, as in pastBackoffLimitOnFailure.
        if failed > limit or (restarts and restarts >= max(limit, 1)):
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if deadline is not None and deadline <= self.view.now and not spec.get("suspend"):
            return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
        done = succeeded >= completions if completions is not None else bool(succeeded) and not self._active
        if done:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def _deadline(self) -> datetime | None:
        seconds, started = self.owner["spec"].get("activeDeadlineSeconds"), self.owner["status"].get("startTime")
        return parse_time(started) + timedelta(seconds=seconds) if seconds is not None and started else None

    def _finish(self, name: str, reason: str, message: str) -> Outcome:
        """End the Job: its other pods are deleted first, and the final condition follows when they are gone."""
        interim = "SuccessCriteriaMet" if name == "Complete" else "FailureTarget"
        conditions: list[Manifest] = list(self.owner["status"].get("conditions") or ())
        if find_condition(conditions, interim) is None:
            conditions.append(self._condition(interim, reason, message))
        status = self._with_counts(self.owner["status"])
        if self._active or any(map(is_tracked, self.pods)) or status.get("terminating"):
            status["conditions"] = conditions
            return Outcome((*update_status(self.owner, status), *self._deletes(len(self._active))))
        conditions.append(self._condition(name, reason, message))
        ended = {"completionTime": self.view.timestamp} if name == "Complete" else {}
        event = (
            Event(self.owner, "Completed", "Job completed")
            if name == "Complete"
            else Event(self.owner, reason, message, warning=True)
        )
        return Outcome(tuple(update_status(self.owner, {**status, **ended, "conditions": conditions})), None, (event,))

    def _condition(self, name: str, reason: str, message: str, status: str = "True") -> dict[str, Any]:
        times = {"lastProbeTime": self.view.timestamp, "lastTransitionTime": self.view.timestamp}
        return {"type": name, "status": status, **times, "reason": reason, "message": message}

    def _suspension(self) -> Manifest:
        """Return the conditions of a Job that was suspended or resumed."""
        conditions = self.owner["status"].get("conditions") or []
        known, suspended = find_condition(conditions, "Suspended"), bool(self.owner["spec"].get("suspend"))
        if (known is None and not suspended) or (known is not None and (known["status"] == "True") == suspended):
            return {}
        new = (
            self._condition("Suspended", "JobSuspended", "Job suspended")
            if suspended
            else self._condition("Suspended", "JobResumed", "Job resumed", "False")
        )
        started = {} if suspended else {"startTime": self.view.timestamp}
        others = [new if each is known else each for each in conditions] + ([] if known else [new])
        return {**started, "conditions": others}

    def _suspension_event(self, status: Manifest) -> tuple[Event, ...]:
        if status.get("conditions") == self.owner["status"].get("conditions"):
            return ()
        suspended = is_condition_true(status.get("conditions"), "Suspended")
        name = "Suspended" if suspended else "Resumed"
        return (Event(self.owner, name, f"Job {name.lower()}"),)

    def _retry_at(self) -> datetime | None:
        """Return when the next pod may be created after failures, by exponential backoff."""
        ends: dict[str, list[datetime]] = {"Succeeded": [], "Failed": []}
        for pod in self.pods:
            # Pods that have not ended are thrown away with the list.
            ends.get(pod["status"].get("phase", ""), []).append(ended_at(pod))
        # Failures since the last success count.
        last_success = max(ends["Succeeded"], default=None)
        failures = [end for end in ends["Failed"] if last_success is None or end > last_success]
        if not failures:
            return None
        delay: timedelta = min(_FIRST_BACKOFF * 2 ** (len(failures) - 1), _LONGEST_BACKOFF)
        return max(failures) + delay

    def _scale(self) -> Iterator[Action]:
        """Yield the creates and deletes that bring the number of active pods to what the spec asks for."""
        spec, active = self.owner["spec"], len(self._active)
        completions, succeeded = spec.get("completions"), self.owner["status"].get("succeeded", 0)
        parallelism = spec.get("parallelism", 1)
        if completions is None:
            # A work queue: after the first success there is no more work, so the pods that run are the last ones.
            wanted = active if succeeded else parallelism
        else:
            wanted = min(parallelism, completions - succeeded)
        waits = spec.get("podReplacementPolicy") == "Failed"
        terminating = sum(is_deleted(pod) and not is_finished(pod) for pod in self.pods) if waits else 0
        if active > wanted:
            yield from self._deletes(active - wanted)
        elif active + terminating < wanted:
            yield from self._creates(wanted - active - terminating)

    def _creates(self, count: int) -> Iterator[Action]:
        indexes: list[int | None] = [None] * count
        if self._indexed:
            taken = self._indexes | {index_of(pod) for pod in self._active}
            free = (each for each in range(self.owner["spec"]["completions"]) if each not in taken)
            indexes = [index for index, _ in zip(free, range(count), strict=False)]
        done = Event(self.owner, "SuccessfulCreate", "Created pod: {name}")
        failed = Event(self.owner, "FailedCreate", "Error creating: {error}", warning=True)
        for index in indexes:
            yield create(pod_of_job(self.owner, index), done, failed)

    def _deletes(self, count: int) -> Iterator[Action]:
        done = Event(self.owner, "SuccessfulDelete", "Deleted pod: {name}")
        for pod in deletion_order(self._active, self._active, self.view.now)[:count]:
            yield delete(pod, done)
