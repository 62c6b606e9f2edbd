"""A commented scenario for an HPA, to begin with."""

from collections.abc import Iterator, Mapping
from textwrap import indent
from typing import Any, Final

from ocf.autoscaling import default
from ocf.autoscaling.algorithm import Autoscaler
from ocf.autoscaling.api.betas import as_v2
from ocf.autoscaling.api.versions import read_hpa
from ocf.autoscaling.targets.pod_resources import PodResources, read_pods
from ocf.objects import Manifest, Quantity, dump_document
from ocf.objects.paths import get_field
from ocf.schema.metric_sources import RESOURCE_METRICS
from ocf.simulation.scenario.scaled_objects import SCALED_OBJECT_KIND, ScaledObjectParts, parts_of_scaled_object

__all__ = ["assumed_request", "beyond_target", "initial_scenario", "target_requests"]

_CAPACITY: Final = 100
_METADATA: Final = ("name", "namespace")
_BEYOND_TARGET: Final = 150
"""Percent of a target that is an amount that a pod is assumed to use at full capacity."""
_UNKNOWN: Final = {"cpu": "500m", "memory": "256Mi"}


def initial_scenario(hpa: Manifest, target: Manifest | None = None) -> str:
    """Return a commented scenario for an HPA or a ScaledObject, which runs as it is.

    Args:
        hpa: The HPA; one of a beta becomes one of autoscaling/v2. What the API server adds to its metadata, and its
            status, are left out. Of a ScaledObject, it is the HPA that KEDA makes of it; its triggers become signals,
            and scaling from and to zero an activator.
        target: The workload that it scales, from which replicas and requests are taken; None if it is not known.

    Returns:
        YAML.

    Raises:
        ManifestError: If the HPA or the ScaledObject cannot be decoded.

    Example:
        >>> reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        >>> spec = {"maxReplicas": 9, "scaleTargetRef": reference}
        >>> hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
        >>> initial_scenario({**hpa, "spec": spec}).splitlines()[4]
        'name: web'
    """
    parts_of = parts_of_scaled_object(hpa) if hpa.get("kind") == SCALED_OBJECT_KIND else None
    if parts_of is not None:
        hpa = parts_of.hpa
    decoded = default(read_hpa({name: part for name, part in hpa.items() if name != "status"}))
    autoscaler = Autoscaler.of(decoded)
    metadata = get_field(hpa, ("metadata",)) or {}
    hpa = as_v2(hpa)
    written = {
        **{name: hpa[name] for name in ("apiVersion", "kind")},
        "metadata": {name: metadata[name] for name in _METADATA if name in metadata},
        "spec": hpa["spec"],
    }
    parts = [
        _HEAD.format(name=dump_document({"name": autoscaler.name or "simulation"}).strip()),
        f"hpa:\n{indent(dump_document(written), '  ')}",
        "".join(f"{line}\n" for line in _workload(autoscaler, target, parts_of)),
    ]
    low = _CAPACITY * max(autoscaler.minimum, 1) // 2
    if parts_of is not None and parts_of.activator is not None:
        parts.append(
            f"# KEDA scales from and to zero; the HPA scales above.\n{_block('activator', parts_of.activator)}"
        )
        # Otherwise it would never be idle.
        low = 0
    peak, hours = _CAPACITY * autoscaler.maximum // 2, 24 if "schedule:" in parts[2] else 1
    parts.append(_LOAD.format(low=low, peak=peak, hours=hours, metrics=_metrics(autoscaler, parts_of)))
    return "\n".join(parts)


_HEAD: Final = """\
# What the autoscaler would do under this load: ocf simulate FILE
# For completion in an editor: ocf simulate --schema > scenario.schema.json
apiVersion: ocf.dev/v1
kind: Scenario
{name}
"""
_LOAD: Final = """\
# Loads are added up. For one that was recorded, see the types Csv, Json and Prometheus.
load:
- type: Steady
  rate: {low}
- type: Spike
  at: 10m
  peak: {peak}
  rise: 2m
  hold: 10m
  fall: 5m
- type: Noise
  share: 0.05

# How use becomes the samples that the controller reads.
metrics:
{metrics}

# A good run, for the report and for `--fail-if`.
objectives:
  overloadTime: 0.02

duration: {hours}h
seed: 1
"""


def _metrics(autoscaler: Autoscaler, parts: ScaledObjectParts | None) -> str:
    if parts is None or not parts.signals:
        return "  scrapePeriod: 15s"
    lines = ["  # KEDA asks the sources of its triggers itself.", "  scrapePeriod: 1s"]
    if _resources(autoscaler):
        lines.append("  window: 15s")
    return "\n".join(lines)


def _workload(autoscaler: Autoscaler, target: Manifest | None, parts: ScaledObjectParts | None) -> Iterator[str]:
    yield "workload:"
    yield "  # Load units per second, such as requests, that one pod serves. An assumption: measure it."
    yield f"  capacity: {_CAPACITY}"
    replicas = get_field(target, ("spec", "replicas"))
    if isinstance(replicas, int):
        yield f"  replicas: {replicas}"
    yield from _requests(autoscaler, target)
    yield from _signals(autoscaler) if parts is None else _trigger_signals(parts)
    yield "  # From the creation of a pod to the start of its containers, and from there until it is ready."
    yield "  startup: {mean: 2s, spread: 1s}"
    yield "  readiness: {mean: 8s, spread: 2s}"


def _requests(autoscaler: Autoscaler, target: Manifest | None) -> Iterator[str]:
    names = _resources(autoscaler)
    if not names:
        return
    known = target_requests(autoscaler, target)
    origin = (
        f"from {autoscaler.kind} {autoscaler.target}" if known else "an assumption: those of the target are not known"
    )
    yield f"  # Requests of one pod, {origin}."
    yield "  requests:"
    requests = {name: known.get(name) or assumed_request(autoscaler, name) for name in names}
    for name, request in requests.items():
        assumed = "" if name in known or not known else "  # an assumption: the target has none"
        yield f"    {name}: {_amount(request)}{assumed}"
    # A pod at full capacity uses its request, which has to be more than the target, or nothing would scale up.
    busy = {name: max(request, beyond_target(autoscaler, name)) for name, request in requests.items()}
    yield "  # Use of one pod without load and at full capacity; without this, a pod at full capacity uses its request."
    beyond = [name for name in names if name != "memory" and busy[name] > requests[name]]
    if "memory" not in names and not beyond:
        yield "  # usage:"
        yield "  #   cpu: {idle: 50m, busy: 500m}"
        return
    yield "  usage:"
    for name in beyond:
        yield "    # An assumption: a pod at full capacity uses more than its target."
        yield f"    {name}: {{idle: 0, busy: {_amount(busy[name])}}}"
    if "cpu" not in beyond:
        yield "    # cpu: {idle: 50m, busy: 500m}"
    if "memory" not in names:
        return
    yield "    # An assumption: half of the memory is used without load, and what load needed is not given back, as by"
    yield "    # many garbage collectors and caches. Measure it, and write after how long it is given back."
    yield f"    memory: {{idle: {_amount(busy['memory'] // 2)}, busy: {_amount(busy['memory'])}, releaseAfter: 24h}}"


def beyond_target(autoscaler: Autoscaler, resource: str) -> int:
    """Return a use that is above each target that is an amount, in thousandths; 0 without one."""
    metrics = (each for each in autoscaler.metrics if each.type in RESOURCE_METRICS and each.name == resource)
    return max((each.target.average or 0 for each in metrics), default=0) * _BEYOND_TARGET // 100


def assumed_request(autoscaler: Autoscaler, resource: str) -> int:
    """Return a request for a resource of which the target has none, in thousandths."""
    return beyond_target(autoscaler, resource) or Quantity.parse(_UNKNOWN.get(resource, "1")).milli


def target_requests(autoscaler: Autoscaler, target: Manifest | None) -> dict[str, int]:
    """Return the requests of a pod of the target for the resource metrics of an HPA, in thousandths.

    Args:
        autoscaler: The HPA.
        target: The workload that it scales; None if it is not known.

    Returns:
        Requests by name of the resource, without those that the target does not have.
    """
    template = get_field(target, ("spec", "template")) or {}
    pods = read_pods(template) if isinstance(template, dict) else PodResources(())
    found = {name: pods.requested(name, container) for name, container in _resources(autoscaler).items()}
    return {name: milli for name, milli in found.items() if milli}


def _resources(autoscaler: Autoscaler) -> dict[str, str | None]:
    # A simulated pod has one container: that of the metric, if it is about one.
    return {each.name: each.container or None for each in autoscaler.metrics if each.type in RESOURCE_METRICS}


def _amount(milli: int) -> str:
    mebibytes, rest = divmod(milli, 1000 * 2**20)
    if mebibytes and not rest:
        return f"{mebibytes}Mi"
    return str(Quantity.parse(f"{milli}m"))


def _signals(autoscaler: Autoscaler) -> Iterator[str]:
    names = dict.fromkeys(metric.name for metric in autoscaler.metrics if metric.type not in RESOURCE_METRICS)
    if names:
        yield "  # What the other metrics follow: load, served, queue or backlog; `factor` is the value for one unit."
        yield "  signals:"
    for name in names:
        yield f"    {dump_document({name: None}).partition(': null')[0]}: {{source: load, factor: 1}}"


def _trigger_signals(parts: ScaledObjectParts) -> Iterator[str]:
    if parts.signals:
        yield "  # What the triggers follow: load, served, queue, backlog, latency; `factor` is the value for one unit."
        yield "  signals:"
    for each in parts.signals:
        yield f"    # {each.comment}"
        yield from indent(_block(each.name, each.signal), "    ").splitlines()


def _block(name: str, value: Mapping[str, Any]) -> str:
    return dump_document({name: dict(value)})
