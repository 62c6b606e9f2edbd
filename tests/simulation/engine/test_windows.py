"""Stabilization windows equal those of the algorithm, which looks at each recommendation."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Behavior,
    History,
    ScalingRules,
    Settings,
    downscale_window,
    stabilize,
    stabilize_with_behavior,
)
from ocf.simulation.engine.windows import Windows

START = datetime(2026, 1, 1, tzinfo=UTC)
lengths = st.sampled_from([0, 1, 15, 30, 45])
windows = st.none() | lengths.map(lambda seconds: timedelta(seconds=seconds))
syncs = st.lists(st.tuples(st.sampled_from([0, 1, 14, 15, 16, 60]), st.integers(0, 9), st.integers(1, 9)), max_size=25)


@given(st.none() | st.tuples(windows, windows), st.sampled_from([1, 30]), syncs)
def test_the_extremes_of_a_window_are_those_of_all_its_recommendations(
    sizes: tuple[timedelta | None, timedelta | None] | None, setting: int, proposals: list[tuple[int, int, int]]
) -> None:
    behavior = None if sizes is None else Behavior(ScalingRules(window=sizes[0]), ScalingRules(window=sizes[1]))
    web, settings = (
        Autoscaler(name="web", maximum=9, behavior=behavior),
        Settings(downscale_stabilization=timedelta(seconds=setting)),
    )
    down, up = downscale_window(web, settings), timedelta()
    if behavior is not None and behavior.up.window is not None:
        up = behavior.up.window
    ours, history, seconds = Windows(web, settings), History(recommendations=()), 0
    for later, wanted, current in proposals:
        seconds += later
        now, known = START + timedelta(seconds=seconds), history.recommendations or ()
        if behavior is None:
            step = stabilize(wanted, known, window=down, now=now)
        else:
            step = stabilize_with_behavior(wanted, current, known, up_window=up, down_window=down, now=now)
        low, high = ours.extremes(seconds * 10**6, wanted)
        assert high == step.highest
        assert step.lowest in (None, low)
        ours.add(seconds * 10**6, wanted)
        history = History(recommendations=step.recommendations)
