"""Approval and status of certificate signing requests.

Source: pkg/registry/certificates and pkg/apis/certificates/validation of Kubernetes 1.36. The request and the
certificate themselves are not parsed.
"""

from collections.abc import Iterator
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf.objects import Manifest

__all__ = ["approval_problems", "approved", "status_problems", "with_status"]

_PATH: Final = "status.conditions"
_DECISIONS: Final = ("Approved", "Denied")
_FINAL: Final = (*_DECISIONS, "Failed")
_STATUSES: Final = ("False", "True", "Unknown")

Json = dict[str, Any]


def _conditions(request: Manifest) -> list[Json]:
    found: list[Json] = (request.get("status") or {}).get("conditions") or []
    return found


def _of_type(request: Manifest, kind: str) -> list[Json]:
    return [condition for condition in _conditions(request) if condition.get("type") == kind]


def _with_times(request: Manifest, live: Manifest, now: str) -> list[Json]:
    return [_with_time(condition, live, now) for condition in _conditions(request)]


def _with_time(condition: Json, live: Manifest, now: str) -> Json:
    since = now
    for other in _of_type(live, condition.get("type", "")):
        if other.get("status") == condition.get("status") and other.get("lastTransitionTime"):
            since = other["lastTransitionTime"]
            break
    times = {"lastUpdateTime": now, "lastTransitionTime": since}
    return {**condition, **{name: condition.get(name) or value for name, value in times.items()}}


def approved(new: Manifest, live: Manifest, now: str) -> Manifest:
    """Return a request after a write of its approval: only the conditions change, and the metadata."""
    status = {name: value for name, value in live["status"].items() if name != "conditions"}
    if conditions := _with_times(new, live, now):
        status["conditions"] = conditions
    return {**new, "spec": live["spec"], "status": status}


def with_status(new: Manifest, live: Manifest, now: str) -> Manifest:
    """Return a request after a write of its status: approvals are those of before, and the spec is."""
    conditions = _conditions(new)
    for kind in _DECISIONS:
        known = iter(_of_type(live, kind))
        # A status write cannot touch a decision, but may not lose one either; validation reports the latter.
        if len(_of_type(live, kind)) == len(_of_type(new, kind)):
            conditions = [next(known) if one.get("type") == kind else one for one in conditions]
    status = {**(new.get("status") or {})}
    if conditions:
        status["conditions"] = _with_times({"status": {"conditions": conditions}}, live, now)
    return {**new, "spec": live["spec"], "status": status}


def approval_problems(new: Manifest, live: Manifest) -> Iterator[FieldProblem]:
    """Yield what is invalid in a write of the approval."""
    yield from _condition_problems(new, live)
    yield from _removals(new, live)


def status_problems(new: Manifest, live: Manifest) -> Iterator[FieldProblem]:
    """Yield what is invalid in a write of the status."""
    yield from _condition_problems(new, live)
    yield from _removals(new, live)
    for kind in _DECISIONS:
        if len(_of_type(new, kind)) > len(_of_type(live, kind)):
            yield FieldProblem(_PATH, f'Forbidden: updates may not add a condition of type "{kind}"')
    known = live["status"].get("certificate")
    if known and new["status"].get("certificate") != known:
        yield FieldProblem("status.certificate", "Forbidden: updates may not modify existing certificate content")


def _removals(new: Manifest, live: Manifest) -> Iterator[FieldProblem]:
    for kind in _FINAL:
        if len(_of_type(new, kind)) < len(_of_type(live, kind)):
            yield FieldProblem(_PATH, f'Forbidden: updates may not remove a condition of type "{kind}"')


def _condition_problems(new: Manifest, live: Manifest) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    both = all(_of_type(live, kind) for kind in _DECISIONS)
    for index, condition in enumerate(_conditions(new)):
        kind, path = condition.get("type") or "", f"{_PATH}[{index}]"
        if not kind:
            yield FieldProblem(f"{path}.type", "Required value")
        yield from _value_problems(condition, kind, path)
        if kind in _DECISIONS and not both and seen & ({*_DECISIONS} - {kind}):
            detail = f'Invalid value: "{kind}": Approved and Denied conditions are mutually exclusive'
            yield FieldProblem(_PATH, detail)
        if kind in seen:
            yield FieldProblem(f"{path}.type", f'Duplicate value: "{kind}"')
        seen.add(kind)


def _value_problems(condition: Json, kind: str, path: str) -> Iterator[FieldProblem]:
    allowed = ("True",) if kind in _FINAL else _STATUSES
    status = condition.get("status") or ""
    if not status:
        yield FieldProblem(f"{path}.status", "Required value")
    elif status not in allowed:
        values = ", ".join(f'"{value}"' for value in allowed)
        yield FieldProblem(f"{path}.status", f'Unsupported value: "{status}": supported values: {values}')
