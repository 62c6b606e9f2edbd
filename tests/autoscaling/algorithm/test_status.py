"""Two statuses are equal if their manifests are, with quantities as numbers."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import Metric, MetricTarget, Status
from ocf.autoscaling.algorithm.status import HpaCondition, MetricStatus
from ocf.autoscaling.algorithm.status import _comparable as comparable
from ocf.objects import Manifest

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
TARGET: Final = MetricTarget("AverageValue", average=1000)
SELECTORS: Final = st.sampled_from([None, {}, {"matchLabels": {"a": "b"}}])
METRICS: Final = st.one_of(
    st.builds(Metric, st.just("Resource"), st.sampled_from(["cpu", "memory"]), st.just(TARGET)),
    st.builds(Metric, st.just("ContainerResource"), st.just("cpu"), st.just(TARGET), st.sampled_from(["app", "side"])),
    st.builds(Metric, st.sampled_from(["Pods", "External"]), st.just("qps"), st.just(TARGET), selector=SELECTORS),
    st.builds(
        Metric,
        st.just("Object"),
        st.just("hits"),
        st.just(TARGET),
        described_object=st.sampled_from([{"kind": "Ingress", "name": "main"}, {}]),
        selector=SELECTORS,
    ),
)
AMOUNTS: Final = st.none() | st.sampled_from([0, 1, 1000, 1500, 2**30 * 1000])
METRIC_STATUSES: Final = st.just(MetricStatus()) | st.builds(
    MetricStatus, METRICS, st.none() | st.sampled_from([0, 50]), AMOUNTS, AMOUNTS
)
CONDITIONS: Final = st.lists(
    st.builds(
        HpaCondition,
        st.just("AbleToScale"),
        st.sampled_from(["True", "False"]),
        st.sampled_from(["", "Found"]),
        st.just("found"),
        st.sampled_from([None, NOON, NOON + timedelta(seconds=1)]),
    ),
    max_size=2,
).map(tuple)
STATUSES: Final = st.builds(
    Status,
    st.sampled_from([0, 3]),
    st.sampled_from([0, 3]),
    st.sampled_from([None, NOON]),
    st.lists(METRIC_STATUSES, max_size=2).map(tuple),
    CONDITIONS,
    st.sampled_from([None, 4]),
)
REWRITTEN: Final = {"1": "1000m", "1500m": "1.5", "1Gi": "1024Mi", "1073741824": "1Gi"}


def rewritten(value: Any) -> Any:
    """Return a manifest with its quantities written in another way, and nulls beside them."""
    if isinstance(value, dict):
        return {**{name: rewritten(item) for name, item in value.items()}, "more": None}
    if isinstance(value, list):
        return [rewritten(item) for item in value]
    return REWRITTEN.get(value, value) if isinstance(value, str) else value


@given(ours=STATUSES, other=STATUSES, same=st.booleans(), rewrite=st.booleans())
def test_equal_statuses_have_equal_manifests(ours: Status, other: Status, same: bool, rewrite: bool) -> None:
    manifest: Manifest = (ours if same else other).to_manifest()
    read = Status.of(rewritten(manifest) if rewrite else manifest)
    expected = comparable(ours.to_manifest()) == comparable(read.to_manifest())

    assert ours.equals(read) == expected
    assert not same or expected


@pytest.mark.parametrize(
    ("edit", "equal"),
    [
        pytest.param({"averageUtilization": 51}, False, id="another utilization"),
        pytest.param({"averageValue": "401m"}, False, id="another amount"),
        pytest.param({"averageValue": "0.4"}, True, id="the same amount"),
        pytest.param({"averageValue": "400000001n"}, False, id="a billionth more"),
        pytest.param({"value": "1"}, False, id="one more amount"),
    ],
)
def test_current_values_are_compared_as_numbers(edit: dict[str, Any], equal: bool) -> None:
    status = Status(3, 3, None, (MetricStatus(Metric("Resource", "cpu"), 50, 400),))
    manifest = status.to_manifest()
    manifest["currentMetrics"][0]["resource"]["current"].update(edit)

    assert status.equals(Status.of(manifest)) is equal


def test_a_converged_status_is_not_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rendering both sides takes longer than the decision."""
    condition = HpaCondition("AbleToScale", "True", "Found", "found", NOON)
    status = Status(3, 3, NOON, (MetricStatus(Metric("Resource", "cpu"), 50, 400),), (condition,))
    read = Status.of(status.to_manifest())

    def fail(_: Status) -> Manifest:
        raise AssertionError("the status was rendered")

    monkeypatch.setattr(Status, "to_manifest", fail)

    assert status.equals(read)
