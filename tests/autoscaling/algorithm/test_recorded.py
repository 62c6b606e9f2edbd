"""Decisions equal those of the controllers of Kubernetes 1.30 to 1.37 for generated snapshots.

`scripts/record/hpa_decisions.py` made the table by running the own code of the controller of each release. Compared is
everything that left it: the Scale, the whole status, events, errors, what it counts, and what it remembers.
"""

import gzip
import json
import lzma
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
    Recommendation,
    Rule,
    Sample,
    Settings,
    Snapshot,
    Unavailable,
    decide,
)
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.objects import Quantity
from ocf.objects.selectors import LabelSelector
from ocf.schema.kubernetes import RELEASES

DATA: Final = Path(__file__).parent / "data"
TABLE: Final = DATA / "decisions.jsonl.xz"
CURRENT: Final = "1.36"
SCALE_TRIES: Final = 5
CONFLICT: Final = 'Operation cannot be fulfilled on things.apps "web": it has changed'
PER_POD: Final = ("Resource", "ContainerResource", "Pods")
# In the table, an amount is either this large, or far from overflowing any sum.
HUGE: Final = 2**60
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The end of the first text is our own; the names in the second have no fixed order.
OURS: Final = re.compile(r"(internal selector object: )[^\"]*")
UNSORTED: Final = re.compile(r"(multiple HPAs: \[|more than one HPA \(e\.g\. \[)([^\]]*)\]")

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


def features(case: Case, release: str) -> FeatureGates:
    """Return the rules of a release, with the feature gates of a case that it has."""
    rules, gates = FeatureGates.for_release(release), case["gates"]
    configurable = {"1.37": True}.get(release, gates["HPAConfigurableTolerance"] and rules.tolerance_known)
    return rules._replace(
        scale_to_zero=gates["HPAScaleToZero"],
        configurable_tolerance=configurable,
        pod_level_resources=gates["PodLevelResources"] and rules.pod_level_resources,
        observed_generation=gates.get("HPAGeneration", False) and rules.observed_generation,
    )


def settings(case: Case, release: str) -> Settings:
    return Settings(
        tolerance=case["tolerance"],
        downscale_stabilization=timedelta(milliseconds=case["downscale"]),
        cpu_initialization_period=timedelta(milliseconds=case["cpuInit"]),
        initial_readiness_delay=timedelta(milliseconds=case["readiness"]),
        scale_up_limit_factor=case["factor"],
        scale_up_limit_minimum=case["minimum"],
        features=features(case, release),
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


def decided(seen: Snapshot, case: Case, release: str) -> Decision:
    chosen = settings(case, release)
    decision = decide(seen, history_of(case), settings=chosen, now=instant(case["now"]))
    tries = SCALE_TRIES if chosen.features.conflicts_retried else 1
    rejected = CONFLICT if case.get("conflicts", 0) >= tries else case["updateError"]
    if rejected and decision.rescale:
        decision = decision.after_scale_write_failed(rejected)
    if case.get("statusError") and decision.status_changed:
        return decision.after_status_write_failed(case["statusError"])
    return decision


def normalized(value: Any) -> Any:
    """Return a value without nulls and without the ends of texts that differ; quantities as the API server has them."""
    if isinstance(value, dict):
        return {
            name: str(Quantity.parse(item)) if name in {"value", "averageValue"} else normalized(item)
            for name, item in value.items()
            if item is not None
        }
    if isinstance(value, list | tuple):
        return [normalized(item) for item in value]
    if isinstance(value, str):
        # Both patterns contain one of these, most texts do not, and searching for a pattern takes long.
        if "[" not in value and "selector object" not in value:
            return value
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
def rows() -> list[tuple[Case, dict[str, Case]]]:
    """Return each case with its answers by release, normalized."""
    with lzma.open(TABLE, "rt", encoding="utf-8") as lines:
        return [(case, normalized(answers)) for case, answers in map(json.loads, lines)]


def answer_of(answers: Mapping[str, Case], release: str) -> Case:
    """Return the answer of a release; one that is missing is that of the next newer release."""
    return answers[min(found for found in answers if found >= release)]


def differing(seen: Snapshot, case: Case, answer: Case, release: str) -> list[tuple[str, Any, Any]]:
    ours = normalized(recorded_form(decided(seen, case, release)))
    return [(part, ours.get(part), answer.get(part)) for part in {*ours, *answer} if ours.get(part) != answer.get(part)]


@cache
def snapshots() -> list[Snapshot]:
    return [snapshot(case) for case, _ in rows()]


def overflows(case: Case, release: str) -> bool:
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
        if huge and (from_zero or per_pod or release < "1.35"):
            return True
    return False


@pytest.mark.parametrize("release", RELEASES)
def test_decisions_equal_those_of_the_controller(release: str) -> None:
    compared, wrong = 0, []
    for seen, (case, answers) in zip(snapshots(), rows(), strict=True):
        if not overflows(case, release):
            compared += 1
            if found := differing(seen, case, answer_of(answers, release), release):
                wrong.append((case["hpa"]["spec"], found))

    assert compared >= 1800
    assert wrong == []


@pytest.mark.parametrize("release", list(RELEASES)[:-1])
def test_the_table_shows_what_a_release_changed(release: str) -> None:
    """Between 1.30, 1.31 and 1.32, the algorithm did not change."""
    changed = any(release in answers for _, answers in rows())

    assert changed is (release not in {"1.30", "1.31"})


def test_the_table_covers_every_reason_and_rule() -> None:
    """A reason or rule that the table never reaches is not tested by it."""
    answers = [answer_of(answers, CURRENT) for _, answers in rows()]
    conditions = [answer.get("status", {}).get("conditions", []) for answer in answers]
    reasons = {condition["reason"] for each in conditions for condition in each}
    events = {event[1] for answer in answers for event in answer["events"]}
    rules = {decided(seen, case, CURRENT).trace.decided_by for seen, (case, _) in zip(snapshots(), rows(), strict=True)}

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
    """Yield the syncs of Kubernetes' own tests; see `scripts/oracles/hpa/cases.sh`."""
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
    assert differing(snapshot(case), case, normalized(answer), CURRENT) == []
