"""Machines that belong to no object are deleted, belong to their group again, or are left alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ocf.nodegroups import Machine, MachineRequest
from ocf.objects import ObjectKey
from tests.controllers.nodegroup.conftest import GROUP, Env, run


def test_a_machine_without_object_is_reported_then_deleted(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.provider.create(MachineRequest("workers-0123456789", "workers", "small", "fra"))
        await env.provider.create(MachineRequest("database", "", "small", "fra"))
        await env.tick()
        assert await env.machines() == 2
        assert env.events.reasons() == ["OrphanedMachine"]
        await env.tick()
        assert [each.name for each in await env.provider.list()] == ["database"]

    run(scenario())


# https://github.com/aws/karpenter-provider-aws/issues/2734, https://github.com/cloudpilot-ai/karpenter-provider-gcp/issues/242
def test_a_machine_without_object_belongs_to_its_group_again_while_pods_run_on_it(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(maxNodes=1)
        await env.provider.create(MachineRequest("workers-0123456789", "workers", "small", "fra"))
        env.clock.advance(timedelta(minutes=1))
        await env.add_pod()
        await env.others()
        await env.tick(5)
        (node,) = await env.objects("VPSieNode")
        assert (node["metadata"]["name"], node["spec"]["instanceType"]) == ("workers-0123456789", "small")
        assert await env.phases() == ["Ready"]
        notes = [each.note for each in env.events.all if each.reason == "OrphanedMachine"]
        assert notes == [
            "machine workers-0123456789 belongs to no VPSieNode",
            "machine workers-0123456789 belongs to the group again, as pods run on its node",
        ]
        # It counts for the maximum, and goes when it is idle.
        await env.add_pod("web-1", cpu="1500m")
        await env.tick(10)
        assert await env.machines() == 1
        await env.remove_pods()
        await env.tick(40)
        assert await env.machines() == 0

    run(scenario())


def test_a_machine_that_only_its_name_suggests_is_logged_once_and_left_alone(
    env: Env, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        await env.set_up()
        for name in ("backup-2026010112", "work-0123456789", "workers-gpu-0123456789"):
            await env.provider.create(MachineRequest(name, "", "small", "fra"))
        await env.tick(6)
        assert await env.machines() == 3
        assert env.events.all == []
        assert len([text for text in caplog.messages if "backup-2026010112 is left alone" in text]) == 1

    run(scenario())


@pytest.mark.parametrize("theirs", [True, False])
def test_a_machine_that_another_cluster_may_have_created_is_left_alone(
    env: Env, monkeypatch: pytest.MonkeyPatch, *, theirs: bool
) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.provider.create(MachineRequest("workers-0123456789", "workers", "small", "fra"))
        listed = env.provider.list

        async def marked() -> Sequence[Machine]:
            return [replace(each, may_be_foreign=theirs) for each in await listed()]

        monkeypatch.setattr(env.provider, "list", marked)
        await env.tick(6)
        assert await env.machines() == (1 if theirs else 0)

    run(scenario())


@pytest.mark.parametrize("how", ["in the same process", "by the label of its Node"])
def test_a_machine_of_a_group_that_is_gone_is_deleted(env: Env, how: str) -> None:
    """As after its finalizers and those of its nodes were removed by force."""

    async def scenario() -> None:
        await env.set_up(minNodes=1)
        await env.tick(4)
        (node,) = await env.objects("VPSieNode")
        for key in (ObjectKey.of(node), GROUP):
            await env.merge_patch(key, {"metadata": {"finalizers": None}}, by="user")
            await env.cluster.delete(key)
        if how == "by the label of its Node":
            env.restart()
        await env.tick(3)
        assert await env.machines() == 0

    run(scenario())


def test_a_machine_without_object_belongs_to_its_group_however_long_the_name_of_that_is(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.cluster.delete(GROUP)
        await env.add_group("w" * 63, offeringIDs=["small"])
        await env.add_pod(cpu="900m")
        await env.tick(6)
        (node,) = await env.objects("VPSieNode")
        await env.merge_patch(ObjectKey.of(node), {"metadata": {"finalizers": None}}, by="user")
        await env.cluster.delete(ObjectKey.of(node))
        await env.tick(6)
        assert [each["metadata"]["name"] for each in await env.objects("VPSieNode")] == [node["metadata"]["name"]]

    run(scenario())


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"instance_type": "c5.large"}, "instanceType", id="type"),
        pytest.param({"zone": "fra.1"}, "datacenterID", id="zone"),
        pytest.param({"instance_type": "s" * 200}, "instanceType", id="long type"),
    ],
)
def test_a_machine_without_object_that_no_object_can_describe_is_reported_once_and_alone(
    env: Env, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], field: str
) -> None:
    async def scenario() -> None:
        await env.set_up()
        for name in ("workers-0123456789", "workers-1123456789"):
            await env.provider.create(MachineRequest(name, "workers", "small", "fra"))
        env.clock.advance(timedelta(minutes=1))
        await env.provider.register_nodes(env.cluster)
        await env.add_pod(nodeName="workers-0123456789")
        listed = env.provider.list

        async def changed() -> Sequence[Machine]:
            return [replace(each, **changes) if each.name == "workers-0123456789" else each for each in await listed()]

        monkeypatch.setattr(env.provider, "list", changed)
        await env.tick(6)
        assert [each.name for each in await listed()] == ["workers-0123456789"]
        notes = [each.note for each in env.events.all if "no VPSieNode can be created for it" in each.note]
        assert len(notes) == 1
        assert f"spec.{field}: " in notes[0]

    run(scenario())
