"""The numbered scenarios of an autoscaled cache that need no cluster: 1 to 10. The others are in `test_life.py`."""

from typing import Any

import pytest

from examples.memcached.autoscaler import manifest, wanted
from examples.memcached.component import memcached
from examples.memcached.conditions import conditions, view
from examples.memcached.defaulting import default
from examples.memcached.model import Memcached
from examples.memcached.samples import AUTOSCALED, DEFAULTS
from examples.memcached.validation import validate
from ocf.objects import Manifest, load_document, read_live

CPU_70 = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
CPU_80 = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}
SLOWLY = {"scaleDown": {"stabilizationWindowSeconds": 300}}
DOWN_600 = {"scaleDown": {"stabilizationWindowSeconds": 600}}
BOTH_WAYS = {
    "scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}], "stabilizationWindowSeconds": 0},
    "scaleDown": {"stabilizationWindowSeconds": 120},
}


def cache(**spec: Any) -> Memcached:
    return read_live({"metadata": {"name": "my-cache", "namespace": "default"}, "spec": spec}, Memcached)


def on(**scaling: Any) -> dict[str, Any]:
    return {"enabled": True, "maxReplicas": 10, **scaling}


def scaling_of(subject: Memcached) -> Manifest:
    found: Manifest = subject.model_dump(mode="json", by_alias=True, exclude_none=True)["spec"]["autoscaling"]
    return found


@pytest.mark.parametrize(
    ("scaling", "open_"),
    [
        pytest.param(None, False, id="nil"),
        pytest.param({"enabled": False, "maxReplicas": 3}, False, id="false"),
        pytest.param(on(), True, id="true"),
    ],
)
def test_the_gate(scaling: Manifest | None, open_: bool) -> None:
    assert wanted(cache(autoscaling=scaling)).enabled() is open_


@pytest.mark.parametrize(
    ("scaling", "spec"),
    [
        pytest.param({"minReplicas": 2}, {"minReplicas": 2}, id="counts"),
        pytest.param({"metrics": [CPU_70]}, {"metrics": [CPU_70]}, id="a metric"),
        pytest.param({"behavior": DOWN_600}, {"behavior": DOWN_600}, id="a behavior"),
        pytest.param({}, {}, id="nothing stays as it is"),
        pytest.param(
            {"metrics": [CPU_70, MEMORY], "behavior": BOTH_WAYS},
            {"metrics": [CPU_70, MEMORY], "behavior": BOTH_WAYS},
            id="two metrics, windows both ways",
        ),
        pytest.param({"metrics": [CPU_70, CPU_70]}, {"metrics": [CPU_70, CPU_70]}, id="one to one, even twice"),
    ],
)
def test_the_autoscaler_is_copied(scaling: Manifest, spec: Manifest) -> None:
    made = manifest(cache(autoscaling=on(**scaling)))

    assert made["metadata"]["labels"] == {
        "app.kubernetes.io/name": "memcached",
        "app.kubernetes.io/instance": "my-cache",
        "app.kubernetes.io/managed-by": "memcached-operator",
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "my-cache"}
    assert made["spec"] == {"scaleTargetRef": target, "maxReplicas": 10, **spec}


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        pytest.param({"replicas": 5}, 5, id="off, 5"),
        pytest.param({}, 1, id="off, nil"),
        pytest.param({"replicas": 5, "autoscaling": on()}, None, id="on, 5"),
        pytest.param({"autoscaling": on()}, None, id="on, nil"),
    ],
)
def test_the_count_of_the_deployment(spec: Manifest, replicas: int | None) -> None:
    made = memcached(cache(**spec)).render()[0]

    assert (made["kind"], made["spec"].get("replicas")) == ("Deployment", replicas)


SCALED = {"replicas": 2, "autoscaling": on()}


def conditions_of(spec: Manifest, deployment: Manifest | None, **seen: Any) -> dict[str, tuple[str, str, str]]:
    found = conditions(view(cache(**spec), deployment, **seen))
    return {name: (one.status, one.reason, one.message) for name, one in found.items()}


def running(total: int, updated: int, ready: int) -> Manifest:
    counts = {"replicas": total, "updatedReplicas": updated, "readyReplicas": ready}
    return {"metadata": {"generation": 2}, "status": {"observedGeneration": 2, **counts}}


def test_all_is_well_whatever_the_cache_says() -> None:
    assert conditions_of(SCALED, running(5, 5, 5)) == {
        "Available": ("True", "Available", "5/5 replicas are ready (HPA-managed)"),
        "Progressing": ("False", "ProgressingComplete", "All 5 replicas are updated"),
        "Degraded": ("False", "NotDegraded", "All 5 desired replicas are ready"),
        "Ready": ("True", "MemcachedReady", "All 5 replicas are ready"),
    }


def test_some_are_not_ready() -> None:
    assert conditions_of(SCALED, running(5, 5, 3)) == {
        "Available": ("True", "Available", "3/5 replicas are ready (HPA-managed)"),
        "Progressing": ("False", "ProgressingComplete", "All 5 replicas are updated"),
        "Degraded": ("True", "Degraded", "Only 3/5 replicas are ready"),
        "Ready": ("False", "MemcachedNotReady", "3/5 replicas are ready"),
    }


def test_no_deployment() -> None:
    assert conditions_of(SCALED, None) == {
        "Available": ("False", "Unavailable", "0/2 replicas are ready (HPA-managed)"),
        "Progressing": ("True", "Progressing", "Waiting for deployment to be created"),
        "Degraded": ("True", "Degraded", "Waiting for deployment to be created"),
        "Ready": ("False", "MemcachedNotReady", "Waiting for deployment to be created"),
    }


def test_nothing_scales() -> None:
    assert conditions_of({"replicas": 3}, running(3, 3, 3))["Available"] == (
        "True",
        "Available",
        "3/3 replicas are ready",
    )


@pytest.mark.parametrize(
    ("given", "defaulted"),
    [
        pytest.param({}, {"metrics": [CPU_80], "behavior": SLOWLY}, id="80 %, 300 s"),
        pytest.param({"metrics": []}, {"metrics": [CPU_80], "behavior": SLOWLY}, id="an empty list is none"),
        pytest.param({"metrics": [MEMORY]}, {"metrics": [MEMORY], "behavior": SLOWLY}, id="own metric kept"),
        pytest.param({"behavior": DOWN_600}, {"metrics": [CPU_80], "behavior": DOWN_600}, id="own behavior kept"),
        pytest.param({"behavior": {}}, {"metrics": [CPU_80], "behavior": {}}, id="a behavior of nothing kept"),
        pytest.param(
            {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 1}}},
            {"metrics": [CPU_80], "behavior": {"scaleUp": {"stabilizationWindowSeconds": 1}}},
            id="a part of a behavior is left as it is",
        ),
        pytest.param({"minReplicas": 2}, {"minReplicas": 2, "metrics": [CPU_80], "behavior": SLOWLY}, id="counts kept"),
    ],
)
def test_the_defaults_of_autoscaling(given: Manifest, defaulted: Manifest) -> None:
    found = default(cache(autoscaling=on(**given)))

    assert scaling_of(found) == on(**defaulted)
    assert default(found) == found


@pytest.mark.parametrize("off", [{"enabled": False}, {"enabled": False, "maxReplicas": 5}])
def test_autoscaling_that_is_off_stays_as_it_is(off: Manifest) -> None:
    assert scaling_of(default(cache(autoscaling=off))) == off


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        pytest.param({}, 1, id="set without autoscaling"),
        pytest.param({"replicas": 0}, 0, id="zero is a count"),
        pytest.param({"replicas": 5}, 5, id="given"),
        pytest.param({"autoscaling": on()}, None, id="not filled in while scaled"),
        pytest.param({"replicas": 5, "autoscaling": on()}, 5, id="not cleared while scaled"),
        pytest.param({"autoscaling": {"enabled": False}}, 1, id="filled in while switched off"),
    ],
)
def test_the_count(spec: Manifest, replicas: int | None) -> None:
    found = default(cache(**spec)).spec

    assert found.replicas == replicas
    assert (found.autoscaling is None) is ("autoscaling" not in spec)


def test_the_other_sections() -> None:
    found = default(cache(highAvailability={}, monitoring={"serviceMonitor": {}}))
    spec = found.model_dump(mode="json", by_alias=True, exclude_none=True)["spec"]

    assert spec == {
        "replicas": 1,
        "image": "memcached:1.6",
        "memcached": {"maxMemoryMB": 64, "maxConnections": 1024, "threads": 4, "maxItemSize": "1m", "verbosity": 0},
        "highAvailability": {"antiAffinityPreset": "soft"},
        "monitoring": {
            "enabled": False,
            "exporterImage": "prom/memcached-exporter:v0.15.4",
            "serviceMonitor": {"interval": "30s", "scrapeTimeout": "10s"},
        },
        "suspended": False,
    }


REPLICAS = "spec.replicas: Invalid value: {}: replicas and autoscaling.enabled are mutually exclusive"
CPU_REQUEST = "spec.resources.requests.cpu: Required value: scaling by cpu utilization needs a request for cpu"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"replicas": 3, "autoscaling": on(metrics=[MEMORY])}, REPLICAS.format(3), id="3 and on"),
        pytest.param({"replicas": 0, "autoscaling": on(metrics=[MEMORY])}, REPLICAS.format(0), id="0 and on"),
        pytest.param({"autoscaling": on(metrics=[MEMORY])}, None, id="unset and on"),
        pytest.param({"replicas": 3, "autoscaling": {"enabled": False}}, None, id="3 and off"),
        pytest.param({"replicas": 3}, None, id="3 and nil"),
    ],
)
def test_a_count_and_autoscaling(spec: Manifest, problem: str | None) -> None:
    strictly = [str(error) for error in validate(cache(**spec), strict=True)]

    assert [error.startswith(problem or "?") for error in strictly] == ([True] if problem else [])
    assert validate(cache(**spec)) == ()


@pytest.mark.parametrize(
    ("scaling", "problems"),
    [
        pytest.param(on(minReplicas=2), [], id="less"),
        pytest.param(on(minReplicas=10), [], id="equal"),
        pytest.param(on(), [], id="nil"),
        pytest.param(
            on(minReplicas=11),
            [
                (
                    "spec.autoscaling.minReplicas: Invalid value: 11: "
                    "minReplicas (11) must not be greater than maxReplicas (10)"
                )
            ],
            id="greater",
        ),
        pytest.param({"enabled": False, "minReplicas": 11, "maxReplicas": 10}, [], id="greater, and off"),
        pytest.param(
            {"enabled": True},
            ["spec.autoscaling.maxReplicas: Required value: autoscaling needs an upper limit"],
            id="no maximum",
        ),
        pytest.param({"enabled": False}, [], id="no maximum, and off"),
    ],
)
def test_minimum_and_maximum(scaling: Manifest, problems: list[str]) -> None:
    assert [str(error) for error in validate(cache(autoscaling=scaling))] == problems


@pytest.mark.parametrize(
    ("metrics", "resources", "refused"),
    [
        pytest.param([CPU_80], None, True, id="no resources"),
        pytest.param([CPU_80], {}, True, id="no requests"),
        pytest.param([CPU_80], {"requests": {"memory": "1Gi"}}, True, id="another request"),
        pytest.param([CPU_80], {"limits": {"cpu": "1"}}, True, id="a limit is no request"),
        pytest.param([CPU_80], {"requests": {"cpu": "100m"}}, False, id="a request"),
        pytest.param([CPU_80], {"requests": {"cpu": 1}}, False, id="a request as a number"),
        pytest.param([MEMORY], None, False, id="memory"),
        pytest.param(
            [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1"}},
                }
            ],
            None,
            False,
            id="cpu, but no utilization",
        ),
        pytest.param([MEMORY, CPU_80], None, True, id="one of two"),
    ],
)
def test_the_request_for_cpu(metrics: list[Manifest], resources: Manifest | None, refused: bool) -> None:
    subject = cache(autoscaling=on(metrics=metrics), resources=resources)
    strictly = [str(error) for error in validate(subject, strict=True)]

    assert [error.startswith(CPU_REQUEST) for error in strictly] == ([True] if refused else [])
    assert validate(subject) == ()


def test_everything_at_once() -> None:
    subject = cache(
        replicas=3,
        resources={"limits": {"memory": "64Mi"}},
        memcached={"maxMemoryMB": 64},
        highAvailability={
            "podDisruptionBudget": {"enabled": True, "minAvailable": 3, "maxUnavailable": 1},
            "gracefulShutdown": {"enabled": True, "preStopDelaySeconds": 60, "terminationGracePeriodSeconds": 60},
        },
        security={"sasl": {"enabled": True}, "tls": {"enabled": True}},
        autoscaling=on(minReplicas=11, metrics=[CPU_80, {"type": "Pods"}]),
    )

    assert [error.path for error in validate(subject, strict=True)] == [
        "spec.resources.limits.memory",
        "spec.highAvailability.podDisruptionBudget",
        "spec.highAvailability.podDisruptionBudget.minAvailable",
        "spec.highAvailability.gracefulShutdown.terminationGracePeriodSeconds",
        "spec.security.sasl.credentialsSecretRef.name",
        "spec.security.tls.certificateSecretRef.name",
        "spec.autoscaling.minReplicas",
        "spec.autoscaling.metrics[1].pods",
        "spec.replicas",
        "spec.resources.requests.cpu",
    ]


@pytest.mark.parametrize("sample", [AUTOSCALED, DEFAULTS])
def test_both_examples_of_autoscaling_are_accepted_as_they_are(sample: str) -> None:
    assert validate(default(Memcached.model_validate(load_document(sample)))) == ()


@pytest.mark.parametrize(
    ("spec", "paths", "replicas"),
    [
        pytest.param({"autoscaling": on(), "resources": {"requests": {"cpu": "1"}}}, [], None, id="on, cpu requested"),
        pytest.param(
            {"autoscaling": on(), "resources": {"requests": {"cpu": "1"}}, "replicas": 3},
            ["spec.replicas"],
            3,
            id="on, replicas 3",
        ),
        pytest.param({}, [], 1, id="empty"),
    ],
)
def test_default_then_validate(spec: Manifest, paths: list[str], replicas: int | None) -> None:
    found = default(cache(**spec))

    assert [error.path for error in validate(found, strict=True)] == paths
    assert found.spec.replicas == replicas
