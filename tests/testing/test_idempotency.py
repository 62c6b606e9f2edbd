"""The no-write proof: ten reconciles without a write, or an error that lists the writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import Cluster, PatchOptions, PatchType
from ocf.component import Result
from ocf.errors import ConfigError, ConflictError
from ocf.objects import Manifest
from ocf.testing import FaultyCluster, assert_quiet, faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf_server import EmbeddedCluster
    from tests.testing.conftest import Operator


async def test_a_component_that_is_in_sync_sends_no_write(operator: Operator, cluster: EmbeddedCluster) -> None:
    for _ in range(2):
        await operator.reconcile(cluster)
    cluster.requests.clear()
    await assert_quiet(cluster, operator.reconcile)
    assert cluster.requests.writes == 0
    assert len(cluster.requests) == 30


async def test_a_component_that_is_not_in_sync_is_detected(operator: Operator, cluster: EmbeddedCluster) -> None:
    with pytest.raises(AssertionError) as failed:
        await assert_quiet(cluster, operator.reconcile, resyncs=3)
    uid = (await cluster.get(operator.shop))["metadata"]["uid"]
    title, *lines = str(failed.value).splitlines()
    assert title == "1 of 3 resyncs wrote, though nothing had changed; resync 1 sent 3:"
    assert lines == [
        f"  apply apps/v1/Deployment/shop/web by ocf/Shop/web/{uid}",
        "    because of absent",
        f"  apply autoscaling/v2/HorizontalPodAutoscaler/shop/web by ocf/Shop/web/{uid}",
        "    because of absent",
        f"  update example.com/v1/Shop/shop/demo status by ocf/Shop/status/{uid}",
    ]


async def test_the_reasons_of_a_write_are_listed(operator: Operator, cluster: EmbeddedCluster) -> None:
    """Another controller reverts the operator's changes between two reconciles."""

    async def fight(given: Cluster) -> list[Result]:
        undo = {"spec": {"maxReplicas": 99}}
        key = operator.subject.entries[1].resource.key
        await cluster.patch(key, undo, PatchOptions(patch_type=PatchType.MERGE, field_manager="rival"))
        return [await operator.reconcile(given)]

    for _ in range(2):
        await operator.reconcile(cluster)
    with pytest.raises(AssertionError, match=r"because of spec\.maxReplicas: "):
        await assert_quiet(cluster, fight)


async def test_the_reasons_are_listed_once_and_not_for_the_status(
    operator: Operator, cluster: EmbeddedCluster, web_base: Manifest
) -> None:
    async def reconcile(given: Cluster) -> Result:
        result = await operator.reconcile(given)
        await given.apply(web_base, field_manager="again", force=True)
        return result

    with pytest.raises(AssertionError) as failed:
        await assert_quiet(cluster, reconcile, resyncs=1)
    listed = [line.split()[0] for line in str(failed.value).splitlines()[1:]]
    assert listed == ["apply", "because", "apply", "because", "update", "apply"]


async def test_a_rejected_write_counts(cluster: EmbeddedCluster, settings: Callable[..., Manifest]) -> None:
    async def reconcile(given: Cluster) -> None:
        with pytest.raises(ConflictError):
            await given.apply(settings(), field_manager="me")

    faulty = FaultyCluster(cluster, [faults.conflict(times=None)])
    with pytest.raises(AssertionError, match="1 of 1 resyncs wrote"):
        await assert_quiet(faulty, reconcile, resyncs=1)


async def test_a_dry_run_does_not_count(cluster: EmbeddedCluster, settings: Callable[..., Manifest]) -> None:
    async def reconcile(given: Cluster) -> None:
        await given.apply(settings(), field_manager="me", dry_run=True)

    await assert_quiet(cluster, reconcile)


async def test_a_reconcile_of_another_cluster_fails(operator: Operator, cluster: EmbeddedCluster) -> None:
    async def reconcile(_given: Cluster) -> None:
        await operator.reconcile(cluster)

    with pytest.raises(AssertionError, match="does it use another one"):
        await assert_quiet(cluster, reconcile)


async def test_zero_resyncs_are_rejected(operator: Operator, cluster: EmbeddedCluster) -> None:
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        await assert_quiet(cluster, operator.reconcile, resyncs=0)
