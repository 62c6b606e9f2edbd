"""The operator with kopf, as its author tests it: its functions of values; its handlers need a cluster."""

from typing import Any

import pytest

from examples.comparison.kopf_operator import objects
from examples.comparison.kopf_operator.objects import Object

BEFORE = "2026-01-01T00:00:00Z"
NOW = "2026-01-02T00:00:00Z"


def new_site(**spec: Any) -> Object:
    return {
        "metadata": {"name": "sample", "namespace": "default", "uid": "1", "generation": 2},
        "spec": {"version": "1.1.0", "greeting": "Hello!", "replicas": 2, "suspended": False, **spec},
    }


def live(replicas: int, *, available: int) -> Object:
    return {
        "metadata": {"generation": 3, "resourceVersion": "7"},
        "spec": {"replicas": replicas},
        "status": {
            "observedGeneration": 3,
            "replicas": replicas,
            "updatedReplicas": replicas,
            "availableReplicas": available,
        },
    }


def test_it_becomes_ready() -> None:
    site = new_site()
    assert objects.config_map(site)["data"] == {"index.html": "Hello!\n"}
    assert objects.condition(site, live(2, available=1), NOW)["reason"] == "Progressing"
    assert objects.condition(site, live(2, available=2), NOW)["reason"] == "Healthy"


def test_a_rollout_that_is_not_observed_is_not_ready() -> None:
    stale = live(2, available=2)
    stale["metadata"]["generation"] = 4
    assert objects.condition(new_site(), stale, NOW)["reason"] == "Progressing"


@pytest.mark.parametrize(("version", "graceful"), [("1.0.9", False), ("1.1.0", True), ("2.0.0", True)])
def test_the_version_decides_about_the_shutdown(version: str, graceful: bool) -> None:
    pod = objects.deployment(new_site(version=version), None)["spec"]["template"]["spec"]
    assert ("lifecycle" in pod["containers"][0]) is graceful


def test_suspending_stops_the_pods() -> None:
    site = new_site(suspended=True, maxReplicas=5)
    assert objects.deployment(site, live(4, available=4))["spec"]["replicas"] == 0
    assert objects.autoscaler(site) is None
    assert objects.condition(site, live(0, available=0), NOW)["reason"] == "Suspended"
    assert objects.deployment(new_site(), live(0, available=0))["spec"]["replicas"] == 2


def test_the_autoscaler_owns_the_count() -> None:
    site = new_site(maxReplicas=5)
    autoscaler = objects.autoscaler(site)
    assert autoscaler is not None
    assert (autoscaler["spec"]["minReplicas"], autoscaler["spec"]["maxReplicas"]) == (2, 5)
    desired = objects.deployment(site, live(4, available=4))
    assert (desired["spec"]["replicas"], desired["metadata"]["resourceVersion"]) == (4, "7")
    assert objects.deployment(new_site(), live(4, available=4))["spec"]["replicas"] == 2


@pytest.mark.parametrize(("status", "since"), [("True", BEFORE), ("False", NOW)])
def test_a_transition_is_a_change_of_the_status(status: str, since: str) -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": BEFORE}
    site = {**new_site(), "status": {"conditions": [ready]}}
    assert objects.changed(site, status, "Any", "", NOW)["lastTransitionTime"] == since
