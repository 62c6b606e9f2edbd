"""What a scenario needs of a ScaledObject: the HPA that KEDA makes of it, its activator, and what its triggers follow.

Names, defaults and fields are those of KEDA 2.20.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationError

from ocf.autoscaling.targets.scaled_objects import scaled_object_field
from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest
from ocf.objects.paths import get_field
from ocf.simulation.model_problems import model_problems
from ocf.simulation.scenario.schedule import Schedule

if TYPE_CHECKING:
    from ocf.objects.third_party.keda import ScaledObject, ScaleTrigger

__all__ = ["SCALED_OBJECT_KIND", "ScaledObjectParts", "TriggerSignal", "parts_of_scaled_object"]

SCALED_OBJECT_KIND: Final = "ScaledObject"
_OWNER_LABEL: Final = "scaledobject.keda.sh/name"
_PAUSED: Final = "autoscaling.keda.sh/paused"
_MAX_REPLICAS: Final = 100
_REPLACED: Final = re.compile(r"[/.:%()]")
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_METRIC: Final = re.compile(r"spec\.metrics\[(\d+)\]")
_TRIGGER: Final = re.compile(r"s(\d+)-")
_RESOURCES: Final = frozenset({"cpu", "memory"})


class _Kind(NamedTuple):
    """A type of trigger that counts what waits.

    Args:
        target: The field of its metadata with the target for each replica.
        default: The target where the field is missing.
        names: The fields whose first one is a part of the name of the metric.
        prefix: The beginning of that name, if it is not the type.
    """

    target: str
    default: str
    names: tuple[str, ...]
    prefix: str = ""


_QUEUES: Final[Mapping[str, _Kind]] = {
    "apache-kafka": _Kind("lagThreshold", "10", ("topic",), "kafka"),
    "aws-sqs-queue": _Kind("queueLength", "5", ("queueURL",), "aws-sqs"),
    "azure-queue": _Kind("queueLength", "5", ("queueName",)),
    "azure-servicebus": _Kind("messageCount", "5", ("queueName", "topicName")),
    "kafka": _Kind("lagThreshold", "10", ("topic",)),
    "rabbitmq": _Kind("value", "20", ("queueName",)),
    "redis": _Kind("listLength", "5", ("listName",)),
}
_TARGETS: Final = (
    *dict.fromkeys(each.target for each in _QUEUES.values()),
    "threshold",
    "targetValue",
    "queryValue",
    "targetQueryValue",
    "metricThreshold",
)
"""Fields that have the target in other types."""


class TriggerSignal(NamedTuple):
    """What a trigger follows.

    Args:
        name: Name of the metric.
        signal: The entry of `workload.signals`.
        comment: What it stands for, or what to write.
        is_assumed: Whether what it follows is not known.
    """

    name: str
    signal: Mapping[str, Any]
    comment: str
    is_assumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledObjectParts:
    """What a scenario needs of a ScaledObject.

    Args:
        hpa: The HPA that KEDA makes of it.
        activator: The section `activator`; None where KEDA does not scale from and to zero.
        signals: What its external triggers follow.
        notes: What is assumed, and what cannot be simulated, with what to write.
    """

    hpa: Manifest
    activator: Mapping[str, Any] | None
    signals: tuple[TriggerSignal, ...]
    notes: tuple[str, ...]

    def written_path(self, path: str) -> str:
        """Return the field of the ScaledObject from which KEDA takes a field of the HPA."""
        if metric := _METRIC.match(path):
            source = self.hpa["spec"]["metrics"][int(metric[1])]
            trigger = _TRIGGER.match(get_field(source, ("external", "metric", "name")) or "")
            return f"spec.triggers[{trigger[1]}].metadata" if trigger else "spec.triggers"
        return scaled_object_field(path) if path.startswith("spec.") else path


@dataclass(slots=True)
class _Triggers:
    """The triggers as metrics of the HPA."""

    owner: str
    metrics: list[dict[str, Any]] = field(default_factory=list)
    signals: list[TriggerSignal] = field(default_factory=list)
    thresholds: dict[str, float] = field(default_factory=dict)

    def add(self, position: int, trigger: "ScaleTrigger") -> None:
        found = trigger.metadata
        if trigger.type in _RESOURCES:
            self.metrics.append(_resource(trigger))
            return
        if trigger.type == "cron":
            name, target, signal = _cron(position, trigger)
        elif trigger.type in _QUEUES:
            name, target, signal = _queue(position, trigger, _QUEUES[trigger.type])
        else:
            name, target, signal = _other(position, trigger)
        kind = trigger.metric_type or "AverageValue"
        selector = {"matchLabels": {_OWNER_LABEL: self.owner}}
        written = {"type": kind, kind[0].lower() + kind[1:]: target}
        external = {"metric": {"name": name, "selector": selector}, "target": written}
        self.metrics.append({"type": "External", "external": external})
        self.signals.append(signal)
        threshold = next((value for key, value in found.items() if key.startswith("activation")), "0")
        if _NUMBER.fullmatch(threshold) and float(threshold):
            self.thresholds[name] = float(threshold)


def parts_of_scaled_object(manifest: Manifest) -> ScaledObjectParts:
    """Return what a scenario needs of a ScaledObject.

    Raises:
        ManifestError: If a field is missing or has another type.
    """
    # The models need the Kubernetes client, which takes long to import.
    from ocf.objects.third_party.keda import ScaledObject

    try:
        found = ScaledObject.model_validate({name: part for name, part in manifest.items() if name != "status"})
    except ValidationError as error:
        raise _invalid(model_problems(error.errors(), manifest, ScaledObject)) from None
    name = str(get_field(manifest, ("metadata", "name")) or "")
    if problems := list(_problems(found, name)):
        raise _invalid(problems)
    triggers = _Triggers(name)
    for position, trigger in enumerate(found.spec.triggers):
        triggers.add(position, trigger)
    activator = _activator(found, triggers)
    return ScaledObjectParts(
        hpa=_hpa(manifest, found, triggers),
        activator=activator,
        signals=tuple(triggers.signals),
        notes=tuple(_notes(manifest, found, triggers)),
    )


def _invalid(problems: Sequence[FieldProblem]) -> ManifestError:
    return ManifestError("ScaledObject", problems)


def _problems(found: "ScaledObject", name: str) -> Iterator[FieldProblem]:
    """Yield why KEDA would reject a ScaledObject, as far as a scenario depends on it."""
    spec = found.spec
    if not name:
        yield FieldProblem("metadata.name", "required value")
    if not spec.triggers:
        yield FieldProblem("spec.triggers", "required value: at least one trigger")
    idle, minimum = spec.idle_replica_count, spec.min_replica_count or 0
    if idle is not None and idle >= minimum:
        yield FieldProblem("spec.idleReplicaCount", f"must be less than minReplicaCount, {minimum}, got {idle}")
    for position, trigger in enumerate(spec.triggers):
        if trigger.type == "cron":
            try:
                Schedule.model_validate(_schedule(trigger), by_alias=True, by_name=False)
            except ValidationError as error:
                for each in model_problems(error.errors(), _schedule(trigger), Schedule):
                    path = f"spec.triggers[{position}].metadata.{each.path.replace('timeZone', 'timezone')}"
                    yield FieldProblem(path.rstrip("."), each.detail)


def _hpa(manifest: Manifest, found: "ScaledObject", triggers: _Triggers) -> Manifest:
    spec, metadata = found.spec, get_field(manifest, ("metadata",)) or {}
    config = get_field(manifest, ("spec", "advanced", "horizontalPodAutoscalerConfig")) or {}
    target, behavior = spec.scale_target_ref, config.get("behavior")
    reference = {
        "apiVersion": target.api_version or "apps/v1",
        "kind": target.kind or "Deployment",
        "name": target.name,
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": config.get("name") or f"keda-hpa-{triggers.owner}",
            **({"namespace": metadata["namespace"]} if "namespace" in metadata else {}),
        },
        "spec": {
            "scaleTargetRef": reference,
            "minReplicas": spec.min_replica_count or 1,
            "maxReplicas": _MAX_REPLICAS if spec.max_replica_count is None else spec.max_replica_count,
            "metrics": sorted(triggers.metrics, key=lambda each: str(each["type"])),
            **({} if behavior is None else {"behavior": behavior}),
        },
    }


def _activator(found: "ScaledObject", triggers: _Triggers) -> Mapping[str, Any] | None:
    spec = found.spec
    if (spec.min_replica_count and spec.idle_replica_count is None) or not triggers.signals:
        return None
    fields = {
        "pollingInterval": 30 if spec.polling_interval is None else spec.polling_interval,
        "cooldownPeriod": 300 if spec.cooldown_period is None else spec.cooldown_period,
        "initialCooldownPeriod": spec.initial_cooldown_period,
        "idleReplicaCount": spec.idle_replica_count,
        "activationThresholds": triggers.thresholds,
    }
    return {name: value for name, value in fields.items() if value}


def _notes(manifest: Manifest, found: "ScaledObject", triggers: _Triggers) -> Iterator[str]:
    for each in triggers.signals:
        if each.is_assumed:
            yield f"workload.signals.{each.name}: {each.comment}"
    if not triggers.signals and not found.spec.min_replica_count:
        yield (
            "spec.minReplicaCount: CPU and memory alone do not scale to zero, so that the scenario has no activator and"
            " at least 1 replica; set minReplicaCount to 1, or add another trigger"
        )
    annotations = get_field(manifest, ("metadata", "annotations")) or {}
    for name in annotations:
        if str(name).startswith(_PAUSED):
            yield f"metadata.annotations[{name}]: pausing is not simulated: the scenario scales as without it"
    for path in (("fallback",), ("advanced", "scalingModifiers")):
        if get_field(manifest, ("spec", *path)):
            instead = (
                "each trigger counts by itself"
                if path[-1] == "scalingModifiers"
                else "an outage of the metrics stops scaling"
            )
            yield f"spec.{'.'.join(path)}: is not simulated: {instead}"


def _resource(trigger: "ScaleTrigger") -> dict[str, Any]:
    found = trigger.metadata
    value, container = found.get("value", ""), found.get("containerName")
    # Before 2.5 the type was in the metadata.
    kind = trigger.metric_type or found.get("type") or "Utilization"
    share: Any = int(value) if value.isascii() and value.isdigit() else value
    target = {"type": kind, **({"averageUtilization": share} if kind == "Utilization" else {"averageValue": value})}
    source = {"name": trigger.type, "target": target}
    if container:
        return {"type": "ContainerResource", "containerResource": {**source, "container": container}}
    return {"type": "Resource", "resource": source}


def _cron(position: int, trigger: "ScaleTrigger") -> tuple[str, str, TriggerSignal]:
    found = trigger.metadata
    start, end, zone = (found.get(name, "") for name in ("start", "end", "timezone"))
    name = _named(position, "-".join(("cron", zone, _spelled(start), _spelled(end))))
    signal = {"source": "schedule", "schedule": _schedule(trigger)}
    return name, "1", TriggerSignal(name, signal, f"trigger {position}, cron")


def _schedule(trigger: "ScaleTrigger") -> dict[str, Any]:
    names = {"start": "start", "end": "end", "desiredReplicas": "desiredReplicas", "timezone": "timeZone"}
    found = {name: trigger.metadata[key] for key, name in names.items() if key in trigger.metadata}
    replicas = found.get("desiredReplicas", "")
    # In a ScaledObject, each value is a text.
    return {**found, "desiredReplicas": int(replicas) if replicas.isascii() and replicas.isdigit() else replicas}


def _spelled(expression: str) -> str:
    text = expression.replace(" ", "").replace("*", "x")
    for character, letters in (("/", "Sl"), ("?", "Qm"), (",", "Cm")):
        text = text.replace(character, letters)
    return text


def _queue(position: int, trigger: "ScaleTrigger", kind: _Kind) -> tuple[str, str, TriggerSignal]:
    found = trigger.metadata
    part = next((found[each] for each in kind.names if each in found), "")
    if kind.names == ("queueURL",):
        part = part.rsplit("/", 1)[-1]
    name = _named(position, "-".join(filter(None, (kind.prefix or trigger.type, part))))
    # In earlier versions of the trigger for RabbitMQ, the number was in `queueLength`.
    target = found.get(kind.target) or found.get("queueLength") or kind.default
    of_rate = found.get("mode") == "MessageRate"
    source, text = ("load", "the messages that arrive") if of_rate else ("queue", "what waits")
    if not of_rate and _counts_work(trigger):
        source, text = "backlog", "what waits or is in work"
    comment = f"trigger {position}, {trigger.type}: {text}"
    return name, target, TriggerSignal(name, {"source": source, "factor": 1}, comment)


def _counts_work(trigger: "ScaleTrigger") -> bool:
    """Return whether KEDA also counts messages that were delivered and are not done."""
    found = trigger.metadata
    if trigger.type == "rabbitmq":
        # Over AMQP the broker returns only what is ready. With `auto`, the scheme of the host decides.
        protocol = found.get("protocol", "auto")
        is_http = protocol == "http" or (protocol == "auto" and found.get("host", "").startswith("http"))
        return is_http and found.get("excludeUnacknowledged") != "true"
    if trigger.type == "aws-sqs-queue":
        return found.get("scaleOnInFlight") != "false"
    if trigger.type == "azure-queue":
        return found.get("queueLengthStrategy", "all").lower() != "visibleonly"
    # The lag of Kafka counts up to the committed offset, and a locked message of a service bus is active.
    return trigger.type != "redis"


def _other(position: int, trigger: "ScaleTrigger") -> tuple[str, str, TriggerSignal]:
    """Return what a trigger may follow whose value depends on a query or on another system."""
    found = trigger.metadata
    name = _named(position, trigger.type)
    key = next((each for each in _TARGETS if _NUMBER.fullmatch(found.get(each, ""))), None)
    target = found[key] if key else "1"
    asked = "" if key else ", and its target in the HPA, which is assumed as 1"
    wanted = f"write its source (load, served, queue, backlog, latency) and factor{asked}"
    comment = f"trigger {position}, {trigger.type}: assumed; {wanted}"
    return name, target, TriggerSignal(name, {"source": "load", "factor": 1}, comment, is_assumed=True)


def _named(position: int, text: str) -> str:
    return f"s{position}-{_REPLACED.sub('-', text)}"
