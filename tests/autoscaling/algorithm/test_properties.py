"""Properties that hold for every snapshot."""

from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import (
    Autoscaler,
    Behavior,
    Container,
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
    Status,
    Unavailable,
    decide,
)
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.algorithm.pod import PodLevelResources
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.objects.selectors import LabelSelector

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
INT32: Final = st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 30)
INT64: Final = st.integers(-(2**63), 2**63 - 1) | st.integers(-10, 5000)
COUNTS: Final = st.integers(0, 2**31 - 1) | st.integers(0, 30)
INSTANTS: Final = st.sampled_from([datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]) | st.integers(
    -1000, 1000
).map(lambda seconds: NOON + timedelta(seconds=seconds))
PERIODS: Final = (INT32 | st.sampled_from([0, 15, 60, 300])).map(lambda seconds: timedelta(seconds=seconds))
NAMES: Final = st.sampled_from(["web-0", "web-1", "web-2", "stranger"])
AMOUNTS: Final = st.dictionaries(st.sampled_from(["cpu", "memory"]), INT64)
CONTAINERS: Final = st.lists(
    st.builds(Container, st.sampled_from(["app", "side"]), AMOUNTS, st.booleans()), max_size=2
).map(tuple)
PODS: Final = st.lists(
    st.builds(
        Pod,
        name=NAMES,
        phase=st.sampled_from(["Pending", "Running", "Failed", "Succeeded", ""]),
        deleted=st.booleans(),
        started=st.none() | INSTANTS,
        ready=st.none() | st.builds(Readiness, st.sampled_from(["True", "False", "Unknown"]), st.none() | INSTANTS),
        labels=st.just({"app": "web"}),
        containers=CONTAINERS,
        init_containers=CONTAINERS,
        pod_level=st.none() | st.builds(PodLevelResources, AMOUNTS, AMOUNTS),
    ),
    max_size=4,
)
SAMPLES: Final = st.dictionaries(NAMES, st.builds(Sample, INT64, INSTANTS, PERIODS))
METRIC_VALUES: Final = st.lists(
    SAMPLES | st.lists(INT64, max_size=3) | st.builds(Unavailable, st.just("gone")), max_size=4
)
METRICS: Final = st.lists(
    st.builds(
        Metric,
        st.sampled_from(["Resource", "ContainerResource", "Pods", "Object", "External", "Cheese"]),
        st.sampled_from(["cpu", "memory"]),
        st.builds(
            MetricTarget,
            st.sampled_from(["Utilization", "Value", "AverageValue"]),
            st.none() | INT32,
            st.none() | INT64,
            st.none() | INT64,
        ),
        container=st.sampled_from(["app", "other"]),
        selector_error=st.sampled_from(["", "", "odd"]),
    ),
    max_size=4,
).map(tuple)
RULES: Final = st.builds(
    ScalingRules,
    st.lists(st.builds(ScalingPolicy, st.sampled_from(["Pods", "Percent", "Cows"]), INT32, PERIODS), max_size=3).map(
        tuple
    ),
    st.sampled_from(["Max", "Min", "Disabled"]),
    st.none() | PERIODS,
    st.none() | st.floats(0, 2),
)
AUTOSCALERS: Final = st.builds(
    Autoscaler,
    name=st.just("web"),
    minimum=INT32,
    maximum=INT32,
    metrics=METRICS,
    behavior=st.none() | st.builds(Behavior, RULES, RULES),
    api_version=st.sampled_from(["apps/v1", "a/b/c"]),
)
EVENTS: Final = st.lists(st.builds(ScaleEvent, COUNTS, INSTANTS, st.booleans()), max_size=3).map(tuple)
HISTORIES: Final = st.builds(
    History,
    st.none() | st.lists(st.builds(Recommendation, COUNTS, INSTANTS), max_size=4).map(tuple),
    EVENTS,
    EVENTS,
)
SETTINGS: Final = st.builds(
    Settings,
    tolerance=st.floats(0, 2),
    downscale_stabilization=st.sampled_from([timedelta(milliseconds=1), timedelta(minutes=5), timedelta.max]),
    features=st.builds(FeatureGates, scale_to_zero=st.booleans(), remembered_zero=st.booleans()),
)
SNAPSHOTS: Final = st.builds(
    Snapshot,
    autoscaler=AUTOSCALERS,
    status=st.sampled_from(["True", "False", None]).map(
        lambda known: Status(conditions=() if known is None else (HpaCondition("ScaledToZero", known, "", ""),))
    ),
    scale=st.builds(Scale, COUNTS, COUNTS, st.sampled_from(["app=web", "", "app in ("]))
    | st.builds(Unavailable, st.just("gone")),
    pods=PODS,
    metric_values=METRIC_VALUES,
    others=st.just({}) | st.just({"other": LabelSelector.parse("app=web")}),
)


@given(snapshot=SNAPSHOTS, history=HISTORIES, settings=SETTINGS)
def test_every_input_has_one_decision(snapshot: Snapshot, history: History, settings: Settings) -> None:
    """No input raises, not even when the trace is rendered; and the same input gives the same decision."""
    decision = decide(snapshot, history, settings=settings, now=NOON)
    again = decide(snapshot, history, settings=settings, now=NOON)

    assert list(decision.trace.render()) == list(again.trace.render())
    assert decision.status.to_manifest() == again.status.to_manifest()
    assert (decision.events, decision.history, decision.error) == (again.events, again.history, again.error)
    assert decision.after_scale_write_failed("no").desired == decision.desired


def by_queue(behavior: Behavior | None, minimum: int, spread: int, current: int, value: int) -> Snapshot:
    queue = Metric("External", "queue", MetricTarget("Value", value=1000))
    autoscaler = Autoscaler(name="web", minimum=minimum, maximum=minimum + spread, metrics=(queue,), behavior=behavior)
    pods = [
        Pod(name=f"web-{number}", started=NOON, ready=Readiness("True", NOON)) for number in range(min(current, 20))
    ]
    return Snapshot(
        autoscaler=autoscaler, scale=Scale(current, current, "app=web"), pods=pods, metric_values=([value],)
    )


SMALL: Final = st.integers(0, 40)
SANE_RULES: Final = st.builds(
    ScalingRules,
    st.lists(
        st.builds(
            ScalingPolicy,
            st.sampled_from(["Pods", "Percent"]),
            st.integers(1, 200),
            st.sampled_from([15, 60, 600]).map(lambda seconds: timedelta(seconds=seconds)),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    st.sampled_from(["Max", "Min", "Disabled"]),
    st.sampled_from([None, timedelta(), timedelta(minutes=1), timedelta(minutes=5)]),
)
BEHAVIORS: Final = st.none() | st.builds(Behavior, SANE_RULES, SANE_RULES)


@given(
    behavior=BEHAVIORS,
    minimum=st.integers(1, 10),
    spread=SMALL,
    offset=SMALL,
    value=st.integers(0, 100_000),
    history=HISTORIES,
)
def test_replicas_stay_within_minimum_and_maximum(  # noqa: PLR0917 (drawn values)
    behavior: Behavior | None, minimum: int, spread: int, offset: int, value: int, history: History
) -> None:
    """A workload within its bounds never leaves them, for any metric values and history."""
    current = minimum + offset % (spread + 1)
    sane = history._replace(
        recommendations=tuple(
            each._replace(replicas=minimum + each.replicas % (spread + 1)) for each in history.recommendations or ()
        )
    )
    desired = decide(by_queue(behavior, minimum, spread, current, value), sane, now=NOON).desired

    assert minimum <= desired <= minimum + spread


@given(current=st.integers(1, 20), less=st.integers(0, 50_000), more=st.integers(0, 50_000))
def test_a_larger_value_never_gives_fewer_replicas(current: int, less: int, more: int) -> None:
    """With one total, no tolerance and no history."""
    settings = Settings(tolerance=0)

    def desired(value: int) -> int:
        return decide(by_queue(None, 1, 100, current, value), History(()), settings=settings, now=NOON).desired

    assert desired(min(less, more)) <= desired(max(less, more))


@given(
    behavior=BEHAVIORS,
    step=st.integers(1, 60),
    values=st.lists(st.integers(0, 60_000), min_size=1, max_size=12),
)
def test_the_history_is_bounded(behavior: Behavior | None, step: int, values: list[int]) -> None:
    """A history holds at most the entries of its longest window, and two entries at its edges."""
    history, current, now = History(), 5, NOON
    for position in range(100):
        decision = decide(by_queue(behavior, 1, 50, current, values[position % len(values)]), history, now=now)
        history, current = decision.history, decision.desired
        now += timedelta(seconds=step)

    assert len(history.recommendations or ()) <= 300 // step + 3
    assert len(history.scale_ups) <= 600 // step + 3
    assert len(history.scale_downs) <= 600 // step + 3
