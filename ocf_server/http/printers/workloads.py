"""Printers of workloads, autoscalers and disruption budgets."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.owner_references import controller_of
from ocf.objects.timestamps import parse_time
from ocf.schema.metric_sources import source_field
from ocf_server.http.printers.text import (
    NONE,
    UNKNOWN,
    UNSET,
    AgeClock,
    Cells,
    containers_of,
    duration,
    labels,
    selector,
    shortened,
)

__all__ = [
    "controller_revision",
    "cron_job",
    "daemon_set",
    "deployment",
    "disruption_budget",
    "horizontal_pod_autoscaler",
    "job",
    "pod_template",
    "replica_set",
    "replication_controller",
    "scale",
    "stateful_set",
]

_METRICS_SHOWN: Final = 2


def _parts(item: Manifest) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
    return item["metadata"]["name"], item.get("spec") or {}, item.get("status") or {}


def deployment(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a Deployment."""
    name, spec, status = _parts(item)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [name, ready, *counts, clock.age(item), *containers_of(spec["template"]), selector(spec.get("selector"))]


def _counted(item: Manifest, clock: AgeClock, selected: str) -> Cells:
    name, spec, status = _parts(item)
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name, *counts, clock.age(item), *containers_of(spec.get("template") or {}), selected]


def scale(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a Scale."""
    return [item["metadata"]["name"], item["spec"].get("replicas", 0), item["status"]["replicas"], clock.age(item)]


def replica_set(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a ReplicaSet."""
    return _counted(item, clock, selector(item["spec"].get("selector")))


def replication_controller(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a ReplicationController, whose selector is a map of labels."""
    return _counted(item, clock, labels(item["spec"].get("selector")))


def stateful_set(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a StatefulSet."""
    name, spec, status = _parts(item)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name, ready, clock.age(item), *containers_of(spec["template"])]


def daemon_set(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a DaemonSet."""
    name, spec, status = _parts(item)
    counted = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    counts = [status.get(field, 0) for field in (*counted, "numberAvailable")]
    nodes = labels(spec["template"].get("spec", {}).get("nodeSelector"))
    chosen = selector(spec.get("selector"))
    return [name, *counts, nodes, clock.age(item), *containers_of(spec["template"]), chosen]


_JOB_WORDS: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def job(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a Job."""
    name, spec, status = _parts(item)
    done, wanted, parallel = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism") or 0
    if wanted is not None:
        completions = f"{done}/{wanted}"
    else:
        completions = f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    chosen = selector(spec.get("selector"))
    took = _took(status, clock)
    return [name, _job_word(item), completions, took, clock.age(item), *containers_of(spec["template"]), chosen]


def _job_word(item: Manifest) -> str:
    conditions = (item.get("status") or {}).get("conditions") or ()
    true = {one["type"] for one in conditions if one.get("status") == "True"}
    for word in ("Complete", "Failed"):
        if word in true:
            return word
    if "deletionTimestamp" in item["metadata"]:
        return "Terminating"
    return next((word for word in _JOB_WORDS if word in true), "Running")


def _took(status: Mapping[str, Any], clock: AgeClock) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    if not end:
        return clock.since(start)
    return duration((parse_time(end) - parse_time(start)).total_seconds())


def cron_job(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a CronJob."""
    name, spec, status = _parts(item)
    suspend = {True: "True", False: "False", None: UNSET}[spec.get("suspend")]
    last = clock.since(status["lastScheduleTime"]) if status.get("lastScheduleTime") else NONE
    template = spec["jobTemplate"].get("spec") or {}
    return [
        name,
        spec["schedule"],
        spec.get("timeZone") or NONE,
        suspend,
        len(status.get("active") or ()),
        last,
        clock.age(item),
        *containers_of(template.get("template") or {}),
        selector(template.get("selector")),
    ]


def pod_template(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a PodTemplate."""
    del clock
    template = item.get("template") or {}
    chosen = labels((template.get("metadata") or {}).get("labels"))
    return [item["metadata"]["name"], *containers_of(template), chosen]


def controller_revision(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a ControllerRevision."""
    owner = controller_of(item)
    of = NONE
    if owner is not None:
        of = f"{owner.kind.lower()}{'.' + owner.group if owner.group else ''}/{owner.name}"
    return [item["metadata"]["name"], of, item.get("revision", 0), clock.age(item)]


def disruption_budget(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a PodDisruptionBudget."""
    name, spec, status = _parts(item)
    limits = [str(spec[field]) if field in spec else "N/A" for field in ("minAvailable", "maxUnavailable")]
    return [name, *limits, status.get("disruptionsAllowed", 0), clock.age(item)]


def horizontal_pod_autoscaler(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a HorizontalPodAutoscaler of `autoscaling/v1` or `autoscaling/v2`."""
    name, spec, status = _parts(item)
    target = spec["scaleTargetRef"]
    least = spec.get("minReplicas")
    current: list[Mapping[str, Any]] = list(status.get("currentMetrics") or ())
    found = list(_older_metrics(spec, status) if "metrics" not in spec else _metrics(spec["metrics"], current))
    return [
        name,
        f"{target['kind']}/{target['name']}",
        shortened(found, _METRICS_SHOWN, joint=", ") or NONE,
        UNSET if least is None else str(least),
        spec["maxReplicas"],
        status.get("currentReplicas", 0),
        clock.age(item),
    ]


def _older_metrics(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[str]:
    wanted = spec.get("targetCPUUtilizationPercentage")
    if wanted is not None:
        current = status.get("currentCPUUtilizationPercentage")
        yield f"cpu: {UNKNOWN if current is None else f'{current}%'}/{wanted}%"


def _metrics(specs: list[Mapping[str, Any]], current: list[Mapping[str, Any]]) -> Iterator[str]:
    for number, spec in enumerate(specs):
        source = source_field(spec["type"])
        if not source:
            yield "<unknown type>"
            continue
        seen = (current[number].get(source) or {}).get("current") or {} if number < len(current) else {}
        yield _metric(source, spec[source], seen)


def _metric(source: str, spec: Mapping[str, Any], seen: Mapping[str, Any]) -> str:
    target = spec["target"]
    prefix = f"{spec['name']}: " if source in ("resource", "containerResource") else ""
    if prefix and "averageValue" not in target:
        wanted = target.get("averageUtilization")
        return f"{prefix}{_percent(seen.get('averageUtilization'), UNKNOWN)}/{_percent(wanted, '<auto>')}"
    if "averageValue" in target:
        suffix = " (avg)" if source in ("external", "object") else ""
        return f"{prefix}{seen.get('averageValue', UNKNOWN)}/{target['averageValue']}{suffix}"
    return f"{seen.get('value', UNKNOWN)}/{target.get('value')}"


def _percent(number: int | None, missing: str) -> str:
    return missing if number is None else f"{number}%"
