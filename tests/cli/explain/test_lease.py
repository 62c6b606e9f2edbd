"""`ocf explain lease/NAME`: who leads, and which replica holds which slots, with the rights of a reader.

Public reports: shards that nothing holds are absent from the list (https://github.com/crate/crate/pull/213), and which
process has which shard is not shown (https://github.com/influxdata/influxdb/issues/3562).
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.cli.explain.lease import LeaseView, State, lease_view, leases_of
from ocf.cluster import Verb
from ocf.concepts import Clock
from ocf.objects import Manifest, ObjectKey
from ocf.objects.timestamps import format_micro_time
from ocf.runtime.leader import Timing
from ocf.runtime.sharding import Sharding
from ocf.runtime.sharding.membership import Membership, group_label
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster

from .test_owner import explain, served, shown, written_file

NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
AT: Final = ("--now", "2026-01-31T12:00:00Z")


def lease(name: str, holder: str | None, *, renewed: float = 1, since: float = 300, **changed: Any) -> Manifest:
    """Return a Lease that was taken and renewed so many seconds ago."""
    times = {
        key: format_micro_time(NOW - timedelta(seconds=ago))
        for key, ago in (("acquireTime", since), ("renewTime", renewed))
    }
    spec = {"leaseDurationSeconds": 15, **times, **({} if holder is None else {"holderIdentity": holder}), **changed}
    metadata = {"name": name, "namespace": "town", "uid": f"of-{name}", "labels": group_label("shops")}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def slot(number: int | str, holder: str | None, since: float = 300) -> Manifest:
    return lease(f"shops-slot-{number}", holder, since=since, renewed=since)


GROUP: Final = lease("shops", "6 slots by uid, 15/10/2 s")
FLEET: Final = [
    GROUP,
    lease("shops-replica-01", "pod-a"),
    lease("shops-replica-02", "pod-b", renewed=60),
    lease("shops-replica-03", "pod-d"),
    slot(0, "pod-a"),
    slot(1, "pod-a", since=20),
    slot(2, "pod-b"),
    slot(3, "pod-c"),
    slot(4, ""),
    slot(6, "pod-a"),
    slot(17, ""),
]


def view(*leases: Manifest) -> LeaseView:
    return lease_view(leases[0], leases, NOW)


def test_each_holder_each_slot_and_what_is_wrong_is_shown(tmp_path: Path) -> None:
    assert shown("lease/shops", "-f", written_file(tmp_path, FLEET), *AT) == (
        "2 replicas divide the owners by uid, and hold 2 of 6 slots\n"
        "  REPLICA  LEASE                            SLOTS  LAST TAKEN      WHICH\n"
        "  pod-a    renewed 1 second ago             2      20 seconds ago  0-1\n"
        "  pod-b    expired, renewed 60 seconds ago  1      5 minutes ago   2\n"
        "  pod-c    missing                          1      5 minutes ago   3\n"
        "  pod-d    renewed 1 second ago             0\n"
        "Slots without a holder: 4-5\n"
        "Slots of replicas that do not run, which others take when the Lease has ended:\n"
        "  2-3\n"
        "Replicas without a slot: pod-d\n"
        "Slots beyond the 6 of the setting, which a replica deletes: 6,17\n"
    )


def test_programs_get_the_same_as_values(tmp_path: Path) -> None:
    found = json.loads(shown("leases", "shops", "-f", written_file(tmp_path, FLEET), *AT, "--output", "json"))
    assert (found["by"], found["slots"], found["free"], found["beyond"]) == ("uid", 6, [4, 5], [6, 17])
    assert [(one["identity"], one["state"], len(one["slots"])) for one in found["replicas"]] == [
        ("pod-a", "renewed", 2),
        ("pod-b", "expired", 1),
        ("pod-c", "missing", 1),
        ("pod-d", "renewed", 0),
    ]
    assert found["replicas"][0]["slots"][1] == {"slot": 1, "since": "2026-01-31T11:59:40Z"}


@pytest.mark.parametrize(
    ("leader", "sentence"),
    [
        pytest.param(
            lease("shops", "pod-a"), "pod-a leads for 5 minutes, and renewed the Lease 1 second ago", id="runs"
        ),
        pytest.param(
            lease("shops", "pod-a", renewed=120),
            "no process leads: the last one was pod-a, and renewed the Lease 2 minutes ago",
            id="ended",
        ),
        pytest.param(lease("shops", ""), "no process holds the Lease shops", id="released"),
        pytest.param(lease("shops", None), "no process holds the Lease shops", id="without a holder"),
        pytest.param(
            lease("shops", "pod-a", renewTime=None), "no process leads: the last one was pod-a", id="never renewed"
        ),
        pytest.param(
            lease("shops", "0 slots by uid, 15/10/2 s"),
            "0 slots by uid, 15/10/2 s leads for 5 minutes, and renewed the Lease 1 second ago",
            id="a name that looks like a division",
        ),
    ],
)
def test_one_leader_is_one_sentence(leader: Manifest, sentence: str) -> None:
    assert view(leader).sentence == sentence


@pytest.mark.parametrize(
    "spec",
    [None, [], {"holderIdentity": 7}, {"holderIdentity": "pod-a", "acquireTime": "soon", "leaseDurationSeconds": "15"}],
)
def test_a_lease_with_any_content_is_shown(spec: Any) -> None:
    odd = [{**lease(name, "x"), "spec": spec} for name in ("shops-slot-3", "shops-replica-01", "shops-slot-x")]
    found = view(GROUP, *odd)
    assert {*found.free} | {each.number for one in found.replicas for each in one.slots} == {*range(6)}
    assert found.to_json()["slots"] == 6
    assert lease_view({**GROUP, "spec": spec}, odd, NOW).total == 0


@pytest.mark.parametrize(
    "name", ["shops-slot-01", "shops-slot-1-extra", "shops-slot-", "shops-slot-²", "shops-2-slot-1"]
)
def test_the_leases_of_others_are_no_slots(name: str) -> None:
    assert view(GROUP, lease(name, "pod-a")).replicas == ()


def test_the_leases_of_a_running_fleet_are_understood() -> None:
    """The names and holders are those that the replicas write."""

    async def work() -> None:
        cluster = EmbeddedCluster(now=LoopClock().now)
        key = ObjectKey("coordination.k8s.io/v1", "Lease", "shops", "default")
        clock: Clock = LoopClock()

        def member(name: str) -> Membership:
            sharding, timing = Sharding(slots=8), Timing()
            return Membership(cluster, key, name, sharding=sharding, timing=timing, clock=clock, random=lambda: 0.0)

        async def read() -> LeaseView:
            leases = (await cluster.list("coordination.k8s.io/v1", "Lease")).items
            [group] = [one for one in leases if one["metadata"]["name"] == "shops"]
            return lease_view(group, leases, clock.now())

        async with member("one").joined():
            async with member("two").joined():
                await asyncio.sleep(10)
                found = await read()
                assert [(one.identity, one.state, len(one.slots)) for one in found.replicas] == [
                    ("one", State.RENEWED, 4),
                    ("two", State.RENEWED, 4),
                ]
                assert [*found.remarks()] == []
            assert [one.identity for one in (await read()).replicas] == ["one"]
        assert (await read()).sentence == "0 replicas divide the owners by uid, and hold 0 of 8 slots"

    run_in_virtual_time(work())


def test_only_leases_of_one_namespace_are_read() -> None:
    async def work() -> None:
        cluster = EmbeddedCluster(namespaces=["town"])
        await cluster.restore([*FLEET, lease("bakery", "pod-z")])
        for name, verbs in (("shops", [Verb.GET, Verb.LIST]), ("bakery", [Verb.GET])):
            cluster.requests.clear()
            await leases_of(cluster, name, "town")
            assert [one.verb for one in cluster.requests] == verbs
            assert {(one.kind, one.namespace) for one in cluster.requests} == {("Lease", "town")}

    asyncio.run(work())


def test_the_namespace_of_the_context_is_that_of_the_lease(tmp_path: Path) -> None:
    with served(tmp_path, FLEET) as kubeconfig:
        assert "0 replicas divide the owners by uid" in shown("lease/shops", "--kubeconfig", kubeconfig)
        answer = explain("lease.coordination.k8s.io/nothing", "--kubeconfig", kubeconfig)
        assert answer.exit_code != 0
        assert "Lease nothing does not exist in namespace town" in answer.output


@pytest.mark.parametrize("options", [("--picture", "lease.svg"), ("--watch",)], ids=lambda each: each[0])
def test_what_only_owners_have_is_rejected(options: tuple[str, ...]) -> None:
    answer = explain("lease/shops", *options)
    assert answer.exit_code != 0
    assert "a Lease is only shown: leave out --components, --picture and --watch" in answer.output
