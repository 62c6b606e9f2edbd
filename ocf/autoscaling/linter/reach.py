"""Findings about targets that the measured values never reach, computed as the controller does.

The controller compares whole percents or thousandths with the target, ignores ratios within the tolerance, and rounds
the number of pods up.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ocf.autoscaling.algorithm import Tolerances
from ocf.autoscaling.algorithm.arithmetic import ceil32, ratio
from ocf.autoscaling.linter.findings import Code, Finding, Severity
from ocf.autoscaling.targets.pod_resources import PodResources
from ocf.objects import Manifest, Quantity
from ocf.objects.paths import get_field
from ocf.schema.metric_sources import RESOURCE_METRICS, source_field

__all__ = ["always_up", "flat_memory", "reach_findings"]

_WHOLE: Final = 100
_MILLI: Final = 1000
# Bytes that each process uses, however small it is.
_LEAST_MEMORY: Final = 128 * 1024
# A target of so many times the request, or of so many cores, is more likely a slip than a wish.
_FAR: Final = 20
_MANY_CORES: Final = 32
_AT_THE_LIMIT: Final = {
    "cpu": "A container at its cpu limit is throttled.",
    "memory": "A container at its memory limit is killed (OOMKilled).",
}


class _Target(NamedTuple):
    """A target of a resource metric.

    Args:
        field: `averageUtilization` or `averageValue`.
        number: Percent, or thousandths.
    """

    field: str
    number: int
    text: str

    @classmethod
    def of(cls, target: Mapping[str, Any]) -> "_Target | None":
        if "averageUtilization" in target:
            return cls("averageUtilization", target["averageUtilization"], f"{target['averageUtilization']} percent")
        if "averageValue" in target:
            value = Quantity.parse(target["averageValue"])
            return cls("averageValue", value.milli, str(value))
        return None


class _Limit(NamedTuple):
    """A target that the limits of the pods never let the usage exceed."""

    path: str
    allowed: str
    target: str
    resource: str


def flat_memory(target: Mapping[str, Any], path: str, spec: Manifest, tolerances: Tolerances) -> Iterator[Finding]:
    """Find a memory target, and compute to which average memory must fall for the last step down.

    Args:
        spec: The spec of the HPA, with its defaults.

    Yields:
        One finding, unless it never scales down, which has a finding of its own.
    """
    least = max(spec["minReplicas"], 1)
    wanted = _Target.of(target)
    disabled = get_field(spec, ("behavior", "scaleDown", "selectPolicy")) == "Disabled"
    if wanted is None or disabled or 0.0 in tolerances or least >= spec["maxReplicas"]:
        return
    enough = _highest_that_removes_a_pod(wanted.number, least + 1, tolerances)
    if wanted.field == "averageUtilization":
        average = f"{enough} percent"
    else:
        # Fractions of a byte would show an amount that users cannot write with a binary suffix.
        average = str(Quantity.from_milli(enough // _MILLI * _MILLI, binary=True))
    reasons = "because the controller rounds up"
    # Only if the tolerance is what keeps the pod; for few pods, rounding up alone may ask for more.
    if enough < _highest_that_removes_a_pod(wanted.number, least + 1, Tolerances(0.0, 0.0)):
        reasons = f"because the controller ignores a difference of {tolerances.down * _WHOLE:g} percent"
    yield Finding(
        Code.FLAT_MEMORY,
        Severity.INFO,
        path,
        f"Memory seldom falls with the load, and to scale from {least + 1} pods to {least} the average has to fall "
        f"to {average}, {reasons}.",
        "Use a metric of the load, or make sure that the process releases memory.",
    )


def _highest_that_removes_a_pod(target: int, pods: int, tolerances: Tolerances) -> int:
    """Return the highest average for which the controller wants fewer pods; a lower one has the same effect."""
    lowest, highest = 0, target
    while lowest < highest:
        middle = (lowest + highest + 1) // 2
        share = ratio(middle, target)
        if share not in tolerances and ceil32(share * pods) < pods:
            lowest = middle
        else:
            highest = middle - 1
    return lowest


def always_up(target: Mapping[str, Any], path: str, requested: int | None) -> Iterator[Finding]:
    """Find a memory target below what any process uses.

    Args:
        requested: Thousandths of bytes that a pod or the container requests; None if that is not known.
    """
    wanted = _Target.of(target)
    if wanted is None:
        return
    amount: int | None = wanted.number
    if wanted.field == "averageUtilization":
        amount = None if not requested else requested * wanted.number // _WHOLE
    if amount is None or amount >= _LEAST_MEMORY * _MILLI:
        return
    whose = "" if wanted.field == "averageValue" else " by its requests"
    yield Finding(
        Code.ALWAYS_UP,
        Severity.ERROR,
        f"{path}.target.{wanted.field}",
        f"The target is {amount / _MILLI:g} bytes of memory per pod{whose}, which any process exceeds, so it scales to "
        "maxReplicas and stays there.",
        "Write the amount with its unit, such as 500Mi: without one it is in bytes, and m means thousandths.",
    )


def reach_findings(spec: Manifest, pods: PodResources | None, tolerances: Tolerances) -> Iterator[Finding]:
    """Find targets that can never be exceeded, or only with resources that are not guaranteed.

    Args:
        spec: The spec of the HPA, with its defaults.
        pods: The pods of its target; None if they are not known.

    Yields:
        An error if no metric can exceed its target; otherwise a warning, since another metric may.
    """
    if pods is None or get_field(spec, ("behavior", "scaleUp", "selectPolicy")) == "Disabled":
        return
    if any(pods.requests_above_limits()):
        return  # There are no such pods.
    unreachable = []
    for position, metric in enumerate(spec["metrics"]):
        field = source_field(metric.get("type", ""))
        source = metric.get(field)
        if metric.get("type") not in RESOURCE_METRICS or source is None:
            continue
        found = _reach(source, f"spec.metrics[{position}].{field}", pods, tolerances)
        if isinstance(found, Finding):
            yield found
        elif found is not None:
            unreachable.append(found)
    only = len(unreachable) == len(spec["metrics"])
    for limit in unreachable:
        yield Finding(
            Code.NEVER_UP,
            Severity.ERROR if only else Severity.WARNING,
            limit.path,
            f"The limits allow {limit.allowed}, which never exceeds the target of {limit.target} by more than the "
            f"tolerance of {tolerances.up * _WHOLE:g} percent, so "
            + ("it never scales up." if only else "this metric never scales up, only another one.")
            + f" {_AT_THE_LIMIT.get(limit.resource, '')}",
            "Lower the target, or raise the limits.",
        )


def _reach(source: Manifest, path: str, pods: PodResources, tolerances: Tolerances) -> Finding | _Limit | None:
    resource, container = source.get("name", ""), source.get("container")
    target = _Target.of(source.get("target", {}))
    if target is None:
        return None
    path = f"{path}.target.{target.field}"
    if target.field == "averageValue":
        usage = pods.highest_usage(resource, container)
        if usage is None:
            return _far_beyond(target, path, resource, pods.requested(resource, container))
        shown = f"{_shown(usage, resource)} per pod"
        return None if _exceeds(usage, target.number, tolerances) else _Limit(path, shown, target.text, resource)
    percent = pods.highest_utilization(resource, container)
    if percent is None:
        return _unbounded(path, resource) if target.number > _WHOLE else None
    shown = f"{percent} percent of the requests"
    return None if _exceeds(percent, target.number, tolerances) else _Limit(path, shown, target.text, resource)


def _far_beyond(target: _Target, path: str, resource: str, requested: int | None) -> Finding | None:
    """Find an amount that pods without a limit hardly ever use: of that kind are percentages written as amounts."""
    if requested:
        if target.number < _FAR * requested:
            return None
        known = (
            f"a pod requests {_shown(requested, resource)}, and this target is {target.number // requested} times that"
        )
    elif resource == "cpu" and target.number >= _MANY_CORES * _MILLI:
        known = f"this target is {target.text} cores in each pod"
    else:
        return None
    return Finding(
        Code.NEVER_UP,
        Severity.WARNING,
        path,
        f"An averageValue is an amount per pod: {known}, so this metric hardly ever scales up.",
        "Lower the amount, or use averageUtilization for a percentage of the requests.",
    )


def _shown(amount: int, resource: str) -> str:
    return str(Quantity.from_milli(amount, binary=resource == "memory"))


def _exceeds(highest: int, target: int, tolerances: Tolerances) -> bool:
    share = ratio(highest, target)
    return share > 1.0 and share not in tolerances


def _unbounded(path: str, resource: str) -> Finding:
    return Finding(
        Code.UNBOUNDED_UTILIZATION,
        Severity.WARNING,
        path,
        f"Above 100 percent the pods use {resource} that they did not request and that is not reserved for them; "
        "without limits, other pods on the node decide whether the target is ever reached.",
        "Request what is needed and use a target below 100, or set limits.",
    )
