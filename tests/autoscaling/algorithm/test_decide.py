"""A whole sync: conditions, events, writes and history."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import (
    Autoscaler,
    Behavior,
    History,
    Metric,
    MetricTarget,
    Recommendation,
    Rule,
    Scale,
    ScalingPolicy,
    ScalingRules,
    Settings,
    Snapshot,
    Status,
    Unavailable,
    decide,
)
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.objects.selectors import LabelSelector

Maker = Callable[..., Snapshot]
QUEUE = Metric("External", "queue", MetricTarget("Value", value=1000))
FAILED = Metric("Pods", "qps", MetricTarget("AverageValue", average=1000))
MINUTE = timedelta(minutes=1)


def reasons(conditions: tuple[HpaCondition, ...]) -> list[tuple[str, str, str]]:
    return [(each.type, each.status, each.reason) for each in conditions]


def test_a_sync_sets_conditions_and_events_in_order(seen: Maker, now: datetime) -> None:
    decision = decide(seen(1000), now=now)

    assert (decision.desired, decision.rescale, decision.action) == (6, True, "scale_up")
    assert reasons(decision.status.conditions) == [
        ("AbleToScale", "True", "SucceededRescale"),
        ("ScalingActive", "True", "ValidMetricFound"),
        ("ScalingLimited", "False", "DesiredWithinRange"),
    ]
    name = "cpu resource utilization (percentage of request)"
    assert decision.events == (("Normal", "SuccessfulRescale", f"New size: 6; reason: {name} above target"),)
    assert decision.status.last_scale_time == now
    assert decision.error is None


def test_a_restart_does_not_scale_down_at_once(seen: Maker, now: datetime) -> None:
    """The replicas at the start become the first recommendation."""
    decision = decide(seen(0), now=now)

    assert not decision.rescale
    assert decision.trace.decided_by is Rule.SCALE_DOWN_STABILIZED
    assert decision.history.recommendations == (Recommendation(3, now), Recommendation(0, now))
    assert decide(seen(0), History(()), now=now).desired == 1, "an empty list is not a missing one"


def test_a_failed_scale_write_is_not_in_the_history(seen: Maker, now: datetime) -> None:
    behavior = Behavior(
        ScalingRules((ScalingPolicy("Pods", 4, MINUTE),)), ScalingRules((ScalingPolicy("Pods", 4, MINUTE),))
    )
    snapshot = replace(seen(1000, behavior=behavior), status=Status(3, 3))
    decision = decide(snapshot, now=now)
    failed = decision.after_scale_write_failed("no")

    assert len(decision.history.scale_ups) == 1
    assert failed.history.scale_ups == ()
    assert failed.history.recommendations == decision.history.recommendations
    assert (failed.status.desired_replicas, failed.status.last_scale_time, failed.rescale) == (3, None, False)
    assert failed.events[-1].reason == "FailedRescale"
    assert failed.after_scale_write_failed("again") is failed


def test_a_failed_status_write_is_an_error(seen: Maker, now: datetime) -> None:
    failed = decide(seen(500), now=now).after_status_write_failed("no")

    assert failed.events[-1] == ("Warning", "FailedUpdateStatus", "no")
    assert failed.error == ("internal", "failed to update status for web: no", True)


@pytest.mark.parametrize(
    ("changes", "scale_write", "kind", "reasons"),
    [
        pytest.param(
            {"scale": Unavailable("gone")}, "", "internal", ["FailedGetScale", "FailedUpdateStatus"], id="no Scale"
        ),
        pytest.param(
            {"autoscaler": Autoscaler(name="web", maximum=9, api_version="a/b/c")},
            "",
            "spec",
            ["FailedGetScale", "FailedUpdateStatus"],
            id="invalid apiVersion",
        ),
        pytest.param(
            {"metric_values": [Unavailable("silent")]},
            "",
            "internal",
            ["FailedGetResourceMetric", "FailedUpdateStatus", "FailedComputeMetricsReplicas"],
            id="no metric",
        ),
        pytest.param({}, "locked", "internal", ["FailedRescale", "FailedUpdateStatus"], id="the Scale was not written"),
    ],
)
def test_a_failed_status_write_hides_no_error(  # noqa: PLR0917 (a table)
    seen: Maker, now: datetime, changes: dict[str, Any], scale_write: str, kind: str, reasons: list[str]
) -> None:
    decision = decide(replace(seen(1000), **changes), now=now)
    decision = decision.after_scale_write_failed(scale_write) if scale_write else decision
    failed = decision.after_status_write_failed("no")

    assert failed.error is not None
    assert (failed.error, failed.error.kind) == (decision.error, kind)
    assert [event.reason for event in failed.events] == reasons


def test_a_failed_status_write_replaces_the_error_of_one_metric(seen: Maker, now: datetime) -> None:
    cpu = seen(1000).autoscaler.metrics[0]
    snapshot = seen(1000, metrics=(cpu, cpu))
    decision = decide(replace(snapshot, metric_values=[snapshot.metric_values[0], Unavailable("silent")]), now=now)

    assert decision.rescale
    assert decision.error is not None
    assert decision.after_status_write_failed("no").error == ("internal", "failed to update status for web: no", True)


def test_nothing_is_written_if_nothing_changed(seen: Maker, now: datetime) -> None:
    first = decide(seen(500), now=now)
    again = replace(seen(500), status=Status.of(first.status.to_manifest()))

    assert first.status_changed
    assert not decide(again, first.history, now=now + MINUTE).status_changed


@pytest.mark.parametrize(
    ("milli", "desired", "chosen"),
    [
        pytest.param(1000, 6, True, id="up"),
        pytest.param(500, 3, True, id="same"),
        pytest.param(100, 3, False, id="down"),
    ],
)
def test_a_failed_metric_prevents_scaling_down(
    seen: Maker, now: datetime, milli: int, desired: int, chosen: bool
) -> None:
    snapshot = seen(milli)
    broken = replace(
        snapshot,
        autoscaler=replace(snapshot.autoscaler, metrics=(*snapshot.autoscaler.metrics, FAILED)),
        metric_values=(*snapshot.metric_values, Unavailable("no metrics returned from custom metrics API")),
    )
    decision = decide(broken, History(()), now=now)

    assert decision.desired == desired
    assert (decision.trace.chosen is not None) is chosen
    assert decision.error is not None
    assert "invalid metrics (1 invalid out of 2)" in decision.error.message


def test_the_largest_proposal_wins(seen: Maker, now: datetime) -> None:
    snapshot = seen(500, metrics=(QUEUE, replace(QUEUE, name="mails")))
    decision = decide(replace(snapshot, metric_values=([2000], [3000])), now=now)

    assert decision.desired == 6
    assert decision.trace.decided_by is Rule.SCALE_UP_LIMIT
    assert decision.trace.chosen is not None
    assert decision.trace.chosen.name == "external metric mails(nil)"


def test_an_hpa_with_overlapping_pods_is_not_scaled(seen: Maker, now: datetime) -> None:
    others = {"other": LabelSelector.parse("app in (web,api)"), "far": LabelSelector.parse("app=api")}
    decision = decide(replace(seen(1000), others=others), now=now)

    assert not decision.rescale
    assert decision.events[0].message == (
        "pods by selector app=web are controlled by multiple HPAs: [shop/other shop/web]"
    )
    assert decision.trace.decided_by is Rule.FAILED


@pytest.mark.parametrize(
    ("version", "minimum", "known", "desired"),
    [
        pytest.param("1.36", 0, "True", 0, id="1.36 has the gate off"),
        pytest.param("1.37", 0, "True", 4, id="1.37 scales up what it scaled to zero"),
        pytest.param("1.37", 0, "False", 0, id="1.37 ignores what a user scaled to zero"),
        pytest.param("1.37", 2, "True", 4, id="1.37 scales up with another minimum"),
        pytest.param("1.35", 0, "False", 4, id="1.35 does not know who scaled to zero"),
        pytest.param("1.35", 2, "True", 0, id="1.35 ignores zero with a minimum"),
    ],
)
def test_scaling_up_from_zero(  # noqa: PLR0917 (a row of the table)
    seen: Maker, now: datetime, version: str, minimum: int, known: str, desired: int
) -> None:
    condition = HpaCondition("ScaledToZero", known, "ScaledToZero", "", now)
    snapshot = replace(
        seen(0, replicas=0, minimum=minimum, metrics=(QUEUE,)),
        metric_values=([3500],),
        status=Status(conditions=(condition,)),
    )
    decision = decide(snapshot, settings=Settings(features=FeatureGates.for_release(version)), now=now)

    assert decision.desired == desired


@pytest.mark.parametrize(
    ("version", "expected"), [pytest.param("1.36", None, id="1.36"), pytest.param("1.37", 7, id="1.37")]
)
def test_the_observed_generation_from_1_37(seen: Maker, now: datetime, version: str, expected: int | None) -> None:
    decision = decide(seen(500, generation=7), settings=Settings(features=FeatureGates.for_release(version)), now=now)

    assert decision.status.observed_generation == expected


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        pytest.param(
            {"scale": Unavailable("gone")}, "internal", "failed to query scale subresource for //: gone", id="no scale"
        ),
        pytest.param({"scale": Unavailable("odd", spec=True)}, "spec", "odd", id="error in the spec"),
        pytest.param({"scale": Scale(3, 3, "")}, "internal", "selector is required", id="no selector"),
        pytest.param({"scale": Scale(3, 3, "app in (")}, "internal", "couldn't convert selector", id="bad selector"),
        pytest.param({"metric_values": ()}, "internal", "no values were passed for it", id="no values"),
        pytest.param(
            {"metric_values": ([1],)}, "internal", "no values were passed for it", id="values of another kind"
        ),
        pytest.param({"pods": ()}, "internal", "no pods returned by selector", id="no pods"),
    ],
)
def test_problems_that_end_a_sync(seen: Maker, now: datetime, changes: dict[str, Any], kind: str, message: str) -> None:
    snapshot = replace(seen(1000), **changes)
    decision = decide(replace(snapshot, autoscaler=replace(snapshot.autoscaler, namespace="")), now=now)

    assert not decision.rescale
    assert decision.error is not None
    assert decision.error.kind == kind
    assert message in decision.error.message


def test_without_metrics_no_proposal_is_chosen(seen: Maker, now: datetime) -> None:
    """The API server never stores such an HPA, but the function still returns a decision."""
    assert not decide(seen(1000, metrics=()), now=now).rescale


def test_the_trace_renders_all_steps(seen: Maker, now: datetime) -> None:
    behavior = Behavior(ScalingRules((ScalingPolicy("Pods", 1, MINUTE),)), ScalingRules())
    lines = list(decide(seen(1000, behavior=behavior), now=now).trace.render())

    assert lines == [
        "3 replicas now, allowed are 1 to 10",
        "cpu resource utilization (percentage of request): 6 replicas, ratio times ready pods",
        "  measured 100% (3 of 3, 1 per pod), ratio 2, tolerated [down:10.0%, up:10.0%]",
        "  pods: 3 ready",
        "stabilization: 6 becomes 6 (lowest 6, highest 6), unchanged",
        "policy 1 pods in 60s: from 3 to 4",
        "limits: 6 becomes 4 (bound 4), ScaleUpLimit",
        "4 replicas wanted, decided by: ScaleUpLimit",
    ]
