"""Other releases over HTTP: the version, discovery, OpenAPI."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from ocf_server import EmbeddedCluster
from ocf_server.http import serving


@asynccontextmanager
async def client(version: str, gates: Mapping[str, bool] | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    cluster = EmbeddedCluster(kubernetes_version=version, feature_gates=gates or {})
    async with serving(cluster) as server, aiohttp.ClientSession(server.url) as session:
        yield session


async def read(session: aiohttp.ClientSession, path: str) -> Any:
    async with session.get(path) as answer:
        return await answer.json()


@pytest.mark.parametrize(
    ("version", "minor", "git_version", "emulated"),
    [
        pytest.param("", "36", "v1.36.3", "36", id="the default"),
        pytest.param("1.36", "36", "v1.36.3", "36", id="the default by name"),
        pytest.param("1.33", "33", "v1.33.0", "33", id="a minor release"),
        pytest.param("v1.34.2+k3s1", "34", "v1.34.2", "34", id="a patch"),
        pytest.param("1.32", "32", "v1.32.0", None, id="before emulation"),
    ],
)
async def test_the_version_is_that_of_the_release(
    version: str, minor: str, git_version: str, emulated: str | None
) -> None:
    async with client(version) as session:
        found = await read(session, "/version")
    assert (found["minor"], found["gitVersion"], found.get("emulationMinor")) == (minor, git_version, emulated)


@pytest.mark.parametrize(("version", "is_served"), [("1.33", False), ("1.34", True)])
async def test_discovery_has_the_groups_of_the_release(version: str, *, is_served: bool) -> None:
    async with client(version) as session:
        groups = {group["name"] for group in (await read(session, "/apis"))["groups"]}
        async with session.get("/apis/resource.k8s.io/v1") as answer:
            status = answer.status
    assert ("resource.k8s.io" in groups, status) == (is_served, 200 if is_served else 404)


@pytest.mark.parametrize(
    ("version", "gates", "is_served"),
    [("1.32", {}, False), ("1.33", {}, True), ("1.33", {"InPlacePodVerticalScaling": False}, False)],
)
async def test_discovery_has_the_subresources_of_the_release(
    version: str, gates: Mapping[str, bool], *, is_served: bool
) -> None:
    async with client(version, gates) as session:
        names = {resource["name"] for resource in (await read(session, "/api/v1"))["resources"]}
    assert ("pods/resize" in names) is is_served
    assert "pods/status" in names


@pytest.mark.parametrize(("version", "has_it"), [("1.31", False), ("1.32", True)])
async def test_schemas_have_the_fields_of_the_release(version: str, *, has_it: bool) -> None:
    name = "io.k8s.api.core.v1.PodSpec"
    async with client(version) as session:
        newer = (await read(session, "/openapi/v3/api/v1"))["components"]["schemas"][name]
        older = (await read(session, "/openapi/v2"))["definitions"][name]
    for schema in (newer, older):
        assert ("resources" in schema["properties"]) is has_it
        assert "hostNetwork" in schema["properties"]


async def test_discovery_has_the_fields_of_a_subresource_in_the_order_of_the_real_server() -> None:
    async with client("") as session:
        resources = (await read(session, "/apis/apps/v1"))["resources"]
    scale = next(resource for resource in resources if resource["name"] == "deployments/scale")
    assert list(scale) == ["name", "singularName", "namespaced", "group", "version", "kind", "verbs"]
