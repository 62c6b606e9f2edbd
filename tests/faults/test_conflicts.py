"""Faults: another writer changes the owner's status, a field of an object, or creates an object of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.component import Conflicts
from ocf.component.model.resource_options import ResourceOptions
from ocf.errors import ConflictError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.paths import get_field
from ocf.testing import FaultyCluster, assert_quiet, faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.cluster import Cluster
    from ocf_server import EmbeddedCluster
    from tests.faults.conftest import Operator

POLICIES: Final[dict[str, ResourceOptions]] = {
    "take": {},
    "fail": {"on_conflict": Conflicts.FAIL},
    "block": {"block_on_foreign_controller": True},
}


class TestStatus:
    @pytest.mark.promise("status-conflict", runs="1, 2 … 5 conflicts in a row")
    @pytest.mark.parametrize("conflicts", range(1, 6))
    async def test_a_status_keeps_the_fields_of_other_writers(self, operator: Operator, conflicts: int) -> None:
        cluster = await operator.new_cluster()
        written = 0

        async def write_first() -> None:
            nonlocal written
            written += 1
            live = await cluster.get(operator.owner)
            status = live.get("status") or {}
            paid = {
                "type": "Paid",
                "status": "True",
                "reason": "Transferred",
                "message": f"Instalment {written} has come.",
                "lastTransitionTime": "2026-01-01T12:00:00Z",
            }
            kept = [condition for condition in status.get("conditions", []) if condition["type"] != "Paid"]
            changed = {**live, "status": {**status, "instalments": written, "conditions": [*kept, paid]}}
            await cluster.update(changed, field_manager="bank", subresource=Subresource.STATUS)

        hook = faults.meanwhile(write_first, kind="Shop", subresource="status", times=conflicts)
        faulty = FaultyCluster(cluster, [hook])
        await operator.settle(cluster, faulty)

        faulty.assert_all_injected()
        status = (await cluster.get(operator.owner))["status"]
        assert [request.code for request in cluster.requests if request.code == 409] == [409] * conflicts
        conditions = {condition["type"]: condition for condition in status["conditions"]}
        assert conditions["Paid"]["message"] == f"Instalment {conflicts} has come."
        assert status["instalments"] == conflicts
        assert (conditions["WebReady"]["status"], conditions["WebReady"]["reason"]) == ("True", "Healthy")
        await assert_quiet(cluster, operator.reconcile)


async def by_autoscaler(cluster: Cluster, web: ObjectKey) -> None:
    await cluster.patch(
        web,
        {"spec": {"replicas": 7}},
        PatchOptions(
            patch_type=PatchType.MERGE, field_manager="kube-controller-manager", subresource=Subresource.SCALE
        ),
    )


async def by_kubectl(cluster: Cluster, web: ObjectKey) -> None:
    await _apply(cluster, web, "kubectl", {"image": "debug:1", "workingDir": "/app"})


async def by_vpa(cluster: Cluster, web: ObjectKey) -> None:
    await _apply(cluster, web, "vpa-updater", {"resources": {"requests": {"cpu": "2", "ephemeral-storage": "1Gi"}}})


async def _apply(cluster: Cluster, web: ObjectKey, manager: str, container: Manifest) -> None:
    partly = {
        "apiVersion": web.api_version,
        "kind": web.kind,
        "metadata": {"name": web.name, "namespace": web.namespace},
        "spec": {"template": {"spec": {"containers": [{"name": "web", **container}]}}},
    }
    await cluster.apply(partly, field_manager=manager, force=True)


CONTAINER: Final = ("spec", "template", "spec", "containers")
# For each writer: its function and field manager; the declared field that it changes, with our value and its value.
MANAGERS: Final[dict[str, tuple[Any, str, str, Any, Any]]] = {
    "HPA": (by_autoscaler, "kube-controller-manager", ".spec.replicas", 3, 7),
    "kubectl": (
        by_kubectl,
        "kubectl",
        '.spec.template.spec.containers[name="web"].image',
        "registry.example.com/web:1.4.0",
        "debug:1",
    ),
    "VPA": (
        by_vpa,
        "vpa-updater",
        '.spec.template.spec.containers[name="web"].resources.requests.cpu',
        "250m",
        "2",
    ),
}


def value(live: Manifest, manager: str) -> Any:
    container = get_field(live, CONTAINER)[0]
    match manager:
        case "HPA":
            return live["spec"]["replicas"]
        case "kubectl":
            return container["image"]
        case _:
            return container["resources"]["requests"]["cpu"]


class TestFields:
    """Fields that another manager changes; without an autoscaler the component also declares the replica count."""

    @pytest.fixture
    def met(self, new_operator: Callable[..., Operator]) -> Callable[[str], Operator]:
        return lambda policy: new_operator(options={"Deployment": POLICIES[policy]})

    @pytest.mark.promise("conflict-take", runs="an autoscaler, kubectl and a vertical autoscaler")
    @pytest.mark.parametrize("manager", MANAGERS)
    async def test_the_default_policy_takes_over_exactly_the_declared_fields(
        self, met: Callable[[str], Operator], manager: str
    ) -> None:
        operator = met("take")
        cluster = await operator.at_rest(scaled=False)
        write, name, _, ours, theirs = MANAGERS[manager]
        await write(cluster, operator.web)
        left = await cluster.get(operator.web)
        assert value(left, manager) == theirs

        await operator.settle(cluster)
        live = await cluster.get(operator.web)
        assert value(live, manager) == ours
        others = {"HPA": None, "kubectl": ("workingDir",), "VPA": ("resources", "requests", "ephemeral-storage")}[
            manager
        ]
        if others is not None:
            assert get_field(get_field(live, CONTAINER)[0], others) == get_field(get_field(left, CONTAINER)[0], others)
            assert name in {entry["manager"] for entry in live["metadata"]["managedFields"]}
        await assert_quiet(cluster, operator.reconcile)

    @pytest.mark.promise("conflict-fail", runs="an autoscaler, kubectl and a vertical autoscaler")
    @pytest.mark.parametrize("manager", MANAGERS)
    async def test_the_fail_policy_names_manager_and_field_and_keeps_the_object(
        self, met: Callable[[str], Operator], manager: str
    ) -> None:
        operator = met("fail")
        cluster = await operator.at_rest(scaled=False)
        write, name, field, _, _ = MANAGERS[manager]
        await write(cluster, operator.web)
        left = await cluster.get(operator.web)

        with pytest.raises(ReconcileError) as raised:
            await operator.reconcile(cluster)
        assert await cluster.get(operator.web) == left
        cause = raised.value.__cause__
        assert isinstance(cause, ConflictError)
        assert [(one.field, f'"{name}"' in one.message) for one in cause.causes] == [(field, True)]
        condition = await operator.condition(cluster)
        assert (condition["status"], condition["reason"]) == ("False", "Error")
        for said in (str(raised.value), condition["message"]):
            assert f'"{name}"' in said
            assert field in said

    @pytest.mark.promise("conflict-block", runs="an autoscaler, kubectl and a vertical autoscaler")
    @pytest.mark.parametrize("manager", MANAGERS)
    async def test_the_block_policy_keeps_an_object_that_another_owner_controls(
        self, met: Callable[[str], Operator], manager: str
    ) -> None:
        """While another owner controls the object, it does not change at all, whichever manager wrote to it."""
        operator = met("block")
        cluster = await operator.at_rest(scaled=False)
        reference = await another_owner(cluster, operator)
        await operator.change(cluster, operator.web, metadata={"ownerReferences": [reference]})
        await MANAGERS[manager][0](cluster, operator.web)
        left = await cluster.get(operator.web)

        result = await operator.reconcile(cluster)
        assert result is not None
        assert await cluster.get(operator.web) == left
        message = f"Deployment {operator.web.name}: controlled by Shop other"
        assert (result.condition.reason, result.condition.message) == ("Blocked", message)


class TestObjects:
    """An object with the name of a resource already exists."""

    @pytest.mark.promise(
        "foreign-object", runs="3 policies, each with an object that has a controller, and one without"
    )
    @pytest.mark.parametrize(
        ("policy", "controlled", "reason"),
        [
            pytest.param("take", False, "Updating", id="take adopts an object without a controller"),
            pytest.param("take", True, "Blocked", id="take keeps an object with a controller"),
            pytest.param("fail", False, "Error", id="fail keeps an object whose fields differ"),
            pytest.param("fail", True, "Blocked", id="fail keeps an object with a controller"),
            pytest.param("block", False, "Updating", id="block adopts an object without a controller"),
            pytest.param("block", True, "Blocked", id="block waits while the object has a controller"),
        ],
    )
    async def test_is_adopted_only_if_the_policy_allows_it(
        self, new_operator: Callable[..., Operator], policy: str, controlled: bool, reason: str
    ) -> None:
        operator = new_operator(options={"Deployment": POLICIES[policy]})
        cluster = await operator.new_cluster()
        references = [await another_owner(cluster, operator)] if controlled else []
        left = await cluster.create(foreign(operator.web, references), field_manager="kubectl")

        if reason == "Error":
            with pytest.raises(ReconcileError, match=str(operator.web)):
                await operator.reconcile(cluster)
        else:
            await operator.reconcile(cluster)
        condition = await operator.condition(cluster)
        live = await cluster.get(operator.web)
        adopted = reason not in ("Error", "Blocked")
        assert condition["reason"] == reason
        assert (live == left) is not adopted
        assert [reference["name"] for reference in live["metadata"].get("ownerReferences", [])] == (
            ["demo"] if adopted else ["other"] if controlled else []
        )
        assert live["spec"]["paused"] is True
        if not adopted:
            blocked = f"Deployment {operator.web.name}: controlled by Shop other"
            assert str(operator.web) in condition["message"] or condition["message"] == blocked
            assert await operator.read(cluster, operator.scaler) is None


async def another_owner(cluster: EmbeddedCluster, operator: Operator) -> Manifest:
    """Create another owner, and return a controller reference to it."""
    metadata = {"name": "other", "namespace": operator.owner.namespace}
    shop = {"apiVersion": operator.owner.api_version, "kind": operator.owner.kind, "metadata": metadata}
    uid = (await cluster.create(shop, field_manager="user"))["metadata"]["uid"]
    named = {"apiVersion": operator.owner.api_version, "kind": operator.owner.kind, "name": "other", "uid": uid}
    return {**named, "controller": True}


def foreign(key: ObjectKey, references: list[Manifest]) -> Manifest:
    """Return a Deployment of another creator: with another image, and paused."""
    container = {"name": "web", "image": "theirs:1"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": key.api_version,
        "kind": key.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": references},
        "spec": {"paused": True, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
