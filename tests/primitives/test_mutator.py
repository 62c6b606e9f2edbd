"""Edits that would be lost: recorded too late, or never recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf.editors import ContainerEditor, ObjectMetaEditor, all_containers
from ocf.errors import ConfigError, MutationError
from ocf.primitives import deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.objects import Manifest

ENDED = "this mutation has ended, so the edit would be lost"


def label(meta: ObjectMetaEditor) -> None:
    meta.ensure_label("tier", "web")


def rendering(base: Manifest, mutate: Callable[[deployment.Mutator], None]) -> Callable[[], Manifest]:
    return deployment.Builder(base).with_mutation(deployment.Mutation("tiers", mutate)).build().render


def suspending(base: Manifest, mutate: Callable[[deployment.Mutator], None]) -> Callable[[], Manifest]:
    resource = deployment.Builder(base).with_custom_suspend_mutation(mutate).build()
    return lambda: resource.render(suspended=True)


RECORDERS = [
    pytest.param("edit_object_metadata", lambda m: m.edit_object_metadata(label), id="edits"),
    pytest.param("edit_object_metadata", lambda m: m.edit_object_metadata, id="a recorder that is only read"),
    pytest.param("edit_containers", lambda m: m.edit_containers(all_containers), id="a selector"),
    pytest.param("container_presence", lambda m: m.remove_container("sidecar"), id="presence of containers"),
    pytest.param("edit_containers", lambda m: m.ensure_container_arg("--verbose"), id="a method of the mutator"),
]


@pytest.mark.parametrize("make", [rendering, suspending])
@pytest.mark.parametrize(("category", "record"), RECORDERS)
def test_recording_from_inside_a_running_edit_is_an_error(
    deployment_base: Manifest,
    make: Callable[[Manifest, Callable[[deployment.Mutator], None]], Callable[[], Manifest]],
    category: str,
    record: Callable[[deployment.Mutator], object],
) -> None:
    def mutate(m: deployment.Mutator) -> None:
        @m.edit_pod_template_metadata
        def _(_template: ObjectMetaEditor) -> None:
            record(m)

    with pytest.raises(MutationError, match=f"edit_pod_template_metadata: {category}: {ENDED}") as caught:
        make(deployment_base, mutate)()
    assert caught.value.category == "edit_pod_template_metadata"


@pytest.mark.parametrize(("category", "record"), RECORDERS)
def test_a_mutator_that_is_used_after_its_mutation_ended_is_an_error(
    deployment_base: Manifest, category: str, record: Callable[[deployment.Mutator], object]
) -> None:
    stored: list[deployment.Mutator] = []
    rendering(deployment_base, stored.append)()
    with pytest.raises(ConfigError, match=f"^{category}: {ENDED}"):
        record(stored[0])


@pytest.mark.parametrize(
    ("category", "stored"),
    [
        pytest.param("edit_object_metadata", lambda m: m.edit_object_metadata, id="of a category"),
        pytest.param("edit_containers", lambda m: m.edit_containers(all_containers), id="of selected containers"),
    ],
)
def test_a_stored_recorder_ends_with_its_mutation(
    deployment_base: Manifest, category: str, stored: Callable[[deployment.Mutator], Any]
) -> None:
    recorders: list[Any] = []

    def mutate(m: deployment.Mutator) -> None:
        record = stored(m)
        record(lambda _editor: None)
        recorders.append(record)

    rendering(deployment_base, mutate)()
    with pytest.raises(ConfigError, match=f"^{category}: {ENDED}"):
        recorders[0](lambda _editor: None)


def forgot_the_at(m: deployment.Mutator) -> None:
    m.edit_object_metadata  # noqa: B018 (the mistake under test)

    def _(meta: ObjectMetaEditor) -> None:
        label(meta)


def forgot_one_of_two(m: deployment.Mutator) -> None:
    m.edit_object_metadata(label)
    m.edit_object_metadata  # noqa: B018 (the mistake under test)


def forgot_the_edit(m: deployment.Mutator) -> None:
    m.edit_containers(all_containers)


def forgot_the_selector(m: deployment.Mutator) -> None:
    m.edit_init_containers  # noqa: B018 (the mistake under test)


@pytest.mark.parametrize("make", [rendering, suspending])
@pytest.mark.parametrize(
    ("mutate", "problem"),
    [
        pytest.param(forgot_the_at, r"edit_object_metadata was read but not called, so an edit is lost: ", id="no @"),
        pytest.param(forgot_one_of_two, r"edit_object_metadata was read but not called", id="one of two calls"),
        pytest.param(forgot_the_edit, r"result of edit_containers\(selector\) was not called", id="no edit"),
        pytest.param(forgot_the_selector, r"edit_init_containers was read but not called", id="no selector"),
    ],
)
def test_a_recorder_that_is_never_called_is_an_error(
    deployment_base: Manifest,
    make: Callable[[Manifest, Callable[[deployment.Mutator], None]], Callable[[], Manifest]],
    mutate: Callable[[deployment.Mutator], None],
    problem: str,
) -> None:
    with pytest.raises(MutationError, match=problem):
        make(deployment_base, mutate)()


def test_every_lost_edit_is_named_once(deployment_base: Manifest) -> None:
    def mutate(m: deployment.Mutator) -> None:
        forgot_the_at(m)
        forgot_the_at(m)
        forgot_the_edit(m)

    with pytest.raises(MutationError) as caught:
        rendering(deployment_base, mutate)()
    assert str(caught.value).count("edit_object_metadata was read but not called") == 1
    assert str(caught.value).count("edit_containers(selector) was not called") == 1


def test_the_error_of_a_mutation_hides_no_lost_edit_of_its_own(deployment_base: Manifest) -> None:
    def mutate(m: deployment.Mutator) -> None:
        forgot_the_at(m)
        raise LookupError("no such tier")

    with pytest.raises(MutationError, match="LookupError: no such tier"):
        rendering(deployment_base, mutate)()


def test_a_recorder_may_be_stored_and_called_several_times(deployment_base: Manifest) -> None:
    def mutate(m: deployment.Mutator) -> None:
        record, selected = m.edit_object_metadata, m.edit_containers(all_containers)
        record(lambda meta: meta.ensure_label("a", "1"))
        record(lambda meta: meta.ensure_label("b", "1"))
        selected(lambda container: container.ensure_arg("--a"))
        selected(lambda container: container.ensure_arg("--b"))

    rendered = rendering(deployment_base, mutate)()
    assert rendered["metadata"]["labels"] == {"a": "1", "b": "1"}
    assert rendered["spec"]["template"]["spec"]["containers"][0]["args"] == ["--a", "--b"]


def test_the_class_of_a_mutator_can_be_asked_for_a_category(deployment_base: Manifest) -> None:
    def mutate(m: deployment.Mutator) -> None:
        assert hasattr(type(m), "edit_containers")
        assert not hasattr(type(m), "edit_hpa_spec")

    rendering(deployment_base, mutate)()


def test_a_mutator_without_a_renderer_checks_when_it_applies(deployment_base: Manifest) -> None:
    mutator = deployment.Mutator()
    forgot_the_edit(mutator)
    with pytest.raises(ConfigError, match="was not called"):
        mutator.apply(deployment.Builder(deployment_base).build().baseline())


def test_an_edit_may_use_the_mutator_of_nothing_else(deployment_base: Manifest) -> None:
    """A mutation whose edits record with the mutator of an earlier mutation of the same rendering."""
    earlier: list[deployment.Mutator] = []

    def late(m: deployment.Mutator) -> None:
        @m.edit_containers(all_containers)
        def _(_container: ContainerEditor) -> None:
            earlier[0].edit_object_metadata(label)

    mutations = deployment.Mutation("first", earlier.append), deployment.Mutation("second", late)
    resource = deployment.Builder(deployment_base).with_mutation(*mutations).build()
    with pytest.raises(MutationError, match=f'mutation "second", edit_containers: edit_object_metadata: {ENDED}'):
        resource.render()
