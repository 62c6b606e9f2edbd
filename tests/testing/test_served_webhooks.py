"""Local webhooks are called by an embedded and by a real API server while their block runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from kubernetes.client import V1PodTemplate

from ocf.errors import InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import FieldError, Match, Operation, Policy, Validation, Webhook, invalid
from ocf.testing import serve_webhooks
from ocf_server import EmbeddedCluster
from tests.runtime.crds.shop_versions import GROUP, SHOPS
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest.fixtures import Envtest


def default(template: Manifest) -> None:
    if template["metadata"]["name"].startswith("asked"):
        template["metadata"].setdefault("labels", {}).setdefault("colour", "red")


def judge(new: Manifest, _old: Manifest | None, _operation: Operation) -> list[FieldError]:
    colour = new["metadata"].get("labels", {}).get("colour")
    return [invalid("metadata.labels.colour", colour, "is not a colour")] if colour == "loud" else []


# A kind that no other test uses: a real API server may call the webhooks for a moment after they have ended.
WEBHOOK: Webhook[Manifest] = Webhook("", "v1", "PodTemplate", "podtemplates", defaulters=[default], validators=[judge])
CONFIGURATION = ObjectKey("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "admitting", "")


@pytest.fixture(params=["embedded", "envtest"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Cluster, str]]:
    if request.param == "embedded":
        yield EmbeddedCluster(), "default"
        return
    envtest: Envtest = request.getfixturevalue("envtest")
    cluster: ApiServerCluster
    async with await envtest.plane.cluster() as cluster:
        yield cluster, envtest.namespace


def template(name: str, namespace: str, **labels: str) -> Manifest:
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": pod}


async def test_webhooks_are_called_while_the_block_runs(place: tuple[Cluster, str]) -> None:
    cluster, namespace = place
    async with serve_webhooks(cluster, "admitting", [WEBHOOK]) as url:
        assert url.startswith("https://127.0.0.1:")
        created = await first_asked(cluster, namespace)
        await eventually(lambda: first_refused(cluster, namespace))

    assert created["metadata"]["labels"] == {"colour": "red"}
    with pytest.raises(NotFoundError):
        await cluster.get(CONFIGURATION)


async def first_refused(cluster: Cluster, namespace: str) -> bool:
    """Return whether the validator is called, which a real API server reads from another configuration."""
    try:
        await cluster.create(template("loud", namespace, colour="loud"), field_manager="me", dry_run=True)
    except InvalidError as error:
        return 'metadata.labels.colour: Invalid value: "loud": is not a colour' in str(error)
    return False


async def first_asked(cluster: Cluster, namespace: str) -> Manifest:
    """Return the first object with which the webhook was called; a real API server learns of it a moment later."""
    created: Manifest = {}
    for number in range(30_000):
        created = await cluster.create(template(f"asked-{number}", namespace), field_manager="me")
        if created["metadata"].get("labels"):
            break
        await asyncio.sleep(0.02)
    return created


async def test_policies_hold_while_the_block_runs(place: tuple[Cluster, str]) -> None:
    cluster, namespace = place
    selected = Match(namespaces={"matchLabels": {"kubernetes.io/metadata.name": namespace}})
    quiet = Validation("object.metadata.name != 'noisy'", "noisy is not allowed")
    policy = Policy.of(V1PodTemplate, "quiet-templates", validations=[quiet], match=selected)

    async def is_refused() -> bool:
        try:
            await cluster.create(template("noisy", namespace), field_manager="me", dry_run=True)
        except InvalidError as error:
            return "noisy is not allowed" in str(error)
        return False

    async with serve_webhooks(cluster, "admitting", policies=[policy]) as url:
        assert url == ""
        await eventually(is_refused)
    await eventually(is_refused, lambda refused: not refused)


async def test_nothing_is_served_without_webhooks() -> None:
    cluster = EmbeddedCluster()
    async with serve_webhooks(cluster, "admitting", []) as url:
        assert url == ""

    assert cluster.requests.writes == 0


async def test_conversions_are_registered_in_the_definition() -> None:
    cluster = EmbeddedCluster()
    await cluster.apply(SHOPS.definition(), field_manager="setup")
    metadata = {"name": "corner", "namespace": "default"}
    old = {"apiVersion": f"{GROUP}/v1", "kind": "Shop", "metadata": metadata, "spec": {"address": "a, b"}}
    async with serve_webhooks(cluster, "converting", conversions=[SHOPS]) as url:
        assert url
        await cluster.create(old, field_manager="me")
        new = await cluster.get(ObjectKey(f"{GROUP}/v3", "Shop", "corner", "default"))
    assert new["spec"]["place"] == {"street": "a", "city": "b", "floor": 0}
