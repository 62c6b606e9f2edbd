"""Whatever a controller remembers, its result lies within the bounds that its status permits."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Behavior,
    History,
    HpaCondition,
    Metric,
    MetricTarget,
    Pod,
    Readiness,
    Recommendation,
    Scale,
    ScaleEvent,
    ScalingPolicy,
    ScalingRules,
    Settings,
    Snapshot,
    Status,
    decide,
)
from ocf.autoscaling.explain import KnownHistory, decision_range, explain_unknown, render, timeline

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
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
    """Return what a round sees of a workload that wants a replica for each thousand."""
    queue = Metric("External", "queue", MetricTarget("AverageValue", average=1000))
    web = Autoscaler(name="web", minimum=2, maximum=maximum, metrics=(queue,), behavior=behavior)
    pods = [Pod(name=f"web-{number}", started=NOON, ready=Readiness("True", NOON)) for number in range(replicas)]
    return Snapshot(
        autoscaler=web, scale=Scale(replicas, replicas, "app=web"), pods=pods, metric_values=([value],), status=status
    )


def as_read(status: Status) -> Status:
    """Return a status as the API gives it back: whole seconds."""
    return Status.of(status.to_manifest())


@given(
    behavior=BEHAVIORS,
    values=st.lists(st.integers(0, 30_000), min_size=1, max_size=20),
    start=st.integers(2, 20),
    pause=st.sampled_from([1, 7, 15]),
    watched=st.integers(0, 5),
    next_value=st.integers(0, 30_000),
    by_hand=st.dictionaries(st.integers(0, 20), st.integers(1, 22), max_size=3),
)
def test_the_result_of_a_real_run_lies_within_the_bounds(  # noqa: PLR0917 (drawn values)
    behavior: Behavior | None,
    values: list[int],
    start: int,
    pause: int,
    watched: int,
    next_value: int,
    by_hand: dict[int, int],
) -> None:
    """Run the controller, then look at no more than its status, and at what was seen while watching.

    Now and then somebody else scales the workload, too.
    """
    history, status, replicas, now = History(), Status(), start, NOON + timedelta(milliseconds=400)
    runs = []
    for number, value in enumerate(values):
        decision = decide(seen(value, replicas, status, behavior), history, settings=SETTINGS, now=now)
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
    for history_of_bound, bound in ((found.low_history, found.low), (found.high_history, found.high)):
        assert decide(snapshot, history_of_bound, settings=SETTINGS, now=now).desired == bound.desired


def told(able: str, limited: str, before: int, desired: int, *, scaled: datetime | None = None) -> Status:
    conditions = (HpaCondition("AbleToScale", "True", able, ""), HpaCondition("ScalingLimited", "True", limited, ""))
    return Status(before, desired, scaled, ({"type": "External"},), conditions)


@pytest.mark.parametrize(
    ("value", "status", "expected"),
    [
        pytest.param(3000, told("ReadyForNewScale", "DesiredWithinRange", 5, 5), (5, 5), id="held-by-the-last-round"),
        pytest.param(3000, told("ScaleDownStabilized", "DesiredWithinRange", 5, 5), (3, 5), id="may-be-let-go"),
        pytest.param(9000, told("ScaleDownStabilized", "DesiredWithinRange", 5, 5), (9, 9), id="growing-is-not-held"),
        pytest.param(3000, told("ReadyForNewScale", "TooManyReplicas", 20, 20), (20, 20), id="wanted-even-more"),
        pytest.param(3000, told("SucceededGetScale", "DesiredWithinRange", 5, 5), (3, 10), id="the-last-round-failed"),
        pytest.param(3000, told("ReadyForNewScale", "TooManyReplicas", 5, 5), (3, 10), id="the-spec-has-changed"),
        pytest.param(3000, Status(), (5, 5), id="never-looked-at"),
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
        pytest.param(3000, told("ReadyForNewScale", "DesiredWithinRange", 5, 5), (5, 5), id="fewer-waits"),
        pytest.param(9000, told("ReadyForNewScale", "DesiredWithinRange", 5, 5), (5, 5), id="more-waits"),
        pytest.param(3000, told("ScaleDownStabilized", "DesiredWithinRange", 5, 5), (3, 5), id="may-be-let-go"),
        pytest.param(
            9000, told("ScaleUpStabilized", "DesiredWithinRange", 5, 5, scaled=NOON), (5, 9), id="budget-not-known"
        ),
        pytest.param(
            9000,
            told("ScaleUpStabilized", "DesiredWithinRange", 5, 5, scaled=NOON - timedelta(minutes=2)),
            (5, 7),
            id="budget-is-back",
        ),
        pytest.param(
            9000,
            told("ScaleUpStabilized", "DesiredWithinRange", 5, 5, scaled=NOON - timedelta(minutes=1)),
            (5, 9),
            id="the-api-cuts-off-fractions-of-a-second",
        ),
        pytest.param(9000, told("ScaleDownStabilized", "DesiredWithinRange", 5, 5), (5, 5), id="fewer-were-wanted"),
        pytest.param(3000, told("ScaleUpStabilized", "DesiredWithinRange", 5, 5), (5, 5), id="more-were-wanted"),
        pytest.param(4000, told("SucceededRescale", "DesiredWithinRange", 3, 5), (5, 5), id="it-has-just-grown"),
        pytest.param(3000, told("SucceededRescale", "DesiredWithinRange", 7, 5), (3, 5), id="it-has-just-shrunk"),
    ],
)
def test_with_a_behavior(value: int, status: Status, expected: tuple[int, int]) -> None:
    behavior = Behavior(SLOW, SLOW)
    found = decision_range(seen(value, 5, status, behavior), KnownHistory(status, NOON), settings=Settings(), now=NOON)

    assert (found.low.desired, found.high.desired) == expected


def test_somebody_made_it_smaller_in_between() -> None:
    """It has just grown to 5, so nothing below 5 is in the window of growing, and it goes back to 5 at once.

    A controller that has just started knows nothing of that.
    """
    status = told("SucceededRescale", "DesiredWithinRange", 3, 5)
    snapshot = seen(9000, 3, status, Behavior(SLOW, SLOW))
    found = decision_range(snapshot, KnownHistory(status, NOON), settings=Settings(), now=NOON)
    running = [each for each in found.histories if each.recommendations is not None]

    assert (found.low.desired, found.low_history) == (3, History())
    assert {decide(snapshot, each, now=NOON).desired for each in running} == {5}


def test_what_somebody_else_removed_is_still_taken_off_the_budget() -> None:
    """It has grown from 3 to 8, and somebody made that 2; so the period seems to have begun at -3, and 4 more are 1."""
    quick = ScalingRules((ScalingPolicy("Pods", 4, timedelta(minutes=1)),), window=timedelta())
    status = told("SucceededRescale", "DesiredWithinRange", 3, 8, scaled=NOON - timedelta(seconds=10))
    snapshot = seen(9000, 2, status, Behavior(quick, quick))
    found = decision_range(snapshot, KnownHistory(status, NOON), settings=Settings(), now=NOON)
    real = History((Recommendation(8, NOON - timedelta(seconds=10)),), (ScaleEvent(5, NOON - timedelta(seconds=10)),))

    assert decide(snapshot, real, now=NOON).desired == 2
    assert found.low.desired == 2


@pytest.mark.parametrize(("able", "agreed"), [("SucceededGetScale", False), ("ReadyForNewScale", True)])
def test_the_number_may_be_certain_and_the_words_may_not(able: str, *, agreed: bool) -> None:
    """At the most, a higher recommendation of the past changes nothing but the reason."""
    status = told(able, "DesiredWithinRange", 20, 20)
    snapshot = seen(25_000, 20, status, None)
    found = decision_range(snapshot, KnownHistory(status, NOON), settings=Settings(), now=NOON)
    shown = render(explain_unknown(snapshot, KnownHistory(status, NOON), now=NOON))

    assert (found.exact, found.low.desired, found.is_history_independent) == (True, 20, agreed)
    assert ("What the controller writes" in [each.title for each in shown]) is agreed


def test_watching_long_enough_leaves_nothing_unknown() -> None:
    status = told("ScaleDownStabilized", "DesiredWithinRange", 5, 5)
    recommended = tuple(Recommendation(4, NOON - timedelta(seconds=15 * number)) for number in range(1, 22))
    known = KnownHistory(status, NOON - timedelta(seconds=301), History(recommended))
    found = decision_range(seen(3000, 5, status, None), known, settings=Settings(), now=NOON)

    assert (found.low.desired, found.high.desired, found.unknown) == (4, 4, ())


def test_what_was_made_up_and_no_longer_counts_is_not_shown() -> None:
    """A picture shows a minute at least; a window may be shorter."""
    status = told("ReadyForNewScale", "DesiredWithinRange", 5, 5)
    rules = ScalingRules((ScalingPolicy("Pods", 2, timedelta(seconds=15)),), window=timedelta(seconds=10))
    recommended = tuple(Recommendation(5, NOON - timedelta(seconds=number)) for number in (12, 6))
    known = KnownHistory(status, NOON - timedelta(seconds=12), History(recommended))
    explanation = explain_unknown(seen(5000, 5, status, Behavior(rules, rules)), known, now=NOON)
    window = timeline(explanation)

    assert explanation.history.recommendations not in {None, recommended}, "something is made up"
    assert window is not None
    assert (window.recommendations, window.assumed & {each.at for each in recommended}) == (
        recommended,
        frozenset(),
    )


def test_what_is_not_known_is_named() -> None:
    status = told("ReadyForNewScale", "DesiredWithinRange", 5, 5, scaled=NOON - timedelta(seconds=30))
    found = decision_range(
        seen(3000, 5, status, Behavior(SLOW, SLOW)), KnownHistory(status, NOON), settings=Settings(), now=NOON
    )

    assert found.unknown == (
        "what was recommended in the last 2m",
        "what was changed in the last 1m, up to the last change at 11:59:30",
    )
