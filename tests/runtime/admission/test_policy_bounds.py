"""Bounds of a model are the rules of a policy: what the model rejects, the API server denies."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import pytest
from kubernetes.client import (
    V1Deployment,
    V1PodSpec,
    V1Secret,
    V2HorizontalPodAutoscaler,
    V2HorizontalPodAutoscalerSpec,
)
from pydantic import AnyUrl, BaseModel, Field, ValidationError, create_model

from ocf.errors import ApiError, BuildError, InvalidError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import Match, Operation, Policy
from ocf.runtime.admission.policies import apply_policies
from ocf.runtime.admission.policy_bounds import bound_rules
from ocf.runtime.crds import CamelModel, CustomResource, ListMap, ValidationRule
from ocf_server import CustomKind, EmbeddedCluster
from tests.runtime.admission.policy_places import MANAGER

if TYPE_CHECKING:
    from tests.runtime.admission.policy_places import Place


class Part(CamelModel):
    size: int = Field(default=1, ge=1)
    label: str = Field(default="a", max_length=3)


class Bounds(CamelModel):
    count: int = Field(default=1, ge=1, le=10)
    ratio: float = Field(default=0.5, gt=0, lt=1)
    step: int = Field(default=2, multiple_of=2)
    title: str = Field(default="abc", min_length=2, max_length=4, pattern="^[a-z]+$")
    quoted: str = Field(default="", pattern=r'^["\\]*$')
    color: Literal["red", "blue"] = "red"
    level: Literal[1, 2] = 1
    flag: Literal[True] = True
    names: list[Annotated[str, Field(max_length=2)]] = Field(default_factory=list, min_length=0, max_length=2)
    parts: list[Part] = Field(default_factory=list)
    table: dict[str, Annotated[int, Field(le=3)]] = Field(default_factory=dict, max_length=2)
    nested: dict[str, list[Part]] = Field(default_factory=dict)
    part: Part | None = None
    mixed: Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern="^[0-9]+%$")] = 1
    maybe: int | None = Field(default=1, le=5)
    duration: timedelta = timedelta(0)
    amount: Decimal = Decimal(0)


class Bounded(CamelModel):
    spec: Bounds = Bounds()


BAD: Final[dict[str, tuple[Manifest, str]]] = {
    "below the minimum": ({"count": 0}, "spec.count: must be at least 1, got 0"),
    "above the maximum": ({"count": 11}, "spec.count: must be at most 10, got 11"),
    "at an exclusive minimum": ({"ratio": 0}, "spec.ratio: must be above 0, got 0"),
    "at an exclusive maximum": ({"ratio": 1}, "spec.ratio: must be below 1, got 1"),
    "no multiple": ({"step": 3}, "spec.step: must be a multiple of 2, got 3"),
    "too short": ({"title": "a"}, "spec.title: must have at least 2 characters"),
    "too long": ({"title": "abcde"}, "spec.title: must have at most 4 characters"),
    "another pattern": ({"title": "ABC"}, "spec.title: must match ^[a-z]+$, got ABC"),
    "a pattern with quotes": ({"quoted": "a"}, 'spec.quoted: must match ^["\\\\]*$, got a'),
    "another text": ({"color": "green"}, 'spec.color: must be one of "red", "blue", got green'),
    "another number": ({"level": 3}, "spec.level: must be one of 1, 2, got 3"),
    "another boolean": ({"flag": False}, "spec.flag: must be one of true, got false"),
    "too many items": ({"names": ["a", "b", "c"]}, "spec.names: must have at most 2 items"),
    "an item": ({"names": ["a", "bcd"]}, "spec.names[]: must have at most 2 characters"),
    "a field of an item": ({"parts": [{}, {"size": 0}]}, "spec.parts[].size: must be at least 1"),
    "too many entries": ({"table": {"a": 1, "b": 1, "c": 1}}, "spec.table: must have at most 2 entries"),
    "a value of a map": ({"table": {"a": 1, "b": 4}}, "spec.table.*: must be at most 3"),
    "an item in a map": (
        {"nested": {"a": [{"label": "abcd"}]}},
        "spec.nested.*[].label: must have at most 3 characters",
    ),
    "a field of an optional part": ({"part": {"size": 0}}, "spec.part.size: must be at least 1, got 0"),
    "an integer of two types": ({"mixed": -1}, "spec.mixed: must be at least 0, got -1"),
    "a text of two types": ({"mixed": "x"}, "spec.mixed: must match ^[0-9]+%$, got x"),
    "an optional value": ({"maybe": 6}, "spec.maybe: must be at most 5, got 6"),
}

GOOD: Final[dict[str, Manifest]] = {
    "nothing": {},
    "at the bounds": {"count": 1, "ratio": 0.999, "step": -4, "title": "abcd"},
    "escaped": {"quoted": '"\\'},
    "characters, not bytes": {"names": ["éé"], "parts": [{"label": "日本語"}]},
    "maps and lists": {"table": {"a": 3}, "nested": {"a": [], "b": [{"size": 2}]}},
    "both types": {"mixed": "50%"},
    "null": {"maybe": None},
    "types with patterns of their own": {"duration": "PT5M", "amount": "1.5"},
}


async def bounded_cluster() -> EmbeddedCluster:
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["shop"])
    policy = Policy(name="bounds", group="example.com", version="v1", plural="shops", bounds=Bounded)
    await apply_policies(cluster, [policy], field_manager=MANAGER)
    return cluster


def shop(**fields: Any) -> Manifest:
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "one", "namespace": "shop"}, **fields}


@pytest.mark.parametrize(("spec", "message"), BAD.values(), ids=BAD.keys())
async def test_what_the_model_rejects_is_denied_with_field_value_and_bound(spec: Manifest, message: str) -> None:
    with pytest.raises(ValidationError):
        Bounded.model_validate({"spec": spec})

    with pytest.raises(InvalidError) as caught:
        await (await bounded_cluster()).create(shop(spec=spec), field_manager=MANAGER)
    assert str(caught.value).endswith(f"denied request: {message}")


@pytest.mark.parametrize("spec", GOOD.values(), ids=GOOD.keys())
async def test_what_the_model_accepts_is_admitted(spec: Manifest) -> None:
    Bounded.model_validate({"spec": spec})

    assert await (await bounded_cluster()).create(shop(spec=spec), field_manager=MANAGER)


async def test_an_object_without_the_part_is_admitted() -> None:
    assert await (await bounded_cluster()).create(shop(), field_manager=MANAGER)


async def test_an_object_that_is_being_deleted_can_lose_its_finalizers() -> None:
    """A newer rule must not keep it: https://github.com/ome-projects/ome/pull/873."""
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["shop"])
    held = shop(spec={"count": 20})
    held["metadata"]["finalizers"] = ["example.com/held"]
    await cluster.create(held, field_manager=MANAGER)
    policy = Policy(name="bounds", group="example.com", version="v1", plural="shops", bounds=Bounded)
    await apply_policies(cluster, [policy], field_manager=MANAGER)
    live = (await cluster.list("example.com/v1", "Shop")).items[0]
    free = {**live, "metadata": {**live["metadata"], "finalizers": []}}
    with pytest.raises(ApiError, match="must be at most 10"):
        await cluster.update(free, field_manager=MANAGER)

    await cluster.delete(ObjectKey.of(live))
    dying = (await cluster.list("example.com/v1", "Shop")).items[0]
    await cluster.update({**dying, "metadata": {**dying["metadata"], "finalizers": []}}, field_manager=MANAGER)

    assert not (await cluster.list("example.com/v1", "Shop")).items


class SmallSpec(V2HorizontalPodAutoscalerSpec):
    max_replicas: int = Field(alias="maxReplicas", le=10)


SmallAutoscaler = create_model("SmallAutoscaler", __base__=V2HorizontalPodAutoscaler, spec=(SmallSpec, ...))


class Container(CamelModel):
    image: str = Field(pattern=r"^registry\.example\.com/")


class PodSpec(CamelModel):
    containers: list[Container]


class Template(CamelModel):
    spec: PodSpec


class DeploymentSpec(CamelModel):
    replicas: int = Field(default=1, le=5)
    template: Template


class Images(CamelModel):
    spec: DeploymentSpec


def autoscaler(most: int) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {"spec": {"scaleTargetRef": target, "maxReplicas": most}}


def deployment(image: str, replicas: int = 1) -> Manifest:
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "web", "image": image}]}}
    return {"spec": {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": pod}}


@pytest.mark.parametrize(
    ("model", "bounds", "bad", "good", "message"),
    [
        pytest.param(
            V2HorizontalPodAutoscaler,
            SmallAutoscaler,
            autoscaler(11),
            autoscaler(10),
            "spec.maxReplicas: must be at most 10, got 11",
            id="subclass of a client model",
        ),
        pytest.param(
            V1Deployment,
            Images,
            deployment("docker.io/web"),
            deployment("registry.example.com/web"),
            r"spec.template.spec.containers[].image: must match ^registry\.example\.com/",
            id="small model",
        ),
    ],
)
async def test_bounds_of_built_in_kinds(  # noqa: PLR0917 (a row of the table)
    place: Place, model: type[BaseModel], bounds: type[BaseModel], bad: Manifest, good: Manifest, message: str
) -> None:
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    kind = kind if model is V2HorizontalPodAutoscaler else {"apiVersion": "apps/v1", "kind": "Deployment"}

    error = await place.enforce(place.policy(model, bounds=bounds), place.object(**kind, **bad))

    assert str(error).endswith(f"denied request: {message}")
    assert await place.create(place.object(**kind, **good))


class SecretBounds(CamelModel):
    type: str = Field(default="Opaque", max_length=6, pattern="^O")


def test_the_message_about_a_secret_has_no_value() -> None:
    policies = [Policy.of(model, "any", bounds=SecretBounds) for model in (V1Secret, V1Deployment)]

    rules = [one.manifests()[0]["spec"]["validations"] for one in policies]
    assert [any("messageExpression" in rule for rule in each) for each in rules] == [False, True]


def test_a_field_without_a_default_has_to_be_set() -> None:
    class Named(BaseModel):
        title: str

    assert [(rule.expression, rule.message) for rule in bound_rules(Named)] == [
        ("has(object.metadata.deletionTimestamp) || has(object.title)", "title: must be set")
    ]


class Limit(CustomResource[Part], group="example.com", version="v1"):
    """A limit."""

    spec: Part = Part()


class _Unbound(BaseModel):
    title: str = ""


class _Url(BaseModel):
    url: AnyUrl | None = None


class _Float(BaseModel):
    share: float = Field(default=0.5, multiple_of=0.5)


class _Rule(BaseModel):
    share: Annotated[int, ValidationRule("self > 1")] = 2


class _Keys(BaseModel):
    parts: Annotated[list[Part], ListMap("label")] = Field(default_factory=list)


class _Set(BaseModel):
    names: set[str] = Field(default_factory=set)


class _Named(BaseModel):
    label: int = Field(default=1, alias="a-b", le=1)


class _Pod(BaseModel):
    spec: V1PodSpec | None = None


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        pytest.param(_Unbound, "_Unbound states no bound of a field, such as Field(le=10)", id="no bound"),
        pytest.param(_Pod, "_Pod states no bound of a field", id="only what the client declares"),
        pytest.param(
            Limit, "the definition of Limit has its bounds already, so it needs no policy", id="custom resource"
        ),
        pytest.param(_Url, 'url: the format "uri" cannot be a rule of a policy: use a pattern', id="format"),
        pytest.param(_Float, "share: CEL has no remainder of a number that is not an integer", id="remainder"),
        pytest.param(_Rule, "share: x-kubernetes-validations cannot be a rule of a policy", id="rule of a schema"),
        pytest.param(_Keys, "parts: a list of the type map cannot be a rule of a policy", id="merge keys"),
        pytest.param(_Set, "names: a list of the type set cannot be a rule of a policy", id="set"),
        pytest.param(_Named, 'the field "a-b" is not an identifier of CEL', id="name"),
    ],
)
def test_a_bound_that_cannot_be_a_rule_is_refused_when_the_policy_is_built(
    model: type[BaseModel], problem: str
) -> None:
    with pytest.raises(BuildError) as caught:
        Policy.of(V1Deployment, "any", bounds=model)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "match", [Match(operations=[Operation.DELETE]), Match(subresources=["scale"]), Match(subresources=["", "status"])]
)
def test_bounds_are_of_written_objects(match: Match) -> None:
    with pytest.raises(BuildError, match="bounds are for creates and updates of the object itself"):
        Policy.of(V1Deployment, "any", bounds=Images, match=match)
