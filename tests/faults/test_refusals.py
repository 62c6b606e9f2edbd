"""The server refuses one of six objects, or the spec is wrong in itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Verb
from ocf.component import ResourceOptions
from ocf.errors import BuildError, ReconcileError, api_error
from ocf.testing import FaultyCluster, assert_quiet, faults
from ocf.testing.snapshots import differences

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.embedded import EmbeddedCluster
    from ocf.objects import ObjectKey
    from tests.faults.conftest import Operator

KINDS: Final = ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Service", "PodDisruptionBudget", "ClusterRole"]
# The Deployment waits for data of the ConfigMap; the others wait for nothing.
INDEPENDENT: Final = KINDS[2:]
REFUSAL: Final = "spec.size: Invalid value: 0: must be greater than 0"


async def existing(operator: Operator, cluster: EmbeddedCluster) -> list[str]:
    return [key.kind for key in operator.keys if await operator.read(cluster, key) is not None]


def key_of(operator: Operator, kind: str) -> ObjectKey:
    return next(key for key in operator.keys if key.kind == kind)


class TestOneOfSix:
    @pytest.fixture
    def refuse(self) -> Callable[[EmbeddedCluster, str], FaultyCluster]:
        """Let the server refuse every write of a kind."""

        def make(cluster: EmbeddedCluster, kind: str) -> FaultyCluster:
            error = api_error(REFUSAL, code=422, reason="Invalid")
            return FaultyCluster(cluster, [faults.rejected(error, verbs=[Verb.APPLY], kind=kind, times=None)])

        return make

    @pytest.mark.promise("partial-failure", runs="each of six resources is refused (422)")
    @pytest.mark.parametrize("index", range(6))
    async def test_the_first_refused_resource_stops_the_later_ones_and_is_named(
        self, operator: Operator, refuse: Callable[[EmbeddedCluster, str], FaultyCluster], index: int
    ) -> None:
        cluster = await operator.new_cluster()
        faulty = refuse(cluster, KINDS[index])
        identity = str(key_of(operator, KINDS[index]))
        with pytest.raises(ReconcileError) as refused:
            await operator.reconcile(faulty)
        assert refused.value.resource == identity
        assert not {request.kind for request in cluster.requests} & set(KINDS[index + 1 :])
        assert await existing(operator, cluster) == KINDS[:index]
        condition = await operator.condition(cluster)
        assert (condition["status"], condition["reason"]) == ("False", "Error")
        assert condition["message"] == f"failed to apply resource {identity}: {REFUSAL}"
        await self._mended(operator, cluster)

    @pytest.mark.promise("independent", runs="each of six resources is refused (422), four of them independent")
    @pytest.mark.parametrize("index", range(6))
    async def test_independent_resources_are_applied_all_the_same(
        self,
        new_operator: Callable[..., Operator],
        refuse: Callable[[EmbeddedCluster, str], FaultyCluster],
        index: int,
    ) -> None:
        independent: ResourceOptions = {"independent": True}
        operator = new_operator(options=dict.fromkeys(INDEPENDENT, independent))
        cluster = await operator.new_cluster()
        identity = str(key_of(operator, KINDS[index]))
        with pytest.raises(ReconcileError) as refused:
            await operator.reconcile(refuse(cluster, KINDS[index]))
        assert refused.value.resource == identity
        ordered = KINDS[: min(index, 2)]
        assert await existing(operator, cluster) == [
            *ordered,
            *(kind for kind in INDEPENDENT if kind != KINDS[index]),
        ]
        condition = await operator.condition(cluster)
        assert (condition["status"], condition["reason"]) == ("False", "Error")
        assert condition["message"] == f"failed to apply resource {identity}: {REFUSAL}"
        await self._mended(operator, cluster)

    async def _mended(self, operator: Operator, cluster: EmbeddedCluster) -> None:
        """Once nothing is refused any more, one pass makes what is missing, and the end is the usual one."""
        result = await operator.reconcile(cluster)
        assert result is not None
        assert await existing(operator, cluster) == KINDS
        await operator.settle(cluster)
        wanted = await operator.state(await operator.at_rest())
        assert not differences(wanted, await operator.state(cluster), before_name="undisturbed", after_name="mended")
        await assert_quiet(cluster, operator.reconcile)


class TestWrongSpec:
    """A field of the owner's spec is wrong; nothing is half done, and mending it mends everything."""

    # What is wrong; the resource that is named, none where not even the component can be built; what else is said; how
    # many resources come before it and are made.
    ROWS: Final = [
        pytest.param({"version": "latest"}, ("HorizontalPodAutoscaler", "latest"), 0, id="a version that is none"),
        pytest.param({"mode": 7}, ("ConfigMap", "data"), 0, id="a number where the API has a text"),
        pytest.param({"mode": None}, ("ConfigMap", "data"), 0, id="nothing where a text is needed"),
        pytest.param({"most": 1}, ("HorizontalPodAutoscaler", "spec.maxReplicas"), 2, id="bounds that cross"),
        pytest.param({"most": 0}, ("HorizontalPodAutoscaler", "spec.maxReplicas"), 2, id="a bound below one"),
        pytest.param({"most": "many"}, ("", "maxReplicas"), 0, id="a text where the API has a number"),
    ]

    @pytest.mark.promise("invalid-spec", runs="6 ways in which a spec is wrong, from the start and later")
    @pytest.mark.parametrize("fresh", [True, False], ids=["from the start", "later"])
    @pytest.mark.parametrize(("wrong", "told_of", "made"), ROWS)
    async def test_is_told_and_does_no_harm(
        self, operator: Operator, wrong: dict[str, Any], told_of: tuple[str, str], made: int, fresh: bool
    ) -> None:
        kind, said = told_of
        cluster = await operator.new_cluster(**wrong) if fresh else await operator.at_rest()
        if not fresh:
            await operator.change(cluster, spec=wrong)
        before = await operator.state(cluster)
        for _ in range(3):
            with pytest.raises((ReconcileError, BuildError)) as told:
                await operator.reconcile(cluster)
            assert said in str(told.value)
        # What comes before the resource that cannot be made is there; nothing of it, or after it, was touched.
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
            # The owner's own spec was changed once or twice more.
            del manifest["metadata"]["generation"], manifest["metadata"]["managedFields"]
            del manifest["status"]["conditions"][0]["observedGeneration"]
        assert not differences(wanted, found, before_name="never wrong", after_name="mended")
        await assert_quiet(cluster, operator.reconcile)
