"""Every explanation can be rendered as text, as JSON and as a timeline."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import Autoscaler, History, Scale, Settings, Snapshot, Status
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.autoscaling.explain import KnownHistory, explain, explain_unknown, render, to_json
from ocf.autoscaling.explain.advice import advice
from ocf.autoscaling.explain.chart_svg import standalone_svg
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import duration
from ocf.autoscaling.explain.timeline import bounded_timelines, render_text, timeline
from tests.autoscaling.algorithm.test_properties import HISTORIES, NOON, SETTINGS, SNAPSHOTS
from tests.autoscaling.explain.values import QUEUE

REASONS = ["ReadyForNewScale", "ScaleDownStabilized", "ScaleUpStabilized", "SucceededRescale", "FailedGetScale"]
LIMITED = ["DesiredWithinRange", "TooFewReplicas", "TooManyReplicas", "ScaleUpLimit", "ScaleDownLimit", "else"]
STATUSES = st.builds(
    Status,
    current_replicas=st.integers(0, 30),
    desired_replicas=st.integers(0, 30),
    last_scale_time=st.none() | st.integers(0, 900).map(lambda seconds: NOON - timedelta(seconds=seconds)),
    current_metrics=st.sampled_from([(), ({"type": "External"},)]),
    conditions=st.tuples(st.sampled_from(REASONS), st.sampled_from(LIMITED)).map(
        lambda reasons: (
            HpaCondition("AbleToScale", "True", reasons[0], ""),
            HpaCondition("ScalingLimited", "True", reasons[1], ""),
        )
    ),
)


def rendered(explanation: Explanation) -> list[str]:
    """Render in every form, and return the lines of the text."""
    json.dumps(to_json(explanation), allow_nan=False)
    for side in (explanation, explanation.most):
        window = None if side is None else timeline(side)
        if window is not None:
            assert all(line.isascii() for line in render_text(window, unicode=False))
            assert all(len(line) <= 80 for line in render_text(window)) or window.wanted > 10**6
    sections = list(render(explanation))
    assert all(section.title and all(section.lines) for section in sections)
    return [line for section in sections for line in section.lines]


@settings(max_examples=40)
@given(snapshot=SNAPSHOTS, history=HISTORIES, flags=SETTINGS)
def test_an_explanation_of_a_known_history(snapshot: Snapshot, history: History, flags: Settings) -> None:
    explanation = explain(snapshot, history, settings=flags, now=NOON)

    assert explanation.exact
    assert rendered(explanation)


@settings(max_examples=40)
@given(snapshot=SNAPSHOTS, status=STATUSES, flags=SETTINGS)
def test_an_explanation_of_an_unknown_history(snapshot: Snapshot, status: Status, flags: Settings) -> None:
    explanation = explain_unknown(snapshot, KnownHistory(status, NOON), settings=flags, now=NOON)
    most = explanation.most or explanation

    assert explanation.decision.desired <= most.decision.desired
    assert rendered(explanation)


@pytest.mark.parametrize(
    ("before", "reason", "created", "expected"),
    [
        (2, "ScaleUpLimit", 60, ["the last sync wanted more than 4 (how many more is not known)", "at least 5."]),
        (2, "ScaleUpLimit", 9000, ["the last sync wanted more than 4 (how many more is not known)"]),
        (4, "else", 9000, ["may keep a larger number that an earlier sync wanted (it is not known)"]),
    ],
)
def test_a_number_that_is_not_known_is_not_written_as_the_largest_one(
    before: int, reason: str, created: int, expected: list[str]
) -> None:
    """A second after a scale-up to 4 that was limited, of which only that is known that more were wanted."""
    status = Status(
        current_replicas=before,
        desired_replicas=4,
        last_scale_time=NOON - timedelta(seconds=1),
        conditions=(
            HpaCondition("AbleToScale", "True", "SucceededRescale" if before < 4 else "ReadyForNewScale", ""),
            HpaCondition("ScalingLimited", "True", reason, ""),
        ),
    )
    web = Autoscaler(name="web", minimum=2, maximum=10, metrics=(QUEUE,))
    snapshot = Snapshot(autoscaler=web, scale=Scale(4, 4, "app=web"), metric_values=((3000,),), status=status)
    known = KnownHistory(status, NOON, created=NOON - timedelta(seconds=created))
    explanation = explain_unknown(snapshot, known, now=NOON)

    windows = [window for _, window in bounded_timelines(explanation)]
    charts = [line for window in windows for line in (*render_text(window), standalone_svg(window, "web"))]
    page = "\n".join([*rendered(explanation), *charts])
    assert str(2**31 - 1) not in page
    assert str(2**31 - 1) not in json.dumps(to_json(explanation))
    assert [each for each in expected if each not in page] == []


@pytest.mark.parametrize(
    ("message", "piece"),
    [
        ("missing request for cpu in container app of Pod web-0", "a request for it"),
        ("container app not found in Pod web-0", "container of that name"),
        ("unable to fetch metrics from resource metrics API: gone", "metrics-server"),
        ("pods by selector a=b are controlled by multiple HPAs: [a b]", "do not overlap"),
        ("pods by selector a=b are controlled by more than one HPA (e.g. [a b])", "do not overlap"),
    ],
)
def test_advice_for_a_message(message: str, piece: str) -> None:
    [text] = advice(message)
    assert piece in text


def test_an_unknown_message_has_no_advice() -> None:
    assert list(advice("an unknown message")) == []


@pytest.mark.parametrize(
    ("period", "text"),
    [
        ({}, "0s"),
        ({"seconds": 1.4}, "1.4s"),
        ({"seconds": 60}, "1m"),
        ({"hours": 1, "seconds": 1}, "1h1s"),
        ({"minutes": 4, "microseconds": 1}, "4m"),
    ],
)
def test_durations_are_written_with_units(period: dict[str, Any], text: str) -> None:
    assert duration(timedelta(**period)) == text
