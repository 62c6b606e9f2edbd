# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Mistakes that type checkers reject, and that are errors at run time as well.

Every line with a mistake has a comment that suppresses its error. `make check` fails if a checker accepts it: mypy
in strict mode and pyright with the setting above report comments that suppress nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from ocf import component
from ocf.autoscaling import metrics
from ocf.editors import ContainerEditor, HPASpecEditor, all_containers
from ocf.errors import BuildError, ConfigError, MutationError
from ocf.primitives import configmap, deployment, hpa
from ocf.schema.metric_sources import METRIC_SOURCES, MetricType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ocf.objects import Manifest

HPA: Manifest = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 5},
}
DEPLOYMENT: Manifest = {
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
CONFIG: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"}}
INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}


async def edit_spec(spec: HPASpecEditor) -> None:
    spec.set_max_replicas(9)


async def edit_container(container: ContainerEditor) -> None:
    container.ensure_arg("--verbose")


async def grow(m: hpa.Mutator) -> None:
    m.edit_hpa_spec(lambda spec: spec.set_max_replicas(9))


def grow_in_steps(m: hpa.Mutator) -> Iterator[None]:
    m.edit_hpa_spec(lambda spec: spec.set_max_replicas(9))
    yield


async def shrink(m: deployment.Mutator) -> None:
    m.remove_container("web")


def an_async_edit() -> None:
    def mutate(m: hpa.Mutator) -> None:
        m.edit_hpa_spec(edit_spec)  # type: ignore[arg-type]  # rejected

    hpa.Builder(HPA).with_mutation(hpa.Mutation("m", mutate)).build().render()


def an_async_decorated_edit() -> None:
    def mutate(m: hpa.Mutator) -> None:
        @m.edit_hpa_spec  # type: ignore[arg-type]  # rejected
        async def _(spec: HPASpecEditor) -> None:
            spec.set_max_replicas(9)

    hpa.Builder(HPA).with_mutation(hpa.Mutation("m", mutate)).build().render()


def an_async_edit_of_containers() -> None:
    def mutate(m: deployment.Mutator) -> None:
        selected = m.edit_containers(all_containers)
        selected(edit_container)  # type: ignore[arg-type]  # rejected

    deployment.Builder(DEPLOYMENT).with_mutation(deployment.Mutation("m", mutate)).build().render()


def an_async_mutation() -> None:
    mutation = hpa.Mutation("m", grow)  # type: ignore[arg-type]  # rejected
    hpa.Builder(HPA).with_mutation(mutation).build().render()


def a_generator_as_mutation() -> None:
    mutation = hpa.Mutation("m", grow_in_steps)  # type: ignore[arg-type]  # rejected
    hpa.Builder(HPA).with_mutation(mutation).build().render()


def an_async_suspend_mutation() -> None:
    builder = deployment.Builder(DEPLOYMENT)
    builder.with_custom_suspend_mutation(shrink)  # type: ignore[arg-type]  # rejected
    builder.build().render(suspended=True)


def none_as_mutation() -> None:
    hpa.Builder(HPA).with_mutation(None).build()  # type: ignore[arg-type]  # rejected


def a_function_as_mutation() -> None:
    def mutate(m: hpa.Mutator) -> None:
        m.edit_hpa_spec(lambda spec: spec.set_max_replicas(9))

    hpa.Builder(HPA).with_mutation(mutate).build()  # type: ignore[arg-type]  # rejected


def a_text_as_ignored_fields() -> None:
    builder = component.Builder("web", condition_type="WebReady")
    settings = configmap.Builder(CONFIG).build()
    builder.with_resource(
        settings,
        ignore_fields="spec.replicas",  # type: ignore[arg-type]  # rejected
    ).build()


def two_targets_of_cpu() -> None:
    metrics.cpu(average_utilization=70, average_value="1")  # type: ignore[call-overload]  # rejected


def no_target_of_memory() -> None:
    metrics.memory()  # type: ignore[call-overload]  # rejected


def two_targets_of_a_container() -> None:
    metrics.container_resource("cpu", "web", average_utilization=70, average_value="1")  # type: ignore[call-overload]  # rejected


def two_targets_of_an_object() -> None:
    metrics.object(INGRESS, "hits", value=1, average_value=1)  # type: ignore[call-overload]  # rejected


def two_targets_of_an_external_metric() -> None:
    metrics.external("queue", value=1, average_value=1)  # type: ignore[call-overload]  # rejected


def an_unknown_type_of_metric() -> None:
    def remove(spec: HPASpecEditor) -> None:
        spec.remove_metric("resource", "cpu")  # type: ignore[arg-type]  # rejected

    mutation = hpa.Mutation("m", lambda m: m.edit_hpa_spec(remove))
    hpa.Builder(HPA).with_mutation(mutation).build().render()


@pytest.mark.parametrize(
    ("mistake", "error", "problem"),
    [
        pytest.param(an_async_edit, MutationError, "edit_spec is asynchronous", id="async edit"),
        pytest.param(an_async_decorated_edit, MutationError, "is asynchronous", id="async edit, decorated"),
        pytest.param(an_async_edit_of_containers, MutationError, "edit_container is", id="async edit of containers"),
        pytest.param(an_async_mutation, BuildError, "mutation m takes a plain function", id="async mutation"),
        pytest.param(a_generator_as_mutation, BuildError, "mutation m takes", id="generator as mutation"),
        pytest.param(an_async_suspend_mutation, BuildError, "suspend handler must be a", id="async suspend mutation"),
        pytest.param(none_as_mutation, BuildError, "None", id="None as mutation"),
        pytest.param(a_function_as_mutation, BuildError, "mutate", id="function as mutation"),
        pytest.param(a_text_as_ignored_fields, BuildError, "ignore_fields must be a list", id="text as ignored fields"),
        pytest.param(two_targets_of_cpu, ConfigError, "exactly one", id="two targets of cpu"),
        pytest.param(no_target_of_memory, ConfigError, "exactly one", id="no target of memory"),
        pytest.param(two_targets_of_a_container, ConfigError, "exactly one", id="two targets of a container"),
        pytest.param(two_targets_of_an_object, ConfigError, "exactly one", id="two targets of an object"),
        pytest.param(two_targets_of_an_external_metric, ConfigError, "exactly one", id="two targets of external"),
        pytest.param(an_unknown_type_of_metric, MutationError, 'did you mean "Resource"', id="unknown type of metric"),
    ],
)
def test_a_mistake_that_type_checkers_reject_is_an_error(
    mistake: Callable[[], None], error: type[ConfigError], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        mistake()


def test_the_types_of_metrics_are_those_of_the_table() -> None:
    assert get_args(MetricType) == tuple(METRIC_SOURCES)


def ignore(_editor: object) -> None:
    """Edit nothing."""


def test_plain_functions_of_any_result_are_accepted() -> None:
    """Type checkers accept what lambdas usually return; a checker that does not fails this file."""
    edits: tuple[hpa.Mutation, ...] = (
        hpa.Mutation("none", lambda _m: None),
        hpa.Mutation("edit", lambda m: m.edit_hpa_spec(lambda spec: spec.set_max_replicas(9))),
        hpa.Mutation("text", lambda m: m.edit_object_metadata(lambda meta: meta.raw.name)),
        hpa.Mutation("number", lambda m: m.edit_hpa_spec(lambda spec: spec.raw.max_replicas)),
        hpa.Mutation("model", lambda m: m.edit_hpa_spec(lambda spec: spec.raw.scale_target_ref)),
        hpa.Mutation("list", lambda m: m.edit_hpa_spec(lambda spec: spec.raw.metrics)),
        hpa.Mutation("two", lambda m: (m.edit_hpa_spec(ignore), m.edit_object_metadata(ignore))),
    )
    assert hpa.Builder(HPA).with_mutation(*edits).build().render()["spec"]["maxReplicas"] == 9
