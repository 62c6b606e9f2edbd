"""Conditions of a cache without an autoscaler, with missing Secrets, and after a failed reconcile."""

from typing import Any

import pytest

from examples.memcached.conditions import TYPES, conditions, view
from examples.memcached.model import Memcached
from ocf.objects import Manifest


def conditions_of(spec: Manifest, deployment: Manifest | None, **seen: Any) -> dict[str, tuple[str, str, str]]:
    found = conditions(view(Memcached.model_validate({"spec": spec}), deployment, **seen))
    return {name: (one.status, one.reason, one.message) for name, one in found.items()}


def running(total: int, updated: int, ready: int, *, observed: int = 2) -> Manifest:
    counts = {"replicas": total, "updatedReplicas": updated, "readyReplicas": ready}
    return {"metadata": {"generation": 2}, "status": {"observedGeneration": observed, **counts}}


def test_there_are_four_in_one_order() -> None:
    assert tuple(conditions_of({}, None)) == TYPES == ("Available", "Progressing", "Degraded", "Ready")


@pytest.mark.parametrize(
    ("deployment", "progressing"),
    [
        pytest.param(running(3, 3, 0), ("False", "ProgressingComplete", "All 3 replicas are updated"), id="all new"),
        pytest.param(
            running(3, 1, 3), ("True", "Progressing", "Rollout in progress: 1/3 replicas updated"), id="some are old"
        ),
        pytest.param(
            running(4, 3, 3), ("True", "Progressing", "Rollout in progress: 3/3 replicas updated"), id="one too many"
        ),
        pytest.param(
            running(3, 3, 3, observed=1),
            ("True", "Progressing", "Rollout in progress: 0/3 replicas updated"),
            id="the controller has not looked yet",
        ),
    ],
)
def test_a_rollout(deployment: Manifest, progressing: tuple[str, str, str]) -> None:
    assert conditions_of({"replicas": 3}, deployment)["Progressing"] == progressing


def test_zero_replicas_are_neither_available_nor_degraded() -> None:
    assert conditions_of({"replicas": 0}, running(0, 0, 0)) == {
        "Available": ("False", "Unavailable", "0/0 replicas are ready"),
        "Progressing": ("False", "ProgressingComplete", "All 0 replicas are updated"),
        "Degraded": ("False", "NotDegraded", "All 0 desired replicas are ready"),
        "Ready": ("False", "MemcachedNotReady", "Instance has zero desired replicas"),
    }


def test_a_missing_secret_degrades_and_does_not_change_ready() -> None:
    found = conditions_of({"replicas": 1}, running(1, 1, 1), missing=["b", "a"])

    assert found["Degraded"] == ("True", "SecretNotFound", "Referenced Secrets not found: a, b")
    assert found["Ready"] == ("True", "MemcachedReady", "All 1 replicas are ready")


def test_a_failed_reconcile_degrades_with_its_error() -> None:
    found = conditions_of({"replicas": 1}, running(1, 1, 1), missing=["a"], failure="the server is down")

    assert found["Degraded"] == ("True", "Degraded", "the server is down")
    assert found["Available"][0] == "True"


@pytest.mark.parametrize("scaling", [None, {"enabled": True, "maxReplicas": 9}])
def test_a_suspended_cache_desires_no_pods_and_is_not_scaled(scaling: Manifest | None) -> None:
    found = conditions_of({"replicas": 3, "suspended": True, "autoscaling": scaling}, running(2, 2, 2))

    assert found["Available"] == ("True", "Available", "2/0 replicas are ready")
    assert found["Progressing"] == ("True", "Progressing", "Rollout in progress: 2/0 replicas updated")
    assert found["Ready"] == ("False", "MemcachedNotReady", "Instance has zero desired replicas")
