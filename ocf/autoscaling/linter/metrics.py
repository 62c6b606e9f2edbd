"""Findings about metrics, with and without the pods of the target."""

from collections.abc import Hashable, Iterator
from typing import Any, Final

from ocf.autoscaling.algorithm import Tolerances
from ocf.autoscaling.linter.findings import Code, Finding, Severity
from ocf.autoscaling.linter.reach import always_up, flat_memory, reach_findings
from ocf.autoscaling.targets.missing_requests import missing_requests
from ocf.autoscaling.targets.pod_resources import PodResources
from ocf.errors import ManifestError
from ocf.objects import Manifest
from ocf.objects.paths import get_field
from ocf.objects.selectors import LabelSelector, selector_identity
from ocf.schema.metric_sources import RESOURCE_METRICS, TARGET_FIELDS, source_field

__all__ = ["metric_findings"]

_KNOWN_RESOURCES: Final = frozenset({"cpu", "memory"})
_WHOLE: Final = 100
# Below it, one whole percent is a larger step than the default tolerance of the controller.
_COARSE: Final = 10


def metric_findings(
    spec: Manifest, pods: PodResources | None, tolerances: Tolerances, *, explicit: bool
) -> Iterator[Finding]:
    """Find metrics that cannot work, or that do not work as intended.

    Args:
        spec: The spec of an HPA, with its defaults.
        pods: The pods of the target; None if they are not known.
        explicit: Whether the manifest has metrics; otherwise the API server sets a default.
    """
    if not explicit:
        yield Finding(
            Code.DEFAULT_METRIC,
            Severity.INFO,
            "spec.metrics",
            "Without metrics, the API server sets a target of 80 percent of the cpu requests.",
            "Write the metric explicitly, if this is intended.",
        )
    yield from _missing_requests(spec, pods, explicit=explicit)
    seen: dict[Hashable, int] = {}
    for position, metric in enumerate(spec["metrics"]):
        field = source_field(metric.get("type", ""))
        source = metric.get(field)
        if source is None:
            continue
        path = f"spec.metrics[{position}].{field}"
        first = seen.setdefault(_identity(metric["type"], source), position)
        if first != position:
            yield Finding(
                Code.DUPLICATE_METRIC,
                Severity.WARNING,
                f"spec.metrics[{position}]",
                f"It is the same metric as spec.metrics[{first}]; only the one that wants more pods counts.",
                "Keep one of them.",
            )
        yield from _source_findings(source, path)
        if metric["type"] in RESOURCE_METRICS:
            yield from _resource_findings(source, path)
            if source.get("name") == "memory":
                requested = None if pods is None else pods.requested("memory", source.get("container"))
                yield from always_up(source.get("target", {}), path, requested)
                yield from flat_memory(source.get("target", {}), path, spec, tolerances)
    yield from reach_findings(spec, pods, tolerances)


def _missing_requests(spec: Manifest, pods: PodResources | None, *, explicit: bool) -> Iterator[Finding]:
    if pods is None:
        utilizations = [position for position, metric in enumerate(spec["metrics"]) if _has_utilization(metric)]
        if utilizations:
            yield Finding(
                Code.UNKNOWN_REQUESTS,
                Severity.INFO,
                f"spec.metrics[{utilizations[0]}]",
                "A utilization is a percentage of the requests of all containers, and the target is not known.",
                "Lint the target together with its autoscaler.",
            )
        return
    for problem in missing_requests({"spec": spec}, pods, by_default=not explicit):
        unknown = problem.path.endswith("container")
        yield Finding(
            Code.UNKNOWN_CONTAINER if unknown else Code.MISSING_REQUEST,
            Severity.ERROR,
            problem.path,
            f"{problem.detail[0].upper()}{problem.detail[1:]}.",
            "Name a container of the target." if unknown else "Give every container a request, or use averageValue.",
        )


def _has_utilization(metric: Manifest) -> bool:
    source: Any = metric.get(source_field(metric.get("type", ""))) or {}
    return metric.get("type") in RESOURCE_METRICS and "averageUtilization" in source.get("target", {})


def _identity(kind: str, source: Manifest) -> Hashable:
    """Return the identity of a metric, which does not include its target."""
    described = source.get("describedObject", {})
    metric = source.get("metric", {})
    try:
        selector = selector_identity(metric.get("selector"))
    except (AttributeError, TypeError):
        # An invalid selector has a finding of its own, and equals no other.
        selector = id(source)
    names = (source.get("name"), source.get("container"), metric.get("name"))
    return kind, names, tuple(described.get(field) for field in ("apiVersion", "kind", "name")), selector


def _source_findings(source: Manifest, path: str) -> Iterator[Finding]:
    selector = get_field(source, ("metric", "selector"))
    if selector is not None:
        try:
            LabelSelector.of(selector)
        except ManifestError as error:
            problem = error.problems[0]
            yield Finding(
                Code.INVALID_SELECTOR,
                Severity.ERROR,
                f"{path}.metric.selector",
                f"The API server does not validate it, but the metrics API will reject it: {problem}.",
                "Fix the selector.",
            )
    target = source.get("target", {})
    field = TARGET_FIELDS.get(target.get("type", ""))
    if field and field not in target:
        found = next((each for each in TARGET_FIELDS.values() if each in target), "nothing")
        yield Finding(
            Code.MISMATCHED_TARGET,
            Severity.WARNING,
            f"{path}.target.type",
            f"The type {target['type']} belongs to {field}, but {found} is set; which of the two counts depends on the "
            "metric.",
            f"Set {field} for the type {target['type']}, or change the type.",
        )


def _resource_findings(source: Manifest, path: str) -> Iterator[Finding]:
    resource = source.get("name", "")
    if resource not in _KNOWN_RESOURCES:
        yield Finding(
            Code.UNKNOWN_RESOURCE,
            Severity.ERROR,
            f"{path}.name",
            f"The resource metrics API reports cpu and memory only, not {resource}.",
            "Use a Pods or External metric for it.",
        )
    utilization = source.get("target", {}).get("averageUtilization")
    if utilization is not None and utilization < _COARSE:
        yield Finding(
            Code.COARSE_UTILIZATION,
            Severity.INFO,
            f"{path}.target.averageUtilization",
            f"The controller rounds to whole percents, so around {utilization} one percent is a step of "
            f"{_WHOLE // max(utilization, 1)} percent.",
            "Lower the requests, and raise the target.",
        )
