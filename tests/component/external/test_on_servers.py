"""The record of an external resource, on both servers: what a definition stores, defaults and drops.

Public report: https://github.com/operator-framework/java-operator-sdk/pull/1543 (where the state of an external
resource is stored).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import Field

from ocf import component
from ocf.component import finalize, reconciling
from ocf.errors import NotFoundError, ReconcileError
from ocf.objects import ObjectKey
from ocf.primitives import external
from ocf.primitives.external import Record
from ocf.runtime.crds import CamelModel, CustomResource, OwnerStatus
from ocf.testing import RecordingCluster, VirtualClock
from tests.component.external.conftest import Bucket, Buckets, System
from tests.support import eventually

if TYPE_CHECKING:
    from tests.component.conftest import Server


class Nothing(CamelModel):
    """A spec without fields."""


class DepotStatus(OwnerStatus):
    external: dict[str, Record] = Field(default_factory=dict)


class Depot(CustomResource[Nothing, DepotStatus], group="external.example.com", version="v1"):
    """An owner whose status holds the record."""


class Shed(CustomResource[Nothing], group="external.example.com", version="v1"):
    """An owner whose status does not."""


class Owner:
    """An owner with a bucket on a server."""

    def __init__(self, server: Server, kind: type[CustomResource[Any, Any]]) -> None:
        cluster, namespace = server
        self.cluster = RecordingCluster(cluster)
        self.kind = kind
        self.key = ObjectKey("external.example.com/v1", kind.__name__, "corner", namespace)
        self.clock = VirtualClock()
        self.system = System()

    async def create(self) -> None:
        await self.cluster.apply(self.kind.definition(), field_manager="admin", force=True)
        metadata = {"name": "corner", "namespace": self.key.namespace}
        body = {"apiVersion": self.key.api_version, "kind": self.key.kind, "metadata": metadata, "spec": {}}
        await eventually(lambda: self.cluster.create(body, field_manager="admin"), ignore=(NotFoundError,))

    async def reconcile(self, size: int = 1) -> None:
        bucket = external.Builder(Buckets(self.system), name="corner", desired=Bucket(size=size)).with_targets("a/b@c")
        made = component.Builder("files", owner=self.key).with_resource(bucket).build()
        async with reconciling(await self.cluster.get(self.key), self.cluster, clock=self.clock) as context:
            if await finalize(context, made) is None:
                await made.reconcile(context)


async def test_a_record_survives_the_server_and_causes_no_further_write(server: Server) -> None:
    owner = Owner(server, Depot)
    await owner.create()
    await owner.reconcile()
    live = Depot.model_validate(await owner.cluster.get(owner.key))
    assert live.status is not None
    (record,) = live.status.external.values()
    assert (record.name, record.target, record.id) == ("corner", "a/b@c", "b-1")
    owner.cluster.requests.clear()
    await owner.reconcile()
    assert not owner.cluster.writes
    await owner.reconcile(size=2)
    assert owner.system.writes == ["apply@a/b@c", "apply@a/b@c"]
    await owner.cluster.delete(owner.key)
    await owner.reconcile()
    assert not owner.system.buckets
    with pytest.raises(NotFoundError):
        await owner.cluster.get(owner.key)


async def test_a_definition_without_the_field_is_an_error_and_nothing_is_made(server: Server) -> None:
    owner = Owner(server, Shed)
    await owner.create()
    for _ in range(2):
        with pytest.raises(ReconcileError, match=r"status\.external"):
            await owner.reconcile()
    assert not owner.system.writes
    await owner.cluster.delete(owner.key)
    await owner.reconcile()
    with pytest.raises(NotFoundError):
        await owner.cluster.get(owner.key)
