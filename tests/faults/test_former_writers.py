"""Faults: each write is disturbed while fields of former writers are taken over, and while defaults are claimed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType, Subresource, Verb
from ocf.cluster.interceptor import describe
from ocf.component import Component
from ocf.objects import copy_json
from ocf.objects.managed_fields import ManagedFields
from ocf.testing import FaultyCluster, assert_quiet, crash_at_each_write, faults
from ocf.testing.simulated_process import Disturbance
from tests.faults.test_moves import WEB, Operator, web

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.objects import Manifest
    from ocf_server import EmbeddedCluster

SIDECAR: Final = {"name": "proxy", "image": "proxy:1"}


def of(*resources: Any) -> Component:
    builder = component.Builder("web", condition_type="WebReady").with_former_managers("former")
    for resource in resources:
        builder.with_resource(resource)
    return builder.build()


def theirs() -> Manifest:
    """Return the Deployment as a former writer made it: with another label, another container, and a count."""
    made: Manifest = copy_json(web().render())
    made["metadata"]["labels"] = {"by": "former"}
    made["spec"]["replicas"] = 6
    made["spec"]["template"]["spec"]["containers"].append(SIDECAR)
    return made


async def by_update(cluster: EmbeddedCluster, _operator: Operator) -> None:
    await cluster.create(theirs(), field_manager="former")


async def by_apply(cluster: EmbeddedCluster, _operator: Operator) -> None:
    await cluster.apply(theirs(), field_manager="former")


async def by_an_earlier_owner(cluster: EmbeddedCluster, _operator: Operator) -> None:
    await cluster.apply(theirs(), field_manager="ocf/Shop/web/earlier-uid")


async def by_the_component(cluster: EmbeddedCluster, operator: Operator) -> None:
    operator.components = [of(web())]
    await operator.reconcile(cluster)
    counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), 1)
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="controller", subresource=Subresource.STATUS)
    await cluster.patch(WEB, {"status": {"observedGeneration": 1, **counts}}, options)
    await operator.reconcile(cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A Deployment with a past, and what a component makes of it.

    Args:
        make: Makes the Deployment.
        component: The component whose writes are disturbed.
    """

    make: Any
    component: Component


PASTS: Final = {
    "a former writer that updates": Past(make=by_update, component=of(web())),
    "a former writer that applies": Past(make=by_apply, component=of(web())),
    "an earlier owner": Past(make=by_an_earlier_owner, component=of(web())),
    "a default that the new strategy forbids": Past(
        make=by_the_component, component=of(web(strategy={"type": "Recreate"}))
    ),
}


async def begun(past: Past) -> tuple[EmbeddedCluster, Operator]:
    operator = Operator()
    cluster = await operator.new_cluster([])
    await past.make(cluster, operator)
    operator.components = [past.component]
    return cluster, operator


@pytest.mark.promise("former-writers", runs="each write of 3 takeovers and of a claim of a default, in 6 ways")
@pytest.mark.promise("crash", runs="each write of 3 takeovers and of a claim of a default, in 6 ways")
@pytest.mark.parametrize("name", PASTS)
async def test_a_takeover_ends_in_the_same_way_whatever_happens(name: str) -> None:
    begin, operator = await begun(PASTS[name])
    made: list[EmbeddedCluster] = []

    async def make_cluster() -> Cluster:
        made.append(begin.clone())
        operator.uids = set()
        return made[-1]

    report = await crash_at_each_write(
        make_cluster, operator.reconcile, others=operator.observe, disturbances=tuple(Disturbance)
    )
    report.assert_same()
    assert len(report.rows) == len(Disturbance) * len(report.writes)
    assert any(describe(write).startswith("patch apps/v1/Deployment") for write in report.writes)
    for cluster in made:
        await assert_quiet(cluster, operator.reconcile)
        live = await cluster.get(WEB)
        entries = [entry.manager for entry in ManagedFields.of(live).entries if not entry.manager.subresource]
        assert {manager.name.split("/")[0] for manager in entries} == {"ocf"}
        assert not [manager for manager in entries if "earlier-uid" in manager.name]
        assert [one["name"] for one in live["spec"]["template"]["spec"]["containers"]] == ["web"]
        assert live["metadata"].get("labels", {}).get("by") != "former"


@pytest.mark.promise("former-writers", runs="a write of another client before each write of 3 takeovers and of a claim")
@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("name", PASTS)
async def test_what_another_client_writes_meanwhile_stays(name: str, at: int) -> None:
    """It is neither overwritten nor taken over, whichever write it comes before."""
    cluster, operator = await begun(PASTS[name])

    async def change() -> None:
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="other")
        await cluster.patch(WEB, {"metadata": {"annotations": {"example.com/note": "theirs"}}}, options)

    verbs = [Verb.PATCH, Verb.APPLY]
    meanwhile = faults.meanwhile(change, kind="Deployment", verbs=verbs, first=at + 1, times=1)
    await operator.reconcile(FaultyCluster(cluster, [meanwhile]))
    await change()
    await assert_quiet(cluster, operator.reconcile)
    live = await cluster.get(WEB)
    assert live["metadata"]["annotations"]["example.com/note"] == "theirs"
    entries = [entry.manager for entry in ManagedFields.of(live).entries if not entry.manager.subresource]
    assert {manager.name.split("/")[0] for manager in entries} == {"ocf", "other"}
    assert [one["name"] for one in live["spec"]["template"]["spec"]["containers"]] == ["web"]
