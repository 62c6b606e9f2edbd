"""Ticks: the input and output of a reconcile of the real controller, and our output for the same input."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import Decision, History, Settings, decide
from ocf.cluster import Subresource
from ocf.controllers.hpa.snapshot import HpaSnapshot, SnapshotReader
from ocf.controllers.hpa.snapshot.selector_index import SelectorIndex
from ocf.errors import ApiError, api_error
from ocf.objects import Manifest, ObjectKey
from ocf.objects.selectors import LabelSelector
from ocf.objects.timestamps import parse_time
from ocf_server import EmbeddedCluster

DATA: Final = Path(__file__).parent / "data"
SETTINGS: Final = Settings(
    downscale_stabilization=timedelta(seconds=5),
    features=FeatureGates(scale_to_zero=True),
)
FLAGS: Final = {"horizontal-pod-autoscaler-downscale-stabilization": "5s"}
GATES: Final = {"HPAScaleToZero": True}

ReportedEvent = tuple[str, str, str]
"""Type, reason and message of an event."""

Answers = dict[str, Any]
"""Responses by request: the `answer`, or the `error`."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One reconcile of the controller.

    Args:
        at: When its request for the Scale of the target was released.
        hpa: The HPA before.
        pods: All pods of the namespace.
        answers: The responses of the APIs.
        status: The status of the HPA afterwards.
        replicas: `spec.replicas` of the target's Scale afterwards; None if there is no target.
        rivals: The selectors of other autoscalers that the controller knew.
    """

    at: str
    hpa: Manifest
    pods: Sequence[Manifest]
    answers: Answers
    status: Manifest
    replicas: int | None
    rivals: Mapping[str, str] = field(default_factory=dict)

    @property
    def selectors(self) -> SelectorIndex:
        """The known selectors of other autoscalers."""
        known = SelectorIndex()
        for name, text in self.rivals.items():
            known.put(self.hpa["metadata"]["namespace"], name, LabelSelector.parse(text))
        return known


class Verdict(NamedTuple):
    """The compared output of a reconcile."""

    replicas: int | None
    current: int
    desired: int
    conditions: tuple[tuple[str, str, str, str], ...]
    metrics: Sequence[Any]
    rescaled: bool


class Recorder:
    """A metrics client and scale getter that send requests, and record the responses."""

    def __init__(self, metrics: Any, scales: Any) -> None:
        self._metrics = metrics
        self._scales = scales
        self.answers: Answers = {}

    async def scale(self, target: ObjectKey) -> Manifest:
        found: Manifest = await self._keep("scale", self._scales.scale(target))
        return found

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        return await self._items(f"usage {selector}", self._metrics.pod_metrics(namespace, selector))

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: str = "", metric_selector: str = ""
    ) -> Sequence[Any]:
        asked = self._metrics.pods_metric(namespace, metric, selector=selector, metric_selector=metric_selector)
        return await self._items(f"pods {metric} {selector} {metric_selector}", asked)

    async def object_metric(
        self, namespace: str, described: Manifest, metric: str, *, metric_selector: str = ""
    ) -> Sequence[Any]:
        asked = self._metrics.object_metric(namespace, described, metric, metric_selector=metric_selector)
        return await self._items(f"object {described.get('name')} {metric} {metric_selector}", asked)

    async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Sequence[Any]:
        asked = self._metrics.external_metric(namespace, metric, selector=selector)
        return await self._items(f"external {metric} {selector}", asked)

    async def _items(self, question: str, asked: Any) -> Sequence[Any]:
        found: Sequence[Any] = await self._keep(question, asked)
        return found

    async def _keep(self, question: str, asked: Any) -> Any:
        try:
            found = await asked
        except ApiError as error:
            self.answers[question] = {"error": {"message": error.message, "code": error.code, "reason": error.reason}}
            raise
        self.answers[question] = {"answer": found}
        return found


async def _kept(answers: Answers, question: str) -> Any:
    found = answers[question]
    if "error" in found:
        error = found["error"]
        raise api_error(error["message"], code=error["code"], reason=error["reason"])
    return found["answer"]


class Replayed(Recorder):
    """A metrics client and scale getter that replay recorded responses."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(self, self)
        self._then = answers

    async def _keep(self, question: str, asked: Any) -> Any:
        asked.close()
        return await _kept(self._then, question)


@dataclass(slots=True)
class OurController:
    """The state of our controller over the reconciles of one HPA.

    Args:
        history: Its history.
        events: Its events so far: type, reason and message.
    """

    history: History = field(default_factory=History)
    events: set[ReportedEvent] = field(default_factory=set)

    def decide(self, seen: HpaSnapshot, at: str) -> Verdict:
        """Decide, and keep the history and events."""
        decision = decide(seen.snapshot, self.history, settings=SETTINGS, now=parse_time(at))
        self.history = decision.history
        self.events |= {(event.type, event.reason, message_of(event.message)) for event in decision.events}
        return verdict_of(decision)


def verdict_of(decision: Decision) -> Verdict:
    scale = decision.snapshot.scale
    replicas = decision.desired if decision.rescale else getattr(scale, "replicas", None)
    return _verdict(decision.status.to_manifest(), replicas, before=decision.snapshot.status.last_scale_time)


def verdict_of_controller(tick: Tick) -> Verdict:
    """Return the output of the real controller."""
    before = (tick.hpa.get("status") or {}).get("lastScaleTime")
    replicas = None if "error" in tick.answers.get("scale", {}) else tick.replicas
    return _verdict(tick.status, replicas, before=None if before is None else parse_time(before))


def _verdict(status: Mapping[str, Any], replicas: int | None, *, before: datetime | None) -> Verdict:
    scaled = status.get("lastScaleTime")
    return Verdict(
        replicas=replicas,
        current=status.get("currentReplicas") or 0,
        desired=status.get("desiredReplicas") or 0,
        conditions=tuple(
            (each["type"], each["status"], each.get("reason", ""), message_of(each.get("message", "")))
            for each in status.get("conditions") or ()
        ),
        metrics=status.get("currentMetrics") or [],
        rescaled=scaled is not None and parse_time(scaled) != before,
    )


def message_of(message: str) -> str:
    """Return the part of a message that is the same in each run and in both controllers."""
    if "controlled by multiple HPAs" in message:
        return message.partition("[")[0]  # the order is not defined
    return message.partition("couldn't parse the selector string")[0]


async def replay(tick: Tick, ours: OurController) -> Verdict:
    """Return our output for a recorded tick."""
    return ours.decide(await observe(tick), tick.at)


async def observe(tick: Tick) -> HpaSnapshot:
    """Return everything that our controller reads in a recorded tick."""
    cluster = EmbeddedCluster(namespaces=(tick.hpa["metadata"]["namespace"],))
    for pod in tick.pods:
        await _stored(cluster, pod)
    answers = Replayed(tick.answers)
    observer = SnapshotReader(
        cluster, answers, scales=answers, selectors=tick.selectors, settings=SETTINGS, max_age=timedelta()
    )
    return await observer.observe(tick.hpa)


async def _stored(cluster: EmbeddedCluster, pod: Manifest) -> None:
    """Create a pod in the recorded state."""
    deleted = "deletionTimestamp" in pod["metadata"]
    metadata = {key: value for key, value in pod["metadata"].items() if key in {"name", "namespace", "labels"}}
    if deleted:
        metadata["finalizers"] = ["example.com/kept"]
    made = await cluster.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]}, field_manager="replay"
    )
    await cluster.update({**made, "status": pod["status"]}, field_manager="replay", subresource=Subresource.STATUS)
    if deleted:
        await cluster.delete(ObjectKey.of(made))


def load(file: Path) -> list[Tick]:
    """Read the ticks of a scenario."""
    return [Tick(**each) for each in json.loads(file.read_text())["ticks"]]


def load_events(file: Path) -> set[ReportedEvent]:
    """Read the events of the real controller in a scenario."""
    return {(kind, reason, message) for kind, reason, message in json.loads(file.read_text())["events"]}


def save(file: Path, ticks: Sequence[Tick], events: set[ReportedEvent]) -> None:
    """Write the ticks and events of a scenario."""
    written = ",\n".join(json.dumps(asdict(tick), sort_keys=True) for tick in ticks)
    event_lines = ",\n".join(json.dumps(event) for event in sorted(events))
    file.write_text(f'{{"events": [\n{event_lines}\n], "ticks": [\n{written}\n]}}\n')
