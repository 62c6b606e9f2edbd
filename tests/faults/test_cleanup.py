"""Faults: the clean-up of a deleted owner is disturbed at each of its writes, inside the cluster and outside of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Verb
from ocf.component import DeletionOrder
from ocf.component.owner_deletion import external_finalizer
from ocf.errors import OcfError
from ocf.testing import FaultyCluster, RecordingCluster, crash_at_each_write, faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.testing.faults import Fault
    from ocf_server import EmbeddedCluster
    from tests.faults.conftest import Operator

WRITES: Final = [verb for verb in Verb if not verb.is_read]
ORDERS: Final = list(DeletionOrder)
# The writes of each scenario, as verb and kind: those of the bucket, of its owner, and of the components.
BUCKET: Final = ["patch ConfigMap", "update Shop", "delete ConfigMap"]
OBJECTS: Final = [
    "delete HorizontalPodAutoscaler",
    "delete ConfigMap",
    "delete Deployment",
    "delete Service",
    "delete PodDisruptionBudget",
    "delete ClusterRole",
]
DELETION: Final = {
    DeletionOrder.EXTERNAL_FIRST: [*BUCKET, "patch Shop", "delete ClusterRole", "patch Shop"],
    DeletionOrder.COMPONENTS_FIRST: [*OBJECTS, "update Shop", "patch Shop", *BUCKET, "patch Shop"],
}
STEPS: Final = [
    pytest.param(order, number, id=f"{order}, write {number}")
    for order, writes in DELETION.items()
    for number in range(1, len(writes) + 1)
]


async def deleted(operator: Operator) -> EmbeddedCluster:
    """Return a cluster in which the owner was at rest, and is deleted now."""
    cluster = await operator.new_cluster()
    await operator.settle(cluster)
    await cluster.delete(operator.owner)
    return cluster


async def check(operator: Operator, cluster: Any) -> None:
    """Run the controllers; a bucket must have an owner that our finalizer holds."""
    await operator.controllers(cluster)
    if await operator.read(cluster, operator.bucket) is not None:
        owner = await operator.read(cluster, operator.owner)
        assert owner is not None
        assert external_finalizer("ocf") in owner["metadata"]["finalizers"]


async def settle(operator: Operator, cluster: EmbeddedCluster) -> None:
    for _ in range(6):
        with suppress(OcfError):
            await operator.reconcile(cluster)
        await check(operator, cluster)


async def assert_nothing_is_left(operator: Operator, cluster: EmbeddedCluster) -> None:
    assert not await operator.state(cluster)
    seen = RecordingCluster(cluster)
    assert await operator.reconcile(seen) is None
    assert not seen.writes


@pytest.mark.promise("on-delete", runs="4 disturbances of each write of a creation and of a deletion, in both orders")
@pytest.mark.parametrize("scenario", ["creation", "deletion"])
@pytest.mark.parametrize("order", ORDERS)
async def test_the_clean_up_ends_the_same_after_each_disturbance(
    new_operator: Callable[..., Operator], order: DeletionOrder, scenario: str
) -> None:
    """A crash before and after each write, a lost reply, a rejected write: nothing is left or deleted twice."""
    operator = new_operator(cleanup=order)
    begun = await (operator.new_cluster() if scenario == "creation" else deleted(operator))

    async def new_cluster() -> EmbeddedCluster:
        return operator.clone(begun)

    report = await crash_at_each_write(
        new_cluster,
        operator.reconcile,
        others=lambda cluster: check(operator, cluster),
    )
    report.assert_same()
    writes = [f"{write.verb} {write.kind}" for write in report.writes]
    if scenario == "creation":
        assert writes[:3] == ["patch Shop", "patch Shop", "create ConfigMap"]
    else:
        assert writes == DELETION[order]


FAULTS: Final[dict[str, Callable[[int], Fault]]] = {
    "409": lambda number: faults.conflict(verbs=WRITES, first=number),
    "500": lambda number: faults.server_error(verbs=WRITES, first=number),
    "429": lambda number: faults.too_many_requests(verbs=WRITES, first=number),
    "timeout": lambda number: faults.timeout(verbs=WRITES, first=number),
}


@pytest.mark.promise("on-delete", runs="409, 429, 500 and a timeout at each write of a deletion, in both orders")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("order", "number"), STEPS)
async def test_a_refused_write_is_retried_and_nothing_is_left(
    new_operator: Callable[..., Operator], order: DeletionOrder, number: int, fault: str
) -> None:
    operator = new_operator(cleanup=order)
    cluster = await deleted(operator)
    faulty = FaultyCluster(cluster, [FAULTS[fault](number)])
    for _ in range(4):
        with suppress(OcfError):
            await operator.reconcile(faulty)
        await check(operator, cluster)
    faulty.assert_all_injected()
    await settle(operator, cluster)
    await assert_nothing_is_left(operator, cluster)


@pytest.mark.promise("on-delete", runs="a cancellation before each write of a deletion, in both orders")
@pytest.mark.parametrize(("order", "number"), STEPS)
async def test_a_cancelled_clean_up_is_continued(
    new_operator: Callable[..., Operator], order: DeletionOrder, number: int
) -> None:
    """As at the loss of the lease, or at the end of the process: the next process goes on."""
    operator = new_operator(cleanup=order)
    cluster = await deleted(operator)

    async def cancel() -> None:
        raise asyncio.CancelledError

    faulty = FaultyCluster(cluster, [faults.meanwhile(cancel, verbs=WRITES, first=number)])
    with suppress(asyncio.CancelledError):
        for _ in range(4):
            await operator.reconcile(faulty)
            await check(operator, cluster)
    faulty.assert_all_injected()
    await settle(operator, cluster)
    await assert_nothing_is_left(operator, cluster)


@pytest.mark.promise("on-delete", runs="before each of the first 4 writes of a creation, in both orders")
@pytest.mark.parametrize("number", range(1, 5))
@pytest.mark.parametrize("order", ORDERS)
async def test_an_owner_deleted_during_its_first_reconcile_leaves_nothing(
    new_operator: Callable[..., Operator], order: DeletionOrder, number: int
) -> None:
    """Before the finalizer is set, nothing is made; afterwards, everything is cleaned up."""
    operator = new_operator(cleanup=order)
    cluster = await operator.new_cluster()

    async def delete_owner() -> None:
        await cluster.delete(operator.owner)

    faulty = FaultyCluster(cluster, [faults.meanwhile(delete_owner, verbs=WRITES, first=number)])
    with suppress(OcfError):
        await operator.reconcile(faulty)
    faulty.assert_all_injected()
    await settle(operator, cluster)
    await assert_nothing_is_left(operator, cluster)
