"""Custom resources with a model of the user: a typed view of a manifest, and a status by conditions."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from kubernetes.client import V1ObjectMeta
from pydantic import BaseModel, ConfigDict, Field

from ocf.concepts import (
    AliveStatus,
    ApplyOperation,
    CompletionStatus,
    Data,
    GraceStatus,
    OperationalStatus,
    StatusReport,
)
from ocf.editors import ObjectMetaEditor
from ocf.errors import BuildError, MutationError
from ocf.feature import BooleanGate
from ocf.objects import Manifest
from ocf.primitives import CustomMutator, custom_kind


class Item(BaseModel):
    name: str
    weight: int | None = None


class Spec(BaseModel):
    replicas: int = Field(default=1, ge=0)
    max_size: str | None = Field(default=None, alias="maxSize")
    items: list[Item] = []


class Cache(BaseModel):
    """Without metadata and status, as a model that the definition is derived from may be."""

    spec: Spec


class FrozenSpec(BaseModel):
    model_config = ConfigDict(frozen=True)

    replicas: int = 1


class FrozenCache(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: FrozenSpec = FrozenSpec()


class Whole(BaseModel):
    """With everything that an object has."""

    metadata: V1ObjectMeta
    spec: Spec = Spec()


CACHES = custom_kind(Cache, "example.com/v1")
BASE: Manifest = {
    "apiVersion": "example.com/v1",
    "kind": "Cache",
    "metadata": {"name": "web", "namespace": "shop", "finalizers": ["example.com/x"]},
    "spec": {"items": [{"name": "a", "unknown": 1}], "other": {"kept": True}},
}


def edited(mutate: Any, base: Any = BASE) -> Manifest:
    return CACHES.static(base).with_mutation(CACHES.mutation("m", mutate)).build().render()


def on_object(edit: Any) -> Any:
    return lambda m: m.edit_object(edit)


class TestEdits:
    def test_only_the_changed_fields_are_written_and_unknown_ones_stay(self) -> None:
        def edit(cache: Cache) -> None:
            cache.spec.max_size = "1Gi"
            cache.spec.items[0].weight = 5

        rendered = edited(on_object(edit))
        items = [{"name": "a", "unknown": 1, "weight": 5}]
        assert rendered == {**BASE, "spec": {"items": items, "other": {"kept": True}, "maxSize": "1Gi"}}

    def test_an_edit_that_changes_nothing_sends_no_default(self) -> None:
        assert edited(on_object(lambda _: None)) == BASE

    def test_a_field_set_to_none_is_removed(self) -> None:
        def edit(cache: Cache) -> None:
            cache.spec.max_size = None

        assert edited(on_object(edit), {**BASE, "spec": {"maxSize": "1Gi"}})["spec"] == {}

    def test_a_list_of_another_length_is_written_as_a_whole(self) -> None:
        rendered = edited(on_object(lambda cache: cache.spec.items.append(Item(name="b"))))
        assert rendered["spec"]["items"] == [{"name": "a"}, {"name": "b"}]

    def test_an_edit_sees_the_result_of_the_one_before_it(self) -> None:
        def mutate(m: CustomMutator[Cache]) -> None:
            @m.edit_object
            def _(cache: Cache) -> None:
                cache.spec.replicas = 3

            @m.edit_object
            def _(cache: Cache) -> None:
                cache.spec.max_size = f"{cache.spec.replicas}Gi"

        assert edited(mutate)["spec"]["maxSize"] == "3Gi"

    def test_an_edit_of_a_frozen_model_returns_a_changed_copy(self) -> None:
        def edit(cache: FrozenCache) -> FrozenCache:
            return cache.model_copy(update={"spec": cache.spec.model_copy(update={"replicas": 4})})

        kind = custom_kind(FrozenCache, "example.com/v1", kind="Cache")
        mutation = kind.mutation("m", on_object(edit), feature=BooleanGate(True))
        base = {**BASE, "spec": {}}
        assert kind.static(base).with_mutation(mutation).build().render() == {**base, "spec": {"replicas": 4}}

    def test_metadata_is_edited_first_whether_the_model_has_it_or_not(self) -> None:
        ran: list[str] = []

        def mutate(m: CustomMutator[Any]) -> None:
            m.edit_object(lambda _: ran.append("object"))

            @m.edit_object_metadata
            def _(meta: ObjectMetaEditor) -> None:
                ran.append("metadata")
                meta.ensure_label("app", "web")

        models: list[type[BaseModel]] = [Cache, Whole]
        for model in models:
            kind = custom_kind(model, "example.com/v1", kind="Cache")
            rendered = kind.static(BASE).with_mutation(kind.mutation("m", mutate)).build().render()
            assert rendered == {**BASE, "metadata": {**BASE["metadata"], "labels": {"app": "web"}}}
        assert ran == ["metadata", "object"] * 2

    def test_a_wrong_value_names_mutation_category_and_field(self) -> None:
        def edit(cache: Cache) -> None:
            cache.spec.replicas = "many"  # type: ignore[assignment]  # the mistake

        with pytest.raises(MutationError, match=r'mutation "m", edit_object: .*spec\.replicas'):
            edited(on_object(edit))

    def test_an_asynchronous_edit_is_rejected(self) -> None:
        async def edit(_: Cache) -> None: ...

        with pytest.raises(MutationError, match="is asynchronous"):
            edited(on_object(edit))


class TestBase:
    def test_api_version_and_kind_are_added_and_checked(self) -> None:
        bare = {name: BASE[name] for name in ("metadata", "spec")}
        resource = CACHES.static(bare).build()
        assert resource.render() == BASE
        assert resource.identity == "example.com/v1/Cache/shop/web"
        with pytest.raises(BuildError, match=r'apiVersion: must be "example\.com/v1", got \'example\.com/v2\''):
            CACHES.static({**BASE, "apiVersion": "example.com/v2"}).build()

    def test_a_model_is_sent_with_its_defaults(self) -> None:
        base = Whole(metadata=V1ObjectMeta(name="web", namespace="shop"))
        rendered = custom_kind(Whole, "example.com/v1").static(base).build().render()
        assert rendered["spec"] == {"replicas": 1, "items": []}

    @pytest.mark.parametrize(
        ("base", "problem"),
        [
            pytest.param({**BASE, "spec": {"replicas": -1}}, r"spec\.replicas: .*greater than or equal", id="bound"),
            pytest.param({**BASE, "spec": {"replicas": "x"}}, r"spec\.replicas: .*integer", id="type"),
            pytest.param({"metadata": {"name": "a", "namespace": "b"}}, "spec: ", id="missing"),
            pytest.param({**BASE, "metadata": {"namespace": "b"}}, "object name cannot be empty", id="no name"),
            pytest.param(42, "must be a Cache, a manifest or a YAML text", id="not an object"),
            pytest.param("a: [", "line", id="not YAML"),
        ],
    )
    def test_a_wrong_base_is_an_error_of_the_build(self, base: Any, problem: str) -> None:
        with pytest.raises(BuildError, match=problem):
            CACHES.static(base).build()

    def test_a_model_that_forbids_unknown_fields_finds_typos(self) -> None:
        kind = custom_kind(FrozenCache, "example.com/v1", kind="Cache")
        with pytest.raises(BuildError, match="specs"):
            kind.static({**BASE, "spec": {}, "specs": {}}).build()

    def test_a_cluster_scoped_kind_has_no_namespace(self) -> None:
        kind = custom_kind(Cache, "example.com/v1", cluster_scoped=True)
        assert kind.static({**BASE, "metadata": {"name": "web"}}).build().identity == "example.com/v1/Cache/web"
        with pytest.raises(BuildError, match="cluster-scoped object must not have a namespace"):
            kind.static(BASE).build()

    def test_the_baseline_and_the_preview_are_models_and_copies(self) -> None:
        resource = CACHES.static(BASE).build()
        resource.baseline().spec.items.clear()
        resource.preview().spec.items.clear()
        assert resource.render() == BASE
        assert resource.preview(ignore_fields=[("spec", "items")]).spec.items == []


def live(*conditions: Manifest, **status: Any) -> Manifest:
    return {
        **BASE,
        "metadata": {**BASE["metadata"], "generation": 2},
        "status": {"conditions": list(conditions), **status},
    }


def condition(kind: str, status: str, message: str = "", generation: int | None = None) -> Manifest:
    observed = {} if generation is None else {"observedGeneration": generation}
    return {"type": kind, "status": status, "message": message, **observed}


WAITING = "Waiting for condition Ready"
STALE = "Waiting for the controller to observe the latest spec"
STATES = [
    pytest.param(BASE, "OperationPending", WAITING, "Degraded", id="no status"),
    pytest.param(live(), "OperationPending", WAITING, "Degraded", id="no condition"),
    pytest.param(live(condition("Other", "True")), "OperationPending", WAITING, "Degraded", id="another condition"),
    pytest.param(live(condition("Ready", "True", "fine")), "Operational", "fine", "Healthy", id="ready"),
    pytest.param(live(condition("Ready", "True")), "Operational", "Ready is True", "Healthy", id="no message"),
    pytest.param(live(condition("Ready", "False", "soon")), "OperationPending", "soon", "Degraded", id="not ready"),
    pytest.param(live(condition("Ready", "Unknown")), "OperationPending", "Ready is Unknown", "Degraded", id="unknown"),
    pytest.param(live(condition("Ready", "True", "", 1)), "OperationPending", STALE, "Degraded", id="older generation"),
    pytest.param(live(condition("Ready", "True", "", 2)), "Operational", "Ready is True", "Healthy", id="generation"),
    pytest.param(
        live(condition("Ready", "True"), observedGeneration=1), "OperationPending", STALE, "Degraded", id="older status"
    ),
    pytest.param(
        live(condition("Ready", "True"), condition("Stalled", "True", "no quota")),
        "OperationFailing",
        "no quota",
        "Down",
        id="failing, although ready",
    ),
    pytest.param(
        live(condition("Ready", "True", "fine"), condition("Stalled", "False")),
        "Operational",
        "fine",
        "Healthy",
        id="not failing",
    ),
    pytest.param(
        live(condition("Ready", "False", "soon"), condition("Stalled", "True", "no quota", 1)),
        "OperationPending",
        "soon",
        "Degraded",
        id="failed for an older generation",
    ),
]


@pytest.mark.parametrize("model", [Cache, Whole])
@pytest.mark.parametrize(("seen", "status", "reason", "grace"), STATES)
def test_the_status_is_that_of_the_conditions(
    model: type[BaseModel], seen: Manifest, status: str, reason: str, grace: str
) -> None:
    """Whether the model declares the status, the conditions and the metadata or not."""
    resource = custom_kind(model, "example.com/v1", kind="Cache", failing="Stalled").integration(BASE).build()
    for operation in ApplyOperation:
        assert resource.operational_status(operation, seen) == StatusReport(OperationalStatus(status), reason)
    assert resource.grace_status(seen) == StatusReport(GraceStatus(grace), reason)


def test_the_type_of_the_condition_is_chosen() -> None:
    resource = custom_kind(Cache, "example.com/v1", ready="Available").integration(BASE).build()
    assert (
        resource.operational_status(ApplyOperation.NONE, live(condition("Available", "True"))).status == "Operational"
    )


def test_handlers_and_extractions_get_the_model() -> None:
    cell = Data[int]("replicas")
    resource = (
        CACHES.workload(BASE)
        .with_custom_converge_status(lambda _, cache: StatusReport(AliveStatus.HEALTHY, str(cache.spec.replicas)))
        .extract_into(cell, lambda cache: cache.spec.replicas)
        .build()
    )
    seen = {**BASE, "spec": {"replicas": 7, "new": 1}}
    assert resource.alive_status(ApplyOperation.NONE, seen).reason == "7"
    with cell.seeded(0):
        resource.extract_data(seen)
        assert cell.require() == 7


def test_workloads_and_tasks_need_a_handler() -> None:
    for builder in (CACHES.workload(BASE), CACHES.task(BASE)):
        with pytest.raises(BuildError, match="converging status handler is required"):
            builder.build()
    task = CACHES.task(BASE).with_custom_converge_status(lambda *_: StatusReport(CompletionStatus.COMPLETED)).build()
    assert task.completion_status(ApplyOperation.NONE, BASE).status is CompletionStatus.COMPLETED


class Phase(StrEnum):
    OPEN = "Open"


def test_values_that_only_json_makes_plain_are_rendered_as_they_are_stored() -> None:
    base = {**BASE, "spec": {"phase": Phase.OPEN, "sizes": (1, 2)}}
    rendered = CACHES.static(base).build().render()
    assert rendered["spec"] == {"phase": "Open", "sizes": [1, 2]}
    assert (type(rendered["spec"]["phase"]), type(base["spec"]["sizes"])) == (str, tuple)


def test_a_value_that_json_does_not_have_is_an_error_of_the_build() -> None:
    with pytest.raises(BuildError, match=r"spec\.other\.since: a datetime is not a JSON value; write a text"):
        CACHES.static({**BASE, "spec": {"other": {"since": datetime(2026, 1, 1, tzinfo=UTC)}}}).build()
