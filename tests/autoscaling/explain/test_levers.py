"""Each field that is named gives the result that is named, and the value next to it does not."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling import FeatureGates, default
from ocf.autoscaling.algorithm import (
    Autoscaler,
    Behavior,
    History,
    MetricTarget,
    Pod,
    Readiness,
    Recommendation,
    Scale,
    ScalingPolicy,
    ScalingRules,
    Settings,
    Snapshot,
    decide,
)
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.explain import explain, levers
from ocf.objects import Manifest, Quantity
from ocf.objects.manifest import copy_json
from ocf.objects.yaml_places import split_path
from tests.autoscaling.explain.values import NOON, QUEUE, ago

TARGET: Final = "spec.metrics[0].external.target.averageValue"


def rules(kind: str, value: int, period: int, window: int = 0, select: str = "Max") -> ScalingRules:
    policies = (ScalingPolicy(kind, value, timedelta(seconds=period)),)
    return ScalingRules(policies, select, timedelta(seconds=window), 0.1)


def seen(total: int, current: int, **fields: Any) -> Snapshot:
    web = Autoscaler(**{"name": "web", "minimum": 2, "maximum": 10, "metrics": (QUEUE,), **fields})
    return Snapshot(autoscaler=web, scale=Scale(current, current, "app=web"), metric_values=((total,),))


EMPTY: Final = History(())
DEFAULTS: Final = Settings()


def found(
    snapshot: Snapshot, history: History = EMPTY, settings: Settings = DEFAULTS
) -> dict[str, list[tuple[str, int, int]]]:
    """Return value, side and replicas of the levers by field."""
    decision = decide(snapshot, history, settings=settings, now=NOON)
    fields: dict[str, list[tuple[str, int, int]]] = {}
    for each in levers(decision, (history,), settings=settings, now=NOON):
        fields.setdefault(each.field, []).append((each.value, each.side, each.replicas))
    return fields


BOTH: Final = Behavior(rules("Pods", 2, 60), rules("Pods", 2, 60, window=300))


@pytest.mark.parametrize(
    ("snapshot", "history", "field", "expected"),
    [
        pytest.param(seen(12_000, 10), History(()), "spec.maxReplicas", [("11", 1, 11), ("9", -1, 9)], id="maximum"),
        pytest.param(seen(1000, 2), History(()), "spec.minReplicas", [("3", 1, 3), ("1", -1, 1)], id="minimum"),
        pytest.param(seen(5500, 5), History(()), TARGET, [("1375m", 1, 4), ("999m", -1, 6)], id="target"),
        pytest.param(
            seen(5300, 5), History(()), "spec.behavior.scaleUp.tolerance", [("0.059", -1, 6)], id="tolerance-of-growth"
        ),
        pytest.param(
            seen(3000, 5),
            History((Recommendation(5, ago(100)),)),
            "spec.behavior.scaleDown.stabilizationWindowSeconds",
            [("100", -1, 3)],
            id="window",
        ),
        pytest.param(
            seen(9000, 5, behavior=BOTH),
            History(()),
            "spec.behavior.scaleUp.policies[0].value",
            [("3", 1, 8), ("1", -1, 6)],
            id="policy",
        ),
        pytest.param(
            seen(9000, 5, behavior=BOTH),
            History((), (ScaleEvent(2, ago(40)),)),
            "spec.behavior.scaleUp.policies[0].periodSeconds",
            [("40", -1, 7)],
            id="period",
        ),
        pytest.param(
            seen(9000, 5, behavior=Behavior(rules("Pods", 2, 60, select="Disabled"), BOTH.down)),
            History(()),
            "spec.behavior.scaleUp.selectPolicy",
            [("Max", 0, 7), ("Min", 0, 7)],
            id="disabled",
        ),
    ],
)
def test_the_nearest_value_with_another_result(
    snapshot: Snapshot, history: History, field: str, expected: list[tuple[str, int, int]]
) -> None:
    assert found(snapshot, history)[field] == expected


def surging(replicas: int, ready: int, total: int) -> Snapshot:
    """Return a snapshot with another number of ready pods than replicas."""
    queue = replace(QUEUE, target=MetricTarget("Value", value=100_000))
    web = Autoscaler(name="web", maximum=50, metrics=(queue,))
    found = [
        Pod(name=f"web-{number}", started=ago(3600), ready=Readiness("True", ago(3600))) for number in range(ready)
    ]
    return Snapshot(autoscaler=web, scale=Scale(replicas, replicas, "app=web"), pods=found, metric_values=((total,),))


@pytest.mark.parametrize(
    ("replicas", "ready", "total", "direction"),
    [(5, 6, 80_000, 1), (8, 6, 130_000, -1), (3, 4, 70_000, 1), (5, 2, 245_000, -1)],
)
def test_a_target_within_whose_tolerance_the_replicas_are_kept_is_no_end_of_the_search(
    replicas: int, ready: int, total: int, direction: int
) -> None:
    """Each target is tried in steps of a thousandth of the present one: the first with a change is the lever."""
    snapshot = surging(replicas, ready, total)

    def change(target: int) -> int:
        [metric] = snapshot.autoscaler.metrics
        other = replace(metric, target=replace(metric.target, value=target))
        tried = replace(snapshot, autoscaler=replace(snapshot.autoscaler, metrics=(other,)))
        return (decide(tried, EMPTY, now=NOON).desired - replicas) * direction

    assert change(100_000) == 0
    targets = range(100_000, 1, -100) if direction > 0 else range(100_000, 400_000, 100)
    nearest = next(each for each in targets if change(each) > 0)
    [(value, side, _)] = [
        each
        for each in found(snapshot)["spec.metrics[0].external.target.value"]
        if (each[2] - replicas) * direction > 0 and (Quantity.parse(each[0]).milli - 100_000) * direction < 0
    ]
    exact = Quantity.parse(value).milli
    assert abs(exact - nearest) < 100
    assert change(exact) > 0
    assert change(exact + direction) <= 0
    assert (side != 0) == all(change(each) > 0 for each in targets if (exact - each) * direction >= 0)


@pytest.mark.parametrize("changes", [[(2, 20), (-3, 40)], [(-2, 10), (3, 30)], [(1, 70), (-2, 90), (1, 95)]])
def test_a_period_is_found_although_longer_ones_count_more_changes(
    changes: list[tuple[int, int]],
) -> None:
    history = History(
        (),
        tuple(ScaleEvent(each, ago(seconds)) for each, seconds in changes if each > 0),
        tuple(ScaleEvent(-each, ago(seconds)) for each, seconds in changes if each < 0),
    )
    snapshot = seen(12_000, 5, maximum=30, behavior=Behavior(rules("Pods", 3, 60), BOTH.down))

    def result(seconds: int) -> int:
        behavior = Behavior(rules("Pods", 3, seconds), BOTH.down)
        return decide(seen(12_000, 5, maximum=30, behavior=behavior), history, now=NOON).desired

    present = result(60)
    expected = []
    for side, tried in ((1, range(61, 1801)), (-1, range(59, 0, -1))):
        for sign in (1, -1):
            at = next((each for each in tried if (result(each) - present) * sign > 0), None)
            if at is not None:
                ordered = all((result(each) - present) * sign > 0 for each in tried if (each - at) * side >= 0)
                expected.append((str(at), side if ordered else 0, result(at)))
    levers_found = found(snapshot, history).get("spec.behavior.scaleUp.policies[0].periodSeconds", [])
    assert expected
    assert sorted(levers_found) == sorted(expected)


@given(
    total=st.integers(0, 20_000),
    current=st.integers(1, 14),
    limits=st.tuples(st.integers(1, 14), st.integers(1, 14)).map(sorted),
)
def test_limits_are_as_if_each_value_was_tried(total: int, current: int, limits: list[int]) -> None:
    """Each sign is reported once per side, at its nearest value, and an order only where it holds."""
    minimum, maximum = limits
    snapshot = seen(total, current)
    web = replace(snapshot.autoscaler, minimum=minimum, maximum=maximum)
    snapshot = replace(snapshot, autoscaler=web)

    def result(**limit: Any) -> int:
        return decide(replace(snapshot, autoscaler=replace(web, **limit)), EMPTY, settings=DEFAULTS, now=NOON).desired

    present, levers_found = result(), found(snapshot)
    for field, name, values in (
        ("spec.minReplicas", "minimum", (range(minimum + 1, maximum + 1), range(minimum - 1, 0, -1))),
        ("spec.maxReplicas", "maximum", (range(maximum + 1, 40), range(maximum - 1, minimum - 1, -1))),
    ):
        expected = []
        for side, tried in zip((1, -1), values, strict=True):
            changes = [(value, result(**{name: value})) for value in tried]
            for sign in (1, -1):
                first = next((at for at, (_, there) in enumerate(changes) if (there - present) * sign > 0), None)
                if first is not None:
                    ordered = all((there - present) * sign > 0 for _, there in changes[first:])
                    expected.append((str(changes[first][0]), side if ordered else 0, changes[first][1]))
        assert sorted(levers_found.get(field, [])) == sorted(expected)


def test_before_tolerances_can_be_configured_the_flag_of_the_controller_is_named() -> None:
    old = Settings(features=FeatureGates()._replace(configurable_tolerance=False))
    assert found(seen(5300, 5), settings=old)["--horizontal-pod-autoscaler-tolerance"] == [("0.059", -1, 6)]


def test_a_field_that_does_not_matter_is_not_named() -> None:
    """Above the maximum nothing else is evaluated."""
    assert set(found(seen(1000, 12))) == {"spec.maxReplicas"}


def direction(kinds: st.SearchStrategy[str], windows: list[int]) -> st.SearchStrategy[Manifest]:
    policy = st.fixed_dictionaries(
        {"type": kinds, "value": st.integers(1, 120), "periodSeconds": st.sampled_from([1, 15, 60, 1800])}
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "policies": st.lists(policy, min_size=1, max_size=3),
            "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
            "stabilizationWindowSeconds": st.sampled_from(windows),
            "tolerance": st.sampled_from(["0", "50m", "0.2"]),
        },
    )


KINDS: Final = st.sampled_from(["Pods", "Percent"])
SPECS: Final = st.fixed_dictionaries(
    {
        "minReplicas": st.integers(1, 9),
        "maxReplicas": st.integers(9, 30),
        "target": st.sampled_from(["1", "700m", "3"]),
        "kind": st.sampled_from(["AverageValue", "Value"]),
    },
    optional={
        "behavior": st.fixed_dictionaries(
            {}, optional={"scaleUp": direction(KINDS, [0, 60]), "scaleDown": direction(KINDS, [0, 60, 300])}
        ),
    },
)


def written(spec: dict[str, Any]) -> Manifest:
    """Return an HPA on one external metric."""
    kind = "averageValue" if spec["kind"] == "AverageValue" else "value"
    metric = {"metric": {"name": "queue"}, "target": {"type": spec["kind"], kind: spec["target"]}}
    rest = {name: value for name, value in spec.items() if name not in {"target", "kind"}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metrics = [{"type": "External", "external": metric}]
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"scaleTargetRef": target, "metrics": metrics, **rest},
    }


def changed(manifest: Manifest, field: str, text: str) -> Manifest:
    """Return a manifest in which a user has written a value into a field."""
    # Without rules, an index is one of the defaults.
    result: Manifest = copy_json(default(manifest) if "[" in field else manifest)
    place: Any = result
    *path, last = split_path(field)
    for name in path:
        place = place[name] if isinstance(name, int) else place.setdefault(name, {})
    place[last] = int(text) if is_whole(field) else text
    return result


def is_whole(field: str) -> bool:
    """Return whether the values of a field are whole numbers, and not quantities."""
    return not field.endswith(("target.value", "averageValue", "tolerance", "selectPolicy"))


def next_to(text: str, present: str, field: str) -> str | None:
    """Return the value one step nearer to the present one; None for a choice."""
    if field.endswith("selectPolicy"):
        return None
    if is_whole(field):
        return str(int(text) - (1 if int(text) > int(present) else -1))
    value, now = Quantity.parse(text).milli, Quantity.parse(present).milli
    return f"{value - (1 if value > now else -1)}m"


@given(
    spec=SPECS,
    total=st.integers(0, 60_000),
    current=st.integers(1, 31),
    ready=st.integers(1, 31),
    history=st.builds(
        History,
        st.lists(st.builds(Recommendation, st.integers(1, 30), st.integers(0, 400).map(ago)), max_size=3).map(tuple),
        st.lists(st.builds(ScaleEvent, st.integers(1, 3), st.integers(0, 90).map(ago)), max_size=2).map(tuple),
        st.lists(st.builds(ScaleEvent, st.integers(1, 3), st.integers(0, 90).map(ago)), max_size=2).map(tuple),
    ),
)
def test_a_manifest_with_the_value_of_any_lever_gives_its_result(
    spec: dict[str, Any], total: int, current: int, ready: int, history: History
) -> None:
    """A user writes the value into the manifest, and the API server sets the defaults of what is not written."""
    manifest = written(spec)
    pods = [Pod(name=f"web-{at}", started=ago(3600), ready=Readiness("True", ago(3600))) for at in range(ready)]

    def desired(written_one: Manifest) -> int:
        autoscaler = Autoscaler.of(default(written_one))
        found = Snapshot(
            autoscaler=autoscaler, scale=Scale(current, current, "app=web"), pods=pods, metric_values=((total,),)
        )
        return decide(found, history, now=NOON).desired

    seen_now = Snapshot(
        autoscaler=Autoscaler.of(default(manifest)),
        scale=Scale(current, current, "app=web"),
        pods=pods,
        metric_values=((total,),),
    )
    explanation = explain(seen_now, history, now=NOON)
    present = explanation.decision.desired
    assert present == desired(manifest)
    for each in explanation.levers:
        assert each.field.startswith("spec.")
        assert desired(changed(manifest, each.field, each.value)) == each.replicas, each
        nearer = next_to(each.value, each.present, each.field)
        if nearer is not None:
            assert (desired(changed(manifest, each.field, nearer)) - present) * each.change <= 0, each
