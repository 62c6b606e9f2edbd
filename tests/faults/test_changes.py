"""Faults: the spec changes, and changes back before the first change is fully applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Verb
from ocf.testing import FaultyCluster, assert_quiet, faults
from ocf.testing.snapshots import differences

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from ocf_server import EmbeddedCluster
    from tests.faults.conftest import Operator

WRITES: Final = [verb for verb in Verb if not verb.is_read]
# Two values of each field of the owner's spec.
FIELDS: Final[dict[str, tuple[Any, Any]]] = {
    "version": ("1.4.0", "2.0.0"),
    "mode": ("plain", "fancy"),
    "most": (10, 20),
    "scaled": (True, False),
    "protected": (True, False),
    "suspended": (False, True),
}
AT_MOST: Final = 20


@pytest.mark.promise("set-revert", runs="6 fields of a spec, both ways, reverted before each write and after")
@pytest.mark.parametrize("forth", [True, False], ids=["there and back", "back and there"])
@pytest.mark.parametrize("field", FIELDS)
async def test_a_reverted_change_leaves_no_trace(operator: Operator, field: str, forth: bool) -> None:
    """The final state equals the initial one, no matter how many writes of the change were sent."""
    before, after = FIELDS[field] if forth else FIELDS[field][::-1]
    cluster = await operator.at_rest()
    await operator.change(cluster, spec={field: before})
    await operator.settle(cluster)
    wanted = await content(operator, cluster)
    reverted = 0
    for number in range(1, AT_MOST):
        await operator.change(cluster, spec={field: after})

        async def revert() -> None:
            await operator.change(cluster, spec={field: before})

        faulty = FaultyCluster(cluster, [faults.meanwhile(revert, verbs=WRITES, first=number)])
        await operator.settle(cluster, faulty)
        done = bool(faulty.not_injected)
        if done:
            assert await content(operator, cluster) != wanted
            await revert()
            await operator.settle(cluster)
        reverted += 1
        found = await content(operator, cluster)
        assert not differences(wanted, found, before_name="before", after_name=f"reverted before write {number}")
        await assert_quiet(cluster, operator.reconcile, resyncs=2)
        if done:
            break
    # At least: before the write of an object, before that of the status, and after all writes.
    assert 3 <= reverted < AT_MOST


async def content(operator: Operator, cluster: EmbeddedCluster) -> dict[str, Manifest]:
    """Return the state without generations and managed fields."""
    found = await operator.state(cluster)
    for manifest in found.values():
        for path in ("generation", "managedFields"):
            manifest["metadata"].pop(path, None)
        for counted in (manifest.get("status", {}), *manifest.get("status", {}).get("conditions", [])):
            counted.pop("observedGeneration", None)
    return found
