"""Decisions equal those of the controller of Kubernetes 1.36.3 for generated snapshots.

`scripts/record_hpa_decisions.py` made the table by running the controller's own code. Compared is everything that left
it: the Scale, the whole status, events, errors, what it counts, and what it remembers.
"""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import (
    Decision,
    History,
    MetricValues,
    Recommendation,
    Rule,
    Sample,
    ScaleEvent,
    Settings,
    Snapshot,
    Unavailable,
    decide,
)
from ocf.objects import LabelSelector, Quantity

DATA: Final = Path(__file__).parent / "data"
TABLE: Final = DATA / "decisions.jsonl.gz"
CHUNKS: Final = 8
PER_POD: Final = ("Resource", "ContainerResource", "Pods")
# In the table, an amount is either this large, or far from overflowing any sum.
HUGE: Final = 2**60
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The end of the first text is our own; the names in the second have no fixed order.
OURS: Final = re.compile(r"(internal selector object: )[^\"]*")
UNSORTED: Final = re.compile(r"(multiple HPAs: \[)([^\]]*)\]")

Case = dict[str, Any]


def instant(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def milliseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


def key(metric: Mapping[str, Any]) -> str:
    kind = metric["type"]
    source = metric.get(kind[0].lower() + kind[1:], {})
    if kind == "Resource":
        return f"Resource/{source['name']}"
    if kind == "ContainerResource":
        return f"ContainerResource/{source['name']}/{source['container']}"
    return f"{kind}/{source['metric']['name']}" if source else kind


def metric_values(recorded: Case) -> MetricValues:
    if recorded.get("error"):
        return Unavailable(recorded["error"])
    if recorded.get("values"):
        return tuple(recorded["values"])
    return {
        name: Sample(value, instant(at), timedelta(milliseconds=window))
        for name, (value, at, window) in (recorded.get("samples") or {}).items()
    }


def snapshot(case: Case) -> Snapshot:
    metrics = case["hpa"]["spec"].get("metrics") or []
    values = [metric_values(case["readings"].get(key(metric)) or {}) for metric in metrics]
    others = {name: LabelSelector.parse(text) for name, text in case["others"].items()}
    seen = Snapshot.of(case["hpa"], scale=case["scale"] or {}, pods=case["pods"], metric_values=values, others=others)
    if not case["scaleError"]:
        return seen
    return Snapshot(autoscaler=seen.autoscaler, status=seen.status, scale=Unavailable(case["scaleError"]))


def settings(case: Case) -> Settings:
    gates = case["gates"]
    return Settings(
        tolerance=case["tolerance"],
        downscale_stabilization=timedelta(milliseconds=case["downscale"] or 1),
        cpu_initialization_period=timedelta(milliseconds=case["cpuInit"] or 1),
        initial_readiness_delay=timedelta(milliseconds=case["readiness"] or 1),
        scale_up_limit_factor=case["factor"],
        scale_up_limit_minimum=case["minimum"],
        features=FeatureGates(
            scale_to_zero=gates["HPAScaleToZero"],
            configurable_tolerance=gates["HPAConfigurableTolerance"],
            pod_level_resources=gates["PodLevelResources"],
        ),
    )


def history_of(case: Case) -> History:
    recommendations = case["recs"]
    ups, downs = (
        tuple(ScaleEvent(change, instant(at), bool(old)) for change, at, old in case[side]) for side in ("ups", "downs")
    )
    if recommendations is None:
        return History(scale_ups=ups, scale_downs=downs)
    known = tuple(Recommendation(replicas, instant(at)) for replicas, at in recommendations)
    return History(recommendations=known, scale_ups=ups, scale_downs=downs)


def decided(case: Case) -> Decision:
    decision = decide(snapshot(case), history_of(case), settings=settings(case), now=instant(case["now"]))
    return (
        decision.after_scale_write_failed(case["updateError"]) if case["updateError"] and decision.rescale else decision
    )


def normalized(value: Any) -> Any:
    """Return a value without nulls and without the ends of texts that differ; quantities become numbers."""
    if isinstance(value, Mapping):
        return {
            name: Quantity.parse(item) if name in {"value", "averageValue"} else normalized(item)
            for name, item in value.items()
            if item is not None
        }
    if isinstance(value, list | tuple):
        return [normalized(item) for item in value]
    if isinstance(value, str):
        text = OURS.sub(r"\1...", value)
        return UNSORTED.sub(lambda found: f"{found[1]}{' '.join(sorted(found[2].split()))}]", text)
    return value


def recorded_form(decision: Decision) -> Case:
    """Return a decision in the form of the table."""
    history = decision.history
    recommendations = history.recommendations
    counted = decision.trace.combination.outcomes if decision.trace.combination else ()
    before = decision.snapshot.status.current_replicas
    error = decision.error
    return {
        "events": [list(event) for event in decision.events],
        "status": decision.status.to_manifest() if decision.status_changed else None,
        "written": decision.desired if decision.rescale else None,
        "error": error.message if error else "",
        "labels": [decision.action, error.kind if error else "none"],
        "metrics": [[each.metric.type, each.action(before), each.error_kind] for each in counted],
        "recs": None if recommendations is None else [[n, milliseconds(at)] for n, at in recommendations],
        "ups": [[n, milliseconds(at), int(old)] for n, at, old in history.scale_ups],
        "downs": [[n, milliseconds(at), int(old)] for n, at, old in history.scale_downs],
    }


@cache
def rows() -> list[tuple[Case, Case]]:
    with gzip.open(TABLE, "rt", encoding="utf-8") as lines:
        return [tuple(json.loads(line)) for line in lines]


def differing(case: Case, answer: Case) -> list[tuple[str, Any, Any]]:
    ours, theirs = normalized(recorded_form(decided(case))), normalized(answer)
    return [(part, ours.get(part), theirs.get(part)) for part in {*ours, *theirs} if ours.get(part) != theirs.get(part)]


def overflows(case: Case) -> bool:
    """Return whether the controller computes with an amount that overflows, or with a pod that uses less than nothing.

    There, ours differs on purpose: see `test_nonsense`.
    """
    if case["scaleError"]:
        return False
    from_zero = case["scale"]["spec"]["replicas"] == 0
    for metric in case["hpa"]["spec"].get("metrics") or []:
        reading, kind = case["readings"].get(key(metric)) or {}, metric["type"]
        amounts = [each[0] for each in (reading.get("samples") or {}).values()] + (reading.get("values") or [])
        huge = any(abs(each) >= HUGE for each in amounts)
        if kind in PER_POD and (huge or min(amounts, default=0) < 0):
            return True
        per_pod = "averageValue" in metric.get("object", {}).get("target", {})
        if huge and (from_zero or per_pod):
            return True
    return False


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_decisions_equal_those_of_the_controller(chunk: int) -> None:
    mine = rows()[chunk::CHUNKS]
    compared = [(case, answer) for case, answer in mine if not overflows(case)]
    wrong = [
        (each["hpa"]["spec"], differences) for each, answer in compared if (differences := differing(each, answer))
    ]

    assert len(compared) >= 200
    assert wrong == []


def test_the_table_covers_every_reason_and_rule() -> None:
    """A reason or rule that the table never reaches is not tested by it."""
    answers = [answer for _, answer in rows()]
    conditions = [(answer["status"] or {}).get("conditions") or [] for answer in answers]
    reasons = {condition["reason"] for each in conditions for condition in each}
    events = {event[1] for answer in answers for event in answer["events"]}
    rules = {decided(case).trace.decided_by for case, _ in rows()}

    assert reasons >= {
        "FailedGetScale", "SucceededGetScale", "ReadyForNewScale", "ScaleDownStabilized", "ScaleUpStabilized",
        "SucceededRescale", "FailedUpdateScale", "ScalingDisabled", "InvalidSelector", "AmbiguousSelector",
        "FailedGetResourceMetric", "FailedGetContainerResourceMetric", "FailedGetPodsMetric", "FailedGetObjectMetric",
        "FailedGetExternalMetric", "InvalidMetricSourceType", "ValidMetricFound", "DesiredWithinRange",
        "TooFewReplicas", "TooManyReplicas", "ScaleUpLimit", "ScaleDownLimit", "ScaledToZero", "NotScaledToZero",
    }  # fmt: skip
    assert events >= {"SuccessfulRescale", "FailedRescale", "SelectorRequired", "FailedComputeMetricsReplicas"}
    assert rules == set(Rule) - {Rule.WITHIN_RANGE}


def upstream() -> Iterator[Any]:
    """Yield the syncs of Kubernetes' own tests; see `scripts/hpa_oracle/cases.sh`."""
    with gzip.open(DATA / "upstream.jsonl.gz", "rt", encoding="utf-8") as lines:
        for position, line in enumerate(lines):
            row = json.loads(line)
            if row["kind"] == "reconcile":
                if "multiple HPAs" in row["out"]["error"]:
                    # The selector of the other HPA is not recorded; it selects the same pods.
                    row["in"]["others"] = {"test-hpa-2": row["in"]["scale"]["status"]["selector"]}
                yield pytest.param(row["in"], row["out"], id=f"{row['test']}-{position}")


@pytest.mark.parametrize(("case", "answer"), list(upstream()))
def test_syncs_of_the_controllers_own_tests(case: Case, answer: Case) -> None:
    assert differing(case, answer) == []
