"""Record the decisions of the real controller for generated snapshots into the table that the tests compare with.

The program `oracles/hpa` is the controller's own package of a release of Kubernetes, with its clock replaced by a
number and its clients by values; `scripts/oracles/hpa/build.sh` builds it. It reads one snapshot per line and prints
the output of the controller: the Scale and the status it would write, events, errors, metrics, and its history. Every
snapshot is decided by one controller of each minor release.

    python -m scripts.record.hpa_decisions

A row of the table is a snapshot and its answers by minor release. An answer that is missing is that of the next newer
release in the row.
"""

import argparse
import json
import lzma
import os
import random
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf.testing.envtest.versions import cache_folder

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = ROOT / "tests" / "autoscaling" / "algorithm" / "data" / "decisions.jsonl.xz"
VERSIONS: Final = ("1.30.14", "1.31.14", "1.32.13", "1.33.13", "1.34.4", "1.35.4", KUBERNETES_VERSION, "1.37.2")
NOW: Final = 1_769_860_800_000  # 2026-01-31T12:00:00Z in milliseconds
NAMES: Final = tuple(f"web-{number}" for number in range(12))
TARGET_TYPES: Final = ("Value", "AverageValue")


class Maker:
    """Makes situations, always the same ones for a seed; ages often lie exactly on a limit."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 (made up, not secret)
        self.case: dict[str, Any] = {}

    def often(self, share: float) -> bool:
        """Answer yes with this probability."""
        return self.random.random() < share

    def one(self, *values: Any) -> Any:
        """Return one of the values."""
        return self.random.choice(values)

    def make(self) -> dict[str, Any]:
        """Return a snapshot."""
        settings = {
            "tolerance": self.one(0.1, 0.1, 0.1, 0.0, 0.05, 0.25),
            "downscale": self.one(300_000, 300_000, 60_000, 1, 90_500),
            "cpuInit": self.one(300_000, 300_000, 120_000, 1),
            "readiness": self.one(30_000, 30_000, 10_000, 1),
            "factor": self.one(2.0, 2.0, 2.0, 8.0, 1.5),
            "minimum": self.one(4.0, 4.0, 4.0, 0.0, 10.0),
        }
        self.case = {"now": NOW, **settings}
        current = self.one(0, *range(1, 13), *range(1, 13), 20, 100, 2**31 - 1 if self.often(0.1) else 50)
        minimum = self.one(0, 1, 1, 1, 2, 3, 5)
        maximum = max(1, minimum, self.one(3, 5, 10, 10, 20, 20, 100, 100, 1000, 2**31 - 1))
        pods = [self.pod(name) for name in NAMES[: self.random.randint(0, 10)]]
        metrics, readings = self.metrics(max(1, min(current, 200)), pods)
        observed = self.one(current, current, current, max(0, current - 1), len(pods), 0)
        self.case |= {
            "hpa": {
                "metadata": {"name": "web", "namespace": "shop", "generation": self.one(1, 1, 7)},
                "spec": {
                    "scaleTargetRef": {
                        "apiVersion": "a/b/c" if self.often(0.01) else "apps/v1",
                        "kind": "Deployment",
                        "name": "web",
                    },
                    "minReplicas": minimum,
                    "maxReplicas": maximum,
                    "metrics": metrics,
                    **({"behavior": self.behavior()} if self.often(0.6) else {}),
                },
                "status": self.status(),
            },
            "scale": {
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"replicas": current},
                "status": {
                    "replicas": observed,
                    "selector": self.one("", "app in (") if self.often(0.02) else "app=web",
                },
            },
            "scaleError": "something went wrong" if self.often(0.01) else "",
            "updateError": "something went wrong" if self.often(0.05) else "",
            "conflicts": self.one(1, 4, 5, 6) if self.often(0.02) else 0,
            "statusError": "something went wrong" if self.often(0.05) else "",
            "pods": pods,
            "readings": readings,
            "others": {"other": self.one("app=web", "app=api", "tier in (a,b)")} if self.often(0.06) else {},
            "gates": {
                "HPAGeneration": self.often(0.7),
                "HPAScaleToZero": self.often(0.5),
                "HPAConfigurableTolerance": self.often(0.7),
                "PodLevelResources": self.often(0.7),
            },
        }
        if self.often(0.12):
            self.around_zero()
        self.history()
        return self.case

    def around_zero(self) -> None:
        """Make it a workload on its way to zero, or back."""
        spec, status = self.case["hpa"]["spec"], self.case["hpa"]["status"]
        kind = self.one("object", "external")
        metric, key, reading = getattr(self, kind)(1, [])
        spec["metrics"], self.case["readings"] = [metric], {key: self.one(reading, reading, {"values": [0]})}
        spec["minReplicas"] = self.one(0, 0, 0, 1, 2)
        self.case["scale"]["spec"]["replicas"] = self.one(0, 0, 1, 2)
        self.case["gates"]["HPAScaleToZero"] = self.often(0.8)
        status["conditions"] = [each for each in status["conditions"] if each["type"] != "ScaledToZero"]
        known = {"type": "ScaledToZero", "status": self.one("True", "True", "False"), "reason": "Before"}
        status["conditions"].append(known | {"lastTransitionTime": self.time(self.age(60_000))})

    def age(self, *limits: int) -> int:
        """Return how long ago something was, in milliseconds: on a limit, next to one, or anywhere."""
        limit = self.one(*limits)
        return int(max(0, self.one(limit, limit, limit - 1, limit + 1, self.random.randint(0, 2 * limit + 1000))))

    def time(self, milliseconds: int) -> str:
        """Return when something that long ago was, in whole seconds as the API has it."""
        seconds = (NOW - milliseconds) // 1000
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"

    def pod(self, name: str) -> dict[str, Any]:
        """Return a pod."""
        init, delay = self.case["cpuInit"], self.case["readiness"]
        phase = self.one(*["Running"] * 12, "Pending", "Failed", "Succeeded", "Unknown")
        started = self.age(init, init, 3_600_000, 3_600_000, 3_600_000)
        conditions = [{"type": "ContainersReady", "status": "False"}]
        if self.often(0.96):
            since = self.one(max(0, started - delay), max(0, started - delay + 1000), self.age(60_000, 30_000), started)
            ready = {"type": "Ready", "status": self.one(*["True"] * 8, "False", "False", "Unknown")}
            conditions.append(ready | ({"lastTransitionTime": self.time(since)} if self.often(0.95) else {}))
        metadata: dict[str, Any] = {"name": name, "namespace": "shop", "labels": {"app": "web", "tier": "a"}}
        if self.often(0.06):
            metadata["deletionTimestamp"] = self.time(0)
        status = {"phase": phase, "conditions": conditions}
        if self.often(0.97):
            status["startTime"] = self.time(started)
        return {"metadata": metadata, "spec": self.pod_spec(), "status": status}

    def pod_spec(self) -> dict[str, Any]:
        """Return what a pod requests."""
        containers = [self.container("app"), *([self.container("side")] if self.often(0.5) else [])]
        spec: dict[str, Any] = {"containers": containers}
        if self.often(0.2):
            spec["initContainers"] = [
                self.container(f"init-{number}") | ({"restartPolicy": "Always"} if self.often(0.5) else {})
                for number in range(self.random.randint(1, 3))
            ]
        if self.often(0.1):
            spec["resources"] = {
                "requests": self.one({"cpu": "700m"}, {"memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"})
            }
        if self.often(0.1):
            spec["overhead"] = {"cpu": "50m"}
        return spec

    def container(self, name: str) -> dict[str, Any]:
        """Return a container."""
        cpu, memory = self.one("100m", "250m", "500m", "1", "0"), self.one("64Mi", "128Mi", "1Gi")
        requests = {"cpu": cpu, "memory": memory, "gpu": "1"}
        if self.often(0.004):
            del requests[self.one("cpu", "memory")]
        return {"name": name, "resources": {"requests": requests}}

    def metrics(self, current: int, pods: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return metrics, and what was measured of them."""
        kinds = ["Resource", "ContainerResource", "Pods", "Object", "External"]
        chosen = self.random.sample(kinds, self.one(1, 1, 1, 2, 3)) + (["Cheese"] if self.often(0.02) else [])
        metrics, readings = [], {}
        for kind in chosen:
            metric, key, reading = getattr(self, kind.lower())(current, pods)
            metrics.append(metric)
            if self.often(0.06):
                reading = {"error": "no metrics returned from the metrics API"}
            readings[key] = reading
        return metrics, readings

    def near(self, target: int) -> int:
        """Return what could be measured where a target is set."""
        share = self.one(1, 1, 0.9, 1.1, 0.899, 1.101, 0.5, 2, 0, 3, self.random.random() * 3)
        value = int(target * share) + self.one(0, 0, 1, -1)
        return int(self.one(2**62, 2**63 - 1, -value)) if self.often(0.01) else value

    def samples(self, per_pod: int, pods: list[Any]) -> dict[str, Any]:
        """Return what was measured by pod; some pods have nothing, and some samples belong to no pod."""
        missing = self.one(0, 0, 0, 0.3)
        names = [pod["metadata"]["name"] for pod in pods if not self.often(missing)]
        if self.often(0.03):
            names.append("stranger")
        alike = self.near(per_pod)
        return {
            "samples": {
                name: [
                    alike if self.often(0.7) else self.near(per_pod),
                    NOW - self.age(30_000, 60_000),
                    self.one(30_000, 60_000),
                ]
                for name in names
            }
        }

    def resource(self, _current: int, pods: list[Any]) -> tuple[Any, str, Any]:
        """Return a metric of type Resource."""
        name = self.one("cpu", "cpu", "cpu", "memory", "gpu")
        unit = {"cpu": 600, "memory": 300_000_000_000, "gpu": 1000}[name]
        target, per_pod = self.per_pod_target(unit)
        return (
            {"type": "Resource", "resource": {"name": name, "target": target}},
            f"Resource/{name}",
            self.samples(per_pod, pods),
        )

    def containerresource(self, _current: int, pods: list[Any]) -> tuple[Any, str, Any]:
        """Return a metric of type ContainerResource."""
        container = self.one("app", "app", "app", "app", "side")
        target, per_pod = self.per_pod_target(300)
        source = {"name": "cpu", "container": container, "target": target}
        key = f"ContainerResource/cpu/{container}"
        return {"type": "ContainerResource", "containerResource": source}, key, self.samples(per_pod, pods)

    def per_pod_target(self, unit: int) -> tuple[Any, int]:
        """Return a target of a resource, and the amount that would meet it."""
        if self.often(0.3):
            return {"type": "AverageValue", "averageValue": f"{unit}m"}, unit
        if self.often(0.01):
            return {"type": "Utilization"}, unit
        percent = self.one(1, 30, 50, 60, 80, 100, 150)
        return {"type": "Utilization", "averageUtilization": percent}, unit * percent // 100

    def pods(self, _current: int, pods: list[Any]) -> tuple[Any, str, Any]:
        """Return a metric of type Pods."""
        unit = self.one(1, 1000, 15_000, 333)
        target = {"type": "AverageValue", "averageValue": f"{unit}m"}
        return (
            {"type": "Pods", "pods": {"metric": self.identity("qps"), "target": target}},
            "Pods/qps",
            self.samples(unit, pods),
        )

    def object(self, current: int, _pods: list[Any]) -> tuple[Any, str, Any]:
        """Return a metric of type Object."""
        unit = self.one(1, 1000, 15_000, 333)
        target = self.total_target(unit, self.one(*TARGET_TYPES, *TARGET_TYPES, *TARGET_TYPES, "Utilization"))
        described = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}
        source = {"describedObject": described, "metric": self.identity("hits"), "target": target}
        total = unit * (current if "averageValue" in target else 1)
        return {"type": "Object", "object": source}, "Object/hits", {"values": [self.near(total)]}

    def external(self, current: int, _pods: list[Any]) -> tuple[Any, str, Any]:
        """Return a metric of type External."""
        unit = self.one(1, 1000, 15_000, 333)
        target = self.total_target(unit, self.one(*TARGET_TYPES))
        source = {"metric": self.identity("queue"), "target": target}
        total = unit * (current if "averageValue" in target else 1)
        series = self.one(1, 1, 2, 3)
        values = [self.near(total // series) for _ in range(series)]
        return {"type": "External", "external": source}, "External/queue", {"values": values}

    def cheese(self, _current: int, _pods: list[Any]) -> tuple[Any, str, Any]:
        """Return a metric of a type that there is not."""
        return {"type": "Cheese"}, "Cheese", {}

    def total_target(self, unit: int, kind: str) -> dict[str, Any]:
        """Return a target of a metric that is not a sum over pods."""
        if self.often(0.02):
            return {"type": kind}
        field = "averageValue" if kind == "AverageValue" else "value"
        return {"type": kind, field: f"{unit}m"}

    def identity(self, name: str) -> dict[str, Any]:
        """Return name and selector of a metric."""
        expression = {"key": "tier", "operator": "In", "values": ["b", "a"]}
        selector = self.one(
            None,
            None,
            {},
            {"matchLabels": {"b": "2", "a": "1"}},
            {"matchLabels": {"a": "1"}, "matchExpressions": [expression, {"key": "x", "operator": "Exists"}]},
        )
        return {"name": name} | ({} if selector is None else {"selector": selector})

    def behavior(self) -> dict[str, Any]:
        """Return a behavior, as the API server stores one: complete, but for the window down."""
        return {"scaleUp": self.rules(window=0), "scaleDown": self.rules(window=None)}

    def rules(self, window: int | None) -> dict[str, Any]:
        """Return the rules of a direction."""
        rules: dict[str, Any] = {
            "selectPolicy": self.one("Max", "Max", "Min", "Disabled" if self.often(0.3) else "Max"),
            "policies": [
                {
                    "type": self.one("Pods", "Percent"),
                    "value": self.one(1, 2, 4, 10, 50, 90, 100, 200),
                    "periodSeconds": self.one(15, 30, 60, 120, 600),
                }
                for _ in range(self.one(1, 1, 2, 3))
            ],
        }
        seconds = self.one(window, window, 0, 60, 300)
        if seconds is not None:
            rules["stabilizationWindowSeconds"] = seconds
        if self.often(0.3):
            rules["tolerance"] = self.one("0", "50m", "200m", "150m", "70m", "1")
        return rules

    def status(self) -> dict[str, Any]:
        """Return a status of an earlier sync."""
        kinds = self.random.sample(
            ["AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"], self.one(0, 2, 3, 4)
        )
        return {
            "currentReplicas": self.one(0, 1, 3, 5),
            "desiredReplicas": self.one(0, 1, 3, 5),
            "lastScaleTime": self.time(self.age(60_000)),
            "conditions": [
                {
                    "type": kind,
                    "status": self.one("True", "True", "False"),
                    "reason": "Before",
                    "message": "before",
                    "lastTransitionTime": self.time(self.age(600_000)),
                }
                for kind in kinds
            ],
        }

    def history(self) -> None:
        """Fill in what is remembered."""
        windows = (self.case["downscale"], 60_000, 300_000, 300_000)
        count = self.one(None, 0, 1, 3, 6, 20)
        near = self.case["scale"]["spec"]["replicas"]
        self.case["recs"] = (
            None
            if count is None
            else [
                [max(0, min(near + self.random.randint(-4, 4), 2**31 - 1)), NOW - self.age(*windows)]
                for _ in range(count)
            ]
        )
        for direction in ("ups", "downs"):
            self.case[direction] = [
                [
                    self.random.randint(1, 5),
                    NOW - self.age(15_000, 30_000, 60_000, 120_000, 600_000),
                    int(self.often(0.1)),
                ]
                for _ in range(self.one(0, 0, 1, 2, 5))
            ]


def answers_of(program: Path, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a program decides."""
    asked = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run([program], input=asked, capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    return [json.loads(line) for line in done.stdout.splitlines()]


def oracle(version: str) -> Path:
    """Return the program of a release; it is built if it is not in the cache."""
    program = cache_folder(os.environ).parent / f"hpa-oracle-{version}"
    if not program.exists():
        subprocess.run([ROOT / "scripts" / "oracles" / "hpa" / "build.sh", program, version], check=True)  # noqa: S603 (ours)
    return program


def minor(version: str) -> str:
    """Return the minor release of a version."""
    return ".".join(version.split(".")[:2])


def distinct(answers: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the answers, from the oldest release on, without those that equal the one of the next newer release."""
    releases = list(answers)
    return {
        release: answers[release]
        for release, newer in zip(releases, [*releases[1:], None], strict=True)
        if newer is None or comparable(answers[release]) != comparable(answers[newer])
    }


def comparable(answer: dict[str, Any]) -> str:
    """Return an answer as text, with the names of HPAs in a fixed order: the controller takes them from a map."""
    text = json.dumps(answer, sort_keys=True)
    return re.sub(r"\[(shop/[^]]*)\]", lambda found: " ".join(sorted(found[1].split())), text)


def main() -> None:
    """Make situations, ask the controllers, and write both down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", nargs="+", default=VERSIONS, help="default: %(default)s")
    parser.add_argument("--count", type=int, default=2000, help="how many situations; default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other situations; default: %(default)s")
    parser.add_argument("--output", type=Path, default=TABLE, help="default: %(default)s")
    wanted = parser.parse_args()
    maker = Maker(wanted.seed)
    cases = [maker.make() for _ in range(wanted.count)]
    answers = {minor(version): answers_of(oracle(version), cases) for version in wanted.versions}
    rows = [
        [case, distinct({release: found[position] for release, found in answers.items()})]
        for position, case in enumerate(cases)
    ]
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    # No time in it, so that the same situations make the same file.
    wanted.output.write_bytes(lzma.compress(text.encode(), preset=9))
    print(f"{len(cases)} decisions by {', '.join(answers)} in {wanted.output}")


if __name__ == "__main__":
    main()
