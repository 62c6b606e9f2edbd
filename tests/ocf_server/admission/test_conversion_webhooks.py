"""Conversion webhooks: requests, the objects that clients see, and invalid responses.

The expected texts are those of a real API server (1.36.3).
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from ocf.cluster import ListOptions, PatchOptions, PatchType, WatchOptions
from ocf.cluster.protocol import EventType
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.api.webhook_client import UnansweredError

OLD = ObjectKey("example.com/v1", "Shop", "north", "shop")
NEW = ObjectKey("example.com/v2", "Shop", "north", "shop")
PREFIX = "conversion webhook for example.com/v2, Kind=Shop"


def definition(**webhook: Any) -> Manifest:
    text = {"type": "string"}
    given = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}, **webhook}

    def version(name: str, **properties: Any) -> Manifest:
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
        return {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": schema}}

    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Shop", "plural": "shops"},
            "scope": "Namespaced",
            "versions": [version("v1", address=text), version("v2", street=text, city=text)],
            "conversion": {"strategy": "Webhook", "webhook": given},
        },
    }


def shop(version: str, name: str = "north", **spec: str) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": "shop"}
    return {"apiVersion": f"example.com/{version}", "kind": "Shop", "metadata": metadata, "spec": spec}


def converted(manifest: Manifest, api_version: str) -> Manifest:
    """Convert between an address (v1), and a street and a city (v2)."""
    spec = manifest["spec"]
    if api_version.endswith("v2"):
        street, _, city = spec.get("address", "").partition(", ")
        spec = {"street": street, "city": city}
    else:
        spec = {"address": f"{spec.get('street')}, {spec.get('city')}"}
    return {**manifest, "apiVersion": api_version, "spec": spec}


class Webhook:
    """Converts objects, and changes its response as a test wants."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, list[str]]] = []
        self.response: dict[str, Any] = {}
        self.change: Any = None
        self.problem = ""

    async def ask(self, webhook: Mapping[str, Any], review: Manifest, *, seconds: float) -> Any:
        assert webhook["clientConfig"]["url"]
        assert seconds == 30
        await asyncio.sleep(0)
        if self.problem:
            raise UnansweredError(f"failed to call webhook: {self.problem}")
        request = json.loads(json.dumps(review["request"]))
        version = request["desiredAPIVersion"]
        self.requests.append((version[-2:], [each["metadata"]["name"] for each in request["objects"]]))
        objects = [converted(each, version) for each in request["objects"]]
        if self.change:
            objects = [self.change(each) for each in objects]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        head = {"apiVersion": review["apiVersion"], "kind": "ConversionReview"}
        return {**head, "response": {**response, **self.response}}


@pytest.fixture
def webhook() -> Webhook:
    return Webhook()


@pytest.fixture
async def cluster(webhook: Webhook, clock: Any) -> EmbeddedCluster:
    cluster = EmbeddedCluster(namespaces=("shop",), now=clock, admission=webhook)
    await cluster.create(definition(), field_manager="test")
    return cluster


async def test_a_write_is_stored_and_returned_through_the_webhook(cluster: EmbeddedCluster, webhook: Webhook) -> None:
    made = await cluster.create(shop("v1", address="High St, York"), field_manager="me")
    assert made["spec"] == {"address": "High St, York"}
    assert made["apiVersion"] == "example.com/v1"
    assert [version for version, _ in webhook.requests] == ["v2", "v1"]
    assert (await cluster.get(NEW))["spec"] == {"street": "High St", "city": "York"}


async def test_the_storage_version_needs_no_webhook(cluster: EmbeddedCluster, webhook: Webhook) -> None:
    await cluster.create(shop("v2", street="High St", city="York"), field_manager="me")
    live = await cluster.get(NEW)
    await cluster.update({**live, "spec": {"street": "Low St", "city": "York"}}, field_manager="me")
    assert (await cluster.list("example.com/v2", "Shop")).items[0]["spec"]["street"] == "Low St"
    assert not webhook.requests


async def test_reads_call_the_webhook_once_for_each_state(cluster: EmbeddedCluster, webhook: Webhook) -> None:
    await cluster.create(shop("v2", street="High St", city="York"), field_manager="me")
    specs = [(await cluster.get(OLD))["spec"] for _ in range(2)]
    assert specs == [{"address": "High St, York"}] * 2
    assert webhook.requests == [("v1", ["north"])]


@pytest.mark.parametrize("selector", ["", "!missing"])
async def test_a_list_converts_its_objects_in_one_request(
    cluster: EmbeddedCluster, webhook: Webhook, selector: str
) -> None:
    for name in ("a", "b", "c"):
        await cluster.create(shop("v2", name, street=name, city="York"), field_manager="me")
    page = await cluster.list("example.com/v1", "Shop", ListOptions(namespace="shop", label_selector=selector))
    assert [item["spec"]["address"] for item in page.items] == ["a, York", "b, York", "c, York"]
    assert webhook.requests == [("v1", ["a", "b", "c"])]


async def test_patches_and_applies_work_in_both_versions(cluster: EmbeddedCluster) -> None:
    await cluster.apply(shop("v1", address="High St, York"), field_manager="ann")
    await cluster.patch(NEW, {"spec": {"city": "Leeds"}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="bob"))
    found = await cluster.get(OLD)
    assert found["spec"] == {"address": "High St, Leeds"}
    owners = {entry["manager"]: entry["apiVersion"] for entry in found["metadata"]["managedFields"]}
    assert owners == {"bob": "example.com/v2"}
    with pytest.raises(ApiError, match=r'conflict with "bob" using example.com/v2: \.spec\.city$'):
        await cluster.apply(shop("v1", address="High St, York"), field_manager="ann")


async def test_a_watch_sees_converted_objects(cluster: EmbeddedCluster) -> None:
    await cluster.create(shop("v2", "old", street="a", city="York"), field_manager="me")
    watch = cluster.watch("example.com/v1", "Shop", WatchOptions(namespace="shop", resource_version="0"))
    first, bookmark = await anext(watch), await anext(watch)
    await cluster.create(shop("v2", "new", street="b", city="York"), field_manager="me")
    second = await anext(watch)
    assert bookmark.type is EventType.BOOKMARK
    assert [event.object["spec"]["address"] for event in (first, second)] == ["a, York", "b, York"]
    await watch.aclose()


async def test_a_deleted_object_with_a_finalizer_is_converted(cluster: EmbeddedCluster) -> None:
    manifest = shop("v1", address="High St, York")
    manifest["metadata"]["finalizers"] = ["example.com/wait"]
    await cluster.create(manifest, field_manager="me")
    await cluster.delete(OLD)
    assert "deletionTimestamp" in (await cluster.get(NEW))["metadata"]


async def test_labels_and_annotations_may_change_and_other_metadata_may_not(
    cluster: EmbeddedCluster, webhook: Webhook
) -> None:
    await cluster.create(shop("v2", street="High St", city="York"), field_manager="me")
    webhook.change = lambda manifest: {
        **manifest,
        "metadata": {**manifest["metadata"], "labels": {"a": "b"}, "finalizers": ["x/y"], "generation": 9},
    }
    metadata = (await cluster.get(OLD))["metadata"]
    assert metadata["labels"] == {"a": "b"}
    assert metadata["generation"] == 1
    assert "finalizers" not in metadata


async def test_converted_objects_are_pruned(cluster: EmbeddedCluster, webhook: Webhook) -> None:
    await cluster.create(shop("v2", street="High St", city="York"), field_manager="me")
    webhook.change = lambda manifest: {**manifest, "spec": {"address": "here", "unknown": "x"}, "extra": 1}
    found = await cluster.get(OLD)
    assert found["spec"] == {"address": "here"}
    assert "extra" not in found


async def test_a_changed_definition_is_used_at_once(cluster: EmbeddedCluster, webhook: Webhook) -> None:
    await cluster.create(shop("v2", street="High St", city="York"), field_manager="me")
    await cluster.get(OLD)
    changes = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    key = ObjectKey("apiextensions.k8s.io/v1", "CustomResourceDefinition", "shops.example.com")
    await cluster.patch(key, changes, PatchOptions(patch_type=PatchType.MERGE, field_manager="me"))
    assert (await cluster.get(OLD))["spec"] == {}
    assert len(webhook.requests) == 1


def changed(**fields: Any) -> Any:
    return lambda manifest: {**manifest, **fields}


def renamed(**fields: Any) -> Any:
    return lambda manifest: {**manifest, "metadata": {**manifest["metadata"], **fields}}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(
            changed(apiVersion="example.com/v3"),
            "returned invalid object at index 0: "
            "invalid groupVersion (expected example.com/v1, received example.com/v3)",
            id="another version",
        ),
        pytest.param(
            changed(kind="Store"),
            "returned invalid object at index 0: invalid kind (expected Shop, received Store)",
            id="another kind",
        ),
        pytest.param(
            renamed(name="south"),
            "returned invalid object: must have the same name: north != south",
            id="another name",
        ),
        pytest.param(
            renamed(namespace="other"),
            "returned invalid object: must have the same namespace: shop != other",
            id="another namespace",
        ),
        pytest.param(
            renamed(labels={"a": 1}),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
            id="a label that is a number",
        ),
        pytest.param(
            renamed(annotations=[]),
            "returned invalid metadata: invalid metadata.annotations of type []interface {} in converted object",
            id="annotations that are a list",
        ),
    ],
)
async def test_invalid_objects_are_errors(cluster: EmbeddedCluster, webhook: Webhook, change: Any, text: str) -> None:
    await cluster.create(shop("v2", street="High St", city="York"), field_manager="me")
    webhook.change = change
    with pytest.raises(ApiError) as caught:
        await cluster.get(OLD)
    assert (caught.value.code, caught.value.message) == (500, f"{PREFIX} {text}")


@pytest.mark.parametrize(
    ("response", "text"),
    [
        pytest.param({"uid": "other"}, "failed: expected response.uid=", id="another uid"),
        pytest.param({"convertedObjects": []}, "returned 0 objects, expected 1", id="no object"),
        pytest.param({"result": {"status": "Failure", "message": "no city"}}, "failed: no city", id="a failure"),
        pytest.param({"result": {}}, "failed: response.result.status was '', not 'Success'", id="no status"),
    ],
)
async def test_invalid_responses_are_errors(
    cluster: EmbeddedCluster, webhook: Webhook, response: dict[str, Any], text: str
) -> None:
    webhook.response = response
    with pytest.raises(ApiError) as caught:
        await cluster.create(shop("v1", address="High St, York"), field_manager="me")
    assert caught.value.code == 500
    assert caught.value.message.startswith(f"conversion webhook for example.com/v1, Kind=Shop {text}")


async def test_a_webhook_that_does_not_respond_is_an_error(cluster: EmbeddedCluster, webhook: Webhook) -> None:
    await cluster.create(shop("v2", street="High St", city="York"), field_manager="me")
    webhook.problem = 'Post "https://127.0.0.1:1/convert?timeout=30s": refused'
    with pytest.raises(ApiError, match="failed: Post"):
        await cluster.list("example.com/v1", "Shop")
