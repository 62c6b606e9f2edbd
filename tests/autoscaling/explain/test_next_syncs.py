"""Every instant that an explanation names is checked by running the controller's syncs one after the other."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Behavior,
    Container,
    Decision,
    History,
    Metric,
    MetricTarget,
    Pod,
    Readiness,
    Recommendation,
    Sample,
    Scale,
    ScalingPolicy,
    ScalingRules,
    Settings,
    Snapshot,
    decide,
    normalize,
)
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.explain import explain
from ocf.autoscaling.explain.next_syncs import HoldRelease, first_release
from ocf.autoscaling.explain.thresholds import with_total
from tests.autoscaling.explain.incidents import measured, pods, steady
from tests.autoscaling.explain.values import JUST, NOON, QUEUE, ago

PERIOD: Final = timedelta(seconds=15)
SHORT: Final = Settings(downscale_stabilization=timedelta(seconds=90), cpu_initialization_period=timedelta(seconds=70))


def web(**fields: Any) -> Autoscaler:
    return Autoscaler(**{"name": "web", "minimum": 1, "maximum": 20, "metrics": (QUEUE,), **fields})


def seen(autoscaler: Autoscaler, wanted: int, current: int) -> Snapshot:
    """Return the snapshot of a workload whose metric wants a number of replicas."""
    return Snapshot(autoscaler=autoscaler, scale=Scale(current, 0, "app=web"), metric_values=((wanted * 1000,),))


def rules(*policies: tuple[str, int, int], window: int | None = None, select: str = "Max") -> ScalingRules:
    made = tuple(ScalingPolicy(kind, value, timedelta(seconds=period)) for kind, value, period in policies)
    return ScalingRules(made, select, None if window is None else timedelta(seconds=window))


def run(decision: Decision, then: Snapshot, settings: Settings, syncs: int) -> Iterator[Decision]:
    """Run the controller after a sync: one sync per period, each on the history of the one before.

    Each pod is measured again with the same value.
    """
    for number in range(1, syncs + 1):
        scale = decision.snapshot.scale
        assert isinstance(scale, Scale)
        if scale.replicas != decision.desired:
            scale = Scale(decision.desired, scale.observed + decision.desired - scale.replicas, scale.selector)
        passed = number * settings.sync_period
        values = tuple(
            {name: sample._replace(at=sample.at + passed) for name, sample in each.items()}
            if isinstance(each, Mapping)
            else each
            for each in then.metric_values
        )
        snapshot = replace(then, scale=scale, status=decision.status, metric_values=values)
        at = NOON + passed
        decision = decide(snapshot, decision.history, settings=settings, now=at)
        yield decision


AGO: Final = st.integers(0, 200).map(ago)
RULES: Final = st.builds(
    rules,
    st.tuples(st.sampled_from(["Pods", "Percent"]), st.sampled_from([1, 2, 50]), st.sampled_from([15, 60])),
    window=st.sampled_from([None, 0, 30, 90]),
)
BEHAVIORS: Final = st.none() | st.builds(Behavior, RULES, RULES)
HISTORIES: Final = st.builds(
    History,
    st.none() | st.lists(st.builds(Recommendation, st.integers(1, 25), AGO), max_size=4).map(tuple),
    st.lists(st.builds(ScaleEvent, st.integers(1, 3), AGO), max_size=2).map(tuple),
    st.lists(st.builds(ScaleEvent, st.integers(1, 3), AGO), max_size=2).map(tuple),
)
YOUNG: Final = st.lists(
    st.builds(
        Pod,
        name=st.just(""),
        started=AGO,
        ready=st.builds(Readiness, st.sampled_from(["True", "False"]), AGO),
        labels=st.just({"app": "web"}),
        containers=st.just((Container("app", {"cpu": 100}),)),
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw a workload that is measured in total or per pod; the time of its pods matters for the latter."""
    behavior, current = draw(BEHAVIORS), draw(st.integers(1, 12))
    if draw(st.booleans()):
        return seen(web(behavior=behavior), draw(st.integers(0, 25)), current)
    pods = [replace(pod, name=f"web-{number}") for number, pod in enumerate(draw(YOUNG))]
    cpu = Metric("Resource", "cpu", MetricTarget("Utilization", utilization=50))
    samples = {pod.name: Sample(draw(st.integers(0, 250)), draw(AGO)) for pod in pods}
    return Snapshot(
        autoscaler=web(behavior=behavior, metrics=(cpu,)),
        scale=Scale(current, current, "app=web"),
        pods=pods,
        metric_values=(samples,),
    )


@given(snapshot=snapshots(), history=HISTORIES)
def test_the_first_release_is_the_first_sync_with_another_result(snapshot: Snapshot, history: History) -> None:
    decision = decide(snapshot, history, settings=SHORT, now=NOON)
    release = first_release(decision, SHORT)
    current = decision.trace.current
    changed = (
        HoldRelease(each.trace.now, each.desired)
        for each in run(decision, snapshot, SHORT, 60)
        if each.desired != current
    )

    assert release == next(changed, None)


@given(snapshot=snapshots(), history=HISTORIES)
@example(
    # One replica less per minute, after this sync has added seven.
    snapshot=seen(web(behavior=Behavior(rules(("Pods", 50, 15)), rules(("Pods", 1, 60)))), wanted=9, current=2),
    history=History(),
)
def test_the_release_of_a_blocker_is_the_first_sync_that_obeys_the_value(snapshot: Snapshot, history: History) -> None:
    """This sync counts with what it measured; the value that a blocker is about holds from the next one on."""
    explanation = explain(snapshot, history, settings=SHORT, now=NOON)
    current = explanation.decision.trace.current
    assert current is not None
    for found in explanation.thresholds:
        for blocker, sign, total in (
            (found.cannot_grow, 1, found.ranges[-1].high),
            (found.cannot_shrink, -1, 0),
        ):
            if blocker is None:
                continue
            then = with_total(snapshot, found.position, found.pods, total)
            changed = (
                HoldRelease(each.trace.now, each.desired)
                for each in run(explanation.decision, then, SHORT, 60)
                if (each.desired - current) * sign > 0
            )
            assert blocker.release == next(changed, None)


@given(snapshot=snapshots(), history=HISTORIES)
def test_a_hold_ends_at_the_instant_named_and_not_before(snapshot: Snapshot, history: History) -> None:
    """Only the windows are asked, as a hold is about what they make of the same proposal."""
    explanation = explain(snapshot, history, settings=SHORT, now=NOON)
    hold, trace = explanation.hold, explanation.decision.trace
    if hold is None or trace.stabilization is None or trace.current is None:
        return
    before = history.with_first_recommendation(trace.current, NOON)

    def held(at: datetime) -> int:
        assert trace.stabilization is not None
        assert trace.current is not None
        proposal = trace.stabilization.wanted
        return normalize(snapshot.autoscaler, trace.current, proposal, before, settings=SHORT, now=at)[0].replicas

    assert held(NOON) == held(hold.until - JUST)
    assert held(hold.until) != held(NOON)


@given(snapshot=snapshots(), history=HISTORIES)
def test_a_policy_allows_more_at_the_instant_named_and_not_before(snapshot: Snapshot, history: History) -> None:
    explanation = explain(snapshot, history, settings=SHORT, now=NOON)
    current = explanation.decision.trace.current
    assert current is not None
    for up, found in ((True, explanation.scale_up_allowances), (False, explanation.scale_down_allowances)):
        for allowance in found:
            known = allowance.allowed
            for at, allowed in allowance.later:
                assert known == allowed_by(allowance.policy, current, history, at - JUST, up=up)
                assert allowed == allowed_by(allowance.policy, current, history, at, up=up)
                known = allowed


def allowed_by(policy: ScalingPolicy, current: int, history: History, at: datetime, *, up: bool) -> int:
    """Return what one policy allows on its own."""
    only = ScalingRules((policy,), window=timedelta())
    autoscaler = web(behavior=Behavior(only, only), minimum=-(2**31), maximum=2**31 - 1)
    limit = normalize(
        autoscaler, current, 2**31 - 1 if up else -1, history._replace(recommendations=()), settings=SHORT, now=at
    )[1]
    return limit.allowances[0][2]


class TestOwnRecommendation:
    """Five replicas are wanted now, and five were at 11:58:20."""

    EARLIER: Final = History((Recommendation(5, ago(100)),))

    def test_fewer_replicas_wait_for_the_recommendation_of_this_sync(self) -> None:
        """It counts until 12:05:00, so the sync at 12:05:15 is the first one without it."""
        [found] = explain(seen(web(), 5, 5), self.EARLIER, now=NOON).thresholds
        assert found.cannot_shrink is not None
        assert found.cannot_shrink.release == (NOON + timedelta(minutes=5, seconds=15), 1)

    def test_an_earlier_recommendation_releases_what_is_wanted_already(self) -> None:
        """It counts until 12:03:20; syncs are at 12:03:15 and 12:03:30."""
        assert explain(seen(web(), 2, 5), self.EARLIER, now=NOON).release == (NOON + timedelta(seconds=210), 2)


def test_a_starting_pod_counts_when_its_initialization_period_is_over() -> None:
    """The sample of the second pod counts as none until its start is 5 minutes ago: 30% are 90% then."""
    cpu = Metric("Resource", "cpu", MetricTarget("Utilization", utilization=50))
    containers = (Container("app", {"cpu": 100}),)
    pods = [
        Pod(name="old", started=ago(900), ready=Readiness("True", ago(900)), containers=containers),
        Pod(name="new", started=ago(200), ready=Readiness("False", ago(150)), containers=containers),
    ]
    snapshot = Snapshot(
        autoscaler=web(metrics=(cpu,)),
        scale=Scale(2, 2, "app=web"),
        pods=pods,
        metric_values=({"old": Sample(50, NOON), "new": Sample(130, NOON)},),
    )
    assert explain(snapshot, History(()), now=NOON).release == (NOON + timedelta(seconds=105), 4)


@pytest.mark.parametrize(("wanted", "current"), [(9, 3), (3, 3)], ids=["at-the-maximum", "in-balance"])
def test_what_time_does_not_change_has_no_release(wanted: int, current: int) -> None:
    decision = decide(seen(web(maximum=3), wanted, current), History(()), now=NOON)
    assert first_release(decision, Settings()) is None


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        # The sample of 11:59:50 covers 30 s. One of 12:00:05 still begins before the pod became ready, that of 12:00:20
        # does not (https://github.com/kubernetes/kubernetes/issues/29989).
        pytest.param(20, NOON + timedelta(seconds=30), id="the-second-sample"),
        pytest.param(35, NOON + timedelta(seconds=15), id="the-next-sample"),
    ],
)
def test_a_pod_that_was_starting_counts_with_its_next_sample(ready: int, expected: datetime) -> None:
    mine, [young] = tuple(pods(4)), pods(1, "ReplicaSet/web-9a1c", age=50, since=ready)
    cpu_target = Metric("Resource", "cpu", MetricTarget("Utilization", utilization=50))
    snapshot = Snapshot(
        autoscaler=Autoscaler(name="web", minimum=1, maximum=10, metrics=(cpu_target,)),
        scale=Scale(5, 5, "app=web"),
        pods=(*mine, young),
        metric_values=({**measured(mine, 560), **measured([young], 1900)},),
    )
    decision = decide(snapshot, steady(5), now=NOON)

    assert decision.desired == 5
    assert first_release(decision, Settings(), direction=1) == (expected, 9)
