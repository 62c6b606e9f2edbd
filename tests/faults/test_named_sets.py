"""Faults: a set of StatefulSets that gets smaller; who leaves is asked of a system that answers differently each time.

Public reports: https://github.com/Altinity/clickhouse-operator/issues/1943,
https://github.com/apache/solr-operator/issues/707 (a scale-down that fails in the middle is never completed),
https://github.com/emqx/emqx-operator/issues/1105 (or is computed anew from what is there meanwhile).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

import pytest

from ocf import component
from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Verb
from ocf.component import reconciling
from ocf.errors import ForbiddenError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import statefulset
from ocf.testing import FaultyCluster, VirtualClock, crash_at_each_write, faults
from ocf.testing.simulated_process import Disturbance
from ocf_server import CustomKind, EmbeddedCluster
from ocf_server.controllers.settings import ControllerSettings

OWNER: Final = ObjectKey("example.com/v1", "Shop", "corner", "town")
STATEFUL_SET: Final = ("apps/v1", "StatefulSet")
CLAIM: Final = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def member(name: str) -> statefulset.Builder:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": "db:1"}]}}
    spec: Manifest = {"replicas": 1, "serviceName": "db", "selector": {"matchLabels": labels}, "template": template}
    return statefulset.Builder({"metadata": {"name": name}, "spec": {**spec, "volumeClaimTemplates": [CLAIM]}})


class Databases:
    """An operator whose members are named, and leave by a choice that no second question repeats."""

    def __init__(self) -> None:
        self.clusters: list[tuple[EmbeddedCluster, dict[str, str]]] = []
        self._questions = count()

    async def choose(self, names: Sequence[str]) -> str:
        return names[next(self._questions) % len(names)]

    async def reconcile(self, cluster: Cluster) -> None:
        owner = await cluster.get(OWNER)
        async with reconciling(owner, cluster) as context:
            found = await context.children.list(*STATEFUL_SET)
            names = await component.stored_names(
                context,
                "members",
                count=owner["spec"]["members"],
                name="db-{}".format,
                remove=self.choose,
                existing=[live["metadata"]["name"] for live in found],
            )
            for live in found:
                if live["metadata"]["name"] not in names:
                    await context.children.delete(live, when=lambda _: True)
            made = component.Builder("db", owner=OWNER).with_rollout([member(name) for name in names])
            await made.build().reconcile(context)

    async def new_cluster(self) -> EmbeddedCluster:
        """Return a cluster with three members, of which one is to stay."""
        clock = VirtualClock()
        cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"], now=clock.now)
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "town"}}
        await cluster.create({**shop, "spec": {"members": 3}}, field_manager="user")
        await self.reconcile(cluster)
        await cluster.controllers(ControllerSettings(names=("statefulset-controller",))).settle()
        self.clusters.append((cluster, await uids(cluster)))
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
        await cluster.patch(OWNER, {"spec": {"members": 1}}, options)
        return cluster

    async def check(self) -> None:
        """Check that in each cluster the member that stays is the one of the beginning, and all claims are there."""
        for cluster, before in self.clusters:
            after = await uids(cluster)
            assert list(after) == (await cluster.get(OWNER))["status"]["members"]
            assert len(after) == 1
            assert after.items() <= before.items()
            claims = await cluster.list("v1", "PersistentVolumeClaim", ListOptions(namespace="town"))
            assert len(claims.items) == len(before)


async def uids(cluster: Cluster) -> dict[str, str]:
    found = await cluster.list(*STATEFUL_SET, ListOptions(namespace="town"))
    return {live["metadata"]["name"]: live["metadata"]["uid"] for live in found.items}


@pytest.mark.promise("named-set", runs="a crash, a rejection, a conflict and a lost answer at every write")
async def test_the_members_that_leave_are_chosen_once_whichever_write_is_disturbed() -> None:
    operator = Databases()
    report = await crash_at_each_write(operator.new_cluster, operator.reconcile, disturbances=list(Disturbance))
    assert [f"{write.verb} {write.kind}" for write in report.writes][:4] == [
        "update Shop",
        "update Shop",
        "delete StatefulSet",
        "delete StatefulSet",
    ]
    await operator.check()


@pytest.mark.promise("named-set", runs="a deletion that is refused three times")
async def test_a_refused_deletion_is_repeated_for_the_same_member() -> None:
    operator = Databases()
    cluster = await operator.new_cluster()
    refused = faults.rejected(ForbiddenError("no", code=403, reason="Forbidden"), verbs=[Verb.DELETE], times=3)
    faulty = FaultyCluster(cluster, [refused])
    left: list[object] = []
    for _ in range(3):
        with pytest.raises(Exception, match="failed to delete resource"):
            await operator.reconcile(faulty)
        left.append((await cluster.get(OWNER))["status"]["members"])
    await operator.reconcile(faulty)
    assert left == [left[0]] * 3
    await operator.check()
