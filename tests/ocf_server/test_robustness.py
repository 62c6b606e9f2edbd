"""Random requests: each returns an object or raises an `ApiError`."""

import random
from contextlib import suppress
from typing import Any

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.schema.builtin import ApiResource, ListType, MapType, Scalar, StructType, Type, builtin_resource
from ocf_server import EmbeddedCluster

KINDS = [
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("batch", "v1", "CronJob"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("", "v1", "Secret"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema"),
]
JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "x",
    [],
    {},
    [None],
    [{}],
    {"a": None},
    {"": 1},
    10**20,
    [[1]],
    {"name": 5},
]
SAMPLES = {
    Scalar.TEXT: "x",
    Scalar.INT32: 1,
    Scalar.INT64: 2,
    Scalar.NUMBER: 1.5,
    Scalar.BOOLEAN: True,
    Scalar.BYTES: "YQ==",
    Scalar.TIME: "2026-01-01T00:00:00Z",
    Scalar.MICRO_TIME: "2026-01-01T00:00:00.000000Z",
    Scalar.QUANTITY: "1",
    Scalar.INT_OR_TEXT: 80,
}


class Writer:
    """Builds random manifests that are mostly valid."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 (junk, no secrets)

    def value(self, kind: Type, depth: int = 0) -> Any:
        if self.random.random() < 0.08 or depth > 7:
            return copy_json(self.random.choice(JUNK))
        if isinstance(kind, Scalar):
            return SAMPLES[kind]
        if isinstance(kind, ListType):
            return [self.value(kind.item, depth + 1) for _ in range(self.random.randint(0, 2))]
        if isinstance(kind, MapType):
            return {name: self.value(kind.value, depth + 1) for name in "ab"[: self.random.randint(0, 2)]}
        if isinstance(kind, StructType):
            share = 0.5 if depth < 2 else 0.15
            chosen = [name for name in kind.fields if self.random.random() < share]
            return {name: self.value(kind.fields[name].type, depth + 1) for name in chosen}
        return copy_json(self.random.choice(JUNK))

    def manifest(self, resource: ApiResource) -> Manifest:
        value = self.value(resource.type)
        manifest: Manifest = value if isinstance(value, dict) else {}
        metadata = manifest.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        if self.random.random() < 0.8:
            metadata = {"labels": metadata.get("labels"), "ownerReferences": metadata.get("ownerReferences")}
        if self.random.random() < 0.95:
            metadata |= {"name": "n", "namespace": "shop"}
        return {**manifest, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


async def send(cluster: EmbeddedCluster, writer: Writer, resource: ApiResource) -> None:
    rng, manifest = writer.random, writer.manifest(resource)
    part = rng.choice([None, None, Subresource.STATUS, Subresource.SCALE])
    key = ObjectKey(resource.api_version, resource.kind, "n", "shop" if resource.namespaced else "")
    match rng.randrange(6):
        case 0:
            await cluster.create(manifest, field_manager="a")
        case 1 | 2:
            await cluster.apply(manifest, field_manager="b", force=rng.random() < 0.5, subresource=part)
        case 3:
            await cluster.update(manifest, field_manager="c", subresource=part)
        case 4:
            change = rng.choice([manifest, [{"op": "add", "path": "/spec", "value": copy_json(rng.choice(JUNK))}]])
            kind = rng.choice(list(PatchType))
            await cluster.patch(key, change, PatchOptions(patch_type=kind, field_manager="d", subresource=part))
        case _:
            await cluster.delete(key)


@pytest.mark.parametrize("seed", range(2))
async def test_stored_objects_are_never_changed_in_place(cluster: EmbeddedCluster, seed: int) -> None:
    """Stored objects share parts with each other and with the history, so a write must create new objects."""
    writer = Writer(100 + seed)
    for _ in range(150):
        stored = [(manifest, copy_json(manifest)) for _, _, manifest in cluster._registry.store.everything()]
        resource = builtin_resource(*writer.random.choice(KINDS))
        assert resource is not None
        with suppress(ApiError):
            await send(cluster, writer, resource)

        assert all(manifest == before for manifest, before in stored)


@pytest.mark.parametrize("seed", range(4))
async def test_only_api_errors_are_raised(cluster: EmbeddedCluster, seed: int) -> None:
    """Each seed gives a different run of 400 requests, some accepted and some rejected."""
    writer = Writer(seed)
    codes = set()
    for _ in range(400):
        resource = builtin_resource(*writer.random.choice(KINDS))
        assert resource is not None
        try:
            await send(cluster, writer, resource)
        except ApiError as error:
            codes.add(error.code)

    assert cluster.requests.changes > 20
    assert {400, 404, 409, 422} <= codes
