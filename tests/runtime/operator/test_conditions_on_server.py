"""Conditions in the status of an owner whose definition has the schema of `metav1.Condition`, on a real API server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import Subresource
from ocf.component import Component, ReconcileContext
from ocf.concepts import SystemClock
from ocf.concepts.recorder import NullRecorder
from ocf.errors import InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import LONGEST_MESSAGE, condition_type_problem, reason_problem
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome
from ocf.runtime.operator.reconciler import reconcile_owner
from tests.support import definition_of, eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest.fixtures import Envtest

_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
# As controller-gen writes the schema of metav1.Condition.
_CONDITION: Final = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "type": {"type": "string", "maxLength": 316, "pattern": _TYPE},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "message": {"type": "string", "maxLength": 32768},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    },
}
_CONDITIONS: Final = {
    "type": "array",
    "items": _CONDITION,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
_SPEC: Final = {"type": "object", "properties": {"size": {"type": "integer"}}}
_STATUS: Final = {"type": "object", "properties": {"conditions": _CONDITIONS}}
DEFINITION: Final = definition_of(
    "Stall", "conditions.example.com", {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}
)
# A character is one code point for the API server, too.
LONG: Final = "the registry says 🌩 " * 4_000


def components(_: Manifest) -> Component:
    return component.Builder("web", condition_type="WebReady").build()


def report(context: ReconcileContext, _: Manifest, outcome: ReconcileOutcome) -> None:
    if outcome.error is None:
        context.set_condition("Ready", status="True", reason="EverythingIsThere", message=LONG)


def fail(_: Manifest) -> Component:
    raise NotFoundError(LONG)


OPERATOR: Final[Operator[Manifest]] = Operator(
    name="stalls", owner=OwnerType("conditions.example.com/v1", "Stall"), components=components, report=report
)


async def new_owner(cluster: ApiServerCluster, namespace: str) -> Manifest:
    await cluster.apply(DEFINITION, field_manager="admin")
    metadata = {"name": "corner", "namespace": namespace}
    owner = {"apiVersion": "conditions.example.com/v1", "kind": "Stall", "metadata": metadata, "spec": {"size": 1}}
    return await eventually(lambda: cluster.create(owner, field_manager="admin"), ignore=(NotFoundError,))


async def shown(cluster: ApiServerCluster, key: ObjectKey) -> dict[str, Manifest]:
    return {one["type"]: one for one in (await cluster.get(key))["status"]["conditions"]}


@pytest.mark.promise("failure-shown", runs="on a real API server, with an error of 80 000 characters")
@pytest.mark.promise("failure-alone", runs="on a real API server, beside a condition of another controller")
@pytest.mark.promise("condition-limits", runs="on a real API server, with the schema of metav1.Condition")
async def test_a_long_error_is_cut_and_in_the_failure_condition_alone(
    envtest: Envtest, envtest_cluster: ApiServerCluster
) -> None:
    cluster = envtest_cluster
    key = ObjectKey.of(await new_owner(cluster, envtest.namespace))

    async def reconcile(operator: Operator[Manifest]) -> None:
        owner = await cluster.get(key)
        await reconcile_owner(operator, owner, cluster, clock=SystemClock(), recorder=NullRecorder())

    await reconcile(OPERATOR)
    foreign = {
        "type": "Backup",
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    live = await cluster.get(key)
    live["status"]["conditions"].append(foreign)
    await cluster.update(live, field_manager="backup", subresource=Subresource.STATUS)
    healthy = await shown(cluster, key)
    assert {name: one["status"] for name, one in healthy.items()} == {
        "WebReady": "True",
        "Ready": "True",
        "Backup": "True",
    }
    assert len(healthy["Ready"]["message"]) == LONGEST_MESSAGE

    with pytest.raises(NotFoundError):
        await reconcile(replace(OPERATOR, components=fail))
    failed = await shown(cluster, key)
    reconciled = failed.pop("stalls/Reconciled")
    assert failed == healthy
    assert (reconciled["status"], reconciled["reason"]) == ("False", "Error")
    message = reconciled["message"]
    assert len(message) == LONGEST_MESSAGE
    assert message.endswith(" characters cut)")

    await reconcile(OPERATOR)
    assert await shown(cluster, key) == healthy


@pytest.mark.promise("condition-limits", runs="types and reasons that a real API server accepts and rejects")
async def test_types_and_reasons_are_rejected_as_the_api_server_does(
    envtest: Envtest, envtest_cluster: ApiServerCluster
) -> None:
    live = await new_owner(envtest_cluster, envtest.namespace)
    condition: dict[str, Any] = {
        "type": "Ready",
        "status": "True",
        "reason": "Fine",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }

    async def accepts(**changed: str) -> bool:
        try:
            await envtest_cluster.update(
                live | {"status": {"conditions": [condition | changed]}},
                field_manager="test",
                subresource=Subresource.STATUS,
                dry_run=True,
            )
        except InvalidError:
            return False
        return True

    for name in TYPES:
        assert await accepts(type=name) is (not condition_type_problem(name)), name
    for reason in REASONS:
        assert await accepts(reason=reason) is (not reason_problem(reason)), reason


TYPES: Final = (
    *("Ready", "a", "example.com/Ready", "Web.Ready_2-x", "1", "x" * 316, "a.b-c/" + "x" * 310),
    *("", "web ready", "Ready\n", "Example.com/Ready", "a/b/c", "-Ready", "Ready.", "/Ready", "x" * 317, "Bereit✓"),
)
REASONS: Final = (
    *("A", "Fine", "Fine_", "A:b,c", "x" * 1024),
    *("", "two words", "1st", "Fine:", "Fine,", "Fine\n", "_x", "x" * 1025, "Ä"),
)
