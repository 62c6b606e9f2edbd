"""Mistakes in Jobs and CronJobs."""

from typing import Any, Final

from scripts.record.validation_cases.pods import METADATA, pod_mistakes, pod_spec
from scripts.record.validation_cases.table import REMOVED, Mistake, Table, at, together

__all__ = ["TABLES"]

_RULE: Final[dict[str, Any]] = {
    "action": "FailJob",
    "onExitCodes": {"containerName": "web", "operator": "In", "values": [1, 2]},
}


def _template(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(restartPolicy="Never", **fields)}


def _job(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": _template(), **spec}}


def _cron_job(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    template = {"spec": {"template": _template()}}
    body = {"schedule": "*/5 * * * *", "jobTemplate": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": body}


def _job_mistakes(prefix: str, *, every: int) -> tuple[Mistake, ...]:
    def field(name: str, *values: Any) -> tuple[Mistake, ...]:
        return at(f"{prefix}.{name}", *values)

    def fields(*edits: tuple[str, Any]) -> tuple[Mistake, ...]:
        return together(*((f"{prefix}.{name}", value) for name, value in edits))

    policy, success = "podFailurePolicy", "successPolicy"
    return (
        *field("parallelism", -1, 0, 3),
        *field("completions", -1, 0, 3),
        *field("backoffLimit", -1, 0),
        *field("activeDeadlineSeconds", -1, 0, 5),
        *field("ttlSecondsAfterFinished", -1, 0),
        *field("backoffLimitPerIndex", -1, 1),
        *field("maxFailedIndexes", -1, 1),
        *field("completionMode", "Indexed", "Other", ""),
        *fields(("completionMode", "Indexed"), ("completions", 3)),
        *fields(("completionMode", "Indexed"), ("completions", 3), ("maxFailedIndexes", 5)),
        *fields(
            ("completionMode", "Indexed"), ("completions", 3), ("maxFailedIndexes", 5), ("backoffLimitPerIndex", 1)
        ),
        *fields(("completionMode", "Indexed"), ("completions", 200_000), ("backoffLimitPerIndex", 1)),
        *fields(
            ("completionMode", "Indexed"),
            ("completions", 200_000),
            ("parallelism", 100_001),
            ("maxFailedIndexes", 100_001),
            ("backoffLimitPerIndex", 1),
        ),
        *at(f"{prefix}.suspend", True),
        *at(f"{prefix}.manualSelector", True, False),
        *field("podReplacementPolicy", "Failed", "Other", "TerminatingOrFailed"),
        *field("managedBy", "a.b/c", "x", "", "A b/c", f"a.b/{'x' * 60}", "a.b/c d"),
        *field("selector", {"matchLabels": {"app": "web"}}, {}, {"matchLabels": {"app": "other"}}),
        *fields(("selector", {"matchLabels": {"app": "web"}}), ("manualSelector", True)),
        *fields(("selector", {"matchLabels": {"app": "other"}}), ("manualSelector", True)),
        *fields(("selector", {"matchExpressions": [{"key": "a", "operator": "In"}]}), ("manualSelector", True)),
        *field(policy, {"rules": [_RULE]}, {"rules": []}, {"rules": [{}]}, {"rules": [{"action": "Other"}]}),
        *field(policy, {"rules": [{**_RULE, "action": "FailIndex"}]}, {"rules": [_RULE] * 21}),
        *field(policy, {"rules": [{**_RULE, "onPodConditions": [{"type": "a b", "status": "Maybe"}]}]}),
        *field(policy, {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}),
        *field(policy, {"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [0, 1, 1]}}]}),
        *field(policy, {"rules": [{"action": "Count", "onExitCodes": {"operator": ""}}]}),
        *field(policy, {"rules": [{"action": "Count", "onExitCodes": {"operator": "Out", "values": [3, 2]}}]}),
        *field(policy, {"rules": [{"action": "Count", "onExitCodes": {**_RULE["onExitCodes"], "containerName": "x"}}]}),
        *fields((policy, {"rules": [_RULE]}), ("podReplacementPolicy", "TerminatingOrFailed")),
        *fields((policy, {"rules": [_RULE]}), ("template.spec.restartPolicy", "OnFailure")),
        *field(success, {"rules": [{"succeededCount": 1}]}),
        *(
            mistake
            for rule in (
                {},
                {"succeededCount": 1},
                {"succeededCount": 9},
                {"succeededCount": -1},
                {"succeededIndexes": "0-2"},
                {"succeededIndexes": "0,9"},
                {"succeededIndexes": "2,1"},
                {"succeededIndexes": "a"},
                {"succeededIndexes": "2-1"},
                {"succeededIndexes": "1-2-3"},
                {"succeededIndexes": "0-1", "succeededCount": 3},
            )
            for mistake in fields(("completionMode", "Indexed"), ("completions", 5), (success, {"rules": [rule]}))
        ),
        *fields(("completionMode", "Indexed"), ("completions", 5), (success, {"rules": []})),
        *field("template.spec.restartPolicy", "Always", "OnFailure", REMOVED, "x", ""),
        *field("template.metadata.labels", {"a b": "c"}, REMOVED, {"job-name": "other"}),
        *field("template.metadata.labels", {"batch.kubernetes.io/controller-uid": "x"}),
        *field("template", {}, REMOVED),
        *pod_mistakes(f"{prefix}.template.spec", every=every),
    )


_JOB_CHANGES: Final = (
    *at("spec.completions", 5, REMOVED),
    *at("spec.parallelism", 5, 0),
    *at("spec.backoffLimit", 1),
    *at("spec.suspend", True, False),
    *at("spec.ttlSecondsAfterFinished", 5),
    *at("spec.activeDeadlineSeconds", 5),
    *at("spec.completionMode", "Indexed"),
    *at("spec.selector", {"matchLabels": {"app": "web"}}, REMOVED),
    *at("spec.template.spec.containers[0].image", "nginx:2"),
    *at("spec.template.spec.containers[0].resources.limits.cpu", "3"),
    *at("spec.template.spec.nodeSelector", {"a": "b"}),
    *at("spec.template.metadata.annotations", {"a": "b"}),
    *at("spec.template.spec.tolerations", [{"key": "a", "operator": "Exists"}]),
    *at("spec.template.metadata.labels", {"app": "web"}),
    *at("spec.podFailurePolicy", {"rules": [_RULE]}),
    *at("spec.managedBy", "a.b/c"),
    *at("spec.manualSelector", True),
    *at("spec.backoffLimitPerIndex", 1),
    *at("metadata.labels", {"a": "b"}, {}),
    *together(("spec.completions", 5), ("spec.parallelism", 5)),
)
_SCHEDULES: Final = (
    "",
    "* * * *",
    "* * * * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * * 13 *",
    "* * * * 7",
    "5-1 * * * *",
    "*/0 * * * *",
    "*/x * * * *",
    "a * * * *",
    "1-2-3 * * * *",
    "1/2/3 * * * *",
    "-1 * * * *",
    "0 0 1 jan mon-fri",
    "0 0 1 foo *",
    "? * * * ?",
    "1,2,,3 * * * *",
    "@daily",
    "@every 5m",
    "@every x",
    "@never",
    "TZ=UTC * * * * *",
    "CRON_TZ=Nowhere * * * * *",
    "99999999999999999999 * * * *",
    "0 0 31 2 *",
)
_ZONES: Final = (
    "UTC",
    "Europe/Berlin",
    "Nowhere/Else",
    "",
    "Local",
    "local",
    "../etc",
    "a b",
    "-x/y",
    "x" * 20,
)

TABLES: Final = (
    Table(
        kind="Job",
        bases={"plain": _job("web")},
        stored={
            "plain": _job("stored-plain"),
            "indexed": _job("stored-indexed", completionMode="Indexed", completions=3, parallelism=3),
            "suspended": _job("stored-suspended", suspend=True),
        },
        mistakes=(*METADATA, *_job_mistakes("spec", every=9)),
        changes=_JOB_CHANGES,
        pairs=40,
    ),
    Table(
        kind="CronJob",
        bases={"plain": _cron_job("web")},
        stored={"plain": _cron_job("stored-plain", timeZone="UTC")},
        mistakes=(
            *METADATA,
            *at("metadata.name", "x" * 52, "x" * 53),
            *(mistake for schedule in _SCHEDULES for mistake in at("spec.schedule", schedule)),
            *(mistake for zone in _ZONES for mistake in at("spec.timeZone", zone)),
            *at("spec.concurrencyPolicy", "Forbid", "Other", ""),
            *at("spec.startingDeadlineSeconds", -1, 0),
            *at("spec.successfulJobsHistoryLimit", -1, 0),
            *at("spec.failedJobsHistoryLimit", -1, 0),
            *at("spec.suspend", True),
            *at("spec.jobTemplate", {}, REMOVED),
            *_job_mistakes("spec.jobTemplate.spec", every=11),
        ),
        changes=(
            *at("spec.schedule", "@hourly", "x"),
            *at("spec.timeZone", "Europe/Paris", "x y", REMOVED),
            *at("spec.suspend", True),
            *at("spec.jobTemplate.spec.template.spec.containers[0].image", "nginx:2", ""),
        ),
        pairs=30,
    ),
)
