"""Updates of the status of Jobs, valid and invalid ones, for `scripts/record/sequences.py`."""

from collections.abc import Iterator
from typing import Any, Final

Json = dict[str, Any]

NAMESPACE: Final = "statuses"
_PATH: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
_START: Final = "2026-01-02T03:04:05Z"
_END: Final = "2026-01-02T04:00:00Z"
_INDEXED: Final[Json] = {"completionMode": "Indexed", "completions": 5, "parallelism": 2}


def _request(method: str, path: str, body: Json) -> Json:
    return {"method": method, "path": path, "body": body, "kind": "application/json"}


def _conditions(*names: str, **others: str) -> list[Json]:
    values = {**dict.fromkeys(names, "True"), **others}
    return [{"type": name, "status": value, "lastTransitionTime": _END} for name, value in values.items()]


def _job(name: str, **spec: Any) -> Json:
    container = {"name": "work", "image": "work:1"}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template, **spec}}


_COMPLETE: Final[Json] = {
    "startTime": _START,
    "completionTime": _END,
    "succeeded": 1,
    "conditions": _conditions("SuccessCriteriaMet", "Complete"),
}
_FAILED: Final[Json] = {"startTime": _START, "failed": 1, "conditions": _conditions("FailureTarget", "Failed")}
_RUNNING: Final[Json] = {"startTime": _START, "active": 2, "ready": 1, "succeeded": 1, "failed": 1}

_SEQUENCES: Final[tuple[tuple[Json, tuple[Json, ...]], ...]] = (
    (
        {},
        (
            _RUNNING,
            {**_RUNNING, "failed": 0},
            {**_RUNNING, "succeeded": 0},
            {**_RUNNING, "startTime": _END},
            {"active": 1},
        ),
    ),
    (
        {},
        (_COMPLETE, {}, {**_COMPLETE, "completionTime": _START}, {**_COMPLETE, "active": 1}, {**_COMPLETE, "ready": 1}),
    ),
    (
        {},
        (
            _FAILED,
            {**_FAILED, "conditions": _conditions("Failed")},
            {**_FAILED, "terminating": 1},
            _COMPLETE,
            {"startTime": _START},
        ),
    ),
    ({}, tuple({name: -1} for name in ("active", "succeeded", "failed", "ready", "terminating"))),
    (
        {},
        (
            {**_COMPLETE, "conditions": _conditions("Complete")},
            {**_COMPLETE, "conditions": _conditions("Complete", "Failed")},
        ),
    ),
    ({}, ({**_COMPLETE, "conditions": _conditions("Complete", "FailureTarget", "SuccessCriteriaMet")},)),
    (
        {},
        (
            {**_COMPLETE, "completionTime": None},
            {**_COMPLETE, "startTime": None},
            {**_COMPLETE, "active": 1, "terminating": 2},
        ),
    ),
    (
        {},
        (
            {**_COMPLETE, "completionTime": "2026-01-01T00:00:00Z"},
            {"completionTime": _END},
            {"startTime": _START, "completionTime": _END},
        ),
    ),
    (
        {},
        (
            {**_FAILED, "conditions": _conditions("Failed")},
            {**_FAILED, "conditions": _conditions("Failed", "FailureTarget", "SuccessCriteriaMet")},
        ),
    ),
    (
        {},
        (
            {**_FAILED, "uncountedTerminatedPods": {"failed": ["a"]}},
            {**_COMPLETE, "uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b"]}},
        ),
    ),
    (
        {},
        (
            {"uncountedTerminatedPods": {"succeeded": ["a", "a"], "failed": ["a", ""]}},
            {"uncountedTerminatedPods": {"succeeded": ["a"]}},
        ),
    ),
    (
        {},
        (
            {"active": 1, "ready": 2},
            {"active": 2, "ready": 2},
            {"active": 1, "ready": 2},
            {"completedIndexes": "1"},
            {"failedIndexes": "1"},
        ),
    ),
    (
        _INDEXED,
        tuple(
            {"completedIndexes": text}
            for text in ("0-2,4", "0,0", "3-1", "5", "0-9", "x", "1-2-3", "1-x", "0,3-4", "", ",", "-1")
        ),
    ),
    (
        {**_INDEXED, "backoffLimitPerIndex": 1},
        tuple(
            {"completedIndexes": done, "failedIndexes": failed}
            for done, failed in (
                ("0-2", "3"),
                ("0-2", "2-3"),
                ("0,2", "1,2"),
                ("", "9"),
                ("x", "1"),
                ("0-3", "x,2"),
                ("1", ""),
                ("1", "y"),
            )
        ),
    ),
    (
        {**_INDEXED, "parallelism": 5},
        ({**_RUNNING, "succeeded": 3}, {**_RUNNING, "succeeded": 1}, {**_RUNNING, "failed": 0}),
    ),
    (
        {**_INDEXED, "successPolicy": {"rules": [{"succeededCount": 1}]}},
        (
            {**_COMPLETE, "conditions": _conditions("Complete")},
            {"conditions": _conditions("SuccessCriteriaMet")},
            {},
            _COMPLETE,
        ),
    ),
    (
        {"suspend": True},
        (
            {"startTime": _START, "conditions": _conditions("Suspended")},
            {"startTime": _END, "conditions": _conditions("Suspended")},
            {"startTime": _START, "conditions": _conditions(Suspended="False")},
        ),
    ),
    ({"suspend": True, "completions": 0}, ({**_COMPLETE, "startTime": None},)),
    (
        {},
        (
            {"conditions": _conditions("SuccessCriteriaMet")},
            {"conditions": _conditions("SuccessCriteriaMet", "FailureTarget")},
            {},
            {"conditions": _conditions("SuccessCriteriaMet", "Failed")},
        ),
    ),
    ({}, ({"conditions": _conditions("FailureTarget")}, {}, {"conditions": _conditions(FailureTarget="False")})),
)


def cases() -> Iterator[Json]:
    """Yield all cases: a Job, and updates of its status."""
    for index, (spec, statuses) in enumerate(_SEQUENCES):
        name = f"job-{index}"
        made = _job(name, **spec)
        updates = [
            _request(
                "PUT",
                f"{_PATH}/{name}/status",
                {**made, "status": {key: value for key, value in status.items() if value is not None}},
            )
            for status in statuses
        ]
        yield {
            "title": f"status of {name}",
            "namespace": NAMESPACE,
            "setup": [_request("POST", _PATH, made)],
            "requests": updates,
        }
