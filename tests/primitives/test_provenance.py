"""A resource says which mutation set which field, and why the others did not."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes.client import V1Container, V1EnvVar

from ocf.autoscaling import metrics
from ocf.concepts import Explainable, Resource
from ocf.concepts.provenance import Effect, Provenance
from ocf.editors import ContainerEditor, ObjectMetaEditor, all_containers, container_named
from ocf.errors import MutationError
from ocf.feature import BooleanGate, Gate, VersionGate
from ocf.objects import Manifest
from ocf.primitives import deployment, hpa

REPLICAS = ("spec", "replicas")
POD = "spec.template.spec"


def change(
    name: str, *edits: Callable[[deployment.Mutator], object], feature: Gate | None = None
) -> deployment.Mutation:
    def mutate(m: deployment.Mutator) -> None:
        for edit in edits:
            edit(m)

    return deployment.Mutation(name, mutate, feature=feature)


def containers(edit: Callable[[ContainerEditor], None]) -> Callable[[deployment.Mutator], object]:
    return lambda m: m.edit_containers(all_containers)(edit)


def renamed(container: ContainerEditor) -> None:
    container.raw.name = f"new-{container.raw.name}"


def emptied(container: ContainerEditor) -> None:
    container.remove_env_var("MODE")


def spoilt(m: deployment.Mutator) -> None:
    @m.edit_object_metadata
    def _(meta: ObjectMetaEditor) -> None:
        meta.ensure_label("a", "b")
        meta.raw.labels["a"] = 42  # type: ignore[index, assignment]  # what only writing the object finds out


def mended(m: deployment.Mutator) -> None:
    m.edit_object_metadata(lambda meta: meta.ensure_label("a", "c"))


def odd(m: deployment.Mutator) -> None:
    @m.edit_pod_spec
    def _(pod: Any) -> None:
        pod.raw.termination_grace_period_seconds = 5


@pytest.fixture
def explain(deployment_base: Manifest) -> Callable[..., Provenance]:
    """Return the provenance of the Deployment with mutations, and check that it matches the rendered object."""

    def of(*mutations: deployment.Mutation, **how: Any) -> Provenance:
        resource = deployment.Builder(deployment_base).with_mutation(*mutations).build()
        found = resource.explain(**how)
        rendered = dict(flat(resource.render(**how)))
        assert {origin.path: origin.value for origin in found.fields} == rendered
        return found

    return of


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from flat(item, f"{path}[{position}]")
    else:
        yield path, value


def history(found: Provenance, path: str) -> list[tuple[str, Any]]:
    return [(str(setting.source), setting.value) for setting in found.field(path).settings]


def test_what_no_mutation_touches_is_from_the_base(explain: Callable[..., Provenance]) -> None:
    found = explain()
    assert {str(origin.source) for origin in found.fields} == {"base"}
    assert (found.removed, found.mutations) == ((), ())
    assert found.resource == "apps/v1/Deployment/shop/backend"


def test_a_value_names_its_mutation_the_category_and_what_was_before(explain: Callable[..., Provenance]) -> None:
    found = explain(
        change("large", lambda m: m.ensure_replicas(5)),
        change("larger", lambda m: m.edit_deployment_spec(lambda spec: spec.set_replicas(9))),
    )
    assert history(found, "spec.replicas") == [
        ("base", 3),
        ("mutation large, edit_deployment_spec", 5),
        ("mutation larger, edit_deployment_spec", 9),
    ]
    field = found.field("spec.replicas")
    assert field.previous is not None
    assert (field.value, field.previous.value, field.source.mutation) == (9, 5, "larger")
    assert [origin.path for origin in found.set_by("larger")] == ["spec.replicas"]
    assert found.set_by("large") == ()


def test_categories_of_one_mutation_are_distinguished(explain: Callable[..., Provenance]) -> None:
    found = explain(
        change(
            "both",
            lambda m: m.edit_object_metadata(lambda meta: meta.ensure_label("a", "b")),
            containers(lambda container: container.set_image("app:2")),
        )
    )
    assert found.field("metadata.labels.a").source.category == "edit_object_metadata"
    assert found.field(f"{POD}.containers[1].image").source.category == "edit_containers"


def test_an_inserted_container_takes_no_credit_for_the_others(explain: Callable[..., Provenance]) -> None:
    def in_front(m: deployment.Mutator) -> None:
        @m.edit_pod_spec
        def _(pod: Any) -> None:
            pod.raw.containers.insert(0, V1Container(name="first", image="first:1"))

    found = explain(change("first", in_front))
    assert str(found.field(f"{POD}.containers[0].image").source) == "mutation first, edit_pod_spec"
    assert str(found.field(f"{POD}.containers[1].name").source) == "base"
    assert str(found.field(f"{POD}.containers[2].image").source) == "base"


def test_a_renamed_container_keeps_the_rest(explain: Callable[..., Provenance]) -> None:
    found = explain(change("rename", containers(renamed)))
    assert history(found, f"{POD}.containers[0].name") == [
        ("base", "app"),
        ("mutation rename, edit_containers", "new-app"),
    ]
    assert history(found, f"{POD}.containers[0].image") == [("base", "app:1")]
    assert found.removed == ()


def test_a_replaced_container_is_new_only_where_it_differs(explain: Callable[..., Provenance]) -> None:
    found = explain(change("newer", lambda m: m.ensure_container(V1Container(name="app", image="app:2"))))
    assert str(found.field(f"{POD}.containers[0].name").source) == "base"
    assert str(found.field(f"{POD}.containers[0].image").source) == "mutation newer, container_presence"


def test_a_removed_container_is_reported_by_its_name(explain: Callable[..., Provenance]) -> None:
    found = explain(change("drop", lambda m: m.remove_container("app")))
    assert [origin.path for origin in found.removed] == [
        f"{POD}.containers[name=app].{key}" for key in ("image", "name")
    ]
    assert str(found.removed[0].source) == "mutation drop, container_presence"
    assert found.removed[0].previous is not None
    assert found.removed[0].previous.value == "app:1"
    assert str(found.field(f"{POD}.containers[0].name").source) == "base"


def test_a_list_that_is_emptied_is_gone(explain: Callable[..., Provenance]) -> None:
    with_mode = change("mode", lambda m: m.ensure_container_env_var(V1EnvVar(name="MODE", value="fast")))
    found = explain(with_mode, change("plain", containers(emptied)))
    gone = found.field(f"{POD}.containers[name=app].env[name=MODE].value")
    assert [str(setting.source) for setting in gone.settings] == [
        "mutation mode, edit_containers",
        "mutation plain, edit_containers",
    ]


def test_raw_edits_are_reported_like_others(explain: Callable[..., Provenance]) -> None:
    found = explain(change("quick", odd))
    assert str(found.field(f"{POD}.terminationGracePeriodSeconds").source) == "mutation quick, edit_pod_spec"


def test_the_order_of_metrics_is_followed_by_their_names(hpa_base: Manifest) -> None:
    """An autoscaler's metrics have no key in the API; a metric put in front takes no credit for the others."""
    hpa_base["spec"]["metrics"] = [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
    ]

    def in_front(m: hpa.Mutator) -> None:
        @m.edit_hpa_spec
        def _(spec: Any) -> None:
            spec.ensure_metric(metrics.memory(average_utilization=80))
            spec.raw.metrics.reverse()

    found = hpa.Builder(hpa_base).with_mutation(hpa.Mutation("memory", in_front)).build().explain()
    assert str(found.field("spec.metrics[0].resource.name").source) == "mutation memory, edit_hpa_spec"
    assert str(found.field("spec.metrics[1].resource.target.averageUtilization").source) == "base"


class TestOtherSources:
    def test_a_field_left_to_others_is_taken_away(self, explain: Callable[..., Provenance]) -> None:
        found = explain(ignore_fields=[REPLICAS])
        gone = found.field("spec.replicas")
        assert str(gone.source) == "ignored"
        assert gone.previous is not None
        assert gone.previous.value == 3

    def test_the_suspension_comes_last(self, explain: Callable[..., Provenance]) -> None:
        found = explain(change("large", lambda m: m.ensure_replicas(5)), suspended=True)
        assert history(found, "spec.replicas")[1:] == [
            ("mutation large, edit_deployment_spec", 5),
            ("suspension, edit_deployment_spec", 0),
        ]

    def test_a_suspension_may_set_what_is_left_to_others(self, explain: Callable[..., Provenance]) -> None:
        found = explain(suspended=True, ignore_fields=[REPLICAS])
        assert [source for source, _ in history(found, "spec.replicas")] == [
            "base",
            "ignored",
            "suspension, edit_deployment_spec",
        ]


class Odd:
    """A custom gate."""

    def enabled(self) -> bool:
        return False


class TestMutations:
    @pytest.mark.parametrize(
        ("gate", "reason"),
        [
            pytest.param(BooleanGate(False), "switched off", id="boolean"),
            pytest.param(VersionGate("2.0.9", ">= 2.1"), 'version 2.0.9 is not ">= 2.1"', id="version"),
            pytest.param(VersionGate("2.1.0", ">= 2.1").when(False), "switched off", id="switched off"),
            pytest.param(
                VersionGate("2.0.9", ">= 2.1", "!= 2.0.9").when(False),
                'version 2.0.9 is not ">= 2.1" and version 2.0.9 is not "!= 2.0.9" and switched off',
                id="everything against it",
            ),
            pytest.param(
                VersionGate("1.31.4-gke.1", ">= 1.32", ">= 1.31", ignore_vendor_suffix=True),
                'version 1.31.4-gke.1 is not ">= 1.32"',
                id="only what is against it",
            ),
            pytest.param(Odd(), "Odd is closed", id="a custom gate"),
        ],
    )
    def test_a_closed_gate_says_why(self, explain: Callable[..., Provenance], gate: Gate, reason: str) -> None:
        [effect] = explain(change("a", lambda m: m.ensure_replicas(9), feature=gate)).mutations
        assert (effect.name, effect.effect, effect.reason) == ("a", Effect.CLOSED, reason)

    def test_one_that_changes_nothing_differs_from_one_without_edits(self, explain: Callable[..., Provenance]) -> None:
        found = explain(
            change("same", lambda m: m.ensure_replicas(3)),
            change("silent"),
            change("real", lambda m: m.ensure_replicas(4)),
        )
        assert [(each.name, each.effect, each.reason) for each in found.mutations] == [
            ("same", Effect.NOTHING, "the object already had all its values"),
            ("silent", Effect.NOTHING, "it recorded no edit"),
            ("real", Effect.CHANGED, ""),
        ]

    def test_what_a_later_mutation_undid_was_a_change_all_the_same(self, explain: Callable[..., Provenance]) -> None:
        found = explain(change("up", lambda m: m.ensure_replicas(4)), change("down", lambda m: m.ensure_replicas(3)))
        assert [each.effect for each in found.mutations] == [Effect.CHANGED, Effect.CHANGED]


class TestFailures:
    def test_what_cannot_be_rendered_cannot_be_explained(self, deployment_base: Manifest) -> None:
        """The error is the one of the rendering."""
        resource = deployment.Builder(deployment_base).with_mutation(change("bad", spoilt)).build()
        with pytest.raises(MutationError) as rendering:
            resource.render()
        with pytest.raises(MutationError) as explaining:
            resource.explain()
        assert str(explaining.value) == str(rendering.value)
        assert (explaining.value.mutation, explaining.value.category) == ("bad", "edit_object_metadata")

    def test_an_edit_that_fails_is_named(self, deployment_base: Manifest) -> None:
        wrong = containers(lambda container: container.set_image(3))  # type: ignore[arg-type]  # the mistake
        resource = deployment.Builder(deployment_base).with_mutation(change("bad", wrong)).build()
        with pytest.raises(MutationError, match='mutation "bad", edit_containers: image: must be'):
            resource.explain()

    def test_a_value_that_a_later_mutation_fixes_is_explained(self, explain: Callable[..., Provenance]) -> None:
        found = explain(change("bad", spoilt), change("good", mended))
        assert str(found.field("metadata.labels.a").source) == "mutation good, edit_object_metadata"


def test_secrets_are_digests(deployment_base: Manifest) -> None:
    secret = V1EnvVar(name="DB_PASSWORD", value="hunter2")
    mutation = change("db", lambda m: m.edit_containers(container_named("app"))(lambda c: c.ensure_env_var(secret)))
    found = deployment.Builder(deployment_base).with_mutation(mutation).build().explain()
    assert "hunter2" not in repr(found)
    shown = found.field(f"{POD}.containers[0].env[0].value")
    assert str(shown.value).startswith("redacted, sha256")
    assert shown.source.mutation == "db"


def test_explaining_changes_nothing(deployment_base: Manifest) -> None:
    resource = (
        deployment.Builder(deployment_base).with_mutation(change("large", lambda m: m.ensure_replicas(5))).build()
    )
    before = resource.render()
    assert resource.explain() == resource.explain()
    assert resource.render() == before


def test_every_resource_of_the_box_explains_itself(hpa_base: Manifest) -> None:
    resource: Resource = hpa.Builder(hpa_base).build()
    assert isinstance(resource, Explainable)
