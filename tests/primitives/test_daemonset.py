"""The DaemonSet primitive: status, suspension by deletion, and the order of its eight categories."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus, StatusReport, SuspensionStatus
from ocf.objects import Manifest
from ocf.primitives import daemonset, deployment

STALE = "Waiting for DaemonSet controller to observe latest spec"
READY = "All pods are ready"
NOWHERE = "No nodes match the DaemonSet node selector"
BY_OPERATION = {ApplyOperation.CREATED: AliveStatus.CREATING, ApplyOperation.UPDATED: AliveStatus.UPDATING}
BASE: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent", "namespace": "shop"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
        },
    },
}


def live(
    ready: int, updated: int, desired: int = 3, *, generation: int = 1, strategy: str = "RollingUpdate"
) -> Manifest:
    """A DaemonSet whose controller is up to date unless the row says otherwise."""
    counts = {"desiredNumberScheduled": desired, "numberReady": ready, "updatedNumberScheduled": updated}
    status = {"observedGeneration": 1, "currentNumberScheduled": desired, "numberMisscheduled": 0, **counts}
    spec = {**BASE["spec"], "updateStrategy": {"type": strategy}}
    return {**BASE, "metadata": {**BASE["metadata"], "generation": generation}, "spec": spec, "status": status}


# row: what is observed, the answer where this pass did nothing, its reason, the answer after grace, its reason
STATES = [
    pytest.param(live(3, 3, generation=2), "Updating", STALE, "Degraded", STALE, id="stale"),
    pytest.param(live(0, 0, 0, generation=2), "Updating", STALE, "Degraded", STALE, id="stale, and no node fits"),
    pytest.param(live(0, 0, 0), "Healthy", NOWHERE, "Healthy", NOWHERE, id="no node fits"),
    pytest.param(live(1, 1, 0), "Healthy", NOWHERE, "Healthy", NOWHERE, id="no node fits, a pod is still going"),
    pytest.param(
        live(0, 0), "Scaling", "Waiting for pods: 0/3 ready", "Down", "No pods are ready", id="none of them ready"
    ),
    pytest.param(live(0, 0, generation=2), "Updating", STALE, "Down", "No pods are ready", id="none ready and stale"),
    pytest.param(
        live(2, 3), "Scaling", "Waiting for pods: 2/3 ready", "Degraded", "DaemonSet partially available", id="too few"
    ),
    pytest.param(
        live(4, 4), "Scaling", "Waiting for pods: 4/3 ready", "Degraded", "DaemonSet partially available", id="too many"
    ),
    pytest.param(
        live(3, 1),
        "Updating",
        "Waiting for rollout: 1/3 pods updated",
        "Degraded",
        "Waiting for rollout: 1/3 pods updated",
        id="rollout under way",
    ),
    pytest.param(live(3, 1, strategy="OnDelete"), "Healthy", READY, "Healthy", READY, id="on delete"),
    pytest.param(live(3, 3), "Healthy", READY, "Healthy", READY, id="done"),
]


@pytest.mark.parametrize(("seen", "word", "reason", "grace", "grace_reason"), STATES)
@pytest.mark.parametrize("operation", list(ApplyOperation))
def test_status(  # noqa: PLR0917 (a table row)
    seen: Manifest, word: str, reason: str, grace: str, grace_reason: str, operation: ApplyOperation
) -> None:
    resource = daemonset.Builder(BASE).build()
    expected = AliveStatus(word) if word == "Healthy" else BY_OPERATION.get(operation, AliveStatus(word))
    assert resource.alive_status(operation, seen) == StatusReport(expected, reason)
    assert resource.grace_status(seen) == StatusReport(GraceStatus(grace), grace_reason)


@given(
    counts=st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
    generation=st.integers(1, 2),
    strategy=st.sampled_from(["RollingUpdate", "OnDelete"]),
    operation=st.sampled_from(ApplyOperation),
)
def test_both_judgements_agree_on_health(
    counts: tuple[int, int, int], generation: int, strategy: str, operation: ApplyOperation
) -> None:
    seen = live(*counts, generation=generation, strategy=strategy)
    resource = daemonset.Builder(BASE).build()
    healthy = resource.alive_status(operation, seen).status is AliveStatus.HEALTHY
    assert healthy == (resource.grace_status(seen).status is GraceStatus.HEALTHY)


def test_before_its_controller_has_said_anything_it_is_not_healthy() -> None:
    fresh = {**BASE, "metadata": {**BASE["metadata"], "generation": 1}}
    report = daemonset.Builder(BASE).build().alive_status(ApplyOperation.CREATED, fresh)
    assert report == StatusReport(AliveStatus.CREATING, STALE)


def test_suspending_deletes_it() -> None:
    resource = daemonset.Builder(BASE).build()
    assert resource.delete_on_suspend() is True
    assert resource.render(suspended=True) == resource.render() == BASE
    gone = StatusReport(SuspensionStatus.SUSPENDED, "DaemonSet deleted on suspend")
    assert resource.suspension_status(live(3, 3)) == gone


def test_the_categories_are_those_of_a_deployment_with_a_spec_of_its_own() -> None:
    names = [category.name for category in deployment.Mutator.categories]
    expected = [name.replace("deployment", "daemonset") for name in names]
    assert [category.name for category in daemonset.Mutator.categories] == expected


def test_every_category_edits_its_part() -> None:
    edited: list[str] = []

    def mutate(m: Any) -> None:
        m.edit_pod_spec(lambda spec: edited.append(type(spec.raw).__name__))
        m.edit_pod_template_metadata(lambda meta: meta.ensure_label("tier", "node"))
        m.edit_daemonset_spec(lambda spec: spec.set_min_ready_seconds(5))

    rendered = daemonset.Builder(BASE).with_mutation(daemonset.Mutation("m", mutate)).build().render()
    assert edited == ["V1PodSpec"]
    assert rendered["spec"]["minReadySeconds"] == 5
    assert rendered["spec"]["template"]["metadata"]["labels"] == {"app": "agent", "tier": "node"}
