"""Each fix of the linter: the objects with the finding, and the objects after it was followed to the letter.

`tests/clients/test_replicas_of_a_live_target.py` has the fix of `fixed-replicas`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ocf.autoscaling import FeatureGates, lint
from ocf.autoscaling.linter.findings import Code
from ocf.autoscaling.targets.targets import find_scale_target
from ocf.objects import Manifest
from tests.autoscaling.linter.objects import FULL, TARGET, hpa, kinded, policy, queue, resource, workload

__all__ = ["CUSTOM_KINDS", "FIXES", "LIVE", "Fix", "findings", "identity", "placed", "size"]

CUSTOM_KINDS: Final = (
    ("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler"),
    ("keda.sh", "v1alpha1", "ScaledObject"),
    ("argoproj.io", "v1alpha1", "Rollout"),
)
"""Group, version and kind of the custom resources among the objects."""
GOOD: Final = workload(FULL)
LIVE: Final = 7
"""The size of the target, which its autoscaler has set."""


def placed(manifest: Manifest, namespace: str) -> Manifest:
    """Return an object in a namespace, with what the API server requires."""
    metadata = {**manifest["metadata"], "namespace": namespace}
    if manifest["kind"] in {"Deployment", "DaemonSet"}:
        containers = [{**each, "image": "web"} for each in manifest["spec"]["template"]["spec"]["containers"]]
        spec = {**manifest["spec"]["template"]["spec"], "containers": containers}
        template = {**manifest["spec"]["template"], "spec": spec}
        manifest = {**manifest, "spec": {**manifest["spec"], "template": template}}
    return {**manifest, "metadata": metadata}


def identity(manifest: Manifest) -> tuple[str, str]:
    """Return kind and name of an object."""
    return manifest["kind"], manifest["metadata"]["name"]


def of(kind: str, api_version: str, **spec: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}


@dataclass(frozen=True)
class Fix:
    """A fix of the linter.

    Args:
        says: What the text of the fix has to say, for the case to follow it.
        before: The objects with the finding, the HPA first.
        after: The objects after the fix; the HPA is missing if the fix deletes it.
        gone: Kinds and names of objects that the fix deletes, after everything else.
        anew: Kinds and names of workloads that the fix scales to the size of others, before these end.
        valid: Whether the API server accepts the objects before.
    """

    code: Code
    says: str
    before: Sequence[Manifest]
    after: Sequence[Manifest]
    gone: Sequence[tuple[str, str]] = ()
    anew: Sequence[tuple[str, str]] = ()
    gates: FeatureGates = field(default_factory=FeatureGates)
    valid: bool = True

    @property
    def name(self) -> str:
        """Code and text."""
        return f"{self.code}: {self.says}"

    def first(self) -> list[Manifest]:
        """Return what is applied before the new workloads are scaled: a workload that gives way is as it was."""
        old = {identity(each): each for each in self.before}
        return [old[identity(each)] if each["spec"].get("replicas") == 0 else each for each in self.after]

    def started(self) -> list[Manifest]:
        """Return the workloads that are scaled to the size of others."""
        return [each for each in self.after if identity(each) in self.anew]

    def ended(self) -> list[Manifest]:
        """Return the objects that are deleted."""
        return [each for each in self.before if identity(each) in self.gone]


def changed(code: Code, says: str, before: Mapping[str, Any], after: Mapping[str, Any], **more: Any) -> Fix:
    """Return a fix that changes the spec of the HPA alone."""
    return Fix(code, says, [kinded(hpa(**before)), GOOD], [kinded(hpa(**after)), GOOD], **more)


def metric(code: Code, says: str, before: Manifest | None, *after: Manifest) -> Fix:
    return changed(code, says, {"metrics": [before] if before else []}, {"metrics": list(after)})


def down(**rules: Any) -> Mapping[str, Any]:
    return {"behavior": {"scaleDown": rules}}


def up(**rules: Any) -> Mapping[str, Any]:
    return {"behavior": {"scaleUp": rules}}


def other(before: Manifest, after: Manifest | None, code: Code, says: str, **more: Any) -> Fix:
    """Return a fix that changes another object alone."""
    scaler = kinded(hpa(**more))
    return Fix(code, says, [scaler, GOOD, before], [scaler, GOOD, *([after] if after else [])])


def container(name: str) -> Manifest:
    target = {"type": "AverageValue", "averageValue": "500m"}
    source = {"name": "cpu", "container": name, "target": target}
    return {"type": "ContainerResource", "containerResource": source}


def mismatched(**target: Any) -> Manifest:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def pods_metric(name: str) -> Manifest:
    target = {"type": "AverageValue", "averageValue": "1"}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def canary(**labels: str) -> Manifest:
    return workload(FULL, name="canary", labels={"app": "web", **labels})


SECOND: Final = kinded(hpa("second", metrics=[queue()]))
SHARED: Final = hpa(metrics=[resource(), queue()])
UNLIMITED: Final = workload({"requests": {"cpu": "250m"}})
NO_REQUEST: Final = workload({})
INVALID: Final = workload({"requests": {"cpu": "1x"}})
ALONE: Final = kinded(hpa())
MEMORY: Final = resource("memory", averageValue="64Mi")
PDB: Final = {"selector": {"matchLabels": {"app": "web"}}}
LIMITS: Final = of("LimitRange", "v1", limits=[{"type": "Container", "default": {"cpu": "1"}}])
OBJECT: Final = of("ScaledObject", "keda.sh/v1alpha1", scaleTargetRef={"name": "web"}, triggers=[])
TRANSFERRED: Final = {
    **of(
        "ScaledObject",
        "keda.sh/v1alpha1",
        scaleTargetRef={"name": "web"},
        triggers=[],
        advanced={"horizontalPodAutoscalerConfig": {"name": "web"}},
    ),
    "metadata": {"name": "web", "annotations": {"scaledobject.keda.sh/transfer-hpa-ownership": "true"}},
}
SCALED_ROLLOUT: Final = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"}
ROLLOUT: Final = of("Rollout", "argoproj.io/v1alpha1", workloadRef=TARGET)
OLD: Final = FeatureGates.for_release("1.34")
FIXES: Final = [
    metric(Code.ALWAYS_UP, "such as 500Mi", resource("memory", averageValue="500m"), MEMORY),
    other(
        of("PodDisruptionBudget", "policy/v1", minAvailable=2, **PDB),
        of("PodDisruptionBudget", "policy/v1", maxUnavailable=1, **PDB),
        Code.BLOCKED_EVICTIONS,
        "Use maxUnavailable 1",
    ),
    Fix(
        Code.BLOCKED_EVICTIONS,
        "raise minReplicas to 3",
        [ALONE, GOOD, of("PodDisruptionBudget", "policy/v1", minAvailable=2, **PDB)],
        [kinded(hpa(minReplicas=3)), GOOD, of("PodDisruptionBudget", "policy/v1", minAvailable=2, **PDB)],
    ),
    changed(
        Code.CANNOT_SCALE,
        "Use the owner of the pods: a Deployment",
        {"target": {"apiVersion": "batch/v1", "kind": "Job", "name": "web"}},
        {},
    ),
    metric(
        Code.COARSE_UTILIZATION,
        "Lower the requests, and raise the target",
        resource(averageUtilization=3),
        resource(averageUtilization=30),
    ),
    changed(Code.CONSTANT_SIZE, "Raise maxReplicas", {"minReplicas": LIVE, "maxReplicas": LIVE}, {"minReplicas": LIVE}),
    Fix(
        Code.CONSTANT_SIZE,
        f"set replicas to {LIVE} in the target and then delete the autoscaler",
        [kinded(hpa(minReplicas=LIVE, maxReplicas=LIVE)), GOOD],
        [workload(FULL, replicas=LIVE)],
        gone=[("HorizontalPodAutoscaler", "web")],
    ),
    metric(Code.DEFAULT_METRIC, "Write the metric explicitly", None, resource(averageUtilization=80)),
    changed(Code.DROPPED_TOLERANCE, "Remove it", down(tolerance="0.2"), down(), gates=OLD),
    changed(Code.DUPLICATE_METRIC, "Keep one", {"metrics": [resource(), resource()]}, {"metrics": [resource()]}),
    metric(Code.FLAT_MEMORY, "Use a metric of the load", MEMORY, resource()),
    changed(
        Code.IDLE_POLICY,
        "Remove it",
        down(policies=[policy("Pods", 1), policy("Pods", 2)]),
        down(policies=[policy("Pods", 2)]),
    ),
    changed(
        Code.IDLE_RULES,
        "remove selectPolicy",
        down(selectPolicy="Disabled", policies=[policy("Pods", 1)]),
        down(policies=[policy("Pods", 1)]),
    ),
    changed(Code.IDLE_WINDOW, "Use 0", up(stabilizationWindowSeconds=15), up(stabilizationWindowSeconds=0)),
    changed(Code.IDLE_WINDOW, "more than 15", up(stabilizationWindowSeconds=15), up(stabilizationWindowSeconds=16)),
    Fix(Code.INVALID_RESOURCES, "Write quantities such as 500m", [ALONE, INVALID], [ALONE, GOOD], valid=False),
    metric(
        Code.INVALID_SELECTOR,
        "Fix the selector",
        queue(selector={"matchLabels": {"-": "b"}}),
        queue(selector={"matchLabels": {"a": "b"}}),
    ),
    changed(Code.LATE_SCALE_UP, "Use 0", up(stabilizationWindowSeconds=3600), up(stabilizationWindowSeconds=0)),
    metric(
        Code.MISMATCHED_TARGET,
        "change the type",
        mismatched(type="Value", averageUtilization=50),
        mismatched(type="Utilization", averageUtilization=50),
    ),
    Fix(Code.MISSING_REQUEST, "Give every container a request", [ALONE, NO_REQUEST], [ALONE, GOOD]),
    Fix(
        Code.MISSING_REQUEST,
        "use averageValue",
        [ALONE, NO_REQUEST],
        [kinded(hpa(metrics=[resource(averageValue="500m")])), NO_REQUEST],
    ),
    changed(Code.MISSING_TARGET, "Did you mean the name web?", {"target": {**TARGET, "name": "wbe"}}, {}),
    changed(
        Code.MISSING_TARGET,
        "Did you mean apiVersion apps/v1, kind Deployment?",
        {"target": {**TARGET, "apiVersion": "extensions/v1beta1"}},
        {},
    ),
    changed(
        Code.NEVER_DOWN,
        "for example half of the pods per 10 minutes",
        down(selectPolicy="Disabled"),
        down(policies=[policy("Percent", 50, 600)]),
    ),
    changed(Code.NEVER_DOWN, "Write it as a fraction: 0.1", down(tolerance="10"), down(tolerance="0.1")),
    changed(Code.NEVER_UP, "Allow to scale up", up(selectPolicy="Disabled"), up(selectPolicy="Max")),
    Fix(
        Code.NEVER_UP,
        "set replicas in the target to the live count and then delete the autoscaler",
        [kinded(hpa(**up(selectPolicy="Disabled"))), GOOD],
        [workload(FULL, replicas=LIVE)],
        gone=[("HorizontalPodAutoscaler", "web")],
    ),
    metric(Code.NEVER_UP, "Lower the target", resource(averageUtilization=190), resource(averageUtilization=90)),
    Fix(
        Code.NEVER_UP,
        "use averageUtilization for a percentage",
        [kinded(hpa(metrics=[resource(averageValue="80")])), UNLIMITED],
        [kinded(hpa(metrics=[resource(averageUtilization=80)])), UNLIMITED],
    ),
    Fix(
        Code.OVERLAPPING_SELECTORS,
        "create a workload whose own selector requires the old value anew under another name",
        [ALONE, GOOD, canary()],
        [ALONE, GOOD, workload(FULL, name="other")],
        gone=[("Deployment", "canary")],
        anew=[("Deployment", "other")],
    ),
    Fix(
        Code.OVERLAPPING_SELECTORS,
        "create one of the targets anew under another name, with another value, in selector and pods",
        [ALONE, GOOD, canary(), kinded(hpa("canary", {**TARGET, "name": "canary"}))],
        [ALONE, GOOD, workload(FULL, name="other"), kinded(hpa("canary", {**TARGET, "name": "other"}))],
        gone=[("Deployment", "canary")],
        anew=[("Deployment", "other")],
    ),
    Fix(
        Code.SHARED_TARGET,
        "Put the metrics of both into one autoscaler, of which the one that wants the most replicas counts, and then "
        "delete the other",
        [ALONE, GOOD, SECOND],
        [kinded(SHARED), GOOD],
        gone=[("HorizontalPodAutoscaler", "second")],
    ),
    Fix(
        Code.SHARED_TARGET,
        "Scale the rollout to the size of this target",
        [ALONE, GOOD, ROLLOUT],
        [kinded(hpa(target=SCALED_ROLLOUT)), ROLLOUT, workload(FULL, replicas=0)],
        anew=[("Rollout", "web")],
    ),
    other(OBJECT, TRANSFERRED, Code.SHARED_TARGET, 'transfer-hpa-ownership: "true", and its name in advanced'),
    changed(
        Code.SHORT_PERIOD, "Write 15", down(policies=[policy("Pods", 1, 5)]), down(policies=[policy("Pods", 1, 15)])
    ),
    changed(
        Code.SLOW_DRAIN,
        "a percentage of them",
        {"maxReplicas": 50, **down(policies=[policy("Pods", 1, 300)])},
        {"maxReplicas": 50, **down(policies=[policy("Percent", 20, 300)])},
    ),
    Fix(
        Code.UNBOUNDED_UTILIZATION,
        "use a target below 100",
        [kinded(hpa(metrics=[resource(averageUtilization=120)])), UNLIMITED],
        [kinded(hpa(metrics=[resource(averageUtilization=80)])), UNLIMITED],
    ),
    metric(Code.UNKNOWN_CONTAINER, "Name a container of the target", container("x"), container("c0")),
    Fix(Code.UNKNOWN_REQUESTS, "Lint the target together with its autoscaler", [ALONE], [ALONE, GOOD], valid=False),
    metric(
        Code.UNKNOWN_RESOURCE,
        "Use a Pods or External metric",
        resource("nvidia.com/gpu", averageValue="1"),
        pods_metric("gpu"),
    ),
    Fix(
        Code.INVALID_RESOURCES,
        "Set a limit of at least the request",
        [ALONE, workload({"requests": {"cpu": "2"}}), LIMITS],
        [ALONE, workload({"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}), LIMITS],
    ),
    Fix(
        Code.BLOCKED_EVICTIONS,
        "Raise minReplicas to 2",
        [kinded(hpa(minReplicas=1)), GOOD, of("PodDisruptionBudget", "policy/v1", minAvailable=1, **PDB)],
        [kinded(hpa(minReplicas=2)), GOOD, of("PodDisruptionBudget", "policy/v1", minAvailable=1, **PDB)],
    ),
    other(
        of("VerticalPodAutoscaler", "autoscaling.k8s.io/v1", targetRef=TARGET),
        of("VerticalPodAutoscaler", "autoscaling.k8s.io/v1", targetRef=TARGET, updatePolicy={"updateMode": "Off"}),
        Code.VERTICAL_AUTOSCALER,
        'set its updateMode to "Off"',
    ),
]  # fmt: skip


def findings(objects: Sequence[Manifest], gates: FeatureGates) -> dict[Code, str]:
    """Return the fixes of the first HPA by code; none if there is no HPA."""
    scaler, *others = objects
    if scaler["kind"] != "HorizontalPodAutoscaler":
        return {}
    target = find_scale_target(scaler, others)
    return {each.code: each.fix for each in lint(scaler, target, others, gates=gates)}


def size(objects: Iterable[Manifest]) -> int:
    """Return how many replicas the Deployments and Rollouts among live objects have together."""
    return sum(each["spec"].get("replicas", 0) for each in objects if each["kind"] in {"Deployment", "Rollout"})
