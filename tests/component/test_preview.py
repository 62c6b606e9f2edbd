"""Rendering, preview and provenance of a component without a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import preview
from ocf.concepts import Data, GuardStatus, StatusReport
from ocf.errors import ConfigError, MutationError
from ocf.feature import BooleanGate, VersionGate
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment, hpa

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.component.conftest import StaticKind

WEB = "apps/v1/Deployment/shop/web"


class Plain:
    """A custom resource that can only be rendered."""

    key = ObjectKey("v1", "ConfigMap", "plain", "shop")
    identity = str(key)

    def __init__(self, rendered: Any = None) -> None:
        self.rendered = rendered

    def render(self, **_: Any) -> Any:
        if isinstance(self.rendered, Exception):
            raise self.rendered
        return self.rendered


def of(*resources: Any, **options: Any) -> component.Component:
    builder = component.Builder("web", condition_type="WebReady")
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder.build()


def mutation(name: str, value: str = "x", feature: Any = None) -> deployment.Mutation:
    def label(m: deployment.Mutator) -> None:
        m.edit_object_metadata(lambda meta: meta.ensure_label(name, value))

    return deployment.Mutation(name, label, feature=feature)


class TestRender:
    def test_renders_managed_resources_in_order_of_registration(
        self, web: deployment.Resource, web_hpa: hpa.Resource, config_map: Callable[..., StaticKind]
    ) -> None:
        builder = component.Builder("web", condition_type="WebReady")
        builder.with_resource(web_hpa).with_resource(web)
        builder.with_resource(config_map("read").build(), read_only=True)
        builder.with_resource(config_map("deleted").build(), delete_when=True)
        builder.with_resource(config_map("gone").build(), orphan_when=True)
        assert [manifest["kind"] for manifest in builder.build().render()] == [
            "HorizontalPodAutoscaler",
            "Deployment",
        ]

    def test_renders_only_the_desired_object(self, web_base: Manifest) -> None:
        """The running form, without owner reference and server-set fields, whatever its guard."""
        base = {
            **web_base,
            "metadata": {**web_base["metadata"], "uid": "1", "generation": 4},
            "status": {"replicas": 1},
        }
        blocked = StatusReport(GuardStatus.BLOCKED, "never")
        resource = deployment.Builder(base).with_mutation(mutation("a")).with_guard(lambda _base: blocked).build()
        builder = component.Builder("web", condition_type="WebReady").suspend().with_resource(resource)
        (manifest,) = builder.build().render()
        assert manifest["metadata"] == {"name": "web", "namespace": "shop", "labels": {"a": "x"}}
        assert "status" not in manifest
        assert "replicas" not in manifest["spec"]

    def test_leaves_out_the_field_of_an_autoscaler(self, fixed_web: deployment.Resource, web_hpa: hpa.Resource) -> None:
        (alone,) = of(fixed_web).render()
        (scaled, _) = of(fixed_web, web_hpa).render()
        assert (alone["spec"]["replicas"], "replicas" in scaled["spec"]) == (4, False)

    def test_changes_nothing(self, web_base: Manifest) -> None:
        subject = of(deployment.Builder(web_base).with_mutation(mutation("a")).build())
        first = subject.render()
        first[0]["spec"].clear()
        assert subject.render() != first
        assert subject.render() == subject.render()

    def test_data_is_seeded_by_the_caller(self, web_base: Manifest, config_map: Callable[..., StaticKind]) -> None:
        host = Data[str]("db-host")

        def note(m: deployment.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_annotation("host", host.require()))

        producer = config_map().extract_into(host, lambda _live: "extracted").build()
        reader = deployment.Builder(web_base).with_mutation(deployment.Mutation("note", note)).build()
        subject = of(producer, reader)
        with pytest.raises(ConfigError, match=f'preview resource "{WEB}": .*data "db-host": data not extracted'):
            subject.render()
        with host.seeded("seeded"):
            assert subject.render()[1]["metadata"]["annotations"] == {"host": "seeded"}

    def test_an_error_names_the_resource_once(self, web_base: Manifest, hpa_base: Manifest) -> None:
        """Also that of a scaler, whose target is determined first."""

        def crash(_mutator: Any) -> None:
            raise ValueError("boom")

        for made, identity in (
            (deployment.Builder(web_base).with_mutation(deployment.Mutation("m", crash)), WEB),
            (
                hpa.Builder(hpa_base).with_mutation(hpa.Mutation("m", crash)),
                "autoscaling/v2/HorizontalPodAutoscaler/shop/web",
            ),
        ):
            with pytest.raises(ConfigError) as caught:
                of(made.build()).render()
            problem = "failed to apply mutation intent for m: ValueError: boom"
            assert str(caught.value) == f'preview resource "{identity}": {problem}'
            assert isinstance(caught.value.__cause__, MutationError)

    @pytest.mark.parametrize(
        ("rendered", "problem"),
        [
            pytest.param(None, "returned None", id="nothing"),
            pytest.param("text", "returned str, expected a manifest", id="not a manifest"),
            pytest.param(LookupError("lost"), "lost", id="an error of the user's own"),
        ],
    )
    def test_an_error_names_a_custom_resource_too(self, rendered: Any, problem: str) -> None:
        with pytest.raises(ConfigError) as caught:
            of(Plain(rendered)).render()
        assert str(caught.value) == f'preview resource "{Plain.identity}": {problem}'


class TestPreview:
    def test_returns_the_models_of_the_resources(
        self, fixed_web: deployment.Resource, web_hpa: hpa.Resource, config_map: Callable[..., StaticKind]
    ) -> None:
        shown = of(fixed_web, web_hpa, config_map().build()).preview()
        assert [type(model).__name__ for model in shown] == [
            "V1Deployment",
            "V2HorizontalPodAutoscaler",
            "V1ConfigMap",
        ]

    def test_leaves_out_ignored_fields_as_rendering_does(
        self, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        (alone,) = of(fixed_web).preview()
        (scaled, _) = of(fixed_web, web_hpa).preview()
        assert (alone.spec.replicas, scaled.spec.replicas) == (4, None)

    def test_returns_the_manifest_of_a_resource_without_a_model(self) -> None:
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}}
        assert of(Plain(manifest)).preview() == [manifest]

    def test_an_error_names_the_resource(self, web_base: Manifest) -> None:
        def crash(_mutator: Any) -> None:
            raise ValueError("boom")

        failing = deployment.Builder(web_base).with_mutation(deployment.Mutation("m", crash)).build()
        with pytest.raises(ConfigError, match=f'^preview resource "{WEB}": failed to apply .* boom$'):
            of(failing).preview()


class TestMutations:
    @pytest.fixture
    def subject(self, web_base: Manifest, hpa_base: Manifest) -> component.Component:
        def nothing(_mutator: Any) -> None:
            """Only its name matters."""

        web = deployment.Builder(web_base).with_mutation(
            mutation("b"),
            mutation("a", feature=BooleanGate(False)),
            mutation("c", feature=VersionGate("2.1.0", ">= 2")),
        )
        scaler = hpa.Builder(hpa_base).with_mutation(hpa.Mutation("b", nothing), hpa.Mutation("d", nothing))
        return of(web.build(), scaler.build(), Plain())

    def test_are_listed_once_each_whether_or_not_their_gates_are_open(self, subject: component.Component) -> None:
        assert subject.registered_mutations == ("b", "a", "c", "d")

    def test_fire_if_their_gate_is_open(self, subject: component.Component) -> None:
        assert subject.firing_set() == ("b", "c", "d")

    @pytest.mark.parametrize("options", [{"read_only": True}, {"delete_when": True}, {"orphan_when": True}], ids=str)
    def test_count_only_where_the_resource_is_managed(self, web_base: Manifest, options: dict[str, Any]) -> None:
        subject = of(deployment.Builder(web_base).with_mutation(mutation("a")).build(), **options)
        assert (subject.registered_mutations, subject.firing_set()) == ((), ())

    def test_a_gate_that_fails_is_an_error(self, web_base: Manifest) -> None:
        broken = mutation("a", feature=VersionGate("latest", ">= 2"))
        subject = of(deployment.Builder(web_base).with_mutation(broken).build())
        with pytest.raises(ConfigError) as caught:
            subject.firing_set()
        assert str(caught.value).startswith(f'firing set for resource "{WEB}": evaluating gate for mutation "a": ')
        assert subject.registered_mutations == ("a",)


class TestResource:
    @pytest.mark.parametrize(
        "options", [{}, {"read_only": True}, {"delete_when": True}, {"orphan_when": True}], ids=str
    )
    def test_is_found_by_identity_whatever_its_lifecycle(
        self, web: deployment.Resource, options: dict[str, Any]
    ) -> None:
        assert of(web, **options).resource(WEB) is web

    def test_is_none_for_an_unknown_identity(self, web: deployment.Resource) -> None:
        assert of(web).resource("apps/v1/Deployment/shop/other") is None


class TestExplain:
    """Provenance of the fields that a component applies."""

    def test_explains_the_fields_of_the_rendered_objects(self, web: deployment.Resource, web_hpa: hpa.Resource) -> None:
        built = of(web, web_hpa)
        found = preview.explain(built.entries)
        assert [each.resource for each in found] == [web.identity, web_hpa.identity]
        assert [each.field("metadata.name").value for each in found] == ["web", "web"]

    def test_the_field_of_a_scaler_is_ignored(self, fixed_web: deployment.Resource, web_hpa: hpa.Resource) -> None:
        built = of(fixed_web, web_hpa)
        count = preview.explain(built.entries)[0].field("spec.replicas")
        assert [(str(each.source), each.value) for each in count.settings] == [("base", 4), ("ignored", None)]

    def test_server_set_fields_are_never_sent(self, web_base: Manifest) -> None:
        web_base["status"] = {"replicas": 1}
        web_base["metadata"]["generation"] = 3
        resource = deployment.Builder(web_base).build()
        [found] = preview.explain(of(resource).entries)
        assert {each.path for each in found.removed} == {"status.replicas", "metadata.generation"}
        assert {str(each.source) for each in found.removed} == {"never sent"}

    def test_a_resource_without_explain_is_the_source_of_all_fields(self) -> None:
        metadata = {"name": "plain", "namespace": "shop"}
        [found] = preview.explain(of(Plain({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).entries)
        assert {str(each.source) for each in found.fields} == {"resource"}

    def test_a_resource_that_cannot_be_rendered_is_named(self, web_base: Manifest) -> None:
        broken = deployment.Mutation("broken", None)
        resource = deployment.Builder(web_base).with_mutation(broken).build()
        with pytest.raises(
            ConfigError, match='preview resource "apps/v1/Deployment/shop/web": failed to apply mutation'
        ):
            preview.explain(of(resource).entries)
