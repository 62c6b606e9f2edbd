"""The limits that the page of limits claims are there, and none that was lifted is left in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf import component
from ocf.cli.app import app
from ocf.cluster import ListOptions
from ocf.component import Component, reconciling
from ocf.errors import BuildError, ForbiddenError, NotFoundError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap
from ocf_server import CustomKind, EmbeddedCluster
from tests.docs.reader import ROOT

TEXT: Final = " ".join((ROOT / "docs/project/limits.md").read_text(encoding="utf-8").split())
OWNER: Final = ObjectKey("example.com/v1", "Shop", "corner", "town")


def manifest(kind: str, spec: dict[str, Any], api_version: str = "v1") -> Manifest:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "a", "namespace": "default"},
        "spec": spec,
    }


async def quota() -> None:
    cluster = EmbeddedCluster()
    await cluster.create(manifest("ResourceQuota", {"hard": {"pods": "0"}}), field_manager="me")
    await cluster.create(manifest("Pod", {"containers": [{"name": "a", "image": "a"}]}), field_manager="me")


async def authorization() -> None:
    node = ObjectKey("v1", "Node", "a")
    with pytest.raises(NotFoundError):
        await EmbeddedCluster().acting_as("alice").get(node)
    with pytest.raises(ForbiddenError):
        await EmbeddedCluster(authorization=True).acting_as("alice").get(node)


async def cost() -> None:
    rule = "self.a.all(x, x.all(y, self.a.all(z, z.all(w, w.contains(y)))))"
    texts = {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}
    spec = {"type": "object", "properties": {"a": texts}, "x-kubernetes-validations": [{"rule": rule}]}
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {"kind": "Shop", "plural": "shops"}
    definition = manifest(
        "CustomResourceDefinition",
        {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
        "apiextensions.k8s.io/v1",
    )
    definition["metadata"] = {"name": "shops.example.com"}
    await EmbeddedCluster().create(definition, field_manager="me")


def built(namespace: str = "town", **options: Any) -> Component:
    resource = configmap.Builder({"metadata": {"name": "a", "namespace": namespace}})
    return component.Builder("web", owner=OWNER).with_resource(resource, **options).build()


async def elsewhere() -> None:
    kind = CustomKind("example.com", "v1", "Shop")
    cluster = EmbeddedCluster(kinds=[kind], namespaces=["town", "east"])
    shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "town"}}
    live = await cluster.create(shop, field_manager="me")
    for options, is_made in (({}, False), ({"unowned": True}, True)):
        with suppress(ReconcileError):
            async with reconciling(live, cluster) as context:
                await built("east", **options).reconcile(context)
        assert bool((await cluster.list("v1", "ConfigMap", ListOptions(namespace="east"))).items) is is_made


async def paths() -> None:
    for path in ("spec.containers[0].image", 'metadata.annotations["example.com/a"]'):
        with pytest.raises(BuildError, match="is not a field path"):
            built(ignore_fields=[path])


@pytest.mark.parametrize(
    ("claim", "check"),
    [
        ("quotas and limit ranges bound nothing", quota),
        ("unless it is [asked for](../testing/embedded-cluster.md#authorization), no authorization", authorization),
        ("no cost estimate of CEL rules", cost),
        (
            "Objects in another namespace than their owner are rejected, unless they are [registered as unowned]",
            elsewhere,
        ),
        ("An entry of a list, or a key with a dot in it (most annotations have one), cannot be named", paths),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_limit_is_there(claim: str, check: Callable[[], Awaitable[None]]) -> None:
    async def test() -> None:
        await check()

    assert claim in TEXT
    asyncio.run(test())


def test_the_page_knows_that_hpa_controllers_divide_the_autoscalers() -> None:
    assert "--sharding" in CliRunner().invoke(app, ["hpa-controller", "--help"]).stdout
    assert "one process at work" not in TEXT
