"""Incidents from public reports: the first sentence names the cause, and what is offered holds when it is tried."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling import FeatureGates, default
from ocf.autoscaling.algorithm import (
    Decision,
    History,
    Recommendation,
    Scale,
    Settings,
    Snapshot,
    decide,
)
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.autoscaling.explain import explain, render
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.levers import Lever
from ocf.autoscaling.explain.selected_pods import odd_pods
from ocf.autoscaling.explain.thresholds import with_total
from ocf.objects import Manifest, Quantity
from tests.autoscaling.explain.incidents import (
    INCIDENTS,
    Incident,
    cpu,
    external,
    hpa,
    measured,
    per_pod,
    pods,
    spec,
    steady,
)
from tests.autoscaling.explain.values import NOON, ago

PERIOD: Final = Settings().sync_period
ROWS: Final = [pytest.param(each, id=each.link.removeprefix("https://")) for each in INCIDENTS]
WITH_FIELDS: Final = [row for row, each in zip(ROWS, INCIDENTS, strict=True) if each.levers]
WITHOUT_FIELDS: Final = [row for row, each in zip(ROWS, INCIDENTS, strict=True) if not each.levers]


def explained(incident: Incident) -> Explanation:
    return explain(incident.snapshot(), incident.history, now=NOON)


@pytest.mark.parametrize("incident", ROWS)
def test_the_first_sentence_names_the_cause(incident: Incident) -> None:
    first, *_ = next(iter(render(explained(incident)))).lines
    missing = [each for each in incident.cause if each not in first]
    assert not missing, first


def changed(spec: Manifest, field: str, value: Any) -> Manifest:
    """Return a spec with another value of a field, as a user edits it."""
    found: Manifest = deepcopy(spec)
    *path, last = re.findall(r"\w+", field.removeprefix("spec."))
    inner: Any = found
    for part in path:
        inner = inner[int(part)] if part.isdigit() else inner.setdefault(part, {})
    inner[last] = value
    return found


def values(lever: Lever) -> tuple[Any, Any]:
    """Return the value of a lever in the form of the API, and the value one step nearer to the present one."""
    number = lever.field.rpartition(".")[2]
    if number == "selectPolicy":
        return lever.value, lever.present
    if number in {"averageValue", "value"} and "policies" not in lever.field:
        unit = 2**20 * 1000 if lever.value.endswith("Mi") else 1
        milli = Quantity.parse(lever.value).milli
        side = 1 if milli > Quantity.parse(lever.present).milli else -1
        return lever.value, str(Quantity.from_milli(milli - side * unit))
    if number == "tolerance":
        return lever.value, f"{float(lever.value) - lever.side / 1000:.3f}"
    side = 1 if int(lever.value) > int(lever.present) else -1
    return int(lever.value), int(lever.value) - side


def beyond(lever: Lever) -> list[str]:
    """Return targets beyond that of a lever, which have its effect as well unless the lever is a single value."""
    if ".target." not in lever.field or lever.field.endswith("Utilization") or not lever.side:
        return []
    milli = Quantity.parse(lever.value).milli
    return [
        str(Quantity.from_milli(milli * tenths // 10 if lever.side > 0 else milli * 10 // tenths))
        for tenths in (11, 12, 13, 15, 20, 40)
        if lever.side > 0 or milli * 10 // tenths
    ]


def measured_again(values: MetricValues, elapsed: timedelta) -> MetricValues:
    if not isinstance(values, Mapping):
        return values
    return {name: sample._replace(at=sample.at + elapsed) for name, sample in values.items()}


def later(decision: Decision, snapshot: Snapshot, end: datetime) -> Iterator[Decision]:
    """Yield the syncs after a decision in virtual time, with another snapshot whose pods are measured again."""
    at = decision.trace.now
    while at < end:
        at += PERIOD
        scale = decision.snapshot.scale
        assert isinstance(scale, Scale)
        grown = Scale(decision.desired, scale.observed + decision.desired - scale.replicas, scale.selector)
        seen = Snapshot(
            autoscaler=snapshot.autoscaler,
            status=decision.status,
            scale=grown,
            pods=snapshot.pods,
            metric_values=[measured_again(each, at - NOON) for each in snapshot.metric_values],
            others=snapshot.others,
        )
        decision = decide(seen, decision.history, now=at)
        yield decision


WHY_NOT_FEWER: Final = (
    "kubernetesquestions.com/questions/62531735",
    "kubernetesquestions.com/questions/58535208",
    "github.com/kubernetes/kubernetes/issues/95762",
    "github.com/kubernetes/autoscaler/issues/1741",
)


@pytest.mark.parametrize("incident", [each for each in ROWS if each.id in WHY_NOT_FEWER])
def test_who_asks_why_it_does_not_scale_down_finds_value_field_and_time_in_three_lines(incident: Incident) -> None:
    _, second, *_ = next(iter(render(explained(incident)))).lines
    assert re.fullmatch(
        r"Fewer: memory up to \S+ \(.* per pod.*\), unchanged from the next sync on: \d at 12:05:15;"
        r" or spec\.metrics\[\d\]\.resource\.target\.average\w+ \w+ or more \(now \w+\): \d at 12:05:15\.",
        second,
    )


@pytest.mark.parametrize("incident", WITH_FIELDS)
def test_ways_are_in_the_first_three_lines_and_a_limit_is_named_only_where_nothing_else_helps(
    incident: Incident,
) -> None:
    explanation = explained(incident)
    changes = [*explanation.levers, *(each.lever for each in explanation.later_levers)]
    bounds = {"spec.minReplicas", "spec.maxReplicas"}
    lines = next(iter(render(explanation))).lines
    for word, sign in (("Fewer", -1), ("More", 1)):
        found = [line for line in lines if line.startswith(f"{word}: ")]
        assert found == [line for line in lines[:3] if line.startswith(f"{word}: ")]
        others = [each.field for each in changes if each.change * sign > 0 and each.field not in bounds]
        if others:
            [line] = found
            ways = line.removeprefix(f"{word}: ").split("; or ")
            assert any(way.startswith(field) for way in ways for field in others), line


def check_fields(incident: Incident) -> None:
    """Try each field that is offered, with its value and one step less."""
    explanation = explained(incident)
    present = explanation.decision.desired
    for lever in explanation.levers:
        value, less = values(lever)
        found = [
            decide(incident.snapshot(changed(incident.spec, lever.field, each)), incident.history, now=NOON).desired
            for each in (value, less)
        ]
        assert found[0] == lever.replicas, lever
        assert (found[1] - present) * lever.change <= 0, lever
        for far in beyond(lever):
            tried = incident.snapshot(changed(incident.spec, lever.field, far))
            made = decide(tried, incident.history, now=NOON)
            assert (made.desired - present) * lever.change > 0, (lever, far)
    for lever, release in explanation.later_levers:
        value, less = values(lever)
        tried, not_yet = (incident.snapshot(changed(incident.spec, lever.field, each)) for each in (value, less))
        *before, last = later(explanation.decision, tried, release.at)
        assert all((each.desired - present) * lever.change <= 0 for each in before), lever
        assert (last.trace.now, last.desired) == (release.at, release.replicas), lever
        end = release.at + timedelta(minutes=6)
        following = later(explanation.decision, not_yet, end)
        assert lever.side == 0 or all((each.desired - present) * lever.change <= 0 for each in following), lever


def check_values(incident: Incident) -> None:
    """Try each value of a metric that is offered for a later sync, with the one next to it."""
    explanation = explained(incident)
    current = explanation.decision.trace.current or 0
    for each in explanation.thresholds:
        for direction, change in ((1, each.grows_later), (-1, each.shrinks_later)):
            if change is None:
                continue
            tried = with_total(incident.snapshot(), each.position, each.pods, change.total)
            *before, last = later(explanation.decision, tried, change.release.at)
            assert all((sync.desired - current) * direction <= 0 for sync in before), change
            assert (last.trace.now, last.desired) == change.release, change
            assert (last.desired - current) * direction > 0, change
            for low, high in change.ranges:
                for total in (low, (low + (high or 2 * low)) // 2, high or 2 * low):
                    there = with_total(incident.snapshot(), each.position, each.pods, total)
                    settled = decide(there, History(()), now=NOON)
                    assert (settled.desired - current) * direction > 0, (change, total)
            if change.side:
                nearer = with_total(incident.snapshot(), each.position, each.pods, change.total - direction)
                end = change.release.at + timedelta(minutes=6)
                following = later(explanation.decision, nearer, end)
                assert all((sync.desired - current) * direction <= 0 for sync in following), change


@pytest.mark.parametrize("incident", WITH_FIELDS)
def test_every_field_that_is_offered_holds_and_one_step_less_does_not(incident: Incident) -> None:
    explanation = explained(incident)
    assert explanation.levers or explanation.later_levers
    check_fields(incident)


@pytest.mark.parametrize("incident", ROWS)
def test_every_value_that_is_offered_for_later_holds_and_one_step_less_does_not(incident: Incident) -> None:
    check_values(incident)


@pytest.mark.parametrize("incident", ROWS)
def test_pods_that_are_named_change_the_proposal_by_what_is_said(incident: Incident) -> None:
    explanation = explained(incident)
    for each in odd_pods(explanation.decision, incident.history, Settings()):
        if each.without is not None:
            snapshot = incident.snapshot()
            samples = [
                {name: sample for name, sample in found.items() if name not in each.pods}
                if isinstance(found, Mapping)
                else found
                for found in snapshot.metric_values
            ]
            rest = replace(
                snapshot,
                pods=[pod for pod in snapshot.pods if pod.name not in each.pods],
                metric_values=samples,
            )
            proposal = decide(rest, incident.history, now=NOON).trace.combination
            assert proposal is not None
            assert proposal.replicas == each.without


@pytest.mark.parametrize(
    ("replicas", "observed", "expected"),
    [
        pytest.param(
            5, 6, ("a rollout is in progress", "1 more than the replicas (web-7d4f-running-true-2)"), id="a-rollout"
        ),
        pytest.param(
            3, 3, ("3 of the 6 pods that the selector matches belong to ReplicaSet web-7d4f", "deleted"), id="orphans"
        ),
    ],
)
def test_pods_of_a_rollout_and_those_of_a_deleted_replica_set_are_told_apart(
    replicas: int, observed: int, expected: tuple[str, ...]
) -> None:
    found = (*pods(3), *pods(3, "ReplicaSet/web-9a1c", age=400, since=390))
    scale = Scale(replicas, observed, "app=web")
    incident = Incident("", spec(1, 40, cpu(50)), scale, found, [measured(found, 900)], steady(replicas), ())
    first, *_ = next(iter(render(explained(incident)))).lines
    assert [each for each in expected if each not in first] == [], first


def test_pods_of_many_replica_sets_are_told_apart_at_once() -> None:
    """No combination of 40 ReplicaSets with two pods each has 77 pods, and there are 2 to the power of 40."""
    found = tuple(pod for number in range(40) for pod in pods(2, f"ReplicaSet/web-{number:04}"))
    incident = Incident("", spec(1, 90, cpu(50)), Scale(3, 3, "app=web"), found, [measured(found, 900)], steady(3), ())
    first, *_ = next(iter(render(explained(incident)))).lines
    assert "because a rollout is in progress" in first


JUST: Final = History((Recommendation(3, NOON),))
WEB_WITH_GATE: Final = Settings(features=FeatureGates()._replace(scale_to_zero=True))


@pytest.mark.parametrize(
    ("limits", "history", "settings", "expected"),
    [
        pytest.param(
            spec(2, 9, external("10")), JUST, Settings(), "stabilizationWindowSeconds 0 (now 300)", id="window"
        ),
        pytest.param(spec(2, 9, external("100")), History(()), Settings(), "spec.minReplicas 1 (now 2)", id="minimum"),
        pytest.param(
            spec(2, 9, external("100")), History(()), WEB_WITH_GATE, "spec.minReplicas 1 or less (now 2)", id="gate"
        ),
    ],
)
def test_no_value_beyond_the_last_one_is_offered(
    limits: Manifest, history: History, settings: Settings, expected: str
) -> None:
    """A window cannot be shorter than 0 s, and without the gate no minimum is below 1."""
    replicas = 2 + (history is JUST)
    incident = Incident("", limits, Scale(replicas, replicas, "app=web"), tuple(pods(replicas)), [[5_000]], history, ())
    explanation = explain(incident.snapshot(), history, settings=settings, now=NOON)
    assert expected in " ".join(next(iter(render(explanation))).lines)


@st.composite
def drawn_incidents(draw: st.DrawFn) -> Incident:
    """Draw a workload with any metrics, policies, windows, pods and history."""
    replicas = draw(st.integers(1, 8))
    mine = [
        *pods(draw(st.integers(1, replicas)), requests={"cpu": 1000}),
        *pods(draw(st.integers(0, 2)), phase=draw(st.sampled_from(["Pending", "Succeeded", "Failed"]))),
        *pods(draw(st.integers(0, 2)), "ReplicaSet/api-5c6d", ready=draw(st.sampled_from(["True", "False"]))),
        *pods(draw(st.integers(0, 1)), "ReplicaSet/web-9a1c", age=draw(st.integers(10, 400)), since=5),
    ]
    kinds = draw(st.lists(st.sampled_from(["cpu", "rps", "queue"]), min_size=1, max_size=2))
    metrics = [
        cpu(draw(st.integers(20, 120)))
        if kind == "cpu"
        else per_pod(f"{draw(st.integers(1, 30))}")
        if kind == "rps"
        else external(f"{draw(st.integers(1, 30))}", draw(st.sampled_from(["averageValue", "value"])))
        for kind in kinds
    ]
    values = [
        [draw(st.integers(0, 200_000)) for _ in range(draw(st.integers(1, 2)))]
        if kind == "queue"
        else measured(mine[: draw(st.integers(1, len(mine)))], draw(st.integers(0, 1500 if kind == "cpu" else 60_000)))
        for kind in kinds
    ]
    rules = st.fixed_dictionaries(
        {},
        optional={
            "stabilizationWindowSeconds": st.sampled_from([0, 60, 300]),
            "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
            "policies": st.lists(
                st.fixed_dictionaries(
                    {
                        "type": st.sampled_from(["Pods", "Percent"]),
                        "value": st.integers(1, 60),
                        "periodSeconds": st.sampled_from([15, 60, 120]),
                    }
                ),
                min_size=1,
                max_size=2,
            ),
        },
    )
    behavior: dict[str, Any] = draw(st.just({}) | st.fixed_dictionaries({"scaleUp": rules, "scaleDown": rules}))
    past = st.integers(0, 310).map(ago)
    history = draw(
        st.just(steady(replicas))
        | st.builds(
            History,
            st.lists(st.builds(Recommendation, st.integers(1, 9), past), max_size=3).map(tuple),
            st.lists(st.builds(ScaleEvent, st.integers(1, 3), past, st.just(value=False)), max_size=1).map(tuple),
            st.just(()),
        )
    )
    limits = draw(st.integers(1, replicas)), draw(st.integers(replicas, 12))
    scale = Scale(replicas, draw(st.integers(1, 9)), "app=web")
    # As the API server stores it, with the default policies.
    stored = default(kind_of(hpa(spec(*limits, *metrics, **behavior))))["spec"]
    return Incident("", stored, scale, mine, values, history, ())


def kind_of(manifest: Manifest) -> Manifest:
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **manifest}


@given(incident=drawn_incidents())
def test_whatever_is_offered_for_any_workload_holds_when_it_is_tried(incident: Incident) -> None:
    check_fields(incident)
    check_values(incident)


@pytest.mark.parametrize("incident", WITHOUT_FIELDS)
def test_where_no_field_helps_the_page_names_what_does(incident: Incident) -> None:
    explanation = explained(incident)
    assert not explanation.levers
    [lines] = [each.lines for each in render(explanation) if each.title == "What would have to change to scale"]
    assert re.search("must be readable|Set the replicas of the target", " ".join(lines))


def test_every_report_is_another_one() -> None:
    assert len({each.link for each in INCIDENTS}) == len(INCIDENTS) >= 40
