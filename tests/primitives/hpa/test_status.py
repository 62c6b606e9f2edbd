"""Status handlers of an HPA: its conditions, before and after the grace period."""

from typing import Any

import pytest

from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport
from ocf.objects import Manifest
from ocf.primitives import hpa

ABLE = {"type": "AbleToScale", "status": "True", "message": "able"}
UNABLE = {"type": "AbleToScale", "status": "False", "message": "no scale"}
ACTIVE = {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound", "message": "found a metric"}
DISABLED = {"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled", "message": "target is at zero"}


ACTIVE_SAYS = "found a metric"


def condition(name: str, status: str, message: str = "") -> dict[str, str]:
    return {"type": name, "status": status, "message": message, "reason": "NeverShown"}


def live(base: Manifest, *conditions: Any) -> Manifest:
    return {**base, "status": {"conditions": list(conditions)}} if conditions else base


STATES = [
    pytest.param([UNABLE, ACTIVE], "Failing", "Down", "no scale", id="unable wins over active"),
    pytest.param([ACTIVE, UNABLE], "Failing", "Down", "no scale", id="unable wins in either order"),
    pytest.param([condition("AbleToScale", "False")], "Failing", "Down", "AbleToScale is False", id="unable, silent"),
    pytest.param([ACTIVE], "Operational", "Healthy", "found a metric", id="active"),
    pytest.param(
        [condition("ScalingActive", "True")], "Operational", "Healthy", "ScalingActive is True", id="active, silent"
    ),
    pytest.param([condition("ScalingActive", "False", "no metrics")], "Failing", "Down", "no metrics", id="inactive"),
    pytest.param(
        [condition("ScalingActive", "False")], "Failing", "Down", "ScalingActive is False", id="inactive, silent"
    ),
    pytest.param(
        [condition("ScalingActive", "Unknown")], "Pending", "Degraded", "ScalingActive is Unknown", id="unknown"
    ),
    pytest.param([condition("ScalingActive", "Weird", "odd")], "Pending", "Degraded", "odd", id="unrecognised"),
    pytest.param([], "Pending", "Degraded", "Waiting for HPA conditions to be populated", id="no conditions"),
    pytest.param([ABLE], "Pending", "Degraded", "Waiting for ScalingActive condition on HPA", id="only able"),
    pytest.param(
        [condition("AbleToScale", "Unknown"), ACTIVE],
        "Operational",
        "Healthy",
        "found a metric",
        id="able unknown is no matter",
    ),
    pytest.param(
        [ACTIVE, condition("ScalingLimited", "True", "at the maximum")],
        "Operational",
        "Healthy",
        "found a metric",
        id="being limited is no matter",
    ),
    pytest.param(
        [ACTIVE, condition("ScalingActive", "False", "later")],
        "Operational",
        "Healthy",
        "found a metric",
        id="first of a type",
    ),
    pytest.param([DISABLED], "Failing", "Down", "target is at zero", id="disabled"),
]


def operational(name: str) -> OperationalStatus:
    return OperationalStatus(name if name == "Operational" else f"Operation{name}")


@pytest.mark.parametrize(("conditions", "status", "grace", "reason"), STATES)
class TestDefaultHandlers:
    @pytest.mark.parametrize("operation", list(ApplyOperation))
    def test_operational(  # noqa: PLR0917 (a table row)
        self, hpa_base: Manifest, conditions: list[Any], status: str, grace: str, reason: str, operation: ApplyOperation
    ) -> None:
        """The answer follows from the conditions alone, whatever this pass did."""
        del grace
        report = hpa.Builder(hpa_base).build().operational_status(operation, live(hpa_base, *conditions))
        assert report == StatusReport(operational(status), reason)

    def test_grace(self, hpa_base: Manifest, conditions: list[Any], status: str, grace: str, reason: str) -> None:
        del status
        report = hpa.Builder(hpa_base).build().grace_status(live(hpa_base, *conditions))
        assert report == StatusReport(GraceStatus(grace), reason)


class TestFallbacks:
    def test_an_unrecognised_status_without_message_is_worded_differently_after_grace(self, hpa_base: Manifest) -> None:
        resource = hpa.Builder(hpa_base).build()
        odd = live(hpa_base, condition("ScalingActive", ""))
        assert resource.operational_status(ApplyOperation.NONE, odd).reason == "ScalingActive has unrecognized status"
        assert resource.grace_status(odd).reason == "ScalingActive is Unknown"


class TestScaledToZero:
    """The opt-in handlers read a target that was scaled to zero on purpose as operational."""

    @pytest.fixture
    def resource(self, hpa_base: Manifest) -> hpa.Resource:
        return (
            hpa.Builder(hpa_base)
            .with_custom_operational_status(hpa.scaled_to_zero_operational_status_handler)
            .with_custom_grace_status(hpa.scaled_to_zero_grace_status_handler)
            .build()
        )

    def test_disabled_is_operational_and_healthy(self, resource: hpa.Resource, hpa_base: Manifest) -> None:
        at_zero = live(hpa_base, ABLE, DISABLED)
        assert resource.operational_status(ApplyOperation.NONE, at_zero) == StatusReport(
            OperationalStatus.OPERATIONAL, "target is at zero"
        )
        assert resource.grace_status(at_zero) == StatusReport(GraceStatus.HEALTHY, "target is at zero")

    def test_being_unable_to_scale_still_fails(self, resource: hpa.Resource, hpa_base: Manifest) -> None:
        stuck = live(hpa_base, UNABLE, DISABLED)
        assert resource.operational_status(ApplyOperation.NONE, stuck).status is OperationalStatus.FAILING
        assert resource.grace_status(stuck).status is GraceStatus.DOWN

    def test_being_inactive_for_another_reason_still_fails(self, resource: hpa.Resource, hpa_base: Manifest) -> None:
        broken = live(hpa_base, condition("ScalingActive", "False", "no metrics"))
        assert resource.operational_status(ApplyOperation.NONE, broken).status is OperationalStatus.FAILING
        assert resource.grace_status(broken).status is GraceStatus.DOWN


class TestCustomHandlers:
    def test_replace_the_defaults_and_may_delegate_to_them(self, hpa_base: Manifest) -> None:
        def patient(operation: ApplyOperation, live: Any) -> StatusReport[OperationalStatus]:
            report = hpa.default_operational_status_handler(operation, live)
            failing = report.status is OperationalStatus.FAILING
            return StatusReport(OperationalStatus.PENDING, f"patient: {report.reason}") if failing else report

        resource = (
            hpa.Builder(hpa_base)
            .with_custom_operational_status(patient)
            .with_custom_grace_status(lambda _live: StatusReport(GraceStatus.HEALTHY, "always"))
            .build()
        )
        report = resource.operational_status(ApplyOperation.NONE, live(hpa_base, UNABLE))
        assert report == StatusReport(OperationalStatus.PENDING, "patient: no scale")
        assert resource.grace_status(live(hpa_base, UNABLE)) == StatusReport(GraceStatus.HEALTHY, "always")

    def test_get_a_copy_of_the_live_object(self, hpa_base: Manifest) -> None:
        def meddling(_operation: ApplyOperation, live: Any) -> StatusReport[OperationalStatus]:
            live.spec.max_replicas = 99
            live.metadata.labels = {"a": "b"}
            return StatusReport(OperationalStatus.OPERATIONAL)

        seen = live(hpa_base, ACTIVE)
        resource = hpa.Builder(hpa_base).with_custom_operational_status(meddling).build()
        resource.operational_status(ApplyOperation.NONE, seen)
        assert seen["spec"]["maxReplicas"] == 10
        assert "labels" not in seen["metadata"]
