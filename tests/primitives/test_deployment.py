"""The Deployment primitive: status, suspension, and the order of its eight categories."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V1Container, V1EnvVar, V1EnvVarSource, V1SecretKeySelector

from ocf.concepts import Alive, AliveStatus, ApplyOperation, GraceStatus, StatusReport, SuspensionStatus
from ocf.editors import ContainerEditor, all_containers, container_named
from ocf.errors import BuildError, MutationError
from ocf.objects import Manifest
from ocf.primitives import deployment

STALE = "Waiting for deployment controller to observe latest spec"
BY_OPERATION = {
    ApplyOperation.CREATED: AliveStatus.CREATING,
    ApplyOperation.UPDATED: AliveStatus.UPDATING,
}


def resource(base: Manifest, *mutations: deployment.Mutation) -> deployment.Resource:
    return deployment.Builder(base).with_mutation(*mutations).build()


def mutation(mutate: Any) -> deployment.Mutation:
    return deployment.Mutation("m", mutate)


def containers(manifest: Manifest, field: str = "containers") -> list[Any]:
    found: list[Any] = manifest["spec"]["template"]["spec"][field]
    return found


def live(
    base: Manifest, *, desired: int | None = 3, paused: bool = False, generation: int = 1, **status: int
) -> Manifest:
    """A Deployment whose controller is up to date unless the row says otherwise."""
    spec = {**base["spec"], "replicas": desired, "paused": paused}
    metadata = {**base["metadata"], "generation": generation}
    return {**base, "metadata": metadata, "spec": spec, "status": {"observedGeneration": 1, **status}}


def status(ready: int, updated: int, total: int) -> dict[str, int]:
    return {"readyReplicas": ready, "updatedReplicas": updated, "replicas": total}


# row: what is wanted and observed, the answer where this pass did nothing, its reason, and the answer after grace
STATES = [
    pytest.param({"generation": 2, **status(3, 3, 3)}, "Updating", STALE, "Degraded", STALE, id="stale"),
    pytest.param(
        status(1, 3, 3),
        "Scaling",
        "Waiting for replicas: 1/3 ready",
        "Degraded",
        "Deployment partially available",
        id="too few",
    ),
    pytest.param(
        {"desired": 1, **status(3, 1, 3)},
        "Scaling",
        "Waiting for replicas: 3/1 ready",
        "Degraded",
        "Deployment partially available",
        id="too many",
    ),
    pytest.param(
        status(3, 1, 3),
        "Updating",
        "Waiting for rollout: 1/3 replicas updated",
        "Degraded",
        "Waiting for rollout: 1/3 replicas updated",
        id="rollout under way",
    ),
    pytest.param(
        status(3, 3, 6),
        "Updating",
        "Waiting for rollout: 3 old replicas pending termination",
        "Degraded",
        "Waiting for rollout: 3 old replicas pending termination",
        id="old ones left",
    ),
    pytest.param(
        status(3, 4, 4),
        "Updating",
        "Waiting for rollout: 4/3 replicas updated",
        "Degraded",
        "Waiting for rollout: 4/3 replicas updated",
        id="more updated than wanted",
    ),
    pytest.param(status(3, 3, 3), "Healthy", "All replicas are ready", "Healthy", "All replicas are ready", id="done"),
    pytest.param(
        {"paused": True, **status(3, 1, 3)},
        "Healthy",
        "All replicas are ready",
        "Healthy",
        "All replicas are ready",
        id="paused with old ones ready",
    ),
    pytest.param(
        {"paused": True, "generation": 2, **status(3, 3, 3)},
        "Updating",
        STALE,
        "Degraded",
        STALE,
        id="paused but stale",
    ),
    pytest.param(
        {"paused": True, **status(2, 2, 3)},
        "Scaling",
        "Waiting for replicas: 2/3 ready",
        "Degraded",
        "Deployment partially available",
        id="paused and too few",
    ),
    pytest.param(
        {"paused": True, **status(3, 1, 5)},
        "Updating",
        "Waiting for rollout: 2 old replicas pending termination",
        "Degraded",
        "Waiting for rollout: 2 old replicas pending termination",
        id="paused with too many",
    ),
    pytest.param(
        {"desired": None, **status(1, 1, 1)},
        "Healthy",
        "All replicas are ready",
        "Healthy",
        "All replicas are ready",
        id="unset is one",
    ),
    pytest.param(
        {"desired": 0, **status(0, 0, 0)},
        "Healthy",
        "All replicas are ready",
        "Healthy",
        "All replicas are ready",
        id="none wanted",
    ),
    pytest.param(
        status(0, 0, 0), "Scaling", "Waiting for replicas: 0/3 ready", "Down", "No replicas are ready", id="none ready"
    ),
    pytest.param(
        {"generation": 2, **status(0, 0, 0)},
        "Updating",
        STALE,
        "Down",
        "No replicas are ready",
        id="none ready and stale",
    ),
]


@pytest.mark.parametrize(("seen", "word", "reason", "grace", "grace_reason"), STATES)
class TestStatus:
    @pytest.mark.parametrize("operation", list(ApplyOperation))
    def test_converging(  # noqa: PLR0917 (a table row)
        self,
        deployment_base: Manifest,
        seen: Any,
        word: str,
        reason: str,
        grace: str,
        grace_reason: str,
        operation: ApplyOperation,
    ) -> None:
        """Progress is named by what this pass did; where it did nothing, by what is missing."""
        del grace, grace_reason
        expected = AliveStatus(word) if word == "Healthy" else BY_OPERATION.get(operation, AliveStatus(word))
        report = resource(deployment_base).alive_status(operation, live(deployment_base, **seen))
        assert report == StatusReport(expected, reason)

    def test_after_grace(  # noqa: PLR0917 (a table row)
        self, deployment_base: Manifest, seen: Any, word: str, reason: str, grace: str, grace_reason: str
    ) -> None:
        del word, reason
        report = resource(deployment_base).grace_status(live(deployment_base, **seen))
        assert report == StatusReport(GraceStatus(grace), grace_reason)


@given(
    desired=st.integers(0, 3),
    paused=st.booleans(),
    generation=st.integers(1, 2),
    ready=st.integers(0, 3),
    updated=st.integers(0, 3),
    total=st.integers(0, 3),
    operation=st.sampled_from(ApplyOperation),
)
def test_both_judgements_agree_on_health(  # noqa: PLR0917 (a grid)
    desired: int,
    paused: bool,
    generation: int,
    ready: int,
    updated: int,
    total: int,
    operation: ApplyOperation,
) -> None:
    """After the grace period a Deployment is healthy exactly when it would be healthy while converging."""
    base = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "b", "namespace": "a"},
        "spec": {"selector": {}, "template": {}},
    }
    seen = live(base, desired=desired, paused=paused, generation=generation, **status(ready, updated, total))
    tried = resource(base)
    healthy = tried.alive_status(operation, seen).status is AliveStatus.HEALTHY
    assert healthy == (tried.grace_status(seen).status is GraceStatus.HEALTHY)


class TestBuilding:
    def test_is_alive(self, deployment_base: Manifest) -> None:
        assert resource(deployment_base).identity == "apps/v1/Deployment/shop/backend"
        assert isinstance(resource(deployment_base), Alive)

    def test_a_cleared_status_handler_is_rejected(self, deployment_base: Manifest) -> None:
        with pytest.raises(BuildError, match="converging status handler is required"):
            deployment.Builder(deployment_base).with_custom_converge_status(None).build()

    def test_a_custom_handler_may_report_failing(self, deployment_base: Manifest) -> None:
        failing = StatusReport(AliveStatus.FAILING, "crash loop")
        tried = deployment.Builder(deployment_base).with_custom_converge_status(lambda _op, _live: failing).build()
        assert tried.alive_status(ApplyOperation.NONE, deployment_base) == failing


class TestSuspension:
    def test_scales_to_zero_and_does_not_delete(self, deployment_base: Manifest) -> None:
        tried = resource(deployment_base)
        assert tried.render(suspended=True)["spec"]["replicas"] == 0
        assert tried.render()["spec"]["replicas"] == 3
        assert tried.delete_on_suspend() is False

    @pytest.mark.parametrize(
        ("running", "report"),
        [
            pytest.param(
                2,
                StatusReport(
                    SuspensionStatus.SUSPENDING, "Waiting for replicas to scale down, 2 replicas still running."
                ),
                id="still running",
            ),
            pytest.param(0, StatusReport(SuspensionStatus.SUSPENDED, "Deployment scaled to zero"), id="at zero"),
        ],
    )
    def test_depends_on_the_running_replicas(
        self, deployment_base: Manifest, running: int, report: StatusReport[SuspensionStatus]
    ) -> None:
        seen = live(deployment_base, desired=0, replicas=running)
        assert resource(deployment_base).suspension_status(seen) == report

    def test_one_that_was_never_observed_counts_as_suspended(self, deployment_base: Manifest) -> None:
        assert resource(deployment_base).suspension_status(deployment_base).status is SuspensionStatus.SUSPENDED


ORDER = (
    "object metadata",
    "deployment spec",
    "template metadata",
    "pod spec",
    "containers",
    "init containers",
)


def _log(log: list[str], name: str, _editor: object) -> None:
    log.append(name)


def _record(m: deployment.Mutator, log: list[str], name: str) -> None:
    edit = partial(_log, log, name)
    match name:
        case "object metadata":
            m.edit_object_metadata(edit)
        case "deployment spec":
            m.edit_deployment_spec(edit)
        case "template metadata":
            m.edit_pod_template_metadata(edit)
        case "pod spec":
            m.edit_pod_spec(edit)
        case "containers":
            m.edit_containers(container_named("added"))(edit)
            m.ensure_container(V1Container(name="added"))
        case _:
            m.edit_init_containers(container_named("first"))(edit)
            m.ensure_init_container(V1Container(name="first"))


class TestCategories:
    @given(order=st.permutations(ORDER))
    def test_run_in_one_order_whatever_the_order_of_recording(self, order: list[str]) -> None:
        """Presence comes before edits: a container added by a mutation can be edited by the same one."""
        base = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "b", "namespace": "a"},
            "spec": {"selector": {}, "template": {"spec": {"containers": []}}},
        }
        log: list[str] = []

        def mutate(m: deployment.Mutator) -> None:
            for name in order:
                _record(m, log, name)

        resource(base, mutation(mutate)).render()
        assert log == list(ORDER)

    def test_the_mutator_declares_eight(self) -> None:
        assert [category.name for category in deployment.Mutator.categories] == [
            "edit_object_metadata",
            "edit_deployment_spec",
            "edit_pod_template_metadata",
            "edit_pod_spec",
            "container_presence",
            "edit_containers",
            "init_container_presence",
            "edit_init_containers",
        ]

    def test_template_metadata_that_is_made_for_an_edit_goes_again_if_it_stays_empty(
        self, deployment_base: Manifest
    ) -> None:
        del deployment_base["spec"]["template"]["metadata"]
        looked = mutation(lambda m: m.edit_pod_template_metadata(lambda meta: meta.remove_label("x")))
        assert resource(deployment_base, looked).render() == deployment_base
        labelled = mutation(lambda m: m.edit_pod_template_metadata(lambda meta: meta.ensure_label("a", "b")))
        assert resource(deployment_base, labelled).render()["spec"]["template"]["metadata"] == {"labels": {"a": "b"}}


class TestPresence:
    def test_ensuring_replaces_whole_at_its_place(self, deployment_base: Manifest) -> None:
        rendered = resource(
            deployment_base, mutation(lambda m: m.ensure_container(V1Container(name="app", command=["run"])))
        ).render()
        assert containers(rendered) == [{"name": "app", "command": ["run"]}, {"name": "sidecar", "image": "sidecar:1"}]

    def test_ensuring_a_new_one_appends(self, deployment_base: Manifest) -> None:
        rendered = resource(deployment_base, mutation(lambda m: m.ensure_container(V1Container(name="new")))).render()
        assert [container["name"] for container in containers(rendered)] == ["app", "sidecar", "new"]

    def test_removing_one_that_is_not_there_changes_nothing(self, deployment_base: Manifest) -> None:
        assert resource(deployment_base, mutation(lambda m: m.remove_container("x"))).render() == deployment_base

    def test_ensured_then_removed_is_absent(self, deployment_base: Manifest) -> None:
        def mutate(m: deployment.Mutator) -> None:
            m.ensure_container(V1Container(name="new"))
            m.remove_container("new", "sidecar")

        assert [c["name"] for c in containers(resource(deployment_base, mutation(mutate)).render())] == ["app"]

    def test_init_containers_are_their_own_list(self, deployment_base: Manifest) -> None:
        def mutate(m: deployment.Mutator) -> None:
            m.remove_init_container("setup", "app")
            m.ensure_init_container(V1Container(name="migrate"))

        rendered = resource(deployment_base, mutation(mutate)).render()
        assert [c["name"] for c in containers(rendered, "initContainers")] == ["migrate"]
        assert [c["name"] for c in containers(rendered)] == ["app", "sidecar"]

    def test_the_container_is_copied_when_it_is_recorded(self, deployment_base: Manifest) -> None:
        added = V1Container(name="new", image="new:1")

        def mutate(m: deployment.Mutator) -> None:
            m.ensure_container(added)
            m.edit_containers(container_named("new"))(lambda container: container.set_image("new:2"))

        tried = resource(deployment_base, mutation(mutate))
        assert containers(tried.render())[-1]["image"] == "new:2"
        assert added.image == "new:1"
        assert tried.render() == tried.render()


class TestContainerEdits:
    def test_a_rename_is_seen_by_the_next_mutation_only(self, deployment_base: Manifest) -> None:
        log: list[str] = []

        def rename(m: deployment.Mutator) -> None:
            @m.edit_containers(container_named("app"))
            def _(container: ContainerEditor) -> None:
                container.raw.name = "web"

            m.edit_containers(container_named("app"))(partial(_log, log, "same, old name"))
            m.edit_containers(container_named("web"))(partial(_log, log, "same, new name"))

        def after(m: deployment.Mutator) -> None:
            m.edit_containers(container_named("app"))(partial(_log, log, "next, old name"))
            m.edit_containers(container_named("web"))(partial(_log, log, "next, new name"))

        mutations = deployment.Mutation("rename", rename), deployment.Mutation("after", after)
        rendered = resource(deployment_base, *mutations).render()
        assert log == ["same, old name", "next, new name"]
        assert containers(rendered)[0]["name"] == "web"

    def test_containers_are_the_outer_loop(self, deployment_base: Manifest) -> None:
        log: list[str] = []

        def mutate(m: deployment.Mutator) -> None:
            m.edit_containers(all_containers)(lambda container: log.append(f"1 {container.raw.name}"))
            m.edit_containers(all_containers)(lambda container: log.append(f"2 {container.raw.name}"))

        resource(deployment_base, mutation(mutate)).render()
        assert log == ["1 app", "2 app", "1 sidecar", "2 sidecar"]

    @pytest.mark.parametrize(
        "record",
        [
            pytest.param(lambda m: m.edit_containers(None), id="selector"),
            pytest.param(lambda m: m.edit_containers(all_containers)(None), id="edit"),
            pytest.param(lambda m: m.ensure_container(None), id="container"),
        ],
    )
    def test_none_is_rejected(self, deployment_base: Manifest, record: Any) -> None:
        with pytest.raises(MutationError, match="failed to apply mutation intent for m: "):
            resource(deployment_base, mutation(record)).render()


class TestConvenience:
    def test_env_touches_all_containers_and_no_init_container(self, deployment_base: Manifest) -> None:
        rendered = resource(
            deployment_base, mutation(lambda m: m.ensure_container_env_var(V1EnvVar(name="MODE", value="fast")))
        ).render()
        assert [container["env"] for container in containers(rendered)] == [[{"name": "MODE", "value": "fast"}]] * 2
        assert "env" not in containers(rendered, "initContainers")[0]

    def test_a_value_gives_way_to_a_source_at_its_place(self, deployment_base: Manifest) -> None:
        containers(deployment_base)[0]["env"] = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
        source = V1EnvVarSource(secret_key_ref=V1SecretKeySelector(name="s", key="k"))
        rendered = resource(
            deployment_base, mutation(lambda m: m.ensure_container_env_var(V1EnvVar(name="A", value_from=source)))
        ).render()
        assert containers(rendered)[0]["env"] == [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "B", "value": "2"},
        ]

    def test_removing_env_and_args_leaves_nothing_empty_behind(self, deployment_base: Manifest) -> None:
        def mutate(m: deployment.Mutator) -> None:
            m.ensure_container_env_var(V1EnvVar(name="A", value="1"))
            m.ensure_container_arg("--a=1", "--a=2")
            m.remove_container_env_var("A")
            m.remove_container_arg("--a=1", "--a=2")

        assert resource(deployment_base, mutation(mutate)).render() == deployment_base

    def test_another_value_of_a_flag_is_another_argument(self, deployment_base: Manifest) -> None:
        rendered = resource(
            deployment_base, mutation(lambda m: m.ensure_container_arg("--a=1", "--a=2", "--a=1"))
        ).render()
        assert containers(rendered)[0]["args"] == ["--a=1", "--a=2"]

    def test_replicas_are_a_spec_edit(self, deployment_base: Manifest) -> None:
        assert resource(deployment_base, mutation(lambda m: m.ensure_replicas(7))).render()["spec"]["replicas"] == 7
