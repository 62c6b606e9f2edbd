"""Owners whose status cannot hold the records of external resources: their definition shows it before any call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import ConfigDict, Field

from ocf import component
from ocf.component import Component
from ocf.errors import ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import external
from ocf.primitives.external import Record
from ocf.runtime.crds import CamelModel, CustomResource, OwnerStatus
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.component.external.conftest import Bucket, Buckets, System

REFUSED = (
    r"external/Bucket/corner has to be recorded in status\.external of Shed, whose definition has no such field: add "
    r"the field to the schema of the status, such as `external: dict\[str, Record\] = \{\}` in its model"
)


class Nothing(CamelModel):
    """A spec without fields."""


class Shed(CustomResource[Nothing], group="example.com", version="v1"):
    """An owner whose status does not hold the records."""


class DepotStatus(OwnerStatus):
    external: dict[str, Record] = Field(default_factory=dict)


class AliasStatus(OwnerStatus):
    outside: dict[str, Record] = Field(default_factory=dict, alias="external")


class OpenStatus(OwnerStatus):
    model_config = ConfigDict(extra="allow")


class Whole(CamelModel):
    """A model of an object whose definition another project has."""

    api_version: str
    kind: str
    metadata: dict[str, Any]


class Depot(CustomResource[Nothing, DepotStatus], group="example.com", version="v1"):
    """An owner with the field."""


class Alias(CustomResource[Nothing, AliasStatus], group="example.com", version="v1"):
    """An owner with the field, under another name in Python."""


class Open(CustomResource[Nothing, OpenStatus], group="example.com", version="v1"):
    """An owner whose status keeps fields that the model does not know."""


def defined(schema: Manifest | None) -> OwnerType[Any]:
    version: Manifest = {"name": "v1", "served": True, "storage": True}
    if schema is not None:
        version["schema"] = {"openAPIV3Schema": schema}
    names = {"kind": "Shed", "plural": "sheds"}
    definition = {"spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}}
    return OwnerType("example.com/v1", "Shed", None, definition)


def status_schema(**status: Any) -> Manifest:
    return {"type": "object", "properties": {"status": {"type": "object", **status}}}


PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        pytest.param(OwnerType.of(Shed), False, id="a model without the field"),
        pytest.param(OwnerType.of(Depot), True, id="a model with it"),
        pytest.param(OwnerType.of(Alias), True, id="a model with it under an alias"),
        pytest.param(OwnerType.of(Open), True, id="a model that keeps unknown fields"),
        pytest.param(OwnerType("example.com/v1", "Shed", Whole), True, id="a model, and an unknown definition"),
        pytest.param(OwnerType("v1", "Secret"), True, id="neither"),
        pytest.param(defined(status_schema()), False, id="a schema without the field"),
        pytest.param(defined({"type": "object", "properties": {}}), False, id="a schema without a status"),
        pytest.param(defined(status_schema(properties={"external": {"type": "object"}})), True, id="a schema with it"),
        pytest.param(defined(status_schema(**PRESERVE)), True, id="a status that keeps unknown fields"),
        pytest.param(defined({"type": "object", **PRESERVE}), True, id="an object that keeps unknown fields"),
        pytest.param(
            defined(status_schema(additionalProperties={"type": "object"})), True, id="a status that is a map"
        ),
        pytest.param(defined(None), True, id="no schema"),
    ],
)
def test_whether_a_status_may_hold_records(owners: OwnerType[Any], expected: bool) -> None:
    assert owners.may_store("external") is expected


def sheds(client: Buckets, **options: Any) -> Operator[Shed]:
    def components(shed: Shed) -> Component:
        bucket = external.Builder(client, name="corner", desired=Bucket())
        return component.Builder("files", owner=shed.key).with_resource(bucket, **options).build()

    return Operator(name="sheds", owner=OwnerType.of(Shed), components=components)


async def test_a_tool_sees_it_before_the_operator_runs() -> None:
    shed = Shed.model_validate({"metadata": {"name": "corner", "namespace": "town"}, "spec": {}})
    with pytest.raises(ConfigError, match=REFUSED):
        await sheds(Buckets(System())).callbacks.components(shed, None)
    # What is only read has no record.
    assert await sheds(Buckets(System()), read_only=True).callbacks.components(shed, None)


def test_nothing_is_called_nor_held_and_the_condition_names_the_remedy() -> None:
    key = ObjectKey("example.com/v1", "Shed", "corner", "town")

    async def check() -> None:
        client, cluster = Buckets(System()), EmbeddedCluster(namespaces=["town"])
        await cluster.create(Shed.definition(), field_manager="me")
        async with running(cluster, sheds(client), options=ManagerOptions(listen=None, clock=LoopClock())):
            body = {"apiVersion": "example.com/v1", "kind": "Shed", "metadata": {"name": "corner", "namespace": "town"}}
            await cluster.create({**body, "spec": {}}, field_manager="me")
            await asyncio.sleep(60)
            live = await cluster.get(key)
            assert "has to be recorded in status.external of Shed" in live["status"]["conditions"][0]["message"]
            assert client.system.calls == []
            await cluster.delete(key)
            await asyncio.sleep(10)
            with pytest.raises(NotFoundError):
                await cluster.get(key)

    run_in_virtual_time(check())
