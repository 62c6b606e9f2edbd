"""Stabilization, limits and history behave as in the controller's own tests."""

import gzip
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.autoscaling.algorithm import (
    Behavior,
    History,
    Recommendation,
    ScalingPolicy,
    ScalingRules,
    Settings,
    apply_behavior_limits,
    apply_limits,
    stabilize,
    stabilize_with_behavior,
)
from ocf.autoscaling.algorithm.history import ZERO_TIME, ScaleEvent, add_scale_event, change_within, window_start
from ocf.autoscaling.algorithm.status_builder import MESSAGES

TABLE: Final = Path(__file__).parent / "data" / "upstream.jsonl.gz"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTE: Final = timedelta(minutes=1)

Case = dict[str, Any]


def upstream(kind: str) -> Iterator[Any]:
    """Yield the cases of Kubernetes' own tests; see `scripts/oracles/hpa/cases.sh`."""
    with gzip.open(TABLE, "rt", encoding="utf-8") as lines:
        for position, line in enumerate(lines):
            row = json.loads(line)
            if row["kind"] == kind:
                yield pytest.param(row["in"], row["out"], id=f"{row['test']}-{position}")


def instant(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def events(rows: list[list[int]]) -> tuple[ScaleEvent, ...]:
    return tuple(ScaleEvent(change, instant(at), bool(outdated)) for change, at, outdated in rows)


def recommendations(rows: list[list[int]] | None) -> tuple[Recommendation, ...]:
    return tuple(Recommendation(replicas, instant(at)) for replicas, at in rows or ())


def rules(written: Mapping[str, Any] | None) -> ScalingRules:
    written = written or {}
    policies = [
        ScalingPolicy(each["type"], each["value"], timedelta(seconds=each["periodSeconds"]))
        for each in written.get("policies") or ()
    ]
    window = timedelta(seconds=written.get("stabilizationWindowSeconds") or 0)
    return ScalingRules(tuple(policies), written.get("selectPolicy") or "Max", window)


@pytest.mark.parametrize(("case", "answer"), list(upstream("limited")))
def test_limits_of_the_controllers_own_cases(case: list[Any], answer: list[Any]) -> None:
    current, wanted, minimum, maximum, factor, least = case
    settings = Settings(scale_up_limit_factor=factor, scale_up_limit_minimum=least)
    limit = apply_limits(current, wanted, minimum=minimum, maximum=maximum, settings=settings)

    assert [limit.replicas, limit.rule, MESSAGES[limit.rule]] == answer


@pytest.mark.parametrize(("case", "answer"), list(upstream("limitedByBehavior")))
def test_behavior_limits_of_the_controllers_own_cases(case: Case, answer: list[Any]) -> None:
    args = case["args"]
    limit = apply_behavior_limits(
        args["CurrentReplicas"],
        args["DesiredReplicas"],
        minimum=args["MinReplicas"],
        maximum=args["MaxReplicas"],
        behavior=Behavior(rules(args["ScaleUpBehavior"]), rules(args["ScaleDownBehavior"])),
        history=History((), events(case["ups"]), events(case["downs"])),
        now=instant(case["now"]),
    )

    assert [limit.replicas, limit.rule, MESSAGES[limit.rule]] == answer


@pytest.mark.parametrize(("case", "answer"), list(upstream("holdDown")))
def test_stabilization_of_the_controllers_own_cases(case: Case, answer: Case) -> None:
    window = timedelta(milliseconds=case["window"])
    held = stabilize(case["wanted"], recommendations(case["recs"]), window=window, now=instant(case["now"]))

    assert held.replicas == answer["replicas"]
    assert held.recommendations == recommendations(answer["recs"])


@pytest.mark.parametrize(("case", "answer"), list(upstream("holdInEnvelope")))
def test_stabilization_with_behavior_of_the_controllers_own_cases(case: Case, answer: Case) -> None:
    args = case["args"]
    held = stabilize_with_behavior(
        args["DesiredReplicas"],
        args["CurrentReplicas"],
        recommendations(case["recs"]),
        up_window=rules(args["ScaleUpBehavior"]).window or timedelta(),
        down_window=rules(args["ScaleDownBehavior"]).window or timedelta(),
        now=instant(case["now"]),
    )

    assert held.replicas == answer["replicas"]
    assert held.rule in {None, answer["reason"]}
    assert held.recommendations == recommendations(answer["recs"])


@pytest.mark.parametrize(("case", "answer"), [each for each in upstream("stored") if each.values[0]["behavior"]])
def test_scale_events_of_the_controllers_own_cases(case: Case, answer: Case) -> None:
    change = case["after"] - case["before"]
    behavior, side = case["behavior"], "ups" if change > 0 else "downs"
    longest = rules(behavior["scaleUp" if change > 0 else "scaleDown"]).longest_period
    kept = add_scale_event(events(case[side]), abs(change), longest=longest, now=instant(case["now"]))

    assert kept == events(answer[side])


def test_a_recommendation_as_old_as_the_window_counts_without_behavior_only() -> None:
    edge = (Recommendation(9, NOON - MINUTE),)

    assert stabilize(3, edge, window=MINUTE, now=NOON).replicas == 9
    envelope = stabilize_with_behavior(3, 5, edge, up_window=timedelta(), down_window=MINUTE, now=NOON)
    assert envelope.replicas == 3
    assert len(envelope.recommendations) == 2, "the place of an entry on the edge is not free"


def test_a_new_recommendation_replaces_the_last_expired_one() -> None:
    old = tuple(Recommendation(n, NOON - 9 * MINUTE) for n in (1, 2))

    assert stabilize(3, old, window=MINUTE, now=NOON).recommendations == (old[0], Recommendation(3, NOON))


def test_an_outdated_scale_event_still_counts_within_its_period() -> None:
    """A policy with a longer period counts scale events that were already outdated."""
    outdated = (ScaleEvent(7, NOON - MINUTE, outdated=True),)

    assert change_within(2 * MINUTE, outdated, NOON) == 7
    assert add_scale_event(outdated, 2, longest=2 * MINUTE, now=NOON) == (ScaleEvent(2, NOON),)


def test_a_window_may_begin_before_the_earliest_time() -> None:
    assert window_start(ZERO_TIME, MINUTE) == ZERO_TIME


@pytest.mark.parametrize(
    ("rules_up", "expected"),
    [
        pytest.param(
            ScalingRules((ScalingPolicy("Percent", 10, MINUTE),)), 111, id="10 percent of 100 are 11, in doubles"
        ),
        pytest.param(ScalingRules((), "Max"), 100, id="no policy, the largest: nothing is allowed"),
        pytest.param(ScalingRules((), "Min"), 500, id="no policy, the smallest: all is allowed"),
        pytest.param(ScalingRules((ScalingPolicy("Pods", 5, MINUTE),), "Disabled"), 100, id="disabled"),
        pytest.param(
            ScalingRules((ScalingPolicy("Pods", 5, MINUTE), ScalingPolicy("Cows", 9, MINUTE)), "Min"),
            105,
            id="unknown type",
        ),
        pytest.param(ScalingRules((ScalingPolicy("Pods", 2**31 - 1, MINUTE),)), 100, id="an overflow allows nothing"),
    ],
)
def test_scaling_up_is_limited(rules_up: ScalingRules, expected: int) -> None:
    behavior = Behavior(rules_up, ScalingRules())
    limit = apply_behavior_limits(100, 500, minimum=1, maximum=1000, behavior=behavior, history=History(), now=NOON)

    assert limit.replicas == expected


@pytest.mark.parametrize(
    ("rules_down", "expected"),
    [
        pytest.param(
            ScalingRules((ScalingPolicy("Percent", 90, MINUTE),)), 1, id="90 percent of 20 leave 1, in doubles"
        ),
        pytest.param(ScalingRules((), "Max"), 20, id="no policy, the largest: nothing is allowed"),
        pytest.param(ScalingRules((), "Min"), 1, id="no policy, the smallest: all is allowed"),
        pytest.param(ScalingRules((ScalingPolicy("Pods", 5, MINUTE),), "Disabled"), 20, id="disabled"),
        pytest.param(
            ScalingRules((ScalingPolicy("Pods", 5, MINUTE), ScalingPolicy("Cows", 9, MINUTE))), 15, id="unknown type"
        ),
    ],
)
def test_scaling_down_is_limited(rules_down: ScalingRules, expected: int) -> None:
    behavior = Behavior(ScalingRules(), rules_down)
    limit = apply_behavior_limits(20, 0, minimum=1, maximum=1000, behavior=behavior, history=History(), now=NOON)

    assert limit.replicas == expected
