"""What an explanation says about the operator, the namespace and the shape of what was read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.objects import Manifest
from ocf.ownership import State
from tests.ownership.situations import NOT_READY, SHOP
from tests.ownership.test_causes import READY, explained
from tests.ownership.world import (
    GROUP,
    NOW,
    ago,
    cluster_scoped,
    condition,
    container,
    lease,
    obj,
    pod,
    shop,
    workload,
    written,
)

ISTIO: Final = "networking.istio.io/v1"
GATEWAY: Final = obj("example.com/v1", "Gateway", "front", spec={})
CLAIM: Final = obj(
    "v1",
    "PersistentVolumeClaim",
    "data",
    GATEWAY,
    spec={"storageClassName": "fast"},
    status={"phase": "Pending"},
)
OF_ISTIO: Final = obj(ISTIO, "Gateway", "front", spec={})
UNSEEN: Final = "Gateway front is not up to date: no operator has written a status for it since 12 minutes."


@pytest.mark.parametrize(
    ("objects", "with_status", "state", "sentence"),
    [
        pytest.param(
            [GATEWAY],
            (),
            State.UNKNOWN,
            "Gateway front has no status and no objects for 12 minutes: no operator has reported anything.",
            id="a kind of which no object has a status",
        ),
        pytest.param(
            [GATEWAY, workload("Deployment", GATEWAY, ready=1)],
            (),
            State.READY,
            "Gateway front is ready for 12 minutes, with 1 object.",
            id="a kind without a status, with an object that is ready",
        ),
        pytest.param(
            [GATEWAY, obj("example.com/v1", "Gateway", "back", status={"conditions": [condition("Ready", "True")]})],
            (),
            State.PROGRESSING,
            UNSEEN,
            id="another object of the kind has a status",
        ),
        pytest.param(
            [GATEWAY, workload("Deployment", GATEWAY, ready=1)],
            [("example.com", "Gateway")],
            State.PROGRESSING,
            UNSEEN,
            id="the API server serves the kind with a status",
        ),
        pytest.param(
            [GATEWAY, CLAIM],
            [("example.com", "Gateway")],
            State.FAILING,
            "The claim data is Pending for 12 minutes: no StorageClass named fast; so Gateway front is not ready.",
            id="an object fails, whether or not the operator reports",
        ),
        # https://github.com/argoproj/argo-cd/issues/8898
        pytest.param(
            [OF_ISTIO, workload("Deployment", OF_ISTIO, ready=1)],
            [("networking.istio.io", "Gateway")],
            State.READY,
            "Gateway front is ready for 12 minutes, with 1 object.",
            id="Istio: a status is written only where that is switched on",
        ),
    ],
)
def test_a_missing_status_is_claimed_only_of_kinds_that_have_one(
    objects: list[Manifest], with_status: Any, state: State, sentence: str
) -> None:
    found = explained(objects, with_status=with_status)
    assert (found.root.state, found.sentence) == (state, sentence)


def test_an_owner_of_an_old_spec_is_not_ready() -> None:
    """So that the list of all owners does not call it ready while its sentence says that it is not up to date."""
    old = shop(condition("Ready", "True"), metadata={"generation": 3, "managedFields": written("kubectl")})
    assert explained([old]).root.state is State.PROGRESSING


STOPPED: Final = ("The operator does not run: its Lease ops/8.example.com was renewed 3 hours ago for the last time.",)


def seen(minutes: float, status: str = "manager") -> Manifest:
    """Return a ready owner whose status was written so many minutes ago."""
    return shop(
        condition("Ready", "True"), metadata={"managedFields": written("kubectl", status=status, minutes=minutes)}
    )


def with_duration(found: Manifest, duration: Any) -> Manifest:
    return {**found, "spec": {**found["spec"], "leaseDurationSeconds": duration}}


@pytest.mark.parametrize(
    ("owner", "held", "ahead", "remarks"),
    [
        pytest.param(READY, lease("8.example.com", renewed=180), 0, STOPPED, id="a Lease of hours ago"),
        pytest.param(READY, lease("8.example.com", renewed=0.05), 60, (), id="a clock that is a minute ahead"),
        pytest.param(seen(0), lease("8.example.com", renewed=180), 0, (), id="a status that is younger than the Lease"),
        pytest.param(seen(200), lease("8.example.com", renewed=180), 0, STOPPED, id="a status before the Lease"),
        pytest.param(seen(179.8), lease("8.example.com", renewed=180), 0, STOPPED, id="a status of the last term"),
        pytest.param(READY, lease("8.example.com", renewed=180, holder=""), 0, None, id="a Lease without a holder"),
        pytest.param(
            READY, with_duration(lease("8.example.com", renewed=180), 10**20), 0, (), id="an endless duration"
        ),
        pytest.param(
            READY, with_duration(lease("8.example.com", renewed=180), -5), 0, STOPPED, id="a negative duration"
        ),
    ],
)
def test_an_operator_stands_still_only_if_no_clock_may_be_wrong(
    owner: Manifest, held: Manifest, ahead: int, remarks: tuple[str, ...] | None
) -> None:
    found = explained([owner, held], now=NOW + timedelta(seconds=ahead))
    unheld = ("The operator does not run: no process holds its Lease ops/8.example.com.",)
    assert found.remarks == (unheld if remarks is None else remarks)


TERMINATING: Final = cluster_scoped("v1", "Namespace", "town", metadata={"deletionTimestamp": ago(3)})


def test_a_ready_owner_in_a_namespace_that_is_being_deleted_is_ready() -> None:
    found = explained([READY, TERMINATING])
    assert (found.root.state, found.sentence) == (State.READY, "Shop corner is ready for 12 minutes, with 0 objects.")
    assert found.remarks == ("The namespace town is being deleted for 3 minutes.",)
    assert explained([SHOP, TERMINATING]).sentence.startswith("The namespace town is being deleted")


def test_a_condition_pauses_also_without_a_time() -> None:
    paused = shop(condition("Ready"), {"type": "Paused", "status": "True"})
    assert explained([paused]).sentence == "Shop corner is paused by its condition Paused; so it is not ready."
    running = shop(condition("Ready"), {"type": "Paused", "status": "False"})
    assert "paused" not in explained([running]).sentence


@pytest.mark.parametrize(("length", "is_cut"), [(50, False), (51, True), (1200, True)])
def test_long_chains_of_owner_references_are_cut(length: int, *, is_cut: bool) -> None:
    objects = [SHOP]
    for number in range(length):
        status = {"conditions": [condition("Ready", reason="Waiting", message=f"for {number + 1}")]}
        objects.append(obj(f"{GROUP}/v1", "Part", f"part-{number}", objects[-1], status=status))
    found = explained(objects)
    assert found.sentence.startswith("Part part-49 is not ready for 12 minutes: Waiting: for 50; so Part part-48")
    assert found.remarks == (
        ("Objects that are more than 50 owner references below it were not looked at.",) if is_cut else ()
    )


XDATABASE: Final = {"apiVersion": "example.com/v1", "kind": "XDatabase", "name": "db-x"}
DATABASE: Final = obj(
    "example.com/v1",
    "Database",
    "db",
    spec={"resourceRef": XDATABASE},
    status={"conditions": [condition("Ready", reason="Waiting", message="waiting for the composite resource")]},
)
INSTANCE: Final = {"conditions": [condition("Synced", reason="ReconcileError", message="the password is too short")]}


@pytest.mark.parametrize(
    ("claim", "cause"),
    [("db", "Instance db-x is not ready"), ("other", "Database db is not ready for 12 minutes: Waiting")],
)
def test_the_composite_resource_of_a_claim_of_crossplane_belongs_to_it(claim: str, cause: str) -> None:
    composite = cluster_scoped(
        "example.com/v1",
        "XDatabase",
        "db-x",
        spec={"claimRef": {"kind": "Database", "namespace": "town", "name": claim}},
        status={"conditions": [condition("Ready", reason="Creating", message="unready resources")]},
    )
    instance = obj("rds.example.com/v1", "Instance", "db-x", composite, metadata={"namespace": None}, status=INSTANCE)
    assert explained([DATABASE, composite, instance]).sentence.startswith(cause)


def test_an_owner_of_an_unknown_state_is_not_called_broken() -> None:
    suspended = obj("batch/v1", "CronJob", "backup", spec={"suspend": True})
    assert explained([suspended]).sentence == "CronJob backup is suspended by the field spec.suspend: true."
    odd = obj("apps/v1", "Deployment", "web", spec={"replicas": 1}, status={"observedGeneration": 1, "replicas": "one"})
    ended = container({"terminated": {"exitCode": 1, "reason": "Error"}})
    found = explained([odd, pod(odd, containerStatuses=[ended])])
    assert found.root.state is State.FAILING
    assert found.sentence.endswith("so Deployment web has a problem; it does not report whether it is ready.")


class _Labels(dict[str, str]):
    """Labels that count how often they are compared."""

    times = 0

    def items(self) -> Any:
        type(self).times += 1
        return super().items()


def test_the_pods_of_services_are_found_by_their_labels() -> None:
    """So that many Services and many pods do not cost their product."""
    pods = [pod(SHOP, f"web-{number}") for number in range(40)]
    for one in pods:
        one["metadata"]["labels"] = _Labels(app="web", pod=one["metadata"]["name"])
    services = [
        obj("v1", "Service", f"web-{number}", SHOP, spec={"selector": {"app": "web", "pod": f"web-{number}"}})
        for number in range(40)
    ]
    _Labels.times = 0
    assert explained([SHOP, *pods, *services]).sentence.endswith(f"{NOT_READY[0]}.")
    assert 0 < _Labels.times < 40 * 10


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_names_that_are_no_text_are_passed_over(field: str) -> None:
    """As YAML without quotes has them."""
    found = explained([shop(condition("Ready", "True"), metadata={field: {1: "a", 2.5: {}}})])
    assert found.sentence == "Shop corner is ready for 12 minutes, with 0 objects."
