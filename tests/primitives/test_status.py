"""Default handlers judge a live object alike, whether they get its manifest or its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.concepts import AliveStatus, ApplyOperation, OperationalStatus, StatusReport
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
