"""A process that registers its webhooks also applies its policies, with the privileges that it says it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from kubernetes.client import V1ConfigMap

from ocf.errors import ApiError, InvalidError
from ocf.objects import Manifest
from ocf.runtime.admission import JSONPatch, Policy, Url, Validation
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, WebhookOptions, running
from ocf_server import EmbeddedCluster

LOCAL: Final = WebhookOptions(address=Url("https://127.0.0.1"), namespace="ops", host="127.0.0.1", port=0)
POLICY: Final = Policy.of(V1ConfigMap, "settings", validations=[Validation("has(object.data)", "data must be set")])
OPERATOR: Final[Operator[Manifest]] = Operator(
    name="settings", owner=OwnerType("v1", "ConfigMap"), components=lambda _: (), policies=[POLICY]
)


def config(namespace: str = "default") -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "any", "namespace": namespace}}


@pytest.mark.parametrize("register", [True, False])
async def test_policies_are_applied_by_a_process_that_registers_until_it_ends(*, register: bool) -> None:
    cluster = EmbeddedCluster(namespaces=["ops"])
    options = ManagerOptions(listen=None, admission=replace(LOCAL, register=register), events=False)
    async with running(cluster, OPERATOR, options=options) as manager:
        await manager.started()
        if register:
            with pytest.raises(InvalidError, match="data must be set"):
                await cluster.create(config(), field_manager="user")
        # Its own namespace is left out.
        await cluster.create(config("ops"), field_manager="user")

    assert await cluster.create(config(), field_manager="user")


async def test_a_wrong_expression_ends_the_process_with_its_place() -> None:
    wrong = replace(OPERATOR, policies=[replace(POLICY, validations=[Validation("1")])])
    options = ManagerOptions(listen=None, admission=replace(LOCAL, register=True), events=False)

    with pytest.raises(ApiError, match=r"spec\.validations\[0\]\.expression"):
        async with running(EmbeddedCluster(namespaces=["ops"]), wrong, options=options) as manager:
            await manager.started()


def test_registering_needs_the_privileges_of_its_requests() -> None:
    both = replace(OPERATOR, policies=[replace(POLICY, mutations=[JSONPatch("[]")])])

    needed = replace(LOCAL, register=True).policy_rules(both)
    assert {(one.resource, one.verb, one.name) for one in needed} == {
        (f"{kind}admissionpolic{part}", verb, "" if verb == "create" else "settings")
        for kind in ("validating", "mutating")
        for part in ("ies", "ybindings")
        for verb in ("create", "get", "patch", "delete")
    }
    assert LOCAL.policy_rules(both) == frozenset()
