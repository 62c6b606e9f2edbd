"""Default handlers judge a live object alike, whether they get its manifest or its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus, OperationalStatus, StatusReport
from ocf.errors import HandlerError, ManifestError
from ocf.objects import read_live
from ocf.objects.model_fields import client_model
from ocf.primitives import daemonset, deployment, hpa, replicaset, service, statefulset
from ocf.primitives.status import live_count, live_field

if TYPE_CHECKING:
    from ocf.objects import Manifest

COUNTS = st.none() | st.integers(min_value=0, max_value=2)
TEXTS = st.none() | st.sampled_from(["", "a", "b"])
STRATEGIES = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["OnDelete", "RollingUpdate"]),
        "rollingUpdate": st.none() | st.fixed_dictionaries({}, optional={"partition": COUNTS}),
    },
)
FIELDS = (
    "observedGeneration",
    "replicas",
    "readyReplicas",
    "updatedReplicas",
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
)
STATUSES = st.none() | st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(FIELDS, COUNTS), **dict.fromkeys(("currentRevision", "updateRevision"), TEXTS)}
)
WORKLOADS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": st.just("web")}, optional={"generation": COUNTS}),
        "spec": st.fixed_dictionaries(
            {"selector": st.just({}), "template": st.just({})},
            optional={"replicas": COUNTS, "paused": st.none() | st.booleans(), "updateStrategy": STRATEGIES},
        ),
        "status": STATUSES,
    }
)
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["AbleToScale", "ScalingActive", "ScalingLimited"])},
        optional={
            "status": st.sampled_from(["True", "False", "Unknown", "Weird"]),
            "message": TEXTS,
            "reason": st.sampled_from(["ScalingDisabled", "ValidMetricFound"]),
        },
    )
)
AUTOSCALERS = st.fixed_dictionaries(
    {"status": st.none() | st.fixed_dictionaries({}, optional={"conditions": st.none() | CONDITIONS})}
)
ADDRESSES = st.lists(st.fixed_dictionaries({}, optional={"ip": TEXTS, "hostname": TEXTS}))
SERVICES = st.fixed_dictionaries(
    {},
    optional={
        "spec": st.none()
        | st.fixed_dictionaries({}, optional={"type": st.sampled_from(["ClusterIP", "LoadBalancer"])}),
        "status": st.none()
        | st.fixed_dictionaries(
            {}, optional={"loadBalancer": st.none() | st.fixed_dictionaries({}, optional={"ingress": ADDRESSES})}
        ),
    },
)


def assert_judged_alike(kind: Any, model: str, live: Manifest) -> None:
    modeled = read_live(live, client_model(model))
    status = getattr(kind, "default_converging_status_handler", None) or kind.default_operational_status_handler
    for operation in ApplyOperation:
        assert status(operation, live) == status(operation, modeled)
    for handler in (kind.default_grace_status_handler, kind.default_suspension_status_handler):
        assert handler(live) == handler(modeled)


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        pytest.param(daemonset, "V1DaemonSet", id="DaemonSet"),
        pytest.param(deployment, "V1Deployment", id="Deployment"),
        pytest.param(replicaset, "V1ReplicaSet", id="ReplicaSet"),
        pytest.param(statefulset, "V1StatefulSet", id="StatefulSet"),
    ],
)
@given(live=WORKLOADS)
def test_a_workload_is_judged_alike(kind: Any, model: str, live: Manifest) -> None:
    assert_judged_alike(kind, model, live)


@given(live=AUTOSCALERS)
def test_an_autoscaler_is_judged_alike(live: Manifest) -> None:
    assert_judged_alike(hpa, "V2HorizontalPodAutoscaler", live)
    modeled: Any = read_live(live, client_model("V2HorizontalPodAutoscaler"))
    assert hpa.scaled_to_zero_grace_status_handler(live) == hpa.scaled_to_zero_grace_status_handler(modeled)


@given(live=SERVICES)
def test_a_service_is_judged_alike(live: Manifest) -> None:
    assert_judged_alike(service, "V1Service", live)


def test_a_handler_of_the_author_gets_the_model_and_a_default_one_builds_none() -> None:
    base = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"ports": [{"port": 80}]},
    }
    seen: list[type] = []

    def judge(_operation: ApplyOperation, live: Any) -> StatusReport[OperationalStatus]:
        seen.append(type(live))
        return service.default_operational_status_handler(_operation, live)

    # A model cannot be built from this one.
    strange = {**base, "spec": {"ports": "http"}}
    declared = service.Builder(base).build()
    assert declared.operational_status(ApplyOperation.NONE, strange).status is OperationalStatus.OPERATIONAL
    custom = service.Builder(base).with_custom_operational_status(judge).build()
    assert custom.operational_status(ApplyOperation.NONE, base) == declared.operational_status(
        ApplyOperation.NONE, base
    )
    assert seen == [client_model("V1Service")]
    with pytest.raises(HandlerError, match="ports"):
        custom.operational_status(ApplyOperation.NONE, strange)


def test_a_count_that_is_none_is_an_error_that_names_the_field() -> None:
    live = {"status": {"readyReplicas": "3"}}
    with pytest.raises(ManifestError, match=r"status\.readyReplicas: must be a whole number, not of type str"):
        live_count(live, "status", "readyReplicas")
    with pytest.raises(ManifestError, match="must be a whole number, not of type bool"):
        live_count({"spec": {"replicas": True}}, "spec", "replicas")
    spec: Manifest = {"selector": {}, "template": {"spec": {"containers": []}}}
    base = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec,
    }
    with pytest.raises(HandlerError, match=r"status\.readyReplicas: must be a whole number"):
        deployment.Builder(base).build().alive_status(ApplyOperation.NONE, {**base, **live})
    assert deployment.default_converging_status_handler(ApplyOperation.NONE, base).status is AliveStatus.SCALING


def test_a_field_of_no_object_is_absent() -> None:
    assert live_field(None, "status") is None
    assert live_field({"status": "done"}, "status", "replicas") is None
    assert live_count({}, "spec", "replicas", unset=1) == 1


QUOTA = 'pods "web-6d" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2'
TIMED_OUT = 'ReplicaSet "web-6d" has timed out progressing.'


def condition(kind: str, status: str, reason: str, message: str) -> Manifest:
    return {"type": kind, "status": status, "reason": reason, "message": message}


NO_PODS = condition("ReplicaFailure", "True", "FailedCreate", QUOTA)
MISSED = condition("Progressing", "False", "ProgressDeadlineExceeded", TIMED_OUT)


@pytest.mark.promise("cause-in-condition")
class TestRolloutFailure:
    """A rollout that its controller has given up is failing, with the sentence of the controller or the API server.

    https://github.com/openstack-k8s-operators/keystone-operator/pull/552, https://github.com/k8sgpt-ai/k8sgpt/pull/1740
    (the old pods are all ready), https://github.com/openshift/library-go/pull/575.
    """

    @pytest.mark.parametrize("operation", list(ApplyOperation))
    @pytest.mark.parametrize(
        ("conditions", "cause"),
        [
            pytest.param([MISSED], f"ProgressDeadlineExceeded: {TIMED_OUT}", id="the deadline is missed"),
            pytest.param([NO_PODS], f"FailedCreate: {QUOTA}", id="no pod may be created"),
            pytest.param([MISSED, NO_PODS], f"FailedCreate: {QUOTA}", id="no pod may be created, so it is missed"),
        ],
    )
    @pytest.mark.parametrize(
        ("counts", "waiting", "grace", "graded"),
        [
            pytest.param((0, 1, 1), "Waiting for replicas: 0/3 ready", "Down", "No replicas are ready: {}", id="none"),
            pytest.param(
                (2, 3, 3),
                "Waiting for replicas: 2/3 ready",
                "Degraded",
                "Deployment partially available: {}",
                id="too few",
            ),
            pytest.param(
                (3, 1, 4),
                "Waiting for rollout: 1/3 replicas updated",
                "Degraded",
                "{} (Waiting for rollout: 1/3 replicas updated)",
                id="the old ones are ready",
            ),
        ],
    )
    def test_is_failing_with_its_cause(  # noqa: PLR0917 (a table row)
        self,
        conditions: list[Manifest],
        cause: str,
        counts: tuple[int, int, int],
        waiting: str,
        grace: str,
        graded: str,
        operation: ApplyOperation,
    ) -> None:
        live = rollout(counts, conditions)
        failing = StatusReport(AliveStatus.FAILING, f"{cause} ({waiting})")
        assert deployment.default_converging_status_handler(operation, live) == failing
        after = deployment.default_grace_status_handler(live)
        assert after == StatusReport(GraceStatus(grace), graded.format(cause))

    @pytest.mark.parametrize(
        "conditions",
        [
            pytest.param([condition("Progressing", "True", "ReplicaSetUpdated", "x")], id="it progresses"),
            pytest.param([condition("Progressing", "Unknown", "DeploymentPaused", "x")], id="it is paused"),
            pytest.param([condition("ReplicaFailure", "False", "FailedCreate", "x")], id="pods can be created again"),
            pytest.param([condition("Available", "False", "MinimumReplicasUnavailable", "x")], id="only unavailable"),
        ],
    )
    def test_other_conditions_are_not_failures(self, conditions: list[Manifest]) -> None:
        report = deployment.default_converging_status_handler(ApplyOperation.NONE, rollout((2, 3, 3), conditions))
        assert report == StatusReport(AliveStatus.SCALING, "Waiting for replicas: 2/3 ready")

    def test_conditions_of_an_older_spec_are_not_reported(self) -> None:
        live = rollout((2, 3, 3), [MISSED])
        live["metadata"] = {"generation": 2}
        report = deployment.default_converging_status_handler(ApplyOperation.NONE, live)
        assert report.status is AliveStatus.UPDATING
        assert deployment.default_grace_status_handler(live).reason == report.reason

    def test_a_complete_rollout_is_healthy_whatever_its_conditions(self) -> None:
        """A condition that its controller has not updated yet does not outweigh the counts of the same status."""
        report = deployment.default_converging_status_handler(
            ApplyOperation.NONE, rollout((3, 3, 3), [MISSED, NO_PODS])
        )
        assert report.status is AliveStatus.HEALTHY


def rollout(counts: tuple[int, int, int], conditions: list[Manifest]) -> Manifest:
    """Return a Deployment of three replicas; `counts` are the ready, updated and existing ones."""
    numbers = dict(zip(("readyReplicas", "updatedReplicas", "replicas"), counts, strict=True))
    status = {"observedGeneration": 1, **numbers, "conditions": conditions}
    return {"metadata": {"generation": 1}, "spec": {"replicas": 3}, "status": status}


@pytest.mark.parametrize(
    ("handler", "grace", "counts"),
    [
        pytest.param(
            module.default_converging_status_handler,
            module.default_grace_status_handler,
            {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 1},
            id=module.__name__.rpartition(".")[2],
        )
        for module in (deployment, replicaset, statefulset)
    ]
    + [
        pytest.param(
            daemonset.default_converging_status_handler,
            daemonset.default_grace_status_handler,
            {"desiredNumberScheduled": 2, "numberReady": 2, "updatedNumberScheduled": 2, "numberAvailable": 1},
            id="daemonset",
        )
    ],
)
def test_pods_must_have_been_ready_for_min_ready_seconds(handler: Any, grace: Any, counts: dict[str, int]) -> None:
    """As `kubectl rollout status` waits for available pods; without the field ready pods are available at once."""
    status = {"observedGeneration": 1, **counts}
    live = {"metadata": {"generation": 1}, "spec": {"replicas": 2, "minReadySeconds": 30}, "status": status}
    pods = "pods" if "numberReady" in counts else "replicas"
    waiting = f"Waiting for minReadySeconds: 1/2 {pods} available"
    assert handler(ApplyOperation.NONE, live) == StatusReport(AliveStatus.UPDATING, waiting)
    assert grace(live) == StatusReport(GraceStatus.DEGRADED, waiting)
    immediate = {**live, "spec": {"replicas": 2}}
    assert handler(ApplyOperation.NONE, immediate).status is AliveStatus.HEALTHY
    assert grace(immediate).status is GraceStatus.HEALTHY
