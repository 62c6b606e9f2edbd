"""Findings of studies of autoscalers: each is a pair of scenarios, and the direction in which measures differ.

The studies measured real clusters, so only directions are compared, not numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from ocf.objects import Manifest
from ocf.testing import simulate_autoscaler
from tests.docs.test_words import rows


def cpu(target: int) -> Manifest:
    wanted = {"type": "Utilization", "averageUtilization": target}
    return {"type": "Resource", "resource": {"name": "cpu", "target": wanted}}


RATE: Final = {
    "type": "Pods",
    "pods": {"metric": {"name": "requests"}, "target": {"type": "AverageValue", "averageValue": "6"}},
}
SPIKE: Final = {"type": "Spike", "at": "5m", "peak": 100, "hold": "15m"}
STEADY: Final = {"type": "Steady", "rate": 20}
WAVE: Final = {"type": "Sine", "mean": 60, "amplitude": 40, "period": "4m"}
BASE: Final = {"hpa": {}, "workload": {}, "load": [STEADY, SPIKE], "metrics": {}, "controller": {}}


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a study.

    Args:
        name: Name of the pair of scenarios.
        source: Its source: the address of a page that can be opened.
        changed: The parts of the scenario that are changed.
        expected: How measures of the changed scenario compare with those of the other one: `<` or `>`.
        before: The parts of the other scenario that differ from the usual one.
    """

    name: str
    source: str
    changed: Mapping[str, Any]
    expected: Mapping[str, str]
    before: Mapping[str, Any] = field(default_factory=dict)


FINDINGS: Final = (
    Finding(
        "a longer scrape period",
        "https://doi.org/10.3390/s20164621",
        {"metrics": {"scrapePeriod": "60s"}},
        {"overload_time": ">", "time_to_recover_max": ">"},
    ),
    Finding(
        "decisions that are further apart",
        "https://doi.org/10.1109/CCGridW59191.2023.00058",
        {"controller": {"syncPeriod": "60s"}},
        {"overload_time": ">", "time_to_recover_max": ">"},
    ),
    Finding(
        "request rate instead of cpu",
        "https://doi.org/10.1093/comjnl/bxy043",
        {"hpa": {"metrics": [RATE]}},
        {"overload_time": "<", "latency_p99": "<"},
    ),
    Finding(
        "pods that start slowly",
        "https://arxiv.org/abs/2211.11928",
        {"workload": {"readiness": {"mean": "90s"}}},
        {"overload_time": ">", "latency_p95": ">"},
    ),
    Finding(
        "overhead of initialization",
        "https://arxiv.org/abs/2510.02585",
        {"workload": {"warmUp": "2m"}},
        {"overload_time": ">", "time_to_recover_max": ">"},
    ),
    Finding(
        "a lower target",
        "https://doi.org/10.3390/electronics13071242",
        {"hpa": {"metrics": [cpu(40)]}},
        {"overload_time": "<", "pod_hours": ">"},
    ),
    Finding(
        "a tight limit of pods saves pods at peaks",
        "https://doi.org/10.3390/app14020646",
        {"hpa": {"maxReplicas": 13}},
        {"pod_hours": "<", "over_provisioning": "<"},
    ),
    Finding(
        "a limit below the demand makes the service unavailable",
        "https://arxiv.org/abs/2403.07909",
        {"hpa": {"maxReplicas": 9}, "workload": {"queue": {"length": 100}}},
        {"dropped_share": ">", "under_provisioning": ">"},
        before={"workload": {"queue": {"length": 100}}},
    ),
    Finding(
        "bursts instead of a smooth load of the same mean",
        "https://doi.org/10.1145/2806777.2806846",
        {
            "load": [
                {"type": "Steady", "rate": 20},
                *({"type": "Spike", "at": f"{5 + 8 * n}m", "peak": 160, "hold": "1m"} for n in range(4)),
            ]
        },
        {"overload_time": ">", "under_provisioning": ">"},
        before={"load": [{"type": "Steady", "rate": 36}]},
    ),
    Finding(
        "utilization relative to a request above the use",
        "https://doi.org/10.1007/s10586-018-02890-1",
        {"workload": {"requests": {"cpu": "200m"}, "usage": {"cpu": {"idle": "0", "busy": "100m"}}}},
        {"pod_hours": "<", "overload_time": ">"},
    ),
    Finding(
        "a shorter stabilization window",
        "https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/",
        {"load": [WAVE], "hpa": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}},
        {"flaps": ">", "scaling_actions": ">", "pod_hours": "<"},
        before={"load": [WAVE]},
    ),
    Finding(
        "a limited speed of scaling up",
        "https://github.com/kubernetes/enhancements/tree/master/keps/sig-autoscaling/853-configurable-hpa-scale-velocity",
        {"hpa": {"behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}}},
        {"overload_time": ">", "time_to_recover_max": ">"},
    ),
)


def measures(changes: Mapping[str, Any]) -> Mapping[str, float]:
    """Simulate the usual scenario with some parts changed."""
    parts: dict[str, Any] = {**BASE, **changes}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 40,
        "metrics": [cpu(60)],
        **parts["hpa"],
    }
    hpa: Manifest = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec,
    }
    workload = {
        "capacity": 10,
        "replicas": 4,
        "requests": {"cpu": "100m"},
        "signals": {"requests": {"source": "load"}},
        **parts["workload"],
    }
    settings = {name: parts[name] for name in ("metrics", "controller")}
    return simulate_autoscaler(hpa, workload=workload, load=parts["load"], duration="40m", **settings).measures


@pytest.mark.parametrize("finding", [pytest.param(each, id=each.name) for each in FINDINGS])
def test_the_simulation_goes_in_the_direction_of_the_study(finding: Finding) -> None:
    before, after = measures(finding.before), measures(finding.changed)
    found = {
        name: ">" if after[name] > before[name] else "<" if after[name] < before[name] else "="
        for name in finding.expected
    }
    values = {name: (before[name], after[name]) for name in finding.expected}
    assert found == finding.expected, values


def test_the_page_lists_the_findings() -> None:
    listed = [(name, source) for name, _, source in rows("docs/autoscaling/simulation-model.md", "finding")]
    assert listed == [(each.name, f"<{each.source}>") for each in FINDINGS]
