"""The result of a controller with any history is within the range that its status permits."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Behavior,
    History,
    Metric,
    MetricTarget,
    Pod,
    Readiness,
    Recommendation,
    Scale,
    ScalingPolicy,
    ScalingRules,
    Settings,
    Snapshot,
    Status,
    Unavailable,
    decide,
)
from ocf.autoscaling.algorithm.history import ScaleEvent, change_within
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.autoscaling.explain import KnownHistory, explain_unknown, render
from ocf.autoscaling.explain.next_syncs import first_release
from ocf.autoscaling.explain.timeline import timeline
from ocf.autoscaling.explain.uncertainty import compatible_histories, decision_range
from tests.autoscaling.explain.values import NOON

SETTINGS: Final = Settings(downscale_stabilization=timedelta(seconds=60))
RULES: Final = st.builds(
    ScalingRules,
    st.lists(
        st.builds(
            ScalingPolicy,
            st.sampled_from(["Pods", "Percent"]),
            st.sampled_from([1, 3, 50, 100, 150]),
            st.sampled_from([15, 60, 120]).map(lambda seconds: timedelta(seconds=seconds)),
        ),
        min_size=1,
        max_size=2,
    ).map(tuple),
    st.sampled_from(["Max", "Max", "Min", "Disabled"]),
    st.sampled_from([None, timedelta(), timedelta(seconds=10), timedelta(seconds=45), timedelta(seconds=120)]),
)
BEHAVIORS: Final = st.none() | st.builds(Behavior, RULES, RULES)


def seen(value: int, replicas: int, status: Status, behavior: Behavior | None, maximum: int = 20) -> Snapshot:
    """Return the snapshot of a workload that wants one replica per thousand."""
    queue = Metric("External", "queue", MetricTarget("AverageValue", average=1000))
    web = Autoscaler(name="web", minimum=2, maximum=maximum, metrics=(queue,), behavior=behavior)
    pods = [Pod(name=f"web-{number}", started=NOON, ready=Readiness("True", NOON)) for number in range(replicas)]
    return Snapshot(
        autoscaler=web, scale=Scale(replicas, replicas, "app=web"), pods=pods, metric_values=([value],), status=status
    )


def as_read(status: Status) -> Status:
    """Return a status as the API returns it: with whole seconds."""
    return Status.of(status.to_manifest())


@given(
    behavior=BEHAVIORS,
    values=st.lists(st.integers(0, 30_000), min_size=1, max_size=20),
    start=st.integers(2, 20),
    pause=st.sampled_from([1, 7, 15]),
    watched=st.integers(0, 5),
    next_value=st.integers(0, 30_000),
    by_hand=st.dictionaries(st.integers(0, 20), st.integers(1, 22), max_size=3),
    failing=st.frozensets(st.integers(0, 20), max_size=12),
)
def test_the_result_of_a_run_is_within_the_range(  # noqa: PLR0917 (drawn values)
    behavior: Behavior | None,
    values: list[int],
    start: int,
    pause: int,
    watched: int,
    next_value: int,
    by_hand: dict[int, int],
    failing: frozenset[int],
) -> None:
    """Run the controller, then use only its status and what was seen while watching.

    Now and then another client scales the workload, too; but a period does not seem to begin below zero replicas. Of
    some syncs the metric cannot be read.
    """
    history, status, replicas, now = History(), Status(), start, NOON + timedelta(milliseconds=400)
    runs = []
    for number, value in enumerate(values):
        assume(not begins_below_zero(behavior, replicas, history, now))
        snapshot = seen(value, replicas, status, behavior)
        if number in failing:
            snapshot = replace(snapshot, metric_values=(Unavailable("gone"),))
        decision = decide(snapshot, history, settings=SETTINGS, now=now)
        history, status, replicas = decision.history, as_read(decision.status), decision.desired
        runs.append((now, status))
        replicas = by_hand.get(number, replicas)
        now += timedelta(seconds=15)
    now += timedelta(seconds=pause - 15)
    watched = min(watched, len(runs) - 1)
    since = now if not watched else runs[-watched - 1][0] + timedelta(milliseconds=1)
    known = KnownHistory(
        runs[-watched - 1][1],
        since,
        History(
            tuple(each for each in history.recommendations or () if each.at >= since),
            tuple(each for each in history.scale_ups if each.at >= since),
            tuple(each for each in history.scale_downs if each.at >= since),
        ),
    )
    snapshot = seen(next_value, replicas, status, behavior)
    found = decision_range(snapshot, known, settings=SETTINGS, now=now)
    real = decide(snapshot, history, settings=SETTINGS, now=now).desired

    assert found.low.desired <= real <= found.high.desired
    if found.low_history.recommendations is not None and not by_hand and not failing:
        assert repeated(found.low_history, known, behavior) == comparable(known.status)
        assert repeated(found.high_history, known, behavior) in (comparable(known.status), None)
    assert changes_in_time(snapshot, history, known, now=now, following=runs[-1][0] + SETTINGS.sync_period)
    for history_of_bound, bound in ((found.low_history, found.low), (found.high_history, found.high)):
        assert decide(snapshot, history_of_bound, settings=SETTINGS, now=now).desired == bound.desired


def begins_below_zero(behavior: Behavior | None, replicas: int, history: History, now: datetime) -> bool:
    """Return whether fewer than zero replicas seem to have been there at the start of the period of a policy."""
    policies = () if behavior is None else (*behavior.up.policies, *behavior.down.policies)
    return any(
        replicas + change_within(each.period, history.scale_downs, now)
        < change_within(each.period, history.scale_ups, now)
        for each in policies
    )


def comparable(status: Status) -> tuple[int, int, dict[str, str]]:
    return status.current_replicas, status.desired_replicas, {each.type: each.reason for each in status.conditions}


def repeated(
    history: History, known: KnownHistory, behavior: Behavior | None
) -> tuple[int, int, dict[str, str]] | None:
    """Repeat the sync before watching began with a history; return its status, or None without a history."""
    if history.recommendations is None:
        return None
    *before, last = (each for each in history.recommendations if each.at < known.since)
    ups, downs = (
        tuple(each for each in events if each.at < last.at) for events in (history.scale_ups, history.scale_downs)
    )
    status = known.status
    snapshot = seen(last.replicas * 1000, status.current_replicas, status._replace(conditions=()), behavior)
    # Which numbers a metric can want depends on its tolerance and its pods; here it wants the one that is supposed.
    exactly = replace(SETTINGS, tolerance=0)
    made = decide(snapshot, History(tuple(before), ups, downs), settings=exactly, now=last.at)
    return comparable(as_read(made.status))


def changes_in_time(
    snapshot: Snapshot, history: History, known: KnownHistory, *, now: datetime, following: datetime
) -> bool:
    """Return whether the actual controller changes its result by the time that an explanation names as the latest."""
    explanation = explain_unknown(snapshot, known, settings=SETTINGS, now=now)
    real = decide(snapshot, history, settings=SETTINGS, now=following)
    changed = [] if real.rescale else [each.at for each in [first_release(real, SETTINGS)] if each is not None]
    for side in (explanation, explanation.most or explanation):
        if side.release is not None and side.decision.desired == real.desired:
            return bool(changed) and changed[0] <= side.release.at
    return True


def status_with(able: str, limited: str, before: int, desired: int, *, scaled: datetime | None = None) -> Status:
    conditions = (HpaCondition("AbleToScale", "True", able, ""), HpaCondition("ScalingLimited", "True", limited, ""))
    return Status(before, desired, scaled, ({"type": "External"},), conditions)


@pytest.mark.parametrize(
    ("value", "status", "expected"),
    [
        pytest.param(
            3000, status_with("ReadyForNewScale", "DesiredWithinRange", 5, 5), (5, 5), id="held-by-the-last-sync"
        ),
        pytest.param(
            3000, status_with("ScaleDownStabilized", "DesiredWithinRange", 5, 5), (3, 5), id="the-hold-may-have-ended"
        ),
        pytest.param(
            9000, status_with("ScaleDownStabilized", "DesiredWithinRange", 5, 5), (9, 9), id="scaling-up-is-not-held"
        ),
        pytest.param(3000, status_with("ReadyForNewScale", "TooManyReplicas", 20, 20), (20, 20), id="more-was-wanted"),
        pytest.param(
            3000, status_with("SucceededGetScale", "DesiredWithinRange", 5, 5), (3, 5), id="the-last-sync-failed"
        ),
        pytest.param(
            2000, status_with("FailedGetScale", "DesiredWithinRange", 4, 4), (2, 4), id="its-scale-was-not-readable"
        ),
        pytest.param(
            2000, status_with("SucceededGetScale", "ScaleUpLimit", 4, 4), (2, 8), id="more-was-wanted-before-it-failed"
        ),
        pytest.param(
            2000,
            status_with("SucceededGetScale", "DesiredWithinRange", 2, 2),
            (2, 4),
            id="it-may-have-been-out-of-range",
        ),
        pytest.param(
            3000, status_with("ReadyForNewScale", "TooManyReplicas", 5, 5), (3, 10), id="the-spec-has-changed"
        ),
        pytest.param(3000, Status(), (5, 5), id="never-synced"),
    ],
)
def test_without_a_behavior(value: int, status: Status, expected: tuple[int, int]) -> None:
    replicas = status.desired_replicas or 5
    found = decision_range(
        seen(value, replicas, status, None), KnownHistory(status, NOON), settings=Settings(), now=NOON
    )

    assert (found.low.desired, found.high.desired) == expected
    assert found.exact is (expected[0] == expected[1])


SLOW: Final = ScalingRules((ScalingPolicy("Pods", 2, timedelta(minutes=1)),), window=timedelta(minutes=2))


@pytest.mark.parametrize(
    ("value", "status", "expected"),
    [
        pytest.param(3000, status_with("ReadyForNewScale", "DesiredWithinRange", 5, 5), (5, 5), id="fewer-waits"),
        pytest.param(9000, status_with("ReadyForNewScale", "DesiredWithinRange", 5, 5), (5, 5), id="more-waits"),
        pytest.param(
            3000, status_with("ScaleDownStabilized", "DesiredWithinRange", 5, 5), (3, 5), id="the-hold-may-have-ended"
        ),
        pytest.param(
            9000,
            status_with("ScaleUpStabilized", "DesiredWithinRange", 5, 5, scaled=NOON),
            (5, 9),
            id="allowance-not-known",
        ),
        pytest.param(
            9000,
            status_with("ScaleUpStabilized", "DesiredWithinRange", 5, 5, scaled=NOON - timedelta(minutes=2)),
            (5, 7),
            id="allowance-is-complete",
        ),
        pytest.param(
            9000,
            status_with("ScaleUpStabilized", "DesiredWithinRange", 5, 5, scaled=NOON - timedelta(minutes=1)),
            (5, 9),
            id="the-api-has-whole-seconds",
        ),
        pytest.param(
            9000, status_with("ScaleDownStabilized", "DesiredWithinRange", 5, 5), (5, 5), id="fewer-were-wanted"
        ),
        pytest.param(3000, status_with("ScaleUpStabilized", "DesiredWithinRange", 5, 5), (5, 5), id="more-were-wanted"),
        pytest.param(4000, status_with("SucceededRescale", "DesiredWithinRange", 3, 5), (5, 5), id="just-scaled-up"),
        pytest.param(3000, status_with("SucceededRescale", "DesiredWithinRange", 7, 5), (3, 5), id="just-scaled-down"),
    ],
)
def test_with_a_behavior(value: int, status: Status, expected: tuple[int, int]) -> None:
    behavior = Behavior(SLOW, SLOW)
    found = decision_range(seen(value, 5, status, behavior), KnownHistory(status, NOON), settings=Settings(), now=NOON)

    assert (found.low.desired, found.high.desired) == expected


QUICK: Final = ScalingRules((ScalingPolicy("Pods", 2, timedelta(minutes=1)),), window=timedelta())


@pytest.mark.parametrize(
    ("scaled", "limited", "known", "expected"),
    [
        pytest.param(65, "DesiredWithinRange", {}, (7, 7), id="before-the-period"),
        pytest.param(55, "DesiredWithinRange", {}, (5, 9), id="in-the-period"),
        pytest.param(55, "DesiredWithinRange", {"scaled_up": True}, (5, 7), id="only-added"),
        pytest.param(55, "DesiredWithinRange", {"scaled_up": False}, (7, 9), id="only-removed"),
        pytest.param(40, "DesiredWithinRange", {"scaled_up": True}, (5, 9), id="something-else-may-be-before-it"),
        pytest.param(
            40,
            "DesiredWithinRange",
            {"scaled_up": True, "created": NOON - timedelta(seconds=45)},
            (5, 7),
            id="nothing-is-before-it",
        ),
        pytest.param(40, "ScaleUpLimit", {"created": NOON - timedelta(seconds=45)}, (5, 7), id="limited-and-new"),
    ],
)
def test_changes_are_limited_by_the_events_and_times_of_the_autoscaler(
    scaled: int, limited: str, known: dict[str, Any], expected: tuple[int, int]
) -> None:
    """Two pods a minute may be added to 5; the last change was in the past minute, or just before it."""
    status = status_with("ReadyForNewScale", limited, 5, 5, scaled=NOON - timedelta(seconds=scaled))
    snapshot = seen(9000, 5, status, Behavior(QUICK, QUICK))
    found = decision_range(snapshot, KnownHistory(status, NOON, **known), settings=Settings(), now=NOON)

    assert (found.low.desired, found.high.desired) == expected


def test_a_limited_sync_fixes_what_the_policies_allowed() -> None:
    """It added one replica to 4 and wanted more, so there were 3 at the start of its minute."""
    status = status_with("SucceededRescale", "ScaleUpLimit", 4, 5, scaled=NOON - timedelta(seconds=10))
    snapshot = seen(9000, 5, status, Behavior(QUICK, QUICK))
    found = decision_range(snapshot, KnownHistory(status, NOON), settings=Settings(), now=NOON)
    running = [each for each in found.histories if each.recommendations is not None]

    assert len(running) >= 2
    for each in running:
        assert each.recommendations
        at = each.recommendations[-1].at
        assert NOON - timedelta(seconds=10) <= at < NOON - timedelta(seconds=9)
        ups, downs = (
            tuple(event for event in events if event.at < at) for events in (each.scale_ups, each.scale_downs)
        )
        minute = timedelta(minutes=1)
        assert 4 - change_within(minute, ups, at) + change_within(minute, downs, at) == 3


@given(
    status=st.builds(
        status_with,
        st.sampled_from(["ReadyForNewScale", "ScaleDownStabilized", "ScaleUpStabilized", "SucceededRescale"]),
        st.sampled_from(["DesiredWithinRange", "ScaleUpLimit", "ScaleDownLimit", "TooManyReplicas"]),
        st.integers(1, 20),
        st.integers(1, 20),
        scaled=st.integers(0, 200).map(lambda seconds: NOON - timedelta(seconds=seconds)),
    ),
    behavior=st.builds(Behavior, RULES, RULES),
)
def test_no_history_begins_below_zero_replicas(status: Status, behavior: Behavior) -> None:
    assume(status.current_replicas == status.desired_replicas or status.conditions[0].reason == "SucceededRescale")
    known = KnownHistory(status, NOON)
    for history in compatible_histories(
        seen(9000, status.desired_replicas, status, behavior), known, settings=SETTINGS
    ):
        if not history.recommendations:
            continue
        at = NOON - timedelta(microseconds=1)
        for period in {each.period for each in (*behavior.up.policies, *behavior.down.policies)}:
            ups, downs = (change_within(period, each, at) for each in (history.scale_ups, history.scale_downs))
            assert status.desired_replicas - ups + downs >= 0


def test_another_client_scaled_down_in_between() -> None:
    """The controller has just scaled up to 5, so its scale-up window holds nothing below 5, and it scales up again.

    A controller that has just started does not know that.
    """
    quick = ScalingRules((ScalingPolicy("Pods", 9, timedelta(minutes=1)),), window=timedelta(minutes=2))
    status = status_with("SucceededRescale", "DesiredWithinRange", 3, 5, scaled=NOON - timedelta(seconds=9))
    snapshot = seen(9000, 3, status, Behavior(quick, quick))
    found = decision_range(snapshot, KnownHistory(status, NOON), settings=Settings(), now=NOON)
    running = [each for each in found.histories if each.recommendations is not None]

    assert (found.low.desired, found.low_history) == (3, History())
    assert min(decide(snapshot, each, now=NOON).desired for each in running) == 5


def test_what_another_client_removed_reduces_the_allowance() -> None:
    """The controller scaled from 3 to 8, another client to 2; the period seems to start at -3, so 4 more give 1."""
    quick = ScalingRules((ScalingPolicy("Pods", 4, timedelta(minutes=1)),), window=timedelta())
    status = status_with("SucceededRescale", "DesiredWithinRange", 3, 8, scaled=NOON - timedelta(seconds=10))
    snapshot = seen(9000, 2, status, Behavior(quick, quick))
    found = decision_range(snapshot, KnownHistory(status, NOON), settings=Settings(), now=NOON)
    real = History((Recommendation(8, NOON - timedelta(seconds=10)),), (ScaleEvent(5, NOON - timedelta(seconds=10)),))

    assert decide(snapshot, real, now=NOON).desired == 2
    assert found.low.desired == 2


@pytest.mark.parametrize(("able", "independent"), [("FailedUpdateScale", False), ("ReadyForNewScale", True)])
def test_the_replicas_may_be_known_while_the_conditions_are_not(able: str, *, independent: bool) -> None:
    """At the maximum, a higher past recommendation changes nothing but the reason."""
    status = status_with(able, "DesiredWithinRange", 20, 20)
    snapshot = seen(25_000, 20, status, None)
    found = decision_range(snapshot, KnownHistory(status, NOON), settings=Settings(), now=NOON)
    shown = render(explain_unknown(snapshot, KnownHistory(status, NOON), now=NOON))

    assert (found.exact, found.low.desired, found.is_history_independent) == (True, 20, independent)
    assert ("What the controller writes" in [each.title for each in shown]) is independent


def test_after_watching_a_window_nothing_is_unknown() -> None:
    status = status_with("ScaleDownStabilized", "DesiredWithinRange", 5, 5)
    recommended = tuple(Recommendation(4, NOON - timedelta(seconds=15 * number)) for number in range(1, 22))
    known = KnownHistory(status, NOON - timedelta(seconds=301), History(recommended))
    found = decision_range(seen(3000, 5, status, None), known, settings=Settings(), now=NOON)

    assert (found.low.desired, found.high.desired, found.unknown) == (4, 4, ())


def test_assumed_recommendations_outside_the_window_are_not_shown() -> None:
    """A timeline shows at least a minute; a window may be shorter."""
    status = status_with("ReadyForNewScale", "DesiredWithinRange", 5, 5)
    rules = ScalingRules((ScalingPolicy("Pods", 2, timedelta(seconds=15)),), window=timedelta(seconds=10))
    recommended = tuple(Recommendation(5, NOON - timedelta(seconds=number)) for number in (12, 6))
    known = KnownHistory(status, NOON - timedelta(seconds=12), History(recommended))
    explanation = explain_unknown(seen(5000, 5, status, Behavior(rules, rules)), known, now=NOON)
    window = timeline(explanation)

    assert explanation.history.recommendations not in {None, recommended}, "something is assumed"
    assert window is not None
    assert (window.recommendations, window.assumed & {each.at for each in recommended}) == (
        recommended,
        frozenset(),
    )


def test_the_unknown_parts_are_named() -> None:
    status = status_with("ReadyForNewScale", "DesiredWithinRange", 5, 5, scaled=NOON - timedelta(seconds=30))
    found = decision_range(
        seen(3000, 5, status, Behavior(SLOW, SLOW)), KnownHistory(status, NOON), settings=Settings(), now=NOON
    )

    assert found.unknown == (
        "the recommendations of the last 2m",
        "the changes of the last 1m, up to the last change at 11:59:30",
    )
