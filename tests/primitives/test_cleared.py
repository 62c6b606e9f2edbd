"""Fields that edits set to None: which ones a rendering reports as cleared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client import V1Container, V1PodTemplateSpec, V2HorizontalPodAutoscalerBehavior, V2HPAScalingRules

from ocf.component.model.registration import Registration
from ocf.component.model.resource_options import EffectiveOptions
from ocf.editors import all_containers, container_named
from ocf.objects import Manifest
from ocf.primitives import deployment, hpa

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.editors import ContainerEditor, HPASpecEditor

RULES = V2HPAScalingRules(select_policy="Disabled")
BASE: Manifest = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"ours": "1"}},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 9,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}],
        "behavior": {"scaleUp": {"selectPolicy": "Min"}},
    },
}
BEHAVIOR = ("f:spec", "f:behavior")
OTHER_RULES = [
    (*BEHAVIOR, "f:scaleDown", f"f:{name}") for name in ("policies", "stabilizationWindowSeconds", "tolerance")
]


def edited(*edits: Callable[[HPASpecEditor], None]) -> hpa.Resource:
    def mutate(m: hpa.Mutator) -> None:
        for edit in edits:
            m.edit_hpa_spec(edit)

    return hpa.Builder(BASE).with_mutation(hpa.Mutation("edited", mutate)).build()


def raw_behavior(spec: HPASpecEditor) -> None:
    spec.raw.behavior = None


@pytest.mark.parametrize(
    ("edits", "cleared"),
    [
        pytest.param([], [], id="no edit"),
        pytest.param([lambda spec: spec.set_max_replicas(3)], [], id="another value"),
        pytest.param([lambda spec: spec.set_behavior(None)], [BEHAVIOR], id="a method with None"),
        pytest.param([raw_behavior], [BEHAVIOR], id="None in the raw spec"),
        pytest.param([lambda spec: spec.set_min_replicas(None)], [("f:spec", "f:minReplicas")], id="a number"),
        pytest.param([lambda spec: spec.set_scale_down(None)], [(*BEHAVIOR, "f:scaleDown")], id="one direction"),
        pytest.param([lambda spec: spec.set_scale_up(None)], [(*BEHAVIOR, "f:scaleUp")], id="the only direction"),
        pytest.param(
            [lambda spec: spec.set_behavior(None), lambda spec: spec.set_scale_down(RULES)],
            [*OTHER_RULES, (*BEHAVIOR, "f:scaleUp")],
            id="set again in part",
        ),
        pytest.param([lambda spec: spec.set_scale_down(RULES)], OTHER_RULES, id="what rules leave out"),
        pytest.param(
            [lambda spec: spec.set_behavior(V2HorizontalPodAutoscalerBehavior(scale_down=RULES))],
            [*OTHER_RULES, (*BEHAVIOR, "f:scaleUp")],
            id="what a behavior leaves out",
        ),
        pytest.param(
            [lambda spec: spec.set_behavior(V2HorizontalPodAutoscalerBehavior())], [], id="an empty behavior, a value"
        ),
        pytest.param(
            [lambda spec: spec.set_min_replicas(None), lambda spec: spec.set_min_replicas(3)], [], id="set again"
        ),
        pytest.param(
            [lambda spec: spec.remove_metric("Resource", "cpu")], [("f:spec", "f:metrics")], id="the last metric"
        ),
        pytest.param([lambda spec: spec.remove_metric("Pods", "rps")], [], id="no metric"),
    ],
)
def test_of_an_edited_part_each_field_that_is_set_to_none(edits: list[Any], cleared: list[tuple[str, ...]]) -> None:
    rendering = edited(*edits).rendering()
    assert list(rendering.cleared) == cleared
    assert rendering.manifest == edited(*edits).render()


def test_an_ignored_field_is_not_cleared() -> None:
    resource = edited(lambda spec: spec.set_scale_up(None))
    assert resource.rendering(ignore_fields=[("spec", "behavior")]).cleared == ()
    assert resource.rendering(ignore_fields=[("spec", "behaviors")]).cleared == ((*BEHAVIOR, "f:scaleUp"),)


def test_a_label_of_ours_clears_none_of_others() -> None:
    def mutate(m: hpa.Mutator) -> None:
        m.edit_object_metadata(lambda meta: meta.remove_label("ours"))

    resource = hpa.Builder(BASE).with_mutation(hpa.Mutation("bare", mutate)).build()
    assert resource.rendering().cleared == ()


WEB: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}


def test_of_a_container_each_field_that_is_set_to_none() -> None:
    """Another container, and one that the same mutation adds, have their own fields."""

    def mutate(m: deployment.Mutator) -> None:
        m.ensure_container(V1Container(name="side", image="side:1", command=None))

        @m.edit_containers(all_containers)
        def _(container: ContainerEditor) -> None:
            container.set_readiness_probe(None)
            container.remove_env_var("ABSENT")

        @m.edit_containers(container_named("web"))
        def _(container: ContainerEditor) -> None:
            container.set_resources(None)

    resource = deployment.Builder(WEB).with_mutation(deployment.Mutation("bare", mutate)).build()
    web = ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"web"}')
    assert resource.rendering().cleared == ((*web, "f:readinessProbe"), (*web, "f:resources"))


def test_a_model_that_was_built_elsewhere_clears_nothing_below_it() -> None:
    """`from_dict` of the client sets every field, those that are not given to None."""

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_deployment_spec
        def _(spec: Any) -> None:
            spec.raw.template = V1PodTemplateSpec.from_dict(WEB["spec"]["template"])

    resource = deployment.Builder(WEB).with_mutation(deployment.Mutation("built", mutate)).build()
    assert resource.rendering().cleared == ()


def test_what_only_the_suspension_sets_to_none_is_not_cleared() -> None:
    """It would not come back on resume."""

    def suspend(m: deployment.Mutator) -> None:
        m.edit_deployment_spec(lambda spec: spec.set_paused(None))

    resource = deployment.Builder(WEB).with_custom_suspend_mutation(suspend).build()
    assert resource.rendering(suspended=True).cleared == ()


class Labelled(hpa.Resource):
    """A class of the user's own that changes what a primitive renders."""

    def render(self, **options: Any) -> Manifest:
        rendered = super().render(**options)
        return {**rendered, "metadata": {**rendered["metadata"], "labels": {"by": "me"}}}


def test_an_overridden_render_is_used() -> None:
    original = edited(lambda spec: spec.set_behavior(None))
    resource = Labelled(original._definition)
    rendering = Registration.of(resource, EffectiveOptions()).rendering()
    assert (rendering.manifest["metadata"]["labels"], rendering.cleared) == ({"by": "me"}, ())
