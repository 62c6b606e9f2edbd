"""The webhooks: called as a function, by the embedded cluster, and by a real API server."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from examples.memcached.admission import webhooks
from examples.memcached.samples import AUTOSCALED, DEFAULTS
from ocf.errors import InvalidError
from ocf.objects import Manifest, load_document
from ocf.runtime.admission import Step, review
from ocf.testing import serve_webhooks
from tests.examples.memcached.env import Env

MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
REQUESTS = {"requests": {"cpu": "100m"}}

REFUSED: list[Any] = [
    pytest.param(
        {"replicas": 3, "autoscaling": {"enabled": True, "maxReplicas": 10}, "resources": REQUESTS},
        "spec.replicas",
        "mutually exclusive",
        id="07 replicas and autoscaling",
    ),
    pytest.param(
        {"autoscaling": {"enabled": True, "minReplicas": 10, "maxReplicas": 5}, "resources": REQUESTS},
        "spec.autoscaling.minReplicas",
        r"minReplicas \(10\) must not be greater than maxReplicas \(5\)",
        id="08 minimum above maximum",
    ),
    pytest.param(
        {"autoscaling": {"enabled": True, "maxReplicas": 5, "metrics": [CPU]}},
        "spec.resources.requests.cpu",
        "needs a request for cpu",
        id="09 cpu utilization without a request",
    ),
]


@asynccontextmanager
async def asked(env: Env, *, strict: bool = False) -> AsyncIterator[None]:
    """Register the operator's webhooks with the API server."""
    async with serve_webhooks(env.cluster, f"memcached-{env.namespace}", webhooks(strict=strict).webhooks):
        yield


def manifest(env: Env, **spec: Any) -> Manifest:
    metadata = {"name": "my-cache", "namespace": env.namespace}
    return {"apiVersion": "memcached.c5c3.io/v1alpha1", "kind": "Memcached", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(("spec", "field", "text"), REFUSED)
async def test_rejected_in_strict_mode(env: Env, spec: Manifest, field: str, text: str) -> None:
    async with asked(env, strict=True):
        with pytest.raises(InvalidError, match=text) as refused:
            await env.cluster.create(manifest(env, **spec), field_manager="user")

    assert [cause.field for cause in refused.value.causes] == [field]


@pytest.mark.parametrize(("spec", "field", "text"), REFUSED)
def test_the_function(spec: Manifest, field: str, text: str) -> None:
    """Without strict mode two of the three are warnings, in the same words."""
    lenient, strict = (answer(spec, strict=strict) for strict in (False, True))

    assert not strict["allowed"]
    assert [cause["field"] for cause in strict["status"]["details"]["causes"]] == [field]
    if field == "spec.autoscaling.minReplicas":
        assert not lenient["allowed"]
    else:
        assert lenient["allowed"]
        assert [bool(re.search(f"^{field}: .*{text}", warning)) for warning in lenient["warnings"]].count(True) == 1


def answer(spec: Manifest, *, strict: bool) -> Manifest:
    metadata = {"name": "my-cache", "namespace": "default"}
    cache = {"apiVersion": "memcached.c5c3.io/v1alpha1", "kind": "Memcached", "metadata": metadata, "spec": spec}
    request = {
        "uid": "1",
        "kind": {"group": "memcached.c5c3.io", "version": "v1alpha1", "kind": "Memcached"},
        "operation": "CREATE",
        "name": "my-cache",
        "object": cache,
    }
    (webhook,) = webhooks(strict=strict).webhooks
    found: Manifest = review(webhook, Step.VALIDATE, {"request": request})["response"]
    return found


@pytest.mark.parametrize("sample", [AUTOSCALED, DEFAULTS], ids=["full", "short"])
async def test_both_examples_are_accepted_unchanged(env: Env, sample: str) -> None:
    shown = load_document(sample)
    async with asked(env):
        stored = await env.cluster.create(
            {**shown, "metadata": {"name": "my-cache", "namespace": env.namespace}}, field_manager="user"
        )
    scaling = stored["spec"]["autoscaling"]

    assert shown["spec"]["autoscaling"].items() <= scaling.items()
    assert stored["spec"].get("replicas") == shown["spec"].get("replicas")
    assert scaling["metrics"] == shown["spec"]["autoscaling"].get("metrics", [CPU])
    window = scaling["behavior"]["scaleDown"]["stabilizationWindowSeconds"]
    assert window == (600 if "behavior" in shown["spec"]["autoscaling"] else 300)


async def test_the_defaults_of_an_empty_cache(env: Env) -> None:
    async with asked(env):
        stored = await env.cluster.create(manifest(env), field_manager="user")

    assert stored["spec"] == {
        "replicas": 1,
        "image": "memcached:1.6",
        "suspended": False,
        "memcached": {"maxMemoryMB": 64, "maxConnections": 1024, "threads": 4, "maxItemSize": "1m", "verbosity": 0},
    }


async def test_applying_the_same_again_changes_nothing(env: Env) -> None:
    """Fields that the webhook added stay: no field manager that applies the cache owns them."""
    wanted = {**load_document(DEFAULTS), "metadata": {"name": "my-cache", "namespace": env.namespace}}
    async with asked(env):
        first = await env.cluster.apply(wanted, field_manager="kubectl")
        second = await env.cluster.apply(wanted, field_manager="kubectl")

    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert first["spec"]["autoscaling"]["metrics"] == [CPU]


async def test_all_errors_are_reported_at_once(env: Env) -> None:
    spec = {
        "resources": {"limits": {"memory": "64Mi"}},
        "memcached": {"maxMemoryMB": 64},
        "highAvailability": {"gracefulShutdown": {"enabled": True, "terminationGracePeriodSeconds": 5}},
        "security": {"sasl": {"enabled": True}, "tls": {"enabled": True}},
        "autoscaling": {"enabled": True, "minReplicas": 3, "maxReplicas": 2, "metrics": [{"type": "Resource"}]},
    }
    async with asked(env):
        with pytest.raises(InvalidError) as refused:
            await env.cluster.create(manifest(env, **spec), field_manager="user")

    assert [cause.field for cause in refused.value.causes] == [
        "spec.resources.limits.memory",
        "spec.highAvailability.gracefulShutdown.terminationGracePeriodSeconds",
        "spec.security.sasl.credentialsSecretRef.name",
        "spec.security.tls.certificateSecretRef.name",
        "spec.autoscaling.minReplicas",
        "spec.autoscaling.metrics[0].resource",
    ]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"replicas": 65}, id="too many replicas"),
        pytest.param({"memcached": {"maxMemoryMB": 15}}, id="too little memory"),
        pytest.param({"memcached": {"maxItemSize": "1g"}}, id="no size"),
        pytest.param({"highAvailability": {"antiAffinityPreset": "medium"}}, id="no preset"),
        pytest.param({"autoscaling": {"minReplicas": 0}}, id="no replica at least"),
    ],
)
async def test_the_schema_rejects(env: Env, spec: Manifest) -> None:
    with pytest.raises(InvalidError):
        await env.cluster.create(manifest(env, **spec), field_manager="user")


@pytest.mark.parametrize(
    "field",
    [
        pytest.param({"replicas": 0}, id="no replica"),
        pytest.param({"replicas": 64}, id="as many as there may be"),
        pytest.param({"resources": {"requests": {"cpu": 1}}}, id="a quantity as a number"),
        pytest.param({"highAvailability": {"podDisruptionBudget": {"minAvailable": "50%"}}}, id="a share"),
    ],
)
async def test_the_schema_accepts(env: Env, field: Manifest) -> None:
    stored: Any = (await env.cluster.create(manifest(env, **field), field_manager="user"))["spec"]
    wanted: Any = field
    while isinstance(wanted, dict):
        ((name, wanted),) = wanted.items()
        stored = stored[name]

    assert stored == wanted


async def test_a_number_is_a_quantity_wherever_the_api_takes_one(env: Env) -> None:
    target = {"type": "AverageValue", "averageValue": 500}
    metric = {"type": "Resource", "resource": {"name": "memory", "target": target}}
    async with asked(env):
        spec = {"autoscaling": {"enabled": True, "maxReplicas": 5, "metrics": [metric]}}
        stored = await env.cluster.create(manifest(env, **spec), field_manager="user")
    await env.reconcile()
    live = await env.get("HorizontalPodAutoscaler")

    assert stored["spec"]["autoscaling"]["metrics"] == [metric]
    assert live["spec"]["metrics"][0]["resource"]["target"]["averageValue"] == "500"
