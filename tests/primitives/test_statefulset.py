"""The StatefulSet primitive: status, suspension, and the order of its nine categories."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V1Container, V1ObjectMeta, V1PersistentVolumeClaim, V1PersistentVolumeClaimSpec

from ocf.concepts import Alive, AliveStatus, ApplyOperation, GraceStatus, StatusReport, SuspensionStatus
from ocf.editors import all_containers
from ocf.objects import Manifest
from ocf.primitives import statefulset

STALE = "Waiting for statefulset controller to observe latest spec"
READY = "All replicas are ready"
NEXT = "Waiting for rollout: the latest revision is not yet the current one"
BY_OPERATION = {ApplyOperation.CREATED: AliveStatus.CREATING, ApplyOperation.UPDATED: AliveStatus.UPDATING}
BASE: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "db", "namespace": "shop"},
    "spec": {
        "replicas": 3,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "db", "image": "db:1"}]},
        },
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
    },
}


def live(*, desired: int | None = 3, generation: int = 1, strategy: Any = None, **status: Any) -> Manifest:
    """A StatefulSet whose controller is up to date unless the row says otherwise."""
    spec = {**BASE["spec"], "replicas": desired, "updateStrategy": strategy}
    metadata = {**BASE["metadata"], "generation": generation}
    return {**BASE, "metadata": metadata, "spec": spec, "status": {"observedGeneration": 1, **status}}


def status(ready: int, updated: int, total: int, revisions: str = "aa") -> Manifest:
    current, update = tuple(revisions)
    counts = {"readyReplicas": ready, "updatedReplicas": updated, "replicas": total}
    return {**counts, "currentRevision": current, "updateRevision": update}


def partition(number: int) -> Manifest:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}}


ON_DELETE: Manifest = {"strategy": {"type": "OnDelete"}}
ROLLING: Manifest = {"strategy": {"type": "RollingUpdate"}}
PARTIAL = "StatefulSet partially available"


def _missing(seen: Manifest, reason: str, title: str) -> Any:
    return pytest.param(seen, "Updating", reason, "Degraded", reason, id=title)


def _done(seen: Manifest, title: str) -> Any:
    return pytest.param(seen, "Healthy", READY, "Healthy", READY, id=title)


# row: what is wanted and observed, the answer where this pass did nothing, its reason, and the answer after grace
STATES = [
    _missing({"generation": 2, **status(3, 3, 3)}, STALE, "stale"),
    pytest.param(status(1, 3, 3), "Scaling", "Waiting for replicas: 1/3 ready", "Degraded", PARTIAL, id="too few"),
    pytest.param(
        {"desired": 1, **status(3, 1, 3)}, "Scaling", "Waiting for replicas: 3/1 ready", "Degraded", PARTIAL, id="many"
    ),
    pytest.param(
        status(0, 0, 0), "Scaling", "Waiting for replicas: 0/3 ready", "Down", "No replicas are ready", id="none ready"
    ),
    pytest.param(
        {"generation": 2, **status(0, 0, 0)}, "Updating", STALE, "Down", "No replicas are ready", id="none and stale"
    ),
    _missing(status(3, 3, 4), "Waiting for rollout: 1 old replicas pending termination", "one too many"),
    _missing(status(3, 1, 3, "ab"), "Waiting for rollout: 1/3 replicas updated", "rollout under way"),
    _missing({**ROLLING, **status(3, 1, 3, "ab")}, "Waiting for rollout: 1/3 replicas updated", "said to be rolling"),
    _missing(status(3, 3, 3, "ab"), NEXT, "all updated, the revision not yet"),
    _missing({**partition(0), **status(3, 3, 3, "ab")}, NEXT, "a partition of 0 is none"),
    _missing({**partition(1), **status(3, 1, 3, "ab")}, "Waiting for rollout: 1/2 replicas updated", "partition"),
    _done({**partition(1), **status(3, 2, 3, "ab")}, "as far as the partition lets it"),
    _done({**partition(1), **status(3, 3, 3, "ab")}, "further than the partition"),
    _done({**partition(5), **status(3, 0, 3, "ab")}, "a partition above the count"),
    _done({**ON_DELETE, **status(3, 0, 3, "ab")}, "on delete"),
    _missing(
        {**ON_DELETE, **status(3, 0, 4, "ab")},
        "Waiting for rollout: 1 old replicas pending termination",
        "on delete, one too many",
    ),
    _done(status(3, 3, 3), "done"),
    _done({"desired": None, **status(1, 1, 1)}, "unset is one"),
    _done({"desired": 0, **status(0, 0, 0)}, "none wanted"),
]


@pytest.mark.parametrize(("seen", "word", "reason", "grace", "grace_reason"), STATES)
class TestStatus:
    @pytest.mark.parametrize("operation", list(ApplyOperation))
    def test_converging(  # noqa: PLR0917 (a table row)
        self, seen: Any, word: str, reason: str, grace: str, grace_reason: str, operation: ApplyOperation
    ) -> None:
        """Progress is named by what this pass did; where it did nothing, by what is missing."""
        del grace, grace_reason
        expected = AliveStatus(word) if word == "Healthy" else BY_OPERATION.get(operation, AliveStatus(word))
        report = statefulset.Builder(BASE).build().alive_status(operation, live(**seen))
        assert report == StatusReport(expected, reason)

    def test_after_grace(self, seen: Any, word: str, reason: str, grace: str, grace_reason: str) -> None:
        del word, reason
        report = statefulset.Builder(BASE).build().grace_status(live(**seen))
        assert report == StatusReport(GraceStatus(grace), grace_reason)


@given(
    strategy=st.sampled_from([{}, ROLLING, ON_DELETE, partition(1), partition(3)]),
    desired=st.integers(0, 3),
    generation=st.integers(1, 2),
    counts=st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
    revisions=st.sampled_from(["aa", "ab"]),
    operation=st.sampled_from(ApplyOperation),
)
def test_both_judgements_agree_on_health(  # noqa: PLR0917 (a grid)
    strategy: Manifest,
    desired: int,
    generation: int,
    counts: tuple[int, int, int],
    revisions: str,
    operation: ApplyOperation,
) -> None:
    seen = live(desired=desired, generation=generation, **strategy, **status(*counts, revisions))
    resource = statefulset.Builder(BASE).build()
    healthy = resource.alive_status(operation, seen).status is AliveStatus.HEALTHY
    assert healthy == (resource.grace_status(seen).status is GraceStatus.HEALTHY)


def test_before_its_controller_has_said_anything_nothing_is_ready() -> None:
    fresh = {**BASE, "metadata": {**BASE["metadata"], "generation": 1}}
    resource = statefulset.Builder(BASE).build()
    assert isinstance(resource, Alive)
    assert resource.alive_status(ApplyOperation.CREATED, fresh) == StatusReport(AliveStatus.CREATING, STALE)
    assert resource.grace_status(fresh).status is GraceStatus.DOWN


@pytest.mark.parametrize(
    ("running", "word", "reason"),
    [
        pytest.param(2, "Suspending", "Waiting for replicas to scale down, 2 replicas still running.", id="two left"),
        pytest.param(0, "Suspended", "StatefulSet scaled to zero", id="none left"),
    ],
)
def test_suspension_status(running: int, word: str, reason: str) -> None:
    report = statefulset.Builder(BASE).build().suspension_status(live(replicas=running))
    assert report == StatusReport(SuspensionStatus(word), reason)


def test_suspending_scales_to_zero_and_keeps_object_and_claims() -> None:
    resource = statefulset.Builder(BASE).build()
    assert resource.delete_on_suspend() is False
    assert resource.render(suspended=True)["spec"] == {**BASE["spec"], "replicas": 0}


def test_nine_categories_run_in_the_declared_order() -> None:
    ran: list[str] = []

    def mutate(m: statefulset.Mutator) -> None:
        m.ensure_volume_claim_template(claim("logs"))
        m.edit_init_containers(all_containers)(lambda _: ran.append("init containers"))
        m.ensure_init_container(V1Container(name="setup"))
        m.edit_containers(all_containers)(lambda _: ran.append("containers"))
        m.edit_pod_spec(lambda _: ran.append("pod spec"))
        m.edit_pod_template_metadata(lambda _: ran.append("template metadata"))
        m.edit_statefulset_spec(lambda spec: ran.append(f"spec, {len(spec.raw.volume_claim_templates or ())} claim"))
        m.edit_object_metadata(lambda _: ran.append("metadata"))

    statefulset.Builder(BASE).with_mutation(statefulset.Mutation("m", mutate)).build().render()
    expected = ["metadata", "spec, 1 claim", "template metadata", "pod spec", "containers", "init containers"]
    assert ran == expected
    assert [category.name for category in statefulset.Mutator.categories] == [
        "edit_object_metadata",
        "edit_statefulset_spec",
        "edit_pod_template_metadata",
        "edit_pod_spec",
        "container_presence",
        "edit_containers",
        "init_container_presence",
        "edit_init_containers",
        "volume_claim_template_presence",
    ]


def claim(name: str, **spec: Any) -> V1PersistentVolumeClaim:
    return V1PersistentVolumeClaim(metadata=V1ObjectMeta(name=name), spec=V1PersistentVolumeClaimSpec(**spec))


def rendered_claims(mutate: Any) -> list[tuple[str, Any]]:
    resource = statefulset.Builder(BASE).with_mutation(statefulset.Mutation("m", mutate)).build()
    claims = resource.render()["spec"].get("volumeClaimTemplates", [])
    return [(found["metadata"]["name"], found["spec"]) for found in claims]


class TestClaims:
    def test_ensure_replaces_whole_in_place_or_appends(self) -> None:
        def mutate(m: statefulset.Mutator) -> None:
            m.ensure_volume_claim_template(claim("logs"))
            m.ensure_volume_claim_template(claim("data", storage_class_name="fast"))

        assert rendered_claims(mutate) == [("data", {"storageClassName": "fast"}), ("logs", {})]

    def test_presence_is_recorded_in_order(self) -> None:
        def mutate(m: statefulset.Mutator) -> None:
            m.ensure_volume_claim_template(claim("logs"))
            m.remove_volume_claim_template("logs", "data", "never there")

        assert rendered_claims(mutate) == []

    def test_what_is_done_to_a_claim_after_recording_is_not_part_of_the_plan(self) -> None:
        def mutate(m: statefulset.Mutator) -> None:
            logs = claim("logs")
            m.ensure_volume_claim_template(logs)
            logs.metadata = V1ObjectMeta(name="other")

        assert [name for name, _ in rendered_claims(mutate)] == ["data", "logs"]
