"""Faults: the owner is deleted during a reconcile."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Verb
from ocf.errors import NotFoundError, OcfError
from ocf.testing import FaultyCluster, RecordingCluster, faults
from ocf.testing.simulated_process import SimulatedCluster, SimulatedProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf_server import EmbeddedCluster
    from tests.faults.conftest import Operator

WRITES: Final = [verb for verb in Verb if not verb.is_read]
# Number of writes of the first reconcile, including the finalizer.
CREATING: Final = 8
# Number of writes of a reconcile that upgrades.
UPGRADING: Final = 3


@pytest.fixture
def beginning() -> Callable[..., Any]:
    async def make(operator: Operator, step: str) -> EmbeddedCluster:
        if step == "creation":
            return await operator.new_cluster()
        cluster = await operator.at_rest()
        await operator.change(cluster, spec={"version": "2.0.0"})
        return cluster

    return make


def steps(creating: int, upgrading: int) -> list[Any]:
    counts = {"creation": creating, "upgrade": upgrading}
    return [
        pytest.param(step, number, id=f"before write {number} of the {step}")
        for step, count in counts.items()
        for number in range(1, count + 1)
    ]


@pytest.mark.promise("owner-deleted", runs="before each of 11 writes of a creation and an upgrade")
@pytest.mark.parametrize(("step", "number"), steps(CREATING, UPGRADING))
async def test_all_objects_are_deleted_with_the_owner_and_none_is_created_again(
    new_operator: Callable[..., Operator], beginning: Callable[..., Any], step: str, number: int
) -> None:
    """The finalizer also deletes the cluster-scoped role, and no reconcile after the deletion creates an object."""
    operator = new_operator(finalizes=True)
    cluster = await beginning(operator, step)

    async def delete_owner() -> None:
        await cluster.delete(operator.owner)

    faulty = FaultyCluster(cluster, [faults.meanwhile(delete_owner, verbs=WRITES, first=number)])
    with suppress(OcfError):
        await operator.reconcile(faulty)
    faulty.assert_all_injected()
    env = SimulatedCluster(cluster)
    for _ in range(5):
        await operator.controllers(cluster)
        await operator.reconcile(SimulatedProcess(env))
    assert not await operator.state(cluster)
    assert not env.creates
    with pytest.raises(NotFoundError):
        await cluster.get(operator.owner)


@pytest.mark.promise("owner-gone", runs="before each of 10 writes of a creation and an upgrade")
@pytest.mark.parametrize(("step", "number"), steps(CREATING - 1, UPGRADING))
async def test_without_a_finalizer_only_cluster_scoped_objects_are_left(
    operator: Operator, beginning: Callable[..., Any], step: str, number: int
) -> None:
    """The running reconcile goes on: the objects that it still creates are garbage-collected and not created again."""
    cluster = await beginning(operator, step)

    async def delete_owner() -> None:
        await cluster.delete(operator.owner)

    faulty = FaultyCluster(cluster, [faults.meanwhile(delete_owner, verbs=WRITES, first=number)])
    with suppress(OcfError):
        await operator.reconcile(faulty)
    faulty.assert_all_injected()
    seen = RecordingCluster(cluster)
    for _ in range(3):
        await operator.reconcile(seen)
    assert not seen.writes
    assert set(await operator.state(cluster)) <= {str(operator.role)}


async def test_an_owner_deleted_before_it_has_a_finalizer_leaves_no_object(
    new_operator: Callable[..., Operator],
) -> None:
    """The user deletes the owner between the read and the first write, the finalizer: no object may be created."""
    operator = new_operator(finalizes=True)
    cluster = await operator.new_cluster()

    async def delete_owner() -> None:
        await cluster.delete(operator.owner)

    await operator.reconcile(FaultyCluster(cluster, [faults.meanwhile(delete_owner, verbs=WRITES)]))
    assert not await operator.state(cluster)
