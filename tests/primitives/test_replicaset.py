"""The ReplicaSet primitive: status, suspension, and the order of its eight categories."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus, StatusReport, SuspensionStatus
from ocf.objects import Manifest
from ocf.primitives import deployment, replicaset

STALE = "Waiting for replicaset controller to observe latest spec"
READY = "All replicas are ready"
PARTIAL = "ReplicaSet partially available"
BY_OPERATION = {ApplyOperation.CREATED: AliveStatus.CREATING, ApplyOperation.UPDATED: AliveStatus.UPDATING}
BASE: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}


def live(ready: int, total: int, *, desired: int | None = 3, generation: int = 1) -> Manifest:
    """A ReplicaSet whose controller has observed generation 1."""
    metadata = {**BASE["metadata"], "generation": generation}
    spec = {**BASE["spec"], "replicas": desired}
    return {
        **BASE,
        "metadata": metadata,
        "spec": spec,
        "status": {"observedGeneration": 1, "replicas": total, "readyReplicas": ready},
    }


SURPLUS = "Waiting for scale-down: 1 surplus replicas pending termination"
# row: what is observed, the status if this reconcile did nothing with its reason, and the grace status with its reason
STATES = [
    pytest.param(live(3, 3, generation=2), "Updating", STALE, "Degraded", STALE, id="stale"),
    pytest.param(live(1, 3), "Scaling", "Waiting for replicas: 1/3 ready", "Degraded", PARTIAL, id="too few"),
    pytest.param(live(4, 4), "Scaling", "Waiting for replicas: 4/3 ready", "Degraded", PARTIAL, id="too many"),
    pytest.param(live(0, 3), "Scaling", "Waiting for replicas: 0/3 ready", "Down", "No replicas are ready", id="none"),
    pytest.param(
        live(0, 0, generation=2), "Updating", STALE, "Down", "No replicas are ready", id="none ready, and stale"
    ),
    pytest.param(live(3, 4), "Updating", SURPLUS, "Degraded", SURPLUS, id="a surplus replica that is not ready"),
    pytest.param(live(3, 3), "Healthy", READY, "Healthy", READY, id="as desired"),
    pytest.param(live(1, 1, desired=None), "Healthy", READY, "Healthy", READY, id="unset means one"),
    pytest.param(live(0, 0, desired=0), "Healthy", READY, "Healthy", READY, id="none desired"),
]


@pytest.mark.parametrize(("seen", "status", "reason", "grace", "grace_reason"), STATES)
@pytest.mark.parametrize("operation", list(ApplyOperation))
def test_status(  # noqa: PLR0917 (a table row)
    seen: Manifest, status: str, reason: str, grace: str, grace_reason: str, operation: ApplyOperation
) -> None:
    resource = replicaset.Builder(BASE).build()
    expected = AliveStatus(status) if status == "Healthy" else BY_OPERATION.get(operation, AliveStatus(status))
    assert resource.alive_status(operation, seen) == StatusReport(expected, reason)
    assert resource.grace_status(seen) == StatusReport(GraceStatus(grace), grace_reason)


@given(
    counts=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    desired=st.integers(0, 3),
    generation=st.integers(1, 2),
    operation=st.sampled_from(ApplyOperation),
)
def test_it_is_healthy_after_the_grace_period_exactly_when_it_is_healthy(
    counts: tuple[int, int], desired: int, generation: int, operation: ApplyOperation
) -> None:
    seen = live(*counts, desired=desired, generation=generation)
    resource = replicaset.Builder(BASE).build()
    healthy = resource.alive_status(operation, seen).status is AliveStatus.HEALTHY
    assert healthy == (resource.grace_status(seen).status is GraceStatus.HEALTHY)


def test_it_is_not_healthy_before_its_controller_has_observed_it() -> None:
    fresh = {**BASE, "metadata": {**BASE["metadata"], "generation": 1}}
    report = replicaset.Builder(BASE).build().alive_status(ApplyOperation.CREATED, fresh)
    assert report == StatusReport(AliveStatus.CREATING, STALE)


@pytest.mark.parametrize(
    ("running", "status", "reason"),
    [
        pytest.param(2, "Suspending", "Waiting for replicas to scale down, 2 replicas still running.", id="two left"),
        pytest.param(0, "Suspended", "ReplicaSet scaled to zero", id="none left"),
    ],
)
def test_suspension_status(running: int, status: str, reason: str) -> None:
    report = replicaset.Builder(BASE).build().suspension_status(live(0, running))
    assert report == StatusReport(SuspensionStatus(status), reason)


def test_suspending_scales_to_zero_and_keeps_the_object() -> None:
    resource = replicaset.Builder(BASE).build()
    assert resource.delete_on_suspend() is False
    assert resource.render(suspended=True)["spec"] == {**BASE["spec"], "replicas": 0}


def test_the_categories_are_those_of_a_deployment_with_its_own_spec() -> None:
    names = [category.name.replace("deployment", "replicaset") for category in deployment.Mutator.categories]
    assert [category.name for category in replicaset.Mutator.categories] == names


def test_changing_its_pod_template_replaces_no_pods_so_it_has_no_roll_on_change() -> None:
    assert not hasattr(replicaset.Mutator, "roll_on_change")


def test_every_category_edits_its_part() -> None:
    def mutate(m: Any) -> None:
        m.edit_containers(lambda *_: True)(lambda container: container.set_image("web:2"))
        m.edit_pod_spec(lambda spec: spec.set_service_account_name("web"))
        m.edit_pod_template_metadata(lambda meta: meta.ensure_label("tier", "web"))
        m.edit_replicaset_spec(lambda spec: spec.set_min_ready_seconds(5))
        m.edit_object_metadata(lambda meta: meta.ensure_annotation("a", "b"))

    rendered = replicaset.Builder(BASE).with_mutation(replicaset.Mutation("m", mutate)).build().render()
    assert rendered["metadata"]["annotations"] == {"a": "b"}
    assert rendered["spec"] == {
        **BASE["spec"],
        "minReadySeconds": 5,
        "template": {
            "metadata": {"labels": {"app": "web", "tier": "web"}},
            "spec": {"serviceAccountName": "web", "containers": [{"name": "web", "image": "web:2"}]},
        },
    }
