"""Validation of the status of Jobs.

Most rules hold only if the parts of the status that they compare have changed, so that other updates of a status that
violates them stay possible. Source: `pkg/apis/batch/validation/validation.go` and `pkg/registry/batch/job/strategy.go`
of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ocf.objects import Manifest
from ocf.objects.field_errors import OMITTED, FieldError, duplicate, invalid, required
from ocf.objects.json_equality import equal_json
from ocf_server.validation.fields import nonnegative
from ocf_server.validation.job_indexes import IndexesError, index_interval, index_intervals
from ocf_server.validation.metadata import metadata_update_errors

__all__ = ["job_status_errors"]

_Json: TypeAlias = Mapping[str, Any]

_COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")
_TERMINAL: Final = ("Failed", "Complete", "FailureTarget")


@dataclass(frozen=True, slots=True)
class _Update:
    """An update of the status."""

    spec: _Json
    new: _Json
    old: _Json

    def has(self, condition: str) -> bool:
        """Return whether a condition is true in the new status."""
        return _is_true(self.new, condition)

    def changed(self, *names: str) -> bool:
        """Return whether a condition or a field differs; the names of conditions start with a capital letter."""
        return any(self._value(self.new, name) != self._value(self.old, name) for name in names)

    @staticmethod
    def _value(status: _Json, name: str) -> Any:
        if name == "Finished":
            return _is_true(status, "Complete") or _is_true(status, "Failed")
        return _is_true(status, name) if name[0].isupper() else status.get(name)

    @property
    def finished(self) -> bool:
        """Whether the Job is complete or failed."""
        return bool(self._value(self.new, "Finished"))

    @property
    def is_indexed(self) -> bool:
        """Whether each pod of the Job has an index."""
        return self.spec.get("completionMode") == "Indexed"


def _is_true(status: _Json, condition: str, value: str = "True") -> bool:
    conditions = status.get("conditions") or ()
    return any(each.get("type") == condition and each.get("status") == value for each in conditions)


def job_status_errors(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    """Validate an update of the status of a Job.

    Args:
        new: The Job with the new status.

    Yields:
        The errors.
    """
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    update = _Update(new["spec"], new.get("status") or {}, live.get("status") or {})
    yield from _count_errors(update)
    yield from _complete_errors(update)
    yield from _finished_errors(update)
    yield from _index_errors(update)
    yield from _pod_count_errors(update)
    yield from _success_errors(update)
    yield from _transition_errors(update)


def _conditions(detail: str) -> FieldError:
    return invalid("status.conditions", OMITTED, detail)


def _count_errors(update: _Update) -> Iterator[FieldError]:
    for name in _COUNTS:
        yield from nonnegative(update.new.get(name), f"status.{name}")
    pods = update.new.get("uncountedTerminatedPods") or {}
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(pods.get(name) or ()):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                yield invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield duplicate(path, uid)
            seen.add(uid)


def _complete_errors(update: _Update) -> Iterator[FieldError]:
    complete, status = update.has("Complete"), update.new
    start, completion = status.get("startTime"), status.get("completionTime")
    if complete and update.has("Failed") and update.changed("Complete", "Failed"):
        yield _conditions("cannot set Complete=True and Failed=true conditions")
    if complete and update.has("FailureTarget") and update.changed("Complete", "FailureTarget"):
        yield _conditions("cannot set Complete=True and FailureTarget=true conditions")
    if update.changed("Complete", "completionTime"):
        if completion and not complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            yield invalid("status.completionTime", completion, detail)
        if complete and not completion:
            yield required("status.completionTime", "completionTime is required for Complete jobs")
    if start and completion and completion < start and update.changed("startTime", "completionTime"):
        yield invalid("status.completionTime", completion, "must be equal to or after `startTime`")


def _finished_errors(update: _Update) -> Iterator[FieldError]:
    status, spec = update.new, update.spec
    if update.has("Failed") and not update.has("FailureTarget") and update.changed("Failed", "failedIndexes"):
        yield _conditions("cannot set Failed=True condition without the FailureTarget=true condition")
    lacks_criteria = update.has("Complete") and not update.has("SuccessCriteriaMet")
    if lacks_criteria and update.changed("Complete", "SuccessCriteriaMet"):
        yield _conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
    if not update.finished:
        return
    active, pods = status.get("active", 0), status.get("uncountedTerminatedPods") or {}
    if active > 0 and update.changed("Finished", "active"):
        yield invalid("status.active", active, "active>0 is invalid for finished job")
    is_empty = bool(spec.get("suspend")) and spec.get("completions") == 0
    if not status.get("startTime") and not is_empty and update.changed("Finished", "startTime"):
        yield required("status.startTime", "startTime is required for finished job")
    changed = update.changed("Finished") or not equal_json(pods, update.old.get("uncountedTerminatedPods") or {})
    if changed and any(pods.values()):
        shown = {"Succeeded": pods.get("succeeded"), "Failed": pods.get("failed")}
        yield invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job")


def _index_errors(update: _Update) -> Iterator[FieldError]:
    status, spec = update.new, update.spec
    completed, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    completions = spec.get("completions")
    per_index = spec.get("backoffLimitPerIndex")
    changed = {name: update.changed(name) for name in ("completedIndexes", "failedIndexes")}
    if changed["completedIndexes"] and completions is not None:
        yield from _format_errors("completedIndexes", completed, completions)
    if changed["failedIndexes"] and completions is not None and per_index is not None and failed is not None:
        yield from _format_errors("failedIndexes", failed, completions)
    if changed["completedIndexes"] and completed and not update.is_indexed:
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield invalid("status.completedIndexes", completed, detail)
    if changed["failedIndexes"] and per_index is None and failed is not None:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield invalid("status.failedIndexes", failed, detail)
    if any(changed.values()) and completions is not None and failed:
        common = _indexes(completed, completions) & _indexes(failed, completions)
        if common:
            detail = f"failedIndexes and completedIndexes overlap at index: {min(common)}"
            yield invalid("status.failedIndexes", failed, detail)


def _format_errors(name: str, text: str, completions: int) -> Iterator[FieldError]:
    try:
        for _ in index_intervals(text, completions):
            pass
    except IndexesError as error:
        yield invalid(f"status.{name}", text, f"error parsing {name}: {error}")


def _indexes(text: str, completions: int) -> set[int]:
    """Return the indexes in the well-formed intervals of a text."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        try:
            first, last = index_interval(part, completions)
        except IndexesError:
            continue
        found.update(range(first, last + 1))
    return found


def _pod_count_errors(update: _Update) -> Iterator[FieldError]:
    status = update.new
    terminating, ready, active = status.get("terminating", 0), status.get("ready"), status.get("active", 0)
    if terminating > 0 and update.finished and update.changed("Finished", "terminating"):
        yield invalid("status.terminating", terminating, "terminating>0 is invalid for finished job")
    if ready is not None and ready > active and update.changed("ready", "active"):
        yield invalid("status.ready", ready, "cannot set more ready pods than active")


def _success_errors(update: _Update) -> Iterator[FieldError]:
    met = update.has("SuccessCriteriaMet")
    if met and update.has("Failed"):
        yield _conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and update.has("FailureTarget"):
        yield _conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if update.spec.get("successPolicy") is not None and not met and update.has("Complete"):
        yield _conditions("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")


def _transition_errors(update: _Update) -> Iterator[FieldError]:
    new, old, spec = update.new, update.old, update.spec
    for name in _TERMINAL:
        if _is_true(old, name) and not update.has(name):
            yield _conditions(f"cannot disable the terminal {name}=True condition")
    if new.get("failed", 0) < old.get("failed", 0):
        yield invalid("status.failed", new.get("failed", 0), "cannot decrease the failed counter")
    scaled = update.is_indexed and spec.get("completions") == spec.get("parallelism")
    if new.get("succeeded", 0) < old.get("succeeded", 0) and not scaled:
        yield invalid("status.succeeded", new.get("succeeded", 0), "cannot decrease the succeeded counter")
    times = {name: (old.get(name), new.get(name)) for name in ("completionTime", "startTime")}
    if None not in times["completionTime"] and update.changed("completionTime"):
        yield invalid("status.completionTime", new["completionTime"], "field is immutable")
    resuming = _is_true(old, "Suspended") and _is_true(new, "Suspended", "False")
    if times["startTime"][0] and update.changed("startTime") and not resuming and not spec.get("suspend"):
        detail = "field is immutable for unsuspended job once set"
        yield invalid("status.startTime", new.get("startTime"), detail)
    if _is_true(old, "SuccessCriteriaMet") and not update.has("SuccessCriteriaMet"):
        yield _conditions("cannot disable the SuccessCriteriaMet=True condition")
    if _is_true(old, "Complete") and not _is_true(old, "SuccessCriteriaMet") and update.has("SuccessCriteriaMet"):
        yield _conditions("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
