"""A real API server takes what `crd` writes, and holds objects to what the models say."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import pytest
from kubernetes.client import (
    V1Affinity,
    V1Container,
    V1NetworkPolicyPeer,
    V1PodSpec,
    V1ResourceRequirements,
    V1SecurityContext,
    V2HorizontalPodAutoscalerBehavior,
    V2MetricSpec,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ocf.cluster import Subresource
from ocf.errors import ConfigError, InvalidError
from ocf.objects import ObjectKey
from ocf.runtime.crds import (
    CRDVersion,
    GoDuration,
    ListMap,
    ListSet,
    Preserve,
    PrinterColumn,
    QuantityText,
    ScaleSubresource,
    ValidationRule,
    crd,
    rules,
)
from ocf.runtime.crds.crd import AGE
from ocf.runtime.crds.markers import RuleReason
from ocf.runtime.operator import OwnerType
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.objects import Manifest
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.fixtures import Envtest

GROUP: Final = "crds.example.com"


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Port(BaseModel):
    """A port that is open."""

    name: str
    protocol: Literal["TCP", "UDP"] = "TCP"
    port: int = Field(ge=1, le=65535)


class Section(BaseModel):
    """A section with defaults of its own."""

    size: int = 64
    label: str = "plain"
    note: str | None = None


@rules(
    ValidationRule("self.low <= self.high", message="low is above high", reason=RuleReason.INVALID, field_path=".low")
)
class Range(BaseModel):
    low: int = 0
    high: int = 10

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Spelled(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="allow")

    max_size: int = Field(default=7, alias="maxSize", description="How much.")


class SampleSpec(BaseModel):
    """What is wanted."""

    text: Annotated[str, Field(min_length=1, max_length=4, pattern="^[a-zé]+$")] = "abc"
    flag: bool = True
    count: int = Field(default=3, ge=0, le=64)
    above: int = Field(default=1, gt=0, lt=10)
    share: float = Field(default=0.5, ge=0, lt=1)
    many: int = Field(default=4, multiple_of=4)
    color: Color = Color.RED
    level: Level = Level.LOW
    mode: Literal["soft", "hard"] = "soft"
    only: Literal["this"] = "this"
    maybe: int | None = None
    maybe_color: Color | None = None
    five: int | None = 5
    either: int | str = 1
    percent: int | str | None = None
    quantity: QuantityText = "1Gi"
    instant: datetime | None = None
    labels: dict[str, Annotated[str, Field(max_length=3)]] = {}
    words: Annotated[list[str], Field(max_length=2)] = []
    holes: list[int | None] = []
    numbers: Annotated[list[int], ListSet()] = []
    names: set[str] = {"b"}
    limited: Annotated[int, Field(ge=1, le=9)] | Literal["auto"] = "auto"
    merged: Literal["a", "b"] | Color = "a"
    span: timedelta = timedelta(days=400, hours=1)
    wait: GoDuration = timedelta(seconds=90)
    price: Decimal = Decimal("1.50")
    ports: Annotated[list[Port], ListMap("name", "protocol")] = []
    section: Section = Section(size=32)
    made: Section = Field(default_factory=Section)
    none: Section | None = None
    range: Range = Field(default_factory=Range)
    spelled: Spelled = Field(default_factory=Spelled)
    anything: Annotated[Any, Preserve(kind="")] = None
    open: Annotated[dict[str, Any], Preserve()] = {}
    even: Annotated[int, ValidationRule("self % 2 == 0", message="must be even")] = 2
    metrics: list[V2MetricSpec] = []
    behavior: V2HorizontalPodAutoscalerBehavior | None = None
    resources: V1ResourceRequirements | None = None
    peers: list[V1NetworkPolicyPeer] = []
    security: V1SecurityContext | None = None
    affinity: V1Affinity | None = None
    container: V1Container | None = None


class SampleStatus(BaseModel):
    replicas: int = 0
    selector: str = ""
    ready: bool | None = None


class Sample(BaseModel):
    """A sample of everything."""

    spec: SampleSpec = Field(default_factory=SampleSpec)
    status: SampleStatus | None = None


CPU: Final = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
# Field to values that are fine, and values that are refused.
VALUES: Final[dict[str, tuple[list[Any], list[Any]]]] = {
    "text": (["a", "abcd", "éé", "éééé"], ["", "abcde", "A", 1, None, ["a"], "a\nb"]),
    "flag": ([True, False], ["true", 1, 0]),
    "count": ([0, 64], [-1, 65, "3", 1.5, True]),
    "above": ([1, 9], [0, 10]),
    "share": ([0, 0.0, 0.999, 0.25], [-0.1, 1, 1.0, "0.5"]),
    "many": ([0, 8, -4], [2, 5]),
    "color": (["red", "blue"], ["green", "RED", ""]),
    "level": ([1, 2], [0, 3, "1"]),
    "mode": (["soft", "hard"], ["", "medium"]),
    "only": (["this"], ["that"]),
    "maybe": ([None, 0, -5], ["1", 1.5]),
    "maybe_color": ([None, "red"], ["green"]),
    "five": ([None, 0, 5], ["5"]),
    "either": ([1, "1", "50%", 0, -1], [True, 1.5, []]),
    "percent": ([None, 1, "50%"], [True, {}]),
    "quantity": (["1", "500m", "1.5Gi", "1e3", "-1", ".5", "1E"], ["", "Gi", "1 Gi", "abc", "1gi", True]),
    "instant": ([None, "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+02:00"], ["yesterday", "2026-13-01T00:00:00Z"]),
    "labels": ([{}, {"a": "b"}, {"a": ""}], [{"a": "long"}, {"a": 1}, [], "a"]),
    "words": ([[], ["a", "a"]], [["a", "b", "c"], ["a", 1], "a", {}]),
    "holes": ([[], [1, None]], [["1"]]),
    "numbers": ([[], [1, 2]], [[1, 1], ["1"]]),
    "names": ([[], ["b", "a"]], ["a", [1]]),
    "limited": ([1, 9, "auto"], [0, 10, "of", "auto1", True]),
    "merged": (["a", "b", "red"], ["c", 1]),
    "span": (["PT1H", "P1DT0.5S", "-P1W", "P3Y"], ["1h", "P", "PT", "P1H", "", 5, True]),
    "wait": (["1h30m", "0", "0.5s", "15ms"], ["1", "PT1H", "1d", "-1s", 5, True]),
    "price": ([1, "1", "1.50", ".5", "-2e-3", "1E+2"], ["", "one", "0x1", True, "NaN"]),
    "ports": (
        [
            [],
            [{"name": "a", "port": 1}],
            [{"name": "a", "port": 1}, {"name": "a", "port": 1, "protocol": "UDP"}],
        ],
        [
            [{"name": "a", "port": 0}],
            [{"port": 1}],
            [{"name": "a", "port": 1}, {"name": "a", "port": 2}],
            [{"name": "a", "port": 1}, {"name": "a", "port": 2, "protocol": "TCP"}],
            [{"name": "a", "port": 1, "protocol": "SCTP"}],
        ],
    ),
    "section": ([{}, {"size": 1}, {"label": "x", "note": None}, {"note": "n"}], [{"size": "1"}, 5, []]),
    "none": ([None, {}, {"size": 1}], [{"size": None, "label": 5}]),
    "range": ([{}, {"low": 10}, {"low": 5, "high": 5}], [{"low": 11}, {"low": 5, "high": 4}]),
    "spelled": ([{}, {"maxSize": 1}, {"other": [1, {"a": None}]}], [{"maxSize": "1"}]),
    "anything": ([1, "a", [1, "a"], {"a": [None]}, True], []),
    "open": ([{}, {"a": 1, "b": {"c": [1, "x"]}}], [[], "a", 1]),
    "even": ([0, 2], ["2"]),
    "metrics": ([[], [CPU]], [[{}], [{"type": 1}], [{**CPU, "resource": {"name": "cpu"}}], [CPU, "cpu"]]),
    "behavior": (
        [{}, {"scaleDown": {"stabilizationWindowSeconds": 60}}, {"scaleUp": {"tolerance": "0.1"}}],
        [{"scaleDown": {"stabilizationWindowSeconds": "60"}}, {"scaleUp": {"tolerance": True}}],
    ),
    "resources": (
        [{}, {"limits": {"cpu": "500m", "memory": "1Gi"}}, {"claims": [{"name": "a"}]}],
        [{"limits": {"cpu": True}}, {"claims": [{}]}],
    ),
    "peers": ([[], [{"podSelector": {}}], [{"ipBlock": {"cidr": "10.0.0.0/8"}}]], [[{"ipBlock": {}}]]),
    "security": ([{}, {"runAsUser": 5, "capabilities": {"drop": ["ALL"]}}], [{"runAsUser": "5"}]),
    "container": (
        [
            {"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}]},
            {"name": "a", "livenessProbe": {"httpGet": {"port": "http"}}},
            {"name": "a", "livenessProbe": {"httpGet": {"port": 80}}},
        ],
        [{}, {"name": "a", "ports": [{}]}, {"name": "a", "livenessProbe": {"httpGet": {"port": True}}}],
    ),
}
# What only the server looks at: rules, and quantities of the client's models.
REFUSED_BY_SERVER: Final[list[Manifest]] = [
    {"even": 1},
    {"names": ["a", "a"]},
    {"span": "P1M"},
    {"price": 1.5},
    {"behavior": {"scaleUp": {"tolerance": "much"}}},
    {"resources": {"limits": {"cpu": "much"}}},
    {"resources": {"claims": [{"name": "a"}, {"name": "a"}]}},
    {"container": {"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]}},
]


def definition() -> Manifest:
    columns = [PrinterColumn("Count", ".spec.count"), PrinterColumn("Seen", ".status.replicas", priority=1), AGE]
    scale = ScaleSubresource(spec=".spec.count", selector=".status.selector")
    version = CRDVersion("v1", Sample, columns=columns, scale=scale, selectable=[".spec.color"])
    return crd(GROUP, version, short_names=["smp"], categories=["all"])


@pytest.fixture(scope="module")
def defined(envtest_plane: ControlPlane) -> None:
    envtest_plane.install_crds(definition())


@pytest.fixture
def cluster(envtest_cluster: ApiServerCluster, defined: None) -> ApiServerCluster:  # noqa: ARG001 (for its effect)
    return envtest_cluster


def sample(namespace: str, spec: Manifest | None = None, name: str = "one") -> Manifest:
    spec_field = {} if spec is None else {"spec": spec}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Sample",
        "metadata": {"name": name, "namespace": namespace},
        **spec_field,
    }


def accepted(spec: Manifest) -> SampleSpec | None:
    try:
        return SampleSpec.model_validate_json(json.dumps(spec), strict=True)
    except ValidationError:
        return None


async def stored(cluster: ApiServerCluster, namespace: str, spec: Manifest) -> Manifest | None:
    """Return the spec as the server would store it; None if it refuses it."""
    try:
        answer = await cluster.create(sample(namespace, spec), field_manager="test", dry_run=True)
    except InvalidError:
        return None
    found: Manifest = answer["spec"]
    return found


async def test_the_server_accepts_what_the_model_accepts(cluster: ApiServerCluster, envtest: Envtest) -> None:
    """And what it would store reads as what was sent."""
    wrong = []
    for field, (fine, _) in VALUES.items():
        for value in fine:
            spec = {field: value}
            answer = await stored(cluster, envtest.namespace, spec)
            if accepted(spec) is None:
                wrong.append(f"the model refuses {spec}")
            elif answer is None:
                wrong.append(f"the server refuses {spec}")
            elif SampleSpec.model_validate(answer) != accepted(spec):
                wrong.append(f"{spec} becomes {answer[field]}")
    assert not wrong, "\n".join(wrong)


async def test_the_server_refuses_what_the_model_refuses(cluster: ApiServerCluster, envtest: Envtest) -> None:
    wrong = []
    for field, (_, refused) in VALUES.items():
        for value in refused:
            spec = {field: value}
            answer = await stored(cluster, envtest.namespace, spec)
            if accepted(spec) is not None:
                wrong.append(f"the model accepts {spec}")
            # What is null and must not be, the server takes for absent.
            if answer is not None and not (value is None and answer[field] is not None):
                wrong.append(f"the server stores {spec} as {answer.get(field)}")
    assert not wrong, "\n".join(wrong)


async def test_the_server_holds_objects_to_more_than_the_model_does(
    cluster: ApiServerCluster, envtest: Envtest
) -> None:
    for spec in REFUSED_BY_SERVER:
        assert accepted(spec) is not None
        assert await stored(cluster, envtest.namespace, spec) is None, spec


async def test_the_server_takes_numbers_for_quantities_and_owners_are_read_with_them(
    cluster: ApiServerCluster, envtest: Envtest
) -> None:
    average = {**CPU, "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": 2}}}
    spec = {"resources": {"limits": {"cpu": 1}}, "behavior": {"scaleUp": {"tolerance": 0}}, "metrics": [average]}
    answer = await cluster.create(sample(envtest.namespace, spec), field_manager="test", dry_run=True)
    read = OwnerType.of(Sample, definition()).read(answer).spec

    assert spec.items() <= answer["spec"].items()
    assert read.resources is not None
    assert read.resources.limits == {"cpu": "1"}
    assert read.metrics[0].resource is not None
    assert read.metrics[0].resource.target.average_value == "2"


async def test_defaults_of_the_server_are_those_of_the_model(cluster: ApiServerCluster, envtest: Envtest) -> None:
    answer = await cluster.create(sample(envtest.namespace), field_manager="test", dry_run=True)

    wanted = SampleSpec().model_dump(mode="json", by_alias=True, exclude_none=True)
    assert answer["spec"] == wanted
    assert SampleSpec.model_validate(answer["spec"]) == SampleSpec()


async def test_what_no_field_says_is_pruned(cluster: ApiServerCluster, envtest: Envtest) -> None:
    spec = {"unknown": 1, "section": {"unknown": 2}, "spelled": {"kept": 3}, "open": {"kept": {"too": 4}}}

    answer = await stored(cluster, envtest.namespace, spec)

    assert answer is not None
    assert "unknown" not in answer
    assert "unknown" not in answer["section"]
    assert answer["spelled"] == {"maxSize": 7, "kept": 3}
    assert answer["open"] == {"kept": {"too": 4}}


async def test_a_broken_rule_names_message_and_field(cluster: ApiServerCluster, envtest: Envtest) -> None:
    with pytest.raises(InvalidError) as caught:
        await cluster.create(sample(envtest.namespace, {"range": {"low": 11}}), field_manager="test")

    (cause,) = caught.value.causes
    assert (cause.reason, cause.field) == ("FieldValueInvalid", "spec.range.low")
    assert "low is above high" in cause.message


async def test_status_and_scale_are_parts_of_their_own(cluster: ApiServerCluster, envtest: Envtest) -> None:
    manifest = sample(envtest.namespace) | {"status": {"replicas": 9}}
    live = await cluster.create(manifest, field_manager="test")
    assert "status" not in live

    live |= {"status": {"replicas": 2}}
    live = await cluster.update(live, field_manager="test", subresource=Subresource.STATUS)
    assert live["status"] == {"replicas": 2, "selector": ""}

    scale = await cluster.get(ObjectKey.of(live), subresource=Subresource.SCALE)
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 2)


async def test_lists_merge_by_their_keys(cluster: ApiServerCluster, envtest: Envtest) -> None:
    """Two appliers each own a port of the list, and a number of the set."""
    for manager, number in (("one", 1), ("two", 2)):
        spec = {"ports": [{"name": manager, "port": number}], "numbers": [number]}
        await cluster.apply(sample(envtest.namespace, spec), field_manager=manager)

    live = await cluster.get(ObjectKey.of(sample(envtest.namespace)))

    assert [port["name"] for port in live["spec"]["ports"]] == ["one", "two"]
    assert live["spec"]["numbers"] == [1, 2]


async def test_kubectl_shows_columns_descriptions_and_short_names(cluster: ApiServerCluster, envtest: Envtest) -> None:
    await cluster.create(sample(envtest.namespace), field_manager="test")

    shown = await asyncio.to_thread(envtest.kubectl, "get", "smp")
    assert shown.split()[:3] == ["NAME", "COUNT", "AGE"]
    assert "one" in await asyncio.to_thread(envtest.kubectl, "get", "all", "--output=name")
    blue = "--field-selector=spec.color=blue"
    assert await asyncio.to_thread(envtest.kubectl, "get", "smp", blue, "--output=name") == ""
    explain = partial(envtest.kubectl, "explain", "sample.spec.spelled.maxSize")
    # The API server publishes the schema a moment after it serves the kind.
    await eventually(lambda: asyncio.to_thread(explain), lambda text: "How much." in text, ignore=(ConfigError,))


async def test_pods_and_two_versions_fit_into_a_definition(
    envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster
) -> None:
    """The largest of the client's models, in a kind of two versions, of which the older one warns."""

    class Runner(BaseModel):
        spec: V1PodSpec

    newest = CRDVersion("v1", Runner, stored=True)
    older = CRDVersion("v1beta1", Runner, deprecated="use v1")
    manifest = crd(GROUP, newest, older)

    await asyncio.to_thread(envtest_plane.install_crds, manifest)

    live = await envtest_cluster.get(ObjectKey.of(manifest))
    assert [version["storage"] for version in live["spec"]["versions"]] == [True, False]
    assert live["spec"]["versions"][1]["deprecationWarning"] == "use v1"
