"""Faults: the server rejects one of six objects, or the owner's spec is invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Verb
from ocf.component.model.resource_options import ResourceOptions
from ocf.errors import BuildError, ReconcileError, api_error
from ocf.testing import FaultyCluster, assert_quiet, faults
from ocf.testing.snapshots import differences

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.objects import ObjectKey
    from ocf_server import EmbeddedCluster
    from tests.faults.conftest import Operator

KINDS: Final = ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Service", "PodDisruptionBudget", "ClusterRole"]
# The Deployment depends on data of the ConfigMap; the others are independent.
INDEPENDENT: Final = KINDS[2:]
REJECTION: Final = "spec.size: Invalid value: 0: must be greater than 0"


async def existing(operator: Operator, cluster: EmbeddedCluster) -> list[str]:
    return [key.kind for key in operator.keys if await operator.read(cluster, key) is not None]


def key_of(operator: Operator, kind: str) -> ObjectKey:
    return next(key for key in operator.keys if key.kind == kind)


class TestOneOfSix:
    @pytest.fixture
    def rejecting(self) -> Callable[[EmbeddedCluster, str], FaultyCluster]:
        """Return a function that wraps a cluster so that it rejects every write of a kind."""

        def make(cluster: EmbeddedCluster, kind: str) -> FaultyCluster:
            error = api_error(REJECTION, code=422, reason="Invalid")
            return FaultyCluster(cluster, [faults.rejected(error, verbs=[Verb.APPLY], kind=kind, times=None)])

        return make

    @pytest.mark.promise("partial-failure", runs="each of six resources is rejected (422)")
    @pytest.mark.parametrize("index", range(6))
    async def test_the_first_rejected_resource_stops_the_later_ones_and_is_named(
        self, operator: Operator, rejecting: Callable[[EmbeddedCluster, str], FaultyCluster], index: int
    ) -> None:
        cluster = await operator.new_cluster()
        faulty = rejecting(cluster, KINDS[index])
        identity = str(key_of(operator, KINDS[index]))
        with pytest.raises(ReconcileError) as rejected:
            await operator.reconcile(faulty)
        assert rejected.value.resource == identity
        assert not {request.kind for request in cluster.requests} & set(KINDS[index + 1 :])
        assert await existing(operator, cluster) == KINDS[:index]
        condition = await operator.condition(cluster)
        assert (condition["status"], condition["reason"]) == ("False", "Error")
        assert condition["message"] == f"failed to apply resource {identity}: {REJECTION}"
        await self._recovers(operator, cluster)

    @pytest.mark.promise("independent", runs="each of six resources is rejected (422), four of them independent")
    @pytest.mark.parametrize("index", range(6))
    async def test_independent_resources_are_applied_after_a_rejected_one(
        self,
        new_operator: Callable[..., Operator],
        rejecting: Callable[[EmbeddedCluster, str], FaultyCluster],
        index: int,
    ) -> None:
        independent: ResourceOptions = {"independent": True}
        operator = new_operator(options=dict.fromkeys(INDEPENDENT, independent))
        cluster = await operator.new_cluster()
        identity = str(key_of(operator, KINDS[index]))
        with pytest.raises(ReconcileError) as rejected:
            await operator.reconcile(rejecting(cluster, KINDS[index]))
        assert rejected.value.resource == identity
        ordered = KINDS[: min(index, 2)]
        assert await existing(operator, cluster) == [
            *ordered,
            *(kind for kind in INDEPENDENT if kind != KINDS[index]),
        ]
        condition = await operator.condition(cluster)
        assert (condition["status"], condition["reason"]) == ("False", "Error")
        assert condition["message"] == f"failed to apply resource {identity}: {REJECTION}"
        await self._recovers(operator, cluster)

    async def _recovers(self, operator: Operator, cluster: EmbeddedCluster) -> None:
        """Check that one reconcile without rejections creates the missing objects and leads to the normal state."""
        result = await operator.reconcile(cluster)
        assert result is not None
        assert await existing(operator, cluster) == KINDS
        await operator.settle(cluster)
        wanted = await operator.state(await operator.at_rest())
        assert not differences(wanted, await operator.state(cluster), before_name="undisturbed", after_name="fixed")
        await assert_quiet(cluster, operator.reconcile)


class TestWrongSpec:
    """A field of the owner's spec is invalid: nothing is applied partially, and fixing it restores everything."""

    # The invalid field; the kind named in the error (empty if the component cannot be built) and another part of the
    # message; the number of resources that are applied before it.
    ROWS: Final = [
        pytest.param({"version": "latest"}, ("HorizontalPodAutoscaler", "latest"), 0, id="an invalid version"),
        pytest.param({"mode": 7}, ("ConfigMap", "data"), 0, id="a number instead of a string"),
        pytest.param({"mode": None}, ("ConfigMap", "data"), 0, id="null instead of a string"),
        pytest.param({"most": 1}, ("HorizontalPodAutoscaler", "spec.maxReplicas"), 2, id="maximum below minimum"),
        pytest.param({"most": 0}, ("HorizontalPodAutoscaler", "spec.maxReplicas"), 2, id="a maximum below one"),
        pytest.param({"most": "many"}, ("", "maxReplicas"), 0, id="a string instead of a number"),
    ]

    @pytest.mark.promise("invalid-spec", runs="6 invalid specs, each from the start and after a change")
    @pytest.mark.parametrize("fresh", [True, False], ids=["from the start", "after a change"])
    @pytest.mark.parametrize(("wrong", "reported", "made"), ROWS)
    async def test_is_reported_and_leaves_later_resources_unchanged(
        self, operator: Operator, wrong: dict[str, Any], reported: tuple[str, str], made: int, fresh: bool
    ) -> None:
        kind, said = reported
        cluster = await operator.new_cluster(**wrong) if fresh else await operator.at_rest()
        if not fresh:
            await operator.change(cluster, spec=wrong)
        before = await operator.state(cluster)
        for _ in range(3):
            with pytest.raises((ReconcileError, BuildError)) as raised:
                await operator.reconcile(cluster)
            assert said in str(raised.value)
        # Resources before the invalid one exist; the invalid one and those after it are unchanged.
        after = await operator.state(cluster)
        changed = [key.kind for key in operator.keys if after.get(str(key)) != before.get(str(key))]
        assert changed == (KINDS[:made] if fresh else [])
        if kind:
            condition = await operator.condition(cluster)
            assert (condition["status"], condition["reason"]) == ("False", "Error")
            assert str(key_of(operator, kind)) in condition["message"]
            assert said in condition["message"]

        await operator.change(cluster, spec={"version": "1.4.0", "mode": "plain", "most": 10})
        assert await operator.reconcile(cluster) is not None
        assert await existing(operator, cluster) == KINDS
        await operator.settle(cluster)
        wanted = await operator.state(await operator.at_rest())
        found = await operator.state(cluster)
        for manifest in (wanted[str(operator.owner)], found[str(operator.owner)]):
            # The spec of this owner was changed once or twice more.
            del manifest["metadata"]["generation"], manifest["metadata"]["managedFields"]
            del manifest["status"]["conditions"][0]["observedGeneration"]
        assert not differences(wanted, found, before_name="always valid", after_name="fixed")
        await assert_quiet(cluster, operator.reconcile)
