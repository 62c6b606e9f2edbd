"""The Cluster API provider, with the definitions of Cluster API, on the embedded cluster and on a real API server."""

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ocf.cluster import InterceptingCluster, PatchOptions
from ocf.controllers.nodegroup.providers.cluster_api import ClusterAPIProvider
from ocf.errors import CapacityExhaustedError, ProviderRefusedError, ProviderUnavailableError
from ocf.nodegroups import IncompleteListError, Machine, MachineRequest, MachineState, Offering
from ocf.objects import Manifest, ObjectKey
from ocf.testing.envtest import ControlPlane
from ocf.testing.provider_suite import NamedProviderSuite
from ocf_server import EmbeddedCluster
from tests.controllers.nodegroup.providers.fake_cluster_api import (
    ANNOTATIONS,
    CAPACITY,
    DEFINITIONS,
    RECORD,
    VERSION,
    FakeClusterAPI,
)

PRICE = "autoscaling.ocf.dev/price-per-hour"


@pytest.fixture(params=["embedded", "envtest"])
async def capi(request: pytest.FixtureRequest) -> AsyncIterator[FakeClusterAPI]:
    if request.param == "embedded":
        cluster = EmbeddedCluster(namespaces=["machines"])
        for definition in DEFINITIONS:
            await cluster.create(definition, field_manager="user")
        yield FakeClusterAPI(cluster, "machines")
        return
    plane: ControlPlane = request.getfixturevalue("envtest_plane")
    plane.install_crds(*DEFINITIONS)
    with plane.namespace("machines-") as namespace:
        async with await plane.cluster() as real:
            yield FakeClusterAPI(real, namespace)


def provider_of(capi: FakeClusterAPI) -> ClusterAPIProvider:
    return ClusterAPIProvider(capi.cluster, capi.namespace)


def small(name: str) -> MachineRequest:
    return MachineRequest(name, "pool", "small", "fra-1")


class TestSuite(NamedProviderSuite):
    """Cluster API runs after every write of the provider."""

    @pytest.fixture
    async def provider(self, capi: FakeClusterAPI) -> ClusterAPIProvider:
        await capi.define("small")
        changed = _Reconciling(capi)
        return ClusterAPIProvider(changed, capi.namespace)

    @pytest.fixture
    def request_of(self) -> Callable[[str], MachineRequest]:
        return small


class _Reconciling(InterceptingCluster):
    """A cluster in which Cluster API reconciles after every patch of a MachineDeployment."""

    def __init__(self, capi: FakeClusterAPI) -> None:
        super().__init__(capi.cluster)
        self._capi = capi

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        patched = await super().patch(key, patch, options)
        if key.kind == "MachineDeployment":
            await self._capi.reconcile(key.name)
        return patched


async def test_what_another_cluster_has_requested_is_neither_listed_nor_used(capi: FakeClusterAPI) -> None:
    other = ClusterAPIProvider(capi.cluster, capi.namespace, workload=EmbeddedCluster(seed=1))
    own = provider_of(capi)
    await capi.define("small")
    await capi.define("large")
    await other.create(small("workers-1"))
    await capi.reconcile("small")
    (theirs,) = await other.list()
    assert (theirs.name, theirs.may_be_foreign) == ("workers-1", False)
    assert await own.list() == []
    problems = {each.name: each.problem for each in await own.instance_types()}
    assert problems["large"] == ""
    assert "leave it out with a label selector" in problems["small"]
    with pytest.raises(ProviderRefusedError, match="MachineDeployment small is used by the cluster"):
        await own.create(small("workers-2"))
    await own.delete(theirs)
    assert await capi.marked("small") == []
    assert [each.name for each in await other.list()] == ["workers-1"]


async def test_a_record_without_a_cluster_gets_it_with_the_next_request(capi: FakeClusterAPI) -> None:
    provider = provider_of(capi)
    await capi.define("small")
    await capi.change("small", {"spec": {"replicas": 1}})
    await capi.reconcile("small")
    (name,) = await capi.names("small")
    text = json.dumps({"requests": {"workers-1": name}, "others": []})
    await capi.change("small", {"metadata": {"annotations": {RECORD: text}}})
    (old,) = await provider.list()
    assert (old.name, old.may_be_foreign) == ("workers-1", True)
    await provider.create(small("workers-2"))
    assert {each.name: each.may_be_foreign for each in await provider.list()} == {
        "workers-1": False,
        "workers-2": False,
    }


async def test_a_machine_deployment_is_an_instance_type(capi: FakeClusterAPI) -> None:
    await capi.define("small")
    (found,) = await provider_of(capi).instance_types()
    assert {name: str(amount) for name, amount in found.capacity.items()} == {
        "cpu": "4",
        "memory": "16G",
        "pods": "110",
        "nvidia.com/gpu": "1",
    }
    assert (found.name, found.offerings, found.labels) == (
        "small",
        (Offering("fra-1", 0.25),),
        {"pool": "a", "disk": "ssd"},
    )


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        pytest.param({f"{CAPACITY}/memory": "1G"}, f"{CAPACITY}/cpu is missing", id="no cpu"),
        pytest.param({f"{CAPACITY}/cpu": "many", f"{CAPACITY}/memory": "1G"}, "many", id="not a quantity"),
        pytest.param({**ANNOTATIONS, PRICE: "cheap"}, "cheap", id="not a price"),
        *(
            pytest.param(
                {**ANNOTATIONS, PRICE: price}, f'{PRICE} must be a finite number from 0 on, got "{price}"', id=price
            )
            for price in ("nan", "-5", "-inf", "inf", "1e999")
        ),
    ],
)
# https://github.com/kubernetes/autoscaler/issues/7928, https://github.com/kubernetes/autoscaler/issues/6018
async def test_an_unreadable_capacity_is_the_problem_of_its_type_alone(
    capi: FakeClusterAPI, annotations: dict[str, str], message: str
) -> None:
    await capi.define("small", annotations=annotations)
    await capi.define("large")
    large, small = await provider_of(capi).instance_types()
    assert (large.name, large.problem, small.offerings) == ("large", "", ())
    assert re.search(f"MachineDeployment small: .*{message}", small.problem)


async def test_existing_machines_belong_to_no_request(capi: FakeClusterAPI) -> None:
    await capi.define("small", replicas=2)
    await capi.reconcile("small")
    provider = provider_of(capi)
    created = await provider.create(small("pool-1"))
    assert (created.id, created.name, created.state) == ("", "pool-1", MachineState.PENDING)
    assert (await capi.deployment("small"))["spec"]["replicas"] == 3
    await capi.reconcile("small")
    assert {each.id: each.name for each in await provider.list()} == {"small-1": "", "small-2": "", "small-3": "pool-1"}


async def test_a_machine_never_changes_its_request(capi: FakeClusterAPI) -> None:
    await capi.define("small")
    provider = provider_of(capi)
    await provider.create(small("pool-2"))
    await capi.reconcile("small")
    assert (await provider.get(small("pool-2"))).id == "small-1"
    await provider.create(small("pool-1"))
    await capi.reconcile("small")
    assert [(await provider.get(small(name))).id for name in ("pool-1", "pool-2")] == ["small-2", "small-1"]


async def test_a_running_machine_has_a_node(capi: FakeClusterAPI) -> None:
    await capi.define("small")
    provider = provider_of(capi)
    await provider.create(small("pool-1"))
    await capi.reconcile("small")
    await capi.boot("small")
    found = await provider.get(small("pool-1"))
    assert (found.state, found.node_name, found.zone) == (MachineState.RUNNING, "node-small-1", "fra-1")
    await capi.boot("small", phase="Failed")
    assert (await provider.get(small("pool-1"))).state is MachineState.FAILED


async def test_exactly_the_chosen_machine_is_deleted(capi: FakeClusterAPI) -> None:
    await capi.define("small", replicas=1)
    await capi.reconcile("small")
    provider = provider_of(capi)
    for name in ("pool-1", "pool-2"):
        await provider.create(small(name))
        await capi.reconcile("small")
    chosen = await provider.get(small("pool-1"))
    for _ in range(3):
        await provider.delete(chosen)
    assert (await capi.deployment("small"))["spec"]["replicas"] == 2
    await capi.reconcile("small")
    assert await capi.names("small") == ["small-1", "small-3"]
    await provider.delete(chosen)
    assert (await capi.deployment("small"))["spec"]["replicas"] == 2


async def test_a_request_without_machine_is_not_deleted(capi: FakeClusterAPI) -> None:
    """Lowering the replicas could remove the machine of another node."""
    await capi.define("small", replicas=1)
    await capi.reconcile("small")
    provider = provider_of(capi)
    created = await provider.create(small("pool-1"))
    with pytest.raises(ProviderUnavailableError, match="the Machine of pool-1 does not exist yet"):
        await provider.delete(created)
    assert (await capi.deployment("small"))["spec"]["replicas"] == 2


async def test_a_machine_that_another_client_deletes_is_replaced(capi: FakeClusterAPI) -> None:
    await capi.define("small")
    provider = provider_of(capi)
    await provider.create(small("pool-1"))
    await capi.reconcile("small")
    assert (await provider.get(small("pool-1"))).id == "small-1"
    await capi.cluster.delete(ObjectKey(VERSION, "Machine", "small-1", capi.namespace))
    assert (await provider.get(small("pool-1"))).id == ""
    await capi.reconcile("small")
    assert (await provider.get(small("pool-1"))).id == "small-2"
    await provider.delete(Machine("small-1", MachineState.RUNNING))
    assert (await capi.deployment("small"))["spec"]["replicas"] == 1


@pytest.mark.parametrize("text", ["", "[]", '{"requests": []}', '{"requests": {}}'])
async def test_a_spoilt_record_is_refused(capi: FakeClusterAPI, text: str) -> None:
    await capi.define("small", annotations={**ANNOTATIONS, RECORD: text})
    with pytest.raises(ProviderRefusedError, match="expected the JSON that this provider wrote"):
        await provider_of(capi).create(small("pool-1"))
    assert (await capi.deployment("small"))["spec"]["replicas"] == 0


async def test_a_spoilt_record_keeps_no_other_machine_from_being_listed(capi: FakeClusterAPI) -> None:
    await capi.define("small", annotations={**ANNOTATIONS, RECORD: "[]"})
    await capi.define("large", replicas=1)
    await capi.reconcile("large")
    with pytest.raises(IncompleteListError, match="expected the JSON") as caught:
        await provider_of(capi).list()
    assert [each.id for each in caught.value.machines] == ["large-1"]
    assert list(caught.value.failed) == ["small"]
    with pytest.raises(ProviderUnavailableError, match="expected the JSON"):
        await provider_of(capi).get(small("pool-1"))
    # Which machine that is cannot be known now: it is not deleted in the belief that it is gone.
    with pytest.raises(ProviderUnavailableError, match="expected the JSON"):
        await provider_of(capi).delete(Machine("small-1", MachineState.RUNNING))


async def test_the_record_is_one_annotation(capi: FakeClusterAPI) -> None:
    await capi.define("small")
    provider = provider_of(capi)
    await provider.create(small("pool-1"))
    await capi.reconcile("small")
    await provider.list()
    stored = (await capi.deployment("small"))["metadata"]["annotations"][RECORD]
    system = await capi.cluster.get(ObjectKey("v1", "Namespace", "kube-system"))
    uid = system["metadata"]["uid"]
    assert json.loads(stored) == {"requests": {"pool-1": "small-1"}, "others": [], "cluster": uid}


async def test_a_missing_machine_deployment_is_refused(capi: FakeClusterAPI) -> None:
    with pytest.raises(ProviderRefusedError, match="MachineDeployment small"):
        await provider_of(capi).create(small("pool-1"))


async def test_a_rollout_gives_each_request_the_machine_that_replaces_its_own(capi: FakeClusterAPI) -> None:
    """As Cluster API does with `maxSurge: 1`: one more, then one less, until all are of the new template."""
    capi.lingers = True
    await capi.define("small")
    provider = provider_of(capi)
    for name in ("pool-1", "pool-2"):
        await provider.create(small(name))
        await capi.reconcile("small")
        await provider.get(small(name))
    capi.template = "b"
    seen = []
    for old in ("small-1", "small-2"):
        await capi.surge("small")
        await provider.list()
        await capi.remove(old)
        seen.append({each.id: (each.name, each.state) for each in await provider.list()}[old])
        await capi.finish(old)
    # The machine that is being deleted belongs to no request any more: its node is not one that has failed.
    assert seen == [("", MachineState.DELETING)] * 2
    assert [(await provider.get(small(name))).id for name in ("pool-1", "pool-2")] == ["small-3", "small-4"]
    deployment = await capi.deployment("small")
    assert json.loads(deployment["metadata"]["annotations"][RECORD])["others"] == []
    assert (deployment["spec"]["replicas"], await capi.marked("small")) == (2, [])


# https://github.com/kubernetes/autoscaler/issues/8494, https://github.com/kubernetes/autoscaler/issues/5465
async def test_no_machine_is_deleted_during_a_rollout(capi: FakeClusterAPI) -> None:
    """Cluster API spreads the lower number over several MachineSets: it would delete a machine of its choice."""
    await capi.define("small")
    provider = provider_of(capi)
    await provider.create(small("pool-1"))
    await capi.reconcile("small")
    chosen = await provider.get(small("pool-1"))
    capi.template = "b"
    await capi.surge("small")
    with pytest.raises(ProviderUnavailableError, match="MachineDeployment small rolls out"):
        await provider.delete(chosen)
    (known,) = await provider.instance_types()
    assert (known.problem, "rolls out" in known.undeletable) == ("", True)
    assert ((await capi.deployment("small"))["spec"]["replicas"], await capi.marked("small")) == (1, [])
    await capi.remove("small-1")
    (known,) = await provider.instance_types()
    assert known.undeletable == ""


# https://github.com/gardener/machine-controller-manager/issues/758
async def test_a_machine_that_a_health_check_replaces_keeps_its_request(capi: FakeClusterAPI) -> None:
    """The replacement comes after the old machine: a MachineSet counts one that is being deleted."""
    capi.lingers = True
    await capi.define("small")
    provider = provider_of(capi)
    await provider.create(small("pool-1"))
    seen = []
    for step in (capi.reconcile("small"), capi.remove("small-1"), capi.reconcile("small"), capi.finish("small-1")):
        await step
        found = await provider.get(small("pool-1"))
        seen.append((found.id, found.state))
    await capi.reconcile("small")
    assert seen == [
        ("small-1", MachineState.PENDING),
        ("small-1", MachineState.REPLACING),
        ("small-1", MachineState.REPLACING),
        ("", MachineState.PENDING),
    ]
    assert [(each.id, each.name) for each in await provider.list()] == [("small-2", "pool-1")]
    assert ((await capi.deployment("small"))["spec"]["replicas"], await capi.marked("small")) == (1, [])


# https://github.com/gardener/autoscaler/issues/55, https://github.com/openshift/kubernetes-autoscaler/pull/125
async def test_the_deletion_of_a_machine_that_is_being_deleted_lowers_the_replicas_once(capi: FakeClusterAPI) -> None:
    capi.lingers = True
    await capi.define("small")
    provider = provider_of(capi)
    for name in ("pool-1", "pool-2"):
        await provider.create(small(name))
        await capi.reconcile("small")
    await provider.list()
    await capi.remove("small-1")
    chosen = await provider.get(small("pool-1"))
    for _ in range(3):
        await provider.delete(chosen)
        await capi.reconcile("small")
    await capi.finish("small-1")
    await capi.reconcile("small")
    assert ((await capi.deployment("small"))["spec"]["replicas"], await capi.names("small")) == (1, ["small-2"])
    assert await capi.marked("small") == []


# https://github.com/kubernetes/autoscaler/pull/3034
async def test_a_marked_machine_is_given_to_no_other_request(capi: FakeClusterAPI) -> None:
    """Its node is drained: it goes also where `replicas` is raised before Cluster API has seen the lower number."""
    await capi.define("small")
    provider = provider_of(capi)
    await provider.create(small("pool-1"))
    await capi.reconcile("small")
    await provider.delete(await provider.get(small("pool-1")))
    created = await provider.create(small("pool-2"))
    assert created.id == ""
    await provider.list()
    await capi.reconcile("small")
    assert [(each.id, each.name) for each in await provider.list()] == [("small-2", "pool-2")]
    assert ((await capi.deployment("small"))["spec"]["replicas"], await capi.marked("small")) == (1, [])


async def test_the_machines_of_a_user_stay_those_of_the_user(capi: FakeClusterAPI) -> None:
    await capi.define("small", replicas=1)
    await capi.reconcile("small")
    provider = provider_of(capi)
    await provider.create(small("pool-1"))
    await capi.reconcile("small")
    await provider.list()
    # Replaced, and one more.
    await capi.remove("small-1")
    await capi.reconcile("small")
    await provider.list()
    await capi.change("small", {"spec": {"replicas": 3}})
    await capi.reconcile("small")
    await provider.list()
    await provider.create(small("pool-2"))
    await capi.reconcile("small")
    names = {each.id: each.name for each in await provider.list()}
    assert names == {"small-2": "pool-1", "small-3": "", "small-4": "", "small-5": "pool-2"}


async def test_a_request_whose_replica_a_user_has_taken_away_can_be_deleted(capi: FakeClusterAPI) -> None:
    await capi.define("small")
    provider = provider_of(capi)
    await provider.create(small("pool-1"))
    await capi.change("small", {"spec": {"replicas": 0}})
    await provider.delete(await provider.get(small("pool-1")))
    assert (await capi.deployment("small"))["spec"]["replicas"] == 0
    assert await provider.list() == []


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        # https://github.com/kubernetes/autoscaler/issues/9345, https://github.com/gardener/autoscaler/issues/189
        pytest.param({"spec": {"paused": True}}, "is paused", id="field"),
        pytest.param({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}, "is paused", id="annotation"),
        pytest.param(
            {
                "status": {
                    "conditions": [
                        {
                            "type": "Paused",
                            "status": "True",
                            "reason": "Paused",
                            "message": "Cluster spec.paused is set to true",
                            "lastTransitionTime": "2026-01-01T00:00:00Z",
                        }
                    ]
                }
            },
            "is paused",
            id="Cluster",
        ),
        # https://github.com/kubernetes-sigs/cluster-api/issues/12035
        pytest.param({}, "is being deleted", id="deletion"),
    ],
)
async def test_a_machine_deployment_that_is_not_reconciled_is_left_alone(
    capi: FakeClusterAPI, patch: Manifest, reason: str
) -> None:
    await capi.define("small")
    provider = provider_of(capi)
    await provider.create(small("pool-1"))
    await capi.reconcile("small")
    chosen = await provider.get(small("pool-1"))
    if patch:
        await capi.change("small", patch)
    else:
        await capi.change("small", {"metadata": {"finalizers": ["cluster.x-k8s.io/machinedeployment"]}})
        await capi.cluster.delete(ObjectKey(VERSION, "MachineDeployment", "small", capi.namespace))
    (known,) = await provider.instance_types()
    assert reason in known.problem
    assert reason in known.undeletable
    with pytest.raises(CapacityExhaustedError, match=f"pool-2 cannot be created: MachineDeployment small {reason}"):
        await provider.create(small("pool-2"))
    # One that was sent before the pause.
    assert (await provider.create(small("pool-1"))).id == "small-1"
    with pytest.raises(
        ProviderUnavailableError, match=f"pool-1 cannot be deleted now: MachineDeployment small {reason}"
    ):
        await provider.delete(chosen)
    assert ((await capi.deployment("small"))["spec"]["replicas"], await capi.marked("small")) == (1, [])
