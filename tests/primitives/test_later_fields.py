"""Fields of a later release than the models: passed on where a user wrote them, an error where the author did.

Elsewhere an operator whose types are older than its API server loses what a user wrote, or stops:
https://github.com/kubernetes-sigs/kueue/issues/2948 and https://github.com/fission/fission/issues/676 (fields of pods
are dropped), https://github.com/openshift/origin/issues/5505 (any write of an old client drops them),
https://github.com/kubernetes/kubernetes/pull/90655 (an old client drops a field that is required),
https://github.com/datastax/cass-operator/issues/274 (a part of the spec loses what its types do not name).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, TypeAlias

import pytest
from kubernetes.client import (
    V1Container,
    V1PersistentVolumeClaim,
    V1PodTemplateSpec,
    V1ResourceRequirements,
    V1Volume,
)
from pydantic import BaseModel

from ocf.concepts.resource import ObjectDefaults
from ocf.errors import BuildError, MutationError
from ocf.objects import Manifest, ObjectKey, copy_json, read_live, write_model
from ocf.objects.model_fields import is_client_model, place_of
from ocf.objects.paths import FieldPath, format_path, get_field
from ocf.primitives import CustomMutator, Edits, custom_kind, deployment, statefulset, unstructured
from ocf.runtime.operator import OwnerType
from tests.primitives.test_in_sync import ROWS, TEMPLATE, base

LATER: Final[Manifest] = {"mode": "fast", "steps": [{"after": 1}, []], "none": {}}
TYPED: Final = [row for row in ROWS if row.id != "unstructured"]

Make: TypeAlias = Callable[[], Any]
each_kind: Final = pytest.mark.parametrize("make", TYPED)


def builder(make: Make, source: object) -> Any:
    """Return the builder of the kind of a row."""
    module = str(next(row.id for row in TYPED if row.values == (make,))).partition(",")[0]
    return import_module(f"ocf.primitives.{module}").Builder(source)


def objects(value: Any, model: type[BaseModel], path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the path of each object in a manifest that has a model of the client."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from objects(item, model, (*path, position))
    elif isinstance(value, dict):
        if is_client_model(place_of(model, path).annotation):
            yield path
        for name, item in value.items():
            yield from objects(item, model, (*path, name))


def with_later(manifest: Manifest, *paths: FieldPath) -> Manifest:
    copy: Manifest = copy_json(manifest)
    for path in paths:
        get_field(copy, path)["laterField"] = copy_json(LATER)
    return copy


def passed_on(make: Make) -> tuple[Manifest, BaseModel]:
    """Return the object of a row with a field of a later release in each of its objects, and the same as a model."""
    model = type(make().preview())
    rendered = make().render()
    paths = list(objects(rendered, model))
    later = with_later(rendered, *paths)
    assert str(later).count("laterField") == len(paths)
    return later, read_live(later, model)


def assign_all(model: BaseModel) -> None:
    """Assign each field to itself, in the model and in all below it, as an edit of one of them does."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, BaseModel):
                assign_all(item)
        if value is not None:
            setattr(model, name, value)


@pytest.mark.promise("later-fields", runs="every kind in the box, a field in each object of it")
@each_kind
def test_what_a_model_was_read_with_is_rendered(make: Make) -> None:
    later, model = passed_on(make)
    built = builder(make, model).build()
    assert built.render() == later
    assert write_model(built.preview()) == later
    assert write_model(built.baseline()) == later
    assert built.explain().field("metadata.laterField.mode").value == "fast"


@pytest.mark.promise("later-fields", runs="an edit of each part of every kind")
@each_kind
def test_edits_keep_them(make: Make) -> None:
    later, model = passed_on(make)
    built = builder(make, model)

    def mutate(m: Any) -> None:
        for category in type(m).categories:
            if isinstance(category, Edits):
                getattr(m, category.name)(lambda editor: assign_all(editor.raw))

    mutation = import_module(type(built).__module__).Mutation
    built.with_mutation(mutation("all", mutate)).with_mutation(mutation("again", mutate))
    assert built.build().render() == later
    assert built.build().explain().field("metadata.laterField.mode").value == "fast"


@each_kind
def test_a_suspension_keeps_them(make: Make) -> None:
    later, model = passed_on(make)
    suspended = builder(make, model).build().render(suspended=True)
    kept = [path for path in objects(later, type(model)) if get_field(suspended, path) is not None]
    assert kept
    assert {str(get_field(suspended, (*path, "laterField"))) for path in kept} == {str(LATER)}


@pytest.mark.promise("later-fields", runs="a misspelt field in each object of every kind")
@each_kind
def test_in_a_manifest_they_are_an_error_that_names_the_field(make: Make) -> None:
    """Objects of kinds of other projects may have any field: their definitions change with each release."""
    rendered, model = make().render(), type(make().preview())
    for path in objects(rendered, model):
        with pytest.raises(BuildError) as error:
            builder(make, with_later(rendered, path)).build()
        assert f"{format_path((*path, 'laterField'))}: unknown field" in str(error.value)


LATER_TEMPLATE: Final = with_later(
    TEMPLATE, (), ("metadata",), ("spec",), ("spec", "containers", 0), ("spec", "volumes", 0)
)


class Spec(BaseModel):
    template: V1PodTemplateSpec
    resources: V1ResourceRequirements | None = None
    claims: list[V1PersistentVolumeClaim] = []
    sidecars: dict[str, V1Container] = {}


class Shop(BaseModel):
    spec: Spec


SHOPS: Final = OwnerType("later.example.com/v1", "Shop", Shop)


def shop(**spec: Any) -> Manifest:
    metadata = {"name": "corner", "namespace": "town"}
    return {"apiVersion": "later.example.com/v1", "kind": "Shop", "metadata": metadata, "spec": spec}


FULL: Final = shop(
    template=LATER_TEMPLATE,
    resources={"limits": {"cpu": "1"}, "laterField": LATER},
    claims=[{"metadata": {"name": "a"}, "spec": {"laterField": LATER}}, {"laterField": LATER}],
    sidecars={"a": {"name": "a", "laterField": LATER}},
)


@pytest.mark.promise("later-fields", runs="templates, lists and maps of an owner")
def test_the_parts_of_an_owner_have_them() -> None:
    before = copy_json(FULL)
    owner = SHOPS.read(FULL)
    assert write_model(owner) == {"spec": FULL["spec"]}
    assert before == FULL


def test_a_part_that_is_read_again_has_them() -> None:
    assert write_model(read_live(LATER_TEMPLATE, V1PodTemplateSpec)) == LATER_TEMPLATE


def test_null_in_them_is_no_value() -> None:
    read = read_live({"name": "a", "later": None, "other": {"a": None, "b": [None]}}, V1Container)
    assert write_model(read) == {"name": "a", "other": {"b": [None]}}


def workload(template: object, **spec: Any) -> Manifest:
    return base(
        "apps/v1", "Deployment", spec={"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    )


def test_a_model_may_be_a_part_of_a_manifest() -> None:
    built = deployment.Builder(workload(SHOPS.read(FULL).spec.template)).build()
    assert built.render()["spec"]["template"] == LATER_TEMPLATE


def test_what_the_author_wrote_around_the_part_is_checked() -> None:
    template = SHOPS.read(FULL).spec.template
    with pytest.raises(BuildError, match=r'spec\.replcas: unknown field, did you mean "replicas"\?'):
        deployment.Builder(workload(template, replcas=1)).build()


def test_claims_of_a_user_are_a_list_of_a_manifest() -> None:
    owner = SHOPS.read(FULL).spec
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": owner.template}
    manifest = base("apps/v1", "StatefulSet", spec={**spec, "volumeClaimTemplates": owner.claims})
    assert statefulset.Builder(manifest).build().render()["spec"]["volumeClaimTemplates"] == FULL["spec"]["claims"]


def test_the_selector_of_a_component_is_added_to_the_part() -> None:
    template = SHOPS.read(FULL).spec.template
    manifest = {"metadata": {"name": "web"}, "spec": {"template": template}}
    defaults = ObjectDefaults("town", ObjectKey("a/v1", "Shop", "corner", "town"), {"role": "web"})
    built = deployment.Builder(manifest).with_defaults(defaults).build()
    spec = built.render()["spec"]
    labels = {**TEMPLATE["metadata"]["labels"], "role": "web"}
    assert spec["template"] == {**LATER_TEMPLATE, "metadata": {**LATER_TEMPLATE["metadata"], "labels": labels}}
    assert spec["selector"] == {"matchLabels": {"role": "web"}}
    added = built.explain().field("spec.template.metadata.labels.role")
    assert str(added.source) == str(built.explain().field("spec.selector.matchLabels.role").source) != "base"
    assert write_model(template) == LATER_TEMPLATE, "the owner is not changed"


def test_editors_keep_what_they_are_given() -> None:
    sidecar = read_live({"name": "sidecar", "image": "b", "laterField": LATER}, V1Container)
    volume = read_live({"name": "more", "laterField": LATER}, V1Volume)

    def mutate(m: deployment.Mutator) -> None:
        m.edit_pod_spec(lambda spec: spec.ensure_volume(volume))
        m.ensure_container(sidecar)

    base = workload(SHOPS.read(FULL).spec.template)
    resource = deployment.Builder(base).with_mutation(deployment.Mutation("sidecar", mutate)).build()
    spec, before = resource.render()["spec"]["template"]["spec"], LATER_TEMPLATE["spec"]
    assert spec["containers"] == [*before["containers"], write_model(sidecar)]
    assert spec["volumes"] == [*before["volumes"], write_model(volume)]


def test_an_edit_that_sets_one_is_an_error() -> None:
    """Also one that a user has set: what it means is not known here."""

    def mutate(m: deployment.Mutator) -> None:
        m.edit_pod_spec(lambda spec: setattr(spec.raw, "laterField", 1))

    base = workload(SHOPS.read(FULL).spec.template)
    resource = deployment.Builder(base).with_mutation(deployment.Mutation("later", mutate)).build()
    with pytest.raises(MutationError, match=r"laterField: unknown field"):
        resource.render()


class Rollout(BaseModel):
    spec: Spec


ROLLOUTS: Final = custom_kind(Rollout, "later.example.com/v1")


@pytest.mark.parametrize("as_model", [False, True])
def test_a_custom_kind_has_a_template_as_well(*, as_model: bool) -> None:
    template = SHOPS.read(FULL).spec.template
    metadata = {"name": "web", "namespace": "town"}

    def mutate(m: CustomMutator[Rollout]) -> None:
        @m.edit_object
        def _(rollout: Rollout) -> None:
            assert rollout.spec.template.spec is not None
            rollout.spec.template.spec.node_name = "a"

    spec: Any = Spec(template=template) if as_model else {"template": template}
    resource = ROLLOUTS.static({"metadata": metadata, "spec": spec}).with_mutation(ROLLOUTS.mutation("node", mutate))
    rendered = resource.build().render()["spec"]["template"]
    assert rendered == {**LATER_TEMPLATE, "spec": {**LATER_TEMPLATE["spec"], "nodeName": "a"}}
    with pytest.raises(BuildError, match=r"spec\.template\.spec\.laterField: unknown field"):
        ROLLOUTS.static({"metadata": metadata, "spec": {"template": LATER_TEMPLATE}}).build()


def test_an_object_of_any_kind_has_models_in_its_manifest() -> None:
    spec = {"template": SHOPS.read(FULL).spec.template, "claims": SHOPS.read(FULL).spec.claims}
    resource = unstructured.StaticBuilder(base("later.example.com/v1", "Rollout", spec=spec)).build()
    assert resource.render()["spec"] == {"template": LATER_TEMPLATE, "claims": FULL["spec"]["claims"]}
