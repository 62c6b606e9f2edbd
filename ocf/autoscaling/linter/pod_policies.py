"""Findings about objects that govern the pods of the target: VerticalPodAutoscalers and PodDisruptionBudgets."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ocf.autoscaling.linter.findings import Code, Finding, Severity
from ocf.autoscaling.linter.namespace_index import NamespaceIndex, folded
from ocf.autoscaling.targets.pod_resources import PodResources
from ocf.autoscaling.targets.targets import key_of, scale_target_key
from ocf.objects import Manifest
from ocf.objects.paths import get_field
from ocf.schema.metric_sources import RESOURCE_METRICS, source_field

__all__ = ["policy_findings", "vertical_metrics"]

_BOTH: Final = ("cpu", "memory")
_WHOLE: Final = 100


def policy_findings(
    hpa: Manifest, pods: PodResources | None, labels: Mapping[str, str] | None, index: NamespaceIndex
) -> Iterator[Finding]:
    """Find vertical autoscalers of the same resource, and budgets that let no pod go at minReplicas.

    Args:
        hpa: The HPA, with its defaults.
        pods: The resources of the pods of the target; None if they are not known.
        labels: The labels of these pods; None if they are not known.
        index: The objects of the namespace.
    """
    for vertical in index.vertical.get(folded(scale_target_key(hpa)), ()):
        yield from _vertical(hpa["spec"], pods, vertical)
    for budget in index.budgets(labels) if labels is not None else ():
        yield from _blocked_evictions(hpa["spec"], budget)


def _vertical(spec: Manifest, pods: PodResources | None, vpa: Manifest) -> Iterator[Finding]:
    for position, resource in vertical_metrics(spec, pods, vpa):
        yield Finding(
            Code.VERTICAL_AUTOSCALER,
            Severity.WARNING,
            f"spec.metrics[{position}].{source_field(spec['metrics'][position]['type'])}",
            f"VerticalPodAutoscaler {key_of(vpa).name} sets the {resource} requests of the same pods, of which the "
            "utilization is a percentage: each change of the requests changes the count, and the other way round.",
            f"Scale on averageValue or on another metric, take {resource} out of controlledResources of the "
            'VerticalPodAutoscaler, or set its updateMode to "Off".',
        )


def vertical_metrics(spec: Manifest, pods: PodResources | None, vpa: Manifest) -> Iterator[tuple[int, str]]:
    """Yield the positions of metrics that are a share of requests which a vertical autoscaler sets, and the resources.

    Args:
        spec: The spec of an HPA of the same target.
        pods: The pods of the target; None if they are not known.
    """
    if get_field(vpa, ("spec", "updatePolicy", "updateMode")) == "Off":
        return
    for position, metric in enumerate(spec.get("metrics") or ()):
        source = metric.get(source_field(metric.get("type", "")))
        if metric.get("type") not in RESOURCE_METRICS or "averageUtilization" not in get_field(source, ("target",)):
            continue
        resource, container = source.get("name", ""), source.get("container")
        names = [container] if container else ["*"] if pods is None else list(pods.names)
        if any(resource in _controlled(vpa, name) for name in names):
            yield position, resource


def _controlled(vpa: Manifest, container: str) -> Iterable[str]:
    """Return the resources whose requests a vertical autoscaler sets for a container."""
    found = get_field(vpa, ("spec", "resourcePolicy", "containerPolicies"))
    listed = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    # A list, because the name may be of any type: the file is one of the user's.
    policy = next(
        (each for name in (container, "*") for each in reversed(listed) if each.get("containerName") == name), {}
    )
    if policy.get("mode") == "Off":
        return ()
    resources = policy.get("controlledResources")
    return resources if isinstance(resources, list) else _BOTH


def _blocked_evictions(spec: Manifest, budget: Manifest) -> Iterator[Finding]:
    least = max(spec["minReplicas"], 1)
    field = "maxUnavailable" if get_field(budget, ("spec", "maxUnavailable")) is not None else "minAvailable"
    amount = get_field(budget, ("spec", field))
    if _evictable(field, amount, least) != 0:
        return
    enough = next((size for size in range(least, spec.get("maxReplicas", 0) + 1) if _evictable(field, amount, size)), 0)
    replicas = "1 replica" if least == 1 else f"{least} replicas"
    yield Finding(
        Code.BLOCKED_EVICTIONS,
        Severity.WARNING,
        "spec.minReplicas",
        f"PodDisruptionBudget {key_of(budget).name} has {field} {amount}, so with {replicas} no pod may be evicted, "
        f"and a node with one of them cannot be drained{' until the load rises' if enough else ''}.",
        _more_evictions(least, enough),
    )


def _more_evictions(least: int, enough: int) -> str:
    """Return how pods may be evicted; of a single pod an eviction leaves none.

    Args:
        enough: The lowest size with which the budget allows an eviction; 0 if there is none.
    """
    if least > 1:
        return "Use maxUnavailable 1 in the PodDisruptionBudget" + (
            f", or raise minReplicas to {enough}." if enough else "."
        )
    if enough:
        return (
            f"Raise minReplicas to {enough}; with 1 replica, maxUnavailable 1 in the PodDisruptionBudget also allows "
            "the eviction, and then no pod runs until the next one is ready."
        )
    return (
        "Use maxUnavailable 1 in the PodDisruptionBudget, with at least 2 replicas: of 1, no pod runs after the "
        "eviction until the next one is ready."
    )


def _evictable(field: str, amount: Any, size: int) -> int | None:
    """Return how many pods of a size may be evicted; None if the amount cannot be read.

    The disruption controller rounds percentages up, in both fields.
    """
    if isinstance(amount, bool):
        return None
    text = str(amount).removesuffix("%")
    if not text.isdecimal() or (isinstance(amount, str) and not amount.endswith("%")):
        return None
    pods = -(-int(text) * size // _WHOLE) if isinstance(amount, str) else int(text)
    return max(pods if field == "maxUnavailable" else size - pods, 0)
