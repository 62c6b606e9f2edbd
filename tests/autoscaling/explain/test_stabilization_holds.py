"""Recommendations that hold the replicas, and the end of each hold."""

from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Behavior,
    Decision,
    History,
    Recommendation,
    Scale,
    ScalingPolicy,
    ScalingRules,
    Settings,
    Snapshot,
    decide,
)
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.explain.stabilization_holds import hold_of, policy_allowances
from tests.autoscaling.explain.values import JUST, NOON, QUEUE, ago

MINUTE: Final = timedelta(minutes=1)


def web(**fields: Any) -> Autoscaler:
    return Autoscaler(**{"name": "web", "minimum": 1, "maximum": 20, "metrics": (QUEUE,), **fields})


def decided(autoscaler: Autoscaler, wanted: int, current: int, history: History, now: datetime = NOON) -> Decision:
    """Decide for a metric that wants a number of replicas."""
    seen = Snapshot(autoscaler=autoscaler, scale=Scale(current, 0, "app=web"), metric_values=((wanted * 1000,),))
    return decide(seen, history, now=now)


def rules(*policies: tuple[str, int, int], window: int | None = None, select: str = "Max") -> ScalingRules:
    made = tuple(ScalingPolicy(kind, value, timedelta(seconds=period)) for kind, value, period in policies)
    return ScalingRules(made, select, None if window is None else timedelta(seconds=window))


class TestHold:
    def test_the_youngest_of_the_highest_recommendations_holds_for_a_window(self) -> None:
        """Without a behavior, an entry exactly as old as the window still counts."""
        known = History(tuple(Recommendation(n, ago(s)) for n, s in ((5, 200), (5, 100), (4, 10), (9, 301))))
        hold = hold_of(decided(web(), 2, 5, known), Settings())
        assert hold is not None
        assert hold.recommendation == Recommendation(5, ago(100))
        assert hold.until == NOON + timedelta(seconds=200) + JUST

    def test_scaling_up_is_held_by_the_lowest_recommendation_of_its_window(self) -> None:
        both = Behavior(rules(("Pods", 9, 15), window=60), rules(("Pods", 9, 15), window=300))
        known = History((Recommendation(4, ago(50)), Recommendation(2, ago(60))))
        hold = hold_of(decided(web(behavior=both), 8, 3, known), Settings())
        assert hold is not None
        assert hold == (Recommendation(4, ago(50)), NOON + timedelta(seconds=10))

    def test_a_younger_recommendation_that_keeps_the_size_as_well_holds_longer(self) -> None:
        """Above 5 replicas nothing is added, so 6 keeps them as well as 9 does."""
        both = Behavior(rules(("Pods", 9, 15)), rules(("Pods", 9, 15), window=300))
        known = History((Recommendation(9, ago(200)), Recommendation(6, ago(100)), Recommendation(4, ago(50))))
        assert hold_of(decided(web(behavior=both), 2, 5, known), Settings()) == (
            Recommendation(6, ago(100)),
            NOON + timedelta(seconds=200),
        )

    def test_a_recommendation_that_no_longer_counts_does_not_hold(self) -> None:
        both = Behavior(rules(("Pods", 9, 15)), rules(("Pods", 9, 15), window=300))
        known = History((Recommendation(5, ago(300)), Recommendation(3, ago(200))))
        hold = hold_of(decided(web(behavior=both), 2, 5, known), Settings())
        assert hold is not None
        assert hold.recommendation == Recommendation(3, ago(200))

    def test_without_stabilization_nothing_holds(self) -> None:
        assert hold_of(decided(web(), 5, 5, History(())), Settings()) is None


class TestPolicyAllowance:
    def test_added_replicas_reduce_the_allowance_until_they_leave_the_period(self) -> None:
        both = Behavior(rules(("Pods", 4, 60), ("Percent", 100, 30)), rules(("Pods", 1, 60)))
        history = History((), (ScaleEvent(1, ago(50)), ScaleEvent(2, ago(20))))
        pods, percent = policy_allowances(web(behavior=both), 8, history, up=True, now=NOON)
        assert (pods.start, pods.added, pods.allowed, pods.remaining) == (5, 3, 9, 1)
        assert pods.later == ((NOON + timedelta(seconds=10), 10), (NOON + timedelta(seconds=40), 12))
        assert (percent.start, percent.added, percent.allowed, percent.remaining) == (6, 2, 12, 4)

    def test_scaling_down_has_its_own_allowance(self) -> None:
        both = Behavior(rules(("Pods", 4, 60)), rules(("Pods", 3, 60)))
        [allowance] = policy_allowances(
            web(behavior=both), 8, History((), (), (ScaleEvent(3, ago(59)),)), up=False, now=NOON
        )
        assert (allowance.start, allowance.removed, allowance.allowed, allowance.remaining) == (11, 3, 8, 0)
        assert allowance.later == ((NOON + timedelta(seconds=1), 5),)

    @pytest.mark.parametrize("behavior", [None, Behavior(rules(select="Disabled"), rules())], ids=["none", "disabled"])
    def test_without_policies_there_are_no_allowances(self, behavior: Behavior | None) -> None:
        assert policy_allowances(web(behavior=behavior), 8, History(()), up=True, now=NOON) == ()
