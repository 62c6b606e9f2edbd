"""Migration to another storage version, on the embedded and on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Cluster, InterceptingCluster, Request, Verb
from ocf.errors import ApiError, ConfigError, ConflictError, ExpiredError, InvalidError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import SecretCertificates, Url, Webhooks, serving, with_conversion
from ocf.runtime.crds import VersionedResource, crd, migrate_storage, migration_rules
from ocf_server import EmbeddedCluster
from tests.runtime.admission.test_conversion_end_to_end import until_accepted
from tests.support import eventually

from .shop_versions import SHOPS, V1, V2, V3

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest.fixtures import Envtest

HOST: Final = "127.0.0.1"
NAMES: Final = ("a", "b", "c")


def shops(group: str, stored: str) -> VersionedResource:
    """Return shops of a group, stored in another version."""
    versions = [replace(version, stored=version.name == stored) for version in (V1, V2, V3)]
    return replace(SHOPS, group=group, versions=versions)


@dataclass(frozen=True)
class Stored:
    """Three shops, stored in v1, whose definition then changed its storage version to v3."""

    cluster: Cluster
    namespace: str
    resource: VersionedResource

    async def definition(self) -> Manifest:
        key = ObjectKey("apiextensions.k8s.io/v1", "CustomResourceDefinition", self.resource.name)
        return await self.cluster.get(key)

    async def get(self, name: str) -> Manifest:
        return await self.cluster.get(ObjectKey(f"{self.resource.group}/v3", "Shop", name, self.namespace))


async def until_observed(cluster: Cluster, key: ObjectKey) -> None:
    """Wait until the server stores objects in the new version: then an update without a change is a write."""

    async def is_written() -> bool:
        live = await cluster.get(key)
        updated = await cluster.update(live, field_manager="user")
        changed: bool = updated["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]
        return changed

    await eventually(is_written)


@asynccontextmanager
async def stored(cluster: Cluster, namespace: str) -> AsyncIterator[Stored]:
    group = f"{namespace}.example.com"
    old, new = shops(group, "v1"), shops(group, "v3")
    webhooks = Webhooks("stored-shops", conversions=[new])
    certificates = SecretCertificates(cluster, webhooks, Url(f"https://{HOST}"), namespace=namespace)
    async with serving(webhooks, certificates=certificates, host=HOST, port=0) as server:
        await cluster.apply(with_conversion(old, Url(server.url)), field_manager="setup")
        await server.refresh()
        for name in NAMES:
            metadata = {"name": name, "namespace": namespace}
            given = {"apiVersion": f"{group}/v1", "kind": "Shop", "metadata": metadata, "spec": {"address": "x, y"}}
            await until_accepted(lambda given=given: cluster.create(given, field_manager="user"))  # type: ignore[misc]
        await cluster.apply(with_conversion(new, Url(server.url)), field_manager="setup")
        await until_observed(cluster, ObjectKey(f"{group}/v3", "Shop", NAMES[0], namespace))
        try:
            yield Stored(cluster, namespace, new)
        finally:
            await cluster.delete(ObjectKey.of(new.definition()))


@pytest.fixture(params=["embedded", "real"])
async def given(request: pytest.FixtureRequest) -> AsyncIterator[Stored]:
    if request.param == "embedded":
        async with stored(EmbeddedCluster(), "default") as found:
            yield found
        return
    envtest: Envtest = request.getfixturevalue("envtest")
    cluster: ApiServerCluster
    async with await envtest.plane.cluster() as cluster, stored(cluster, envtest.namespace) as found:
        yield found


async def test_afterwards_former_versions_can_be_removed(given: Stored) -> None:
    only = crd(given.resource.group, V3, kind="Shop")
    before = [await given.get(name) for name in NAMES]
    assert (await given.definition())["status"]["storedVersions"] == ["v1", "v3"]
    with pytest.raises(InvalidError, match=r"status.storedVersions\[0\]"):
        await given.cluster.update({**await given.definition(), "spec": only["spec"]}, field_manager="setup")

    assert await migrate_storage(given.cluster, given.resource, field_manager="migration") == 3

    assert (await given.definition())["status"]["storedVersions"] == ["v3"]
    await given.cluster.update({**await given.definition(), "spec": only["spec"]}, field_manager="setup")
    after = [await until_accepted(lambda name=name: given.get(name)) for name in NAMES]  # type: ignore[misc]
    assert [each["spec"] for each in after] == [each["spec"] for each in before]
    assert [each["metadata"]["generation"] for each in after] == [1, 1, 1]


async def test_a_migrated_resource_is_left_alone(given: Stored) -> None:
    await migrate_storage(given.cluster, given.resource, field_manager="migration")
    versions = [(await given.get(name))["metadata"]["resourceVersion"] for name in NAMES]
    assert await migrate_storage(given.cluster, given.resource, field_manager="migration") == 0
    assert [(await given.get(name))["metadata"]["resourceVersion"] for name in NAMES] == versions


@pytest.fixture
async def embedded() -> AsyncIterator[Stored]:
    async with stored(EmbeddedCluster(), "default") as found:
        yield found


class Failing(InterceptingCluster):
    """Raises an error once, instead of the first request with a verb for shops."""

    def __init__(self, cluster: Cluster, verb: Verb, error: ApiError) -> None:
        super().__init__(cluster)
        self._verb, self._errors = verb, [error]

    async def intercept(self, request: Request, send: Any) -> Any:
        if request.verb is self._verb and request.kind == "Shop" and self._errors:
            raise self._errors.pop()
        return await send()


@pytest.mark.parametrize(
    ("verb", "error", "written"),
    [
        pytest.param(Verb.UPDATE, ConflictError("changed"), 2, id="an object that another client has written"),
        pytest.param(Verb.LIST, ExpiredError("too old"), 3, id="a continue token that has expired"),
    ],
)
async def test_changes_meanwhile_are_no_error(embedded: Stored, verb: Verb, error: ApiError, written: int) -> None:
    cluster = Failing(embedded.cluster, verb, error)
    assert await migrate_storage(cluster, embedded.resource, field_manager="migration") == written
    assert (await embedded.definition())["status"]["storedVersions"] == ["v3"]


async def test_an_object_that_cannot_be_written_keeps_the_stored_versions(embedded: Stored) -> None:
    cluster = Failing(embedded.cluster, Verb.UPDATE, InvalidError("spec is invalid"))
    with pytest.raises(InvalidError):
        await migrate_storage(cluster, embedded.resource, field_manager="migration")
    assert (await embedded.definition())["status"]["storedVersions"] == ["v1", "v3"]


async def test_a_definition_with_another_storage_version_is_an_error(embedded: Stored) -> None:
    other = shops(embedded.resource.group, "v2")
    with pytest.raises(ConfigError, match=r"stores v3, expected v2: apply the new definition first$"):
        await migrate_storage(embedded.cluster, other, field_manager="migration")


def test_the_privileges_are_the_least() -> None:
    found = {(one.resource, one.verb, one.name) for one in migration_rules(SHOPS)}
    assert found == {
        ("shops", "list", ""),
        ("shops", "update", ""),
        ("customresourcedefinitions", "get", SHOPS.name),
        ("customresourcedefinitions/status", "update", SHOPS.name),
    }
