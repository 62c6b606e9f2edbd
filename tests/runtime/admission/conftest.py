"""A kind with a bit of everything, and how its objects are admitted."""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest
from kubernetes.client import V1ResourceRequirements
from pydantic import Field

from ocf.objects import Manifest
from ocf.runtime.admission import FieldError, Operation, Warn, Webhook, Webhooks, forbidden, invalid, required
from ocf.runtime.crds import CamelModel, CustomResource, ListMap, Preserve
from tests.runtime.admission.policy_places import Place, opened_place


class Autoscaling(CamelModel, frozen=False):
    enabled: bool = False
    metrics: list[str] = Field(default_factory=list)
    max_replicas: int | None = None


class Listener(CamelModel, frozen=False):
    name: str
    port: int | None = None


class Spec(CamelModel, frozen=False):
    replicas: int | None = Field(default=None, le=64)
    image: str | None = None
    autoscaling: Autoscaling | None = None
    listeners: Annotated[list[Listener], ListMap("name")] = Field(default_factory=list)
    resources: V1ResourceRequirements | None = None
    settings: Annotated[dict[str, Any] | None, Preserve()] = None


class Shop(CustomResource[Spec], group="example.com", version="v1"):
    spec: Spec = Spec()


def defaulted(shop: Shop) -> None:
    autoscaling = shop.spec.autoscaling
    if autoscaling and autoscaling.enabled and not autoscaling.metrics:
        autoscaling.metrics.append("cpu")
    if shop.spec.replicas is None and not (autoscaling and autoscaling.enabled):
        shop.spec.replicas = 1
    for listener in shop.spec.listeners:
        listener.port = listener.port or 80


def checked(new: Shop, old: Shop | None, operation: Operation) -> Iterator[FieldError | Warn]:
    autoscaling = new.spec.autoscaling
    if autoscaling and autoscaling.enabled and new.spec.replicas is not None:
        yield forbidden("spec.replicas", "spec.replicas and spec.autoscaling.enabled are mutually exclusive")
    if autoscaling and autoscaling.enabled and autoscaling.max_replicas is None:
        yield required("spec.autoscaling.maxReplicas", "must be set when autoscaling is enabled")
    if old and old.spec.image and new.spec.image != old.spec.image:
        yield invalid("spec.image", new.spec.image, "field is immutable")
    if new.spec.replicas == 0:
        yield Warn("no pod will run")
    if operation is Operation.DELETE and new.metadata.labels.get("protected"):
        yield forbidden("metadata.labels[protected]", "a protected shop stays")


@pytest.fixture
def shops() -> Webhook[Shop]:
    return Webhook.of(Shop, defaulters=[defaulted], validators=[checked])


@pytest.fixture
def definition() -> Manifest:
    return Shop.definition()


@pytest.fixture
def webhooks(shops: Webhook[Shop]) -> Webhooks:
    return Webhooks("shops", [shops])


@pytest.fixture(params=["embedded", "real"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    async with opened_place(request) as opened:
        yield opened
