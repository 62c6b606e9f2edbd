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
    stabilize,
    stabilize_with_behavior,
)
from ocf.autoscaling.algorithm.normalize import downscale_window
from ocf.simulation.engine.windows import KeptRecommendations, Windows

Sizes = tuple[timedelta | None, timedelta | None] | None

START = datetime(2026, 1, 1, tzinfo=UTC)
lengths = st.sampled_from([0, 1, 15, 30, 45])
windows = st.none() | lengths.map(lambda seconds: timedelta(seconds=seconds))
sizes_of_both = st.none() | st.tuples(windows, windows)
syncs = st.lists(st.tuples(st.sampled_from([0, 1, 14, 15, 16, 60]), st.integers(0, 9), st.integers(1, 9)), max_size=25)


@given(sizes_of_both, st.sampled_from([1, 30]), syncs)
def test_the_extremes_of_a_window_are_those_of_all_its_recommendations(
    sizes: Sizes, setting: int, proposals: list[tuple[int, int, int]]
) -> None:
    web, settings = autoscaler_of(sizes), Settings(downscale_stabilization=timedelta(seconds=setting))
    check(Windows(web, settings), web, settings, proposals=proposals)


@given(st.lists(st.tuples(sizes_of_both, syncs), min_size=2, max_size=4))
def test_kept_recommendations_are_those_of_the_controller_while_windows_are_edited(
    parts: list[tuple[Sizes, list[tuple[int, int, int]]]],
) -> None:
    settings, history, seconds = Settings(downscale_stabilization=timedelta(seconds=30)), History(recommendations=()), 0
    ours: KeptRecommendations | None = None
    for sizes, proposals in parts:
        web = autoscaler_of(sizes)
        before, ours = ours, KeptRecommendations(web, settings)
        ours.restore(() if before is None else before.recommendations())
        history, seconds = check(ours, web, settings, proposals=proposals, history=history, seconds=seconds)
        assert [(START + timedelta(microseconds=at), count) for at, count in ours.recommendations()] == [
            (each.at, each.replicas) for each in history.recommendations or ()
        ]


def autoscaler_of(sizes: Sizes) -> Autoscaler:
    """Return an HPA with windows for scaling up and down."""
    behavior = None if sizes is None else Behavior(ScalingRules(window=sizes[0]), ScalingRules(window=sizes[1]))
    return Autoscaler(name="web", maximum=9, behavior=behavior)


def check(
    ours: Windows,
    web: Autoscaler,
    settings: Settings,
    *,
    proposals: list[tuple[int, int, int]],
    history: History = History(recommendations=()),  # noqa: B008 (immutable)
    seconds: int = 0,
) -> tuple[History, int]:
    """Compare windows with the algorithm in some syncs, and return its history and the time of the last one."""
    behavior = web.behavior
    down, up = downscale_window(web, settings), timedelta()
    if behavior is not None and behavior.up.window is not None:
        up = behavior.up.window
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
    return history, seconds
