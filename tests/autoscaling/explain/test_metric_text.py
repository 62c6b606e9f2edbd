"""The lines about a metric: series, negative totals, amounts of memory, and pods that do not count with their state."""

from collections.abc import Sequence

import pytest

from ocf.autoscaling.algorithm import Pod, Scale, Settings
from ocf.autoscaling.explain import explain, render
from ocf.schema.kubernetes import FeatureGates
from tests.autoscaling.explain.incidents import MI, Incident, cpu, external, measured, memory, pods, spec, steady
from tests.autoscaling.explain.values import NOON


def text(incident: Incident, settings: Settings | None = None) -> str:
    found = explain(incident.snapshot(), incident.history, settings=settings or Settings(), now=NOON)
    return "\n".join(line for section in render(found) for line in (section.title, *section.lines))


def queue(values: Sequence[int], *, kind: str = "averageValue") -> Incident:
    scale = Scale(3, 3, "app=web")
    return Incident("", spec(1, 20, external("10", kind)), scale, tuple(pods(3)), [values], steady(3), ())


def test_series_that_are_added_up_are_shown() -> None:
    assert "The sum of 3 series: 20, 15, 5." in text(queue([15_000, 20_000, 5_000]))
    assert "series" not in text(queue([40_000]))


@pytest.mark.parametrize(
    ("kind", "version", "expected"),
    [
        pytest.param("averageValue", "1.36", "an overflow since Kubernetes 1.34, so it wants the most", id="now"),
        pytest.param("averageValue", "1.33", "so it wants the fewest", id="before"),
        pytest.param("value", "1.36", "so it wants the fewest", id="value"),
    ],
)
def test_a_negative_total_is_the_cause_and_no_range_claims_it(kind: str, version: str, expected: str) -> None:
    settings = Settings(features=FeatureGates.for_release(version))
    found = text(queue([-5_000, -1_000], kind=kind), settings)
    first = found.splitlines()[1]
    assert "queue has a negative total, -6" in first
    assert expected in first
    assert "> -6" in found
    assert "  up to " not in found


def test_amounts_of_memory_have_no_thousandths_of_bytes_and_hold() -> None:
    """A lower bound is rounded up and an upper one down, so that each printed value has the effect listed with it."""
    found = tuple(pods(3))
    limits = spec(1, 4, memory("400Mi"))
    incident = Incident("", limits, Scale(3, 3, "app=web"), found, [measured(found, 300 * MI)], steady(3), ())
    lines = text(incident)
    assert "up to 1320Mi (440Mi per pod)" in lines
    assert "from 1320.1Mi (440.1Mi per pod)" in lines
    shown = [word for word in lines.split() if word.strip("(),.:").endswith("m") and word.strip("(),.:")[:-1].isdigit()]
    assert shown == []


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param(tuple(pods(1, phase="Pending")), "web-7d4f-pending-true-0 (Pending)", id="pending"),
        pytest.param(
            tuple(pods(1, ready="False", age=60, since=60)),
            "web-7d4f-running-false-0 (started 1m ago, not ready)",
            id="starting",
        ),
        pytest.param(
            tuple(pods(1, "ReplicaSet/web-new", age=45, since=20)),
            "web-new-running-true-0 (started 45s ago, its sample began before it was ready; counts from 12:04:15 on at"
            " the latest)",
            id="ready-but-measured-before",
        ),
        pytest.param(tuple(pods(1, phase="Failed")), "web-7d4f-failed-true-0 (Failed)", id="failed"),
    ],
)
def test_pods_that_do_not_count_are_listed_with_their_state(others: Sequence[Pod], expected: str) -> None:
    mine = tuple(pods(3))
    both = (*mine, *others)
    running = [each for each in both if each.phase == "Running"]
    limits, values = spec(1, 10, cpu(50)), [measured(running, 900)]
    incident = Incident("", limits, Scale(4, 4, "app=web"), both, values, steady(4), ())
    assert expected in text(incident)
