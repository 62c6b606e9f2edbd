"""HTTP server: allowed clients, limits of bodies, documents, and injected faults."""

import asyncio
import gzip
import io
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ocf.cluster import Cluster
from ocf.cluster.request_log import Verb
from ocf.errors import ConfigError
from ocf.objects import ObjectKey
from ocf.testing import faults
from ocf.testing.fault_cluster import FaultyCluster
from ocf.testing.faults import Fault
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from ocf_server.http.preload import load_manifests
from ocf_server.http.server import HttpServer

Client = Callable[..., Awaitable[Any]]
PATH = "/api/v1/namespaces/shop/configmaps"


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}


def disturb(server: HttpServer, *planned: Fault) -> FaultyCluster:
    def wrap(cluster: Cluster) -> Cluster:
        return FaultyCluster(cluster, planned)

    wrapped = server.wrap(wrap)
    assert isinstance(wrapped, FaultyCluster)
    return wrapped


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.com", "::"])  # noqa: S104 (it is rejected)
async def test_the_server_listens_on_loopback_only(host: str) -> None:
    with pytest.raises(ConfigError, match="the server listens only on"):
        async with serving(EmbeddedCluster(), host=host):
            pass


@pytest.mark.parametrize("header", [{"Host": "example.com"}, {"Origin": "https://example.com"}], ids=["host", "origin"])
async def test_requests_of_web_pages_are_rejected(ask: Client, header: dict[str, str]) -> None:
    """Neither a host name that resolves to loopback nor a page of another origin is accepted."""
    reply = await ask("GET", "/api/v1/namespaces", **header)
    assert (reply.status, reply.json["reason"]) == (403, "Forbidden")


async def test_the_error_names_a_port_that_is_in_use(server: HttpServer) -> None:
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
        async with serving(EmbeddedCluster(), port=port):
            pass


async def test_a_body_larger_than_three_mebibytes_is_rejected(ask: Client, cluster: EmbeddedCluster) -> None:
    version = cluster.resource_version
    reply = await ask("POST", PATH, io.BytesIO(b"x" * (3 * 1024 * 1024 + 1)))
    assert (reply.status, reply.json["message"]) == (413, "Request entity too large: limit is 3145728")
    assert cluster.resource_version == version


async def test_the_size_limit_applies_to_the_decompressed_body(ask: Client) -> None:
    packed = gzip.compress(b"x" * (64 * 1024 * 1024))
    assert (await ask("POST", PATH, packed, Content_Encoding="gzip")).status in (400, 413)


@pytest.mark.parametrize("kind", ["application/json", "application/yaml"])
@pytest.mark.parametrize("depth", [101, 5_000, 100_000])
async def test_deep_nesting_is_rejected(ask: Client, kind: str, depth: int) -> None:
    body = '{"a":' + "[" * depth + "]" * depth + "}"
    reply = await ask("POST", PATH, body, kind=kind)
    assert (reply.status, reply.json["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
async def test_an_invalid_json_number_is_rejected(ask: Client, number: str) -> None:
    assert (await ask("POST", "/apis/example.com/v1/namespaces/shop/shops", f'{{"spec": {number}}}')).status == 400


async def test_every_kind_has_a_table_with_a_name_column(ask: Client) -> None:
    """List every kind that supports it as an empty table."""
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    groups = (await ask("GET", "/apis")).json["groups"]
    paths = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    seen = 0
    for path in paths:
        for resource in (await ask("GET", path)).json["resources"]:
            if "list" in resource["verbs"]:
                found = (await ask("GET", f"{path}/{resource['name']}", Accept=table)).json
                assert "Name" in [column["name"] for column in found["columnDefinitions"]]
                seen += 1
    assert seen > 50


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_every_version_of_a_custom_kind_has_the_hash_of_the_storage_version(
    version: str, ask: Client, cluster: EmbeddedCluster
) -> None:
    """The hash is that of a real API server (1.36.3)."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    names = {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    }
    await cluster.create(definition, field_manager="test")
    shops = (await ask("GET", f"/apis/example.com/{version}")).json["resources"][0]
    assert (shops["kind"], shops["storageVersionHash"]) == ("Shop", "Fp1tg6pgJAs=")


async def test_every_group_has_an_openapi_document_with_its_kinds(ask: Client) -> None:
    index = (await ask("GET", "/openapi/v3")).json["paths"]
    for place in ("api/v1", "apis/apps/v1", "apis/example.com/v1"):
        document = (await ask("GET", index[place]["serverRelativeURL"])).json
        assert document["paths"]
        assert document["components"]["schemas"]
    older = (await ask("GET", "/openapi/v2")).json
    assert "com.example.v1.Shop" in older["definitions"]


async def test_clients_can_request_metadata_only(ask: Client) -> None:
    await ask("POST", PATH, {**config_map("a"), "data": {"a": "b"}})
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    found = (await ask("GET", PATH, Accept=accept)).json
    assert found["kind"] == "PartialObjectMetadataList"
    assert [set(item) for item in found["items"]] == [{"kind", "apiVersion", "metadata"}]


async def test_clients_can_request_yaml(ask: Client) -> None:
    await ask("POST", PATH, config_map("a"))
    reply = await ask("GET", f"{PATH}/a", Accept="application/yaml")
    assert reply.headers["Content-Type"] == "application/yaml"
    assert "name: a\n" in reply.text


async def test_a_delete_responds_with_the_object_or_a_status(ask: Client) -> None:
    """The object is returned while finalizers block its deletion, a Status when it is deleted."""
    held = config_map("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await ask("POST", PATH, held)
    assert "deletionTimestamp" in (await ask("DELETE", f"{PATH}/a")).json["metadata"]
    await ask("POST", PATH, config_map("b"))
    gone = (await ask("DELETE", f"{PATH}/b")).json
    assert (gone["status"], gone["details"]["kind"]) == ("Success", "configmaps")


async def test_a_collection_is_deleted_by_selector(ask: Client) -> None:
    for name, tier in (("a", "front"), ("b", "back")):
        await ask("POST", PATH, {**config_map(name), "metadata": {"name": name, "labels": {"tier": tier}}})
    await ask("DELETE", f"{PATH}?labelSelector=tier%3Dfront")
    assert [item["metadata"]["name"] for item in (await ask("GET", PATH)).json["items"]] == ["b"]


async def test_a_dry_run_stores_nothing(ask: Client, cluster: EmbeddedCluster) -> None:
    version = cluster.resource_version
    assert (await ask("POST", f"{PATH}?dryRun=All", config_map("a"))).status == 201
    assert cluster.resource_version == version


class TestFaults:
    async def test_an_injected_429_has_a_retry_after_header(self, ask: Client, server: HttpServer) -> None:
        disturb(server, faults.too_many_requests(retry_after=7))
        reply = await ask("GET", PATH)
        assert (reply.status, reply.headers["Retry-After"]) == (429, "7")
        assert reply.json["details"]["retryAfterSeconds"] == 7

    async def test_a_lost_reply_closes_the_connection_after_the_write(
        self, ask: Client, server: HttpServer, cluster: EmbeddedCluster
    ) -> None:
        faulty = disturb(server, faults.lost_reply())
        with pytest.raises(aiohttp.ClientError):
            await ask("POST", PATH, config_map("a"))
        assert await cluster.get(ObjectKey("v1", "ConfigMap", "a", "shop"))
        faulty.assert_all_injected()

    async def test_a_stale_read_returns_the_previous_state(self, ask: Client, server: HttpServer) -> None:
        disturb(server, faults.stale(kind="ConfigMap"))
        await ask("POST", PATH, {**config_map("a"), "data": {"a": "1"}})
        await ask("PUT", f"{PATH}/a", {**config_map("a"), "data": {"a": "2"}})
        assert (await ask("GET", f"{PATH}/a")).json["data"] == {"a": "1"}
        assert (await ask("GET", f"{PATH}/a")).json["data"] == {"a": "2"}

    async def test_a_rejected_watch_is_a_response_and_an_expired_one_an_event(
        self, ask: Client, server: HttpServer
    ) -> None:
        disturb(server, faults.server_error(503, verbs={Verb.WATCH}), faults.expired(first=2))
        assert (await ask("GET", f"{PATH}?watch=1")).status == 503
        expired = await ask("GET", f"{PATH}?watch=1")
        assert (expired.status, expired.json["type"], expired.json["object"]["code"]) == (200, "ERROR", 410)

    async def test_a_watch_with_dropped_events_sends_nothing(
        self, ask: Client, server: HttpServer, cluster: EmbeddedCluster
    ) -> None:
        disturb(server, faults.dropped_event(times=None))
        watching = asyncio.ensure_future(ask("GET", f"{PATH}?watch=1&timeoutSeconds=1"))
        while not cluster._registry.store._waiting:  # noqa: ASYNC110 (no event to wait for)
            await asyncio.sleep(0.01)
        await cluster.create(config_map("a"), field_manager="test")
        assert (await watching).text == ""

    async def test_warnings_reach_the_client_through_a_wrapper(self, ask: Client, server: HttpServer) -> None:
        disturb(server)
        reply = await ask("POST", PATH, {**config_map("a"), "colour": "red"})
        assert reply.warnings == ('299 - "unknown field \\"colour\\""',)


async def test_manifests_are_loaded_in_the_order_of_their_dependencies(cluster: EmbeddedCluster) -> None:
    """Namespaces come before their objects, lists are split, and a missing namespace is set."""
    inside = {**config_map("a"), "metadata": {"name": "a", "namespace": "new"}}
    without_namespace = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
    await load_manifests(cluster, [{"kind": "List", "items": [inside, without_namespace]}, home], field_manager="test")
    assert await cluster.get(ObjectKey("v1", "ConfigMap", "b", "default"))
    with pytest.raises(ConfigError, match="Nothing x cannot be applied"):
        await load_manifests(
            cluster, [{"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "x"}}], field_manager="test"
        )


def test_a_kubeconfig_is_private_and_replaced_atomically(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("old")
    path.chmod(0o644)
    write_kubeconfig({"kind": "Config"}, path)
    assert (path.stat().st_mode & 0o777, path.read_text()) == (0o600, '{\n "kind": "Config"\n}')
    assert [one.name for one in tmp_path.iterdir()] == ["kubeconfig"]
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        write_kubeconfig({}, tmp_path / "none" / "kubeconfig")


async def test_watches_stay_open_while_clients_hold_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch is a request that is processed, however long: connections without a request make place for others."""
    monkeypatch.setattr("ocf.http.limits.open_files_limit", lambda: 16)
    cluster = EmbeddedCluster(namespaces=["shop"])
    async with serving(cluster) as server, aiohttp.ClientSession(server.url) as session:
        watches = [await session.get(f"{PATH}?watch=true") for _ in range(6)]
        host, port = server.url.removeprefix("http://").split(":")
        held = [await asyncio.open_connection(host, int(port)) for _ in range(30)]
        await session.post(PATH, json=config_map("corner"))
        for watch in watches:
            assert b'"name":"corner"' in (await watch.content.readline()).replace(b" ", b"")
            watch.close()
        for _, writer in held:
            writer.close()
