"""Changes of a value against the one that was handled last; on both servers.

Public reports: https://github.com/nolar/kopf/issues/1087 (the last handled state is too large for an annotation),
https://github.com/nolar/kopf/issues/966 (an annotation is copied with its object, which then counts as handled),
https://github.com/zalando-incubator/kopf/issues/308 (a schema drops the record),
https://github.com/stakater/Reloader/issues/1144 (a change during a restart is lost).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.component import reconciling
from ocf.errors import ConfigError, ManifestError, OcfError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import FaultyCluster, RecordingCluster, faults
from ocf_server import EmbeddedCluster

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from tests.component.conftest import Env


class Restarts:
    """An operator that restarts something when a value changes."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.values: list[Any] = []
        self.fails = False
        self.sent = 0

    async def reconcile(self, value: Any, through: Cluster | None = None, *, field: str = "restartedAt") -> None:
        sent = RecordingCluster(through or self.env.cluster)
        try:
            live = await self.env.owner_manifest()
            async with (
                reconciling(live, sent, clock=self.env.clock) as context,
                context.handling(field, value) as changed,
            ):
                if changed:
                    self.values.append(value)
                    if self.fails:
                        raise ReconcileError("restarts", "no pod answers")
        finally:
            self.sent = len(sent.requests)

    async def stored(self) -> Any:
        return (await self.env.read_status(self.env.owner)).get("restartedAt")


@pytest.fixture
def restarts(env: Env) -> Restarts:
    return Restarts(env)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(["monday", "tuesday"], id="texts"),
        pytest.param([1, 2], id="numbers"),
        pytest.param([{"at": "monday", "pods": ["a"]}, {"at": "monday", "pods": ["a", "b"]}], id="maps"),
        pytest.param([False, True], id="booleans"),
        pytest.param(["x" * 300_000, "y"], id="a value that no annotation can hold"),
    ],
)
@pytest.mark.promise("handled", runs="5 kinds of values that change, go and return, on a real API server, too")
async def test_each_change_is_handled_once(restarts: Restarts, values: list[Any]) -> None:
    first, second = values
    await restarts.reconcile(None)
    assert restarts.values == []
    for value in (first, first, first, second, second, None, None, first, first):
        await restarts.reconcile(value)
    assert restarts.values == [first, second, None, first]
    assert await restarts.stored() == first


async def test_nothing_is_sent_without_a_change(restarts: Restarts) -> None:
    await restarts.reconcile("monday")
    before = restarts.sent
    await restarts.reconcile("monday")
    assert (before, restarts.sent) == (1, 0)


@pytest.mark.promise("handled", runs="a change whose handling fails, on a real API server, too")
async def test_a_change_whose_handling_fails_is_handled_again(restarts: Restarts) -> None:
    await restarts.reconcile("monday")
    restarts.fails = True
    for _ in range(2):
        with pytest.raises(ReconcileError):
            await restarts.reconcile("tuesday")
        assert await restarts.stored() == "monday"
    restarts.fails = False
    await restarts.reconcile("tuesday")
    await restarts.reconcile("tuesday")
    assert (restarts.values, await restarts.stored()) == (["monday", *["tuesday"] * 3], "tuesday")


async def test_a_change_back_before_it_was_handled_is_none(restarts: Restarts) -> None:
    await restarts.reconcile("monday")
    restarts.fails = True
    with pytest.raises(ReconcileError):
        await restarts.reconcile("tuesday")
    await restarts.reconcile("monday")
    assert restarts.values == ["monday", "tuesday"]


async def test_a_value_that_cannot_be_stored_now_is_an_error_and_is_handled_again(restarts: Restarts) -> None:
    faulty = FaultyCluster(restarts.env.cluster, [faults.server_error(503, subresource="status", times=1)])
    with pytest.raises(OcfError):
        await restarts.reconcile("monday", faulty)
    assert await restarts.stored() is None
    await restarts.reconcile("monday", faulty)
    await restarts.reconcile("monday", faulty)
    assert restarts.values == ["monday", "monday"]


async def test_a_copy_of_the_owner_has_handled_nothing(restarts: Restarts) -> None:
    """The API server drops the status of an object that is created."""
    await restarts.reconcile("monday")
    env = restarts.env
    live = await env.owner_manifest()
    await env.cluster.delete(env.owner)
    metadata = {key: live["metadata"].get(key, {}) for key in ("name", "namespace", "annotations", "labels")}
    await env.cluster.create({**live, "metadata": metadata}, field_manager="restore")
    await restarts.reconcile("monday")
    assert restarts.values == ["monday", "monday"]


@pytest.mark.embedded_only("nothing is sent")
async def test_what_cannot_be_stored_is_an_error_before_anything_is_handled(restarts: Restarts) -> None:
    with pytest.raises(ManifestError, match=r"status.restartedAt: a set is not a JSON value"):
        await restarts.reconcile({"monday"})
    with pytest.raises(ConfigError, match="use a field of its own"):
        await restarts.reconcile("monday", field="conditions")
    assert restarts.values == []


def definition(**status: Manifest) -> Manifest:
    """Return the definition of a kind whose status has these fields."""
    schema = {"type": "object", "properties": {"status": {"type": "object", "properties": status}}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    names = {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


WITH_DEFAULT: Final = {
    "type": "object",
    "properties": {"at": {"type": "string"}, "pods": {"type": "integer", "default": 1}},
}


@pytest.mark.promise("handled", runs="a field that the schema lacks, with 6 values, and one with a default")
@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ("x", {}),
        (0, {}),
        (False, {}),
        ("", {}),
        ([], {}),
        ({}, {}),
        ({"at": "x"}, {"handled": WITH_DEFAULT}),
    ],
    ids=repr,
)
async def test_a_value_that_is_not_stored_as_it_is_compared_is_an_error(
    value: Any, fields: dict[str, Manifest]
) -> None:
    cluster = EmbeddedCluster(namespaces=["shop"])
    await cluster.apply(definition(**fields), field_manager="admin")
    shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "demo", "namespace": "shop"}}
    owner = await cluster.create(shop, field_manager="user")
    for _ in range(2):
        with pytest.raises(ReconcileError, match=r"does not store status\.handled"):
            async with (
                reconciling(await cluster.get(ObjectKey.of(owner)), cluster) as context,
                context.handling("handled", value),
            ):
                pass


@pytest.mark.parametrize("value", [0, False, "", [], {}], ids=repr)
async def test_an_empty_value_is_handled_once(restarts: Restarts, value: Any) -> None:
    for one in ("x", value, value):
        await restarts.reconcile(one)
    assert restarts.values == ["x", value]
