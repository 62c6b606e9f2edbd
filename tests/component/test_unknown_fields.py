"""Fields that a model of the owner does not name: each model keeps, ignores or rejects them as it is configured.

Elsewhere such fields are lost between the API server and the controller:
https://github.com/datastax/cass-operator/issues/274 and https://github.com/kubeflow/kubeflow/pull/5822 (a part of the
spec with free fields), https://github.com/operator-framework/java-operator-sdk/issues/458 (the definition prunes them).
"""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import pytest
from kubernetes.client import V1Condition, V1ResourceRequirements
from pydantic import BaseModel, ConfigDict, Field

from ocf import component
from ocf.cli.component_loader import components_of
from ocf.cluster import Cluster
from ocf.component import Component, ReconcileContext
from ocf.concepts.recorder import NullRecorder
from ocf.errors import ManifestError, NotFoundError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.primitives import configmap
from ocf.runtime.admission import FieldError, Operation, Step, Webhook, invalid, review
from ocf.runtime.crds import Conversion, CRDVersion, CustomResource, Preserve, VersionedResource, crd
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome
from ocf.runtime.operator.reconciler import reconcile_owner
from ocf.testing import VirtualClock
from tests.component.conftest import Server
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

FREE: Final[dict[str, Any]] = {"colour": "red", "deep": {"a": [1, {"b": None}], "n": 1.5}, "empty": {}}


class Free(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str = ""


class Room(BaseModel):
    """Without a configuration: unknown fields are ignored."""

    free: Free = Free()


class GallerySpec(Free):
    part: Free = Free()
    rooms: list[Room] = []
    plugins: list[Free] = []
    by_name: dict[str, Free] = Field(default={}, alias="byName")
    maybe: Free | None = None
    resources: V1ResourceRequirements | None = None


class Gallery(BaseModel):
    metadata: dict[str, Any] = {}
    spec: GallerySpec = GallerySpec()
    status: Annotated[dict[str, Any], Preserve()] = {}


class Painting(BaseModel):
    """The same kind in another version."""

    metadata: dict[str, Any] = {}
    spec: GallerySpec = GallerySpec()


GALLERIES: Final = crd("unknown.example.com", CRDVersion("v1", Gallery), kind="Gallery", plural="galleries")
SPEC: Final[dict[str, Any]] = {
    "name": "night",
    **FREE,
    "part": FREE,
    "rooms": [{"free": FREE}, {"free": {"name": "a", **FREE}}],
    "plugins": [FREE, {"name": "b"}],
    "byName": {"x": FREE},
    "maybe": FREE,
    "resources": {"limits": {"cpu": "1"}, "later": {"deep": [1]}},
}


def gallery(namespace: str = "town", **spec: Any) -> Manifest:
    metadata = {"name": "corner", "namespace": namespace}
    return {"apiVersion": "unknown.example.com/v1", "kind": "Gallery", "metadata": metadata, "spec": spec or SPEC}


def free_parts(owner: Gallery | Painting) -> list[dict[str, Any] | None]:
    """Return the unknown fields of each of the models."""
    spec = owner.spec
    assert spec.maybe is not None
    models = [spec, spec.part, *(one.free for one in spec.rooms), spec.plugins[0], spec.by_name["x"], spec.maybe]
    return [one.model_extra for one in models]


ALL_FREE: Final = [FREE] * 7


@pytest.mark.promise("free-fields", runs="components, report, on_delete and a reconcile of both servers, in 7 places")
@pytest.mark.asyncio(loop_scope="session")
async def test_the_functions_of_an_operator_get_them(server: Server) -> None:
    """In the spec, in parts, lists, maps and optional parts."""
    cluster, namespace = server
    await cluster.apply(GALLERIES, field_manager="admin", force=True)
    made = gallery(namespace)
    await eventually(lambda: cluster.create(made, field_manager="admin"), ignore=(NotFoundError,))
    seen: dict[str, list[Any]] = {}

    def components(owner: Gallery) -> Component:
        seen["components"] = free_parts(owner)
        data = {"colour": json.dumps(owner.spec.part.model_extra, sort_keys=True)}
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "corner", "namespace": namespace}}
        resource = configmap.Builder({**child, "data": data}).build()
        return component.Builder("web", condition_type="WebReady").with_resource(resource).build()

    def report(_: ReconcileContext, owner: Gallery, __: ReconcileOutcome) -> None:
        seen["report"] = free_parts(owner)

    async def on_delete(owner: Gallery, _: ReconcileContext, __: Cluster) -> None:
        seen["on_delete"] = free_parts(owner)

    operator = Operator(
        name="galleries",
        owner=OwnerType.of(Gallery, GALLERIES),
        components=components,
        report=report,
        on_delete=on_delete,
    )
    key = ObjectKey.of(made)
    for deletes in (True, False):
        live = await cluster.get(key)
        await reconcile_owner(operator, live, cluster, clock=VirtualClock(), recorder=NullRecorder())
        if deletes:
            child = await cluster.get(ObjectKey("v1", "ConfigMap", "corner", namespace))
            assert json.loads(child["data"]["colour"]) == FREE
            await cluster.delete(key)
    assert seen == dict.fromkeys(("components", "report", "on_delete"), ALL_FREE)


def webhook() -> Webhook[Gallery]:
    def default(owner: Gallery) -> None:
        assert free_parts(owner) == ALL_FREE
        owner.spec.plugins[1].name = "filled"

    def validate(new: Gallery, _: Gallery | None, __: Operation) -> Iterator[FieldError]:
        assert free_parts(new) == ALL_FREE
        if new.spec.part.model_extra == FREE:
            yield invalid("spec.part.colour", "red", "must be blue")

    return Webhook.of(Gallery, GALLERIES, defaulters=[default], validators=[validate])


def asked(step: Step) -> Manifest:
    kind = {"group": "unknown.example.com", "version": "v1", "kind": "Gallery"}
    request = {
        "uid": "1",
        "kind": kind,
        "operation": "CREATE",
        "name": "corner",
        "object": gallery(),
        "oldObject": None,
    }
    response: Manifest = review(
        webhook(), step, {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    )["response"]
    return response


@pytest.mark.promise("free-fields", runs="a defaulter, a validator, a conversion and a preview")
def test_validators_get_them() -> None:
    response = asked(Step.VALIDATE)
    assert response["status"]["message"].endswith('spec.part.colour: Invalid value: "red": must be blue')


def test_defaulters_leave_them_alone() -> None:
    response = asked(Step.DEFAULT)
    patch = json.loads(base64.b64decode(response["patch"]))
    assert patch == [{"op": "replace", "path": "/spec/plugins/1/name", "value": "filled"}]


def test_conversions_carry_them() -> None:
    def forth(old: Gallery) -> Painting:
        assert free_parts(old) == ALL_FREE
        return Painting(spec=old.spec)

    def back(new: Painting) -> Gallery:
        assert free_parts(new) == ALL_FREE
        return Gallery(spec=new.spec)

    versions = [CRDVersion("v1", Gallery), CRDVersion("v2", Painting, stored=True)]
    resource = VersionedResource(
        "unknown.example.com",
        versions,
        [Conversion(Gallery, Painting, up=forth, down=back)],
        kind="Gallery",
        plural="galleries",
    )
    converted = resource.convert(gallery(), "v2")
    assert without_nulls(converted["spec"]) == without_nulls(SPEC)
    assert without_nulls(resource.convert(converted, "v1")["spec"]) == without_nulls(SPEC)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item not in (None, "")}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def test_a_preview_gets_them() -> None:
    def components(owner: Gallery) -> Component:
        assert free_parts(owner) == ALL_FREE
        return component.Builder("web", condition_type="WebReady").build()

    before = copy_json(gallery())
    (found,) = asyncio.run(components_of("module:components", components, gallery()))
    assert (found.name, gallery()) == ("web", before)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    size: int = Field(default=1, alias="sizeLimit")
    since: datetime | None = None
    resources: V1ResourceRequirements | None = None
    conditions: list[V1Condition] = []


class Left(BaseModel):
    model_config = ConfigDict(extra="forbid")

    left: int = 0


class Right(BaseModel):
    model_config = ConfigDict(extra="forbid")

    right: int = 0


class Mode(Enum):
    FAST = "fast"


class Closed(BaseModel):
    """A model of the whole object that forbids what it does not name."""

    model_config = ConfigDict(extra="forbid")

    spec: Strict = Strict()
    either: Left | Right = Left()
    mode: Mode | Literal["slow"] = "slow"
    lists: list[Left | Right] = []


CLOSED: Final = OwnerType("unknown.example.com/v1", "Closed", Closed)


def closed(**fields: Any) -> Manifest:
    head = {"apiVersion": "unknown.example.com/v1", "kind": "Closed", "metadata": {"name": "corner"}}
    return {**head, "status": {"conditions": []}, **fields}


READ: Final = {
    "an alias": (closed(spec={"sizeLimit": 3}), Closed(spec=Strict.model_validate({"size": 3}))),
    "the name of a field": (closed(spec={"size": 3}), Closed(spec=Strict.model_validate({"size": 3}))),
    "a time in a strict model": (
        closed(spec={"since": "2026-01-31T12:00:00Z"}),
        Closed(spec=Strict(since=datetime(2026, 1, 31, 12, tzinfo=UTC))),
    ),
    "the second model of a union": (closed(either={"right": 2}), Closed(either=Right(right=2))),
    "models of a union in a list": (
        closed(lists=[{"right": 1}, {"left": 2}]),
        Closed(lists=[Right(right=1), Left(left=2)]),
    ),
    "a member of an enum": (closed(mode="fast"), Closed(mode=Mode.FAST)),
    "a field of a newer API server in a model of the client": (
        closed(spec={"resources": {"limits": {"cpu": "1"}, "newer": 1}}),
        Closed(spec=Strict(resources=V1ResourceRequirements(limits={"cpu": "1"}))),
    ),
    "a quantity that is a number": (
        closed(spec={"resources": {"limits": {"cpu": 1}, "newer": 1}}),
        Closed(spec=Strict(resources=V1ResourceRequirements(limits={"cpu": "1"}))),
    ),
}


@pytest.mark.parametrize(("manifest", "model"), READ.values(), ids=READ)
def test_an_owner_is_read_as_its_model_is_configured(manifest: Manifest, model: Closed) -> None:
    before = copy_json(manifest)
    assert CLOSED.read(manifest) == model
    assert manifest == before


REJECTED: Final = {
    "an unknown field of the object": (closed(extra=1), "Closed.extra: unknown field"),
    "an unknown field of a part": (closed(spec={"extra": 1}), "Closed.spec.extra: unknown field"),
    "a text in a strict model": (closed(spec={"sizeLimit": "3"}), "Closed.spec.sizeLimit: must be a valid integer"),
    "a field of no model of a union": (closed(either={"middle": 1}), "unknown field"),
}


@pytest.mark.parametrize(("manifest", "problem"), REJECTED.values(), ids=REJECTED)
def test_what_a_model_forbids_is_an_error(manifest: Manifest, problem: str) -> None:
    with pytest.raises(ManifestError, match=problem):
        CLOSED.read(manifest)


def test_a_time_to_wait_is_read_from_json() -> None:
    """A strict model rejects a text for a duration, unless it reads JSON, where there is no other type."""

    class Wait(BaseModel):
        model_config = ConfigDict(strict=True)

        after: timedelta

    owner = {"apiVersion": "v1", "kind": "Wait", "metadata": {"name": "a"}, "after": "PT5M"}
    assert OwnerType("v1", "Wait", Wait).read(owner) == Wait(after=timedelta(minutes=5))


class Parcel(CustomResource[None], group="unknown.example.com", version="v1"):
    """A kind without a spec."""

    weight: int
    labels_of: dict[str, str] = Field(default_factory=dict)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_components_of_a_kind_without_a_spec_get_its_data(server: Server) -> None:
    cluster, namespace = server
    await cluster.apply(Parcel.definition(), field_manager="admin", force=True)
    body = {"apiVersion": Parcel.api_version, "kind": "Parcel", "metadata": {"name": "corner", "namespace": namespace}}
    made = {**body, "weight": 3, "labelsOf": {"a": "b"}}
    live = await eventually(lambda: cluster.create(made, field_manager="admin"), ignore=(NotFoundError,))
    seen: list[Parcel] = []

    def components(owner: Parcel) -> Component:
        seen.append(owner)
        return component.Builder("web", condition_type="WebReady").build()

    operator = Operator(name="parcels", owner=OwnerType.of(Parcel), components=components)
    await reconcile_owner(operator, live, cluster, clock=VirtualClock(), recorder=NullRecorder())
    assert (seen[0].weight, seen[0].labels_of, seen[0].spec) == (3, {"a": "b"}, None)
    after = await cluster.get(ObjectKey.of(live))
    assert (after["weight"], "spec" in after) == (3, False)
    assert [one["type"] for one in after["status"]["conditions"]] == ["WebReady"]
