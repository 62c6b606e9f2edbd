"""Each fix of the linter, followed to the letter on a live target: the finding is gone, and the count is as before.

`tests/clients/test_replicas_of_a_live_target.py` has the fix of `fixed-replicas`, with each tool on both servers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from ocf.autoscaling import FeatureGates, lint
from ocf.autoscaling.linter.findings import Code
from ocf.autoscaling.targets.targets import find_scale_target
from ocf.objects import Manifest, ObjectKey
from ocf_server import CustomKind, EmbeddedCluster
from tests.autoscaling.linter.objects import FULL, TARGET, hpa, kinded, policy, queue, resource, workload

KEY: Final = ObjectKey("apps/v1", "Deployment", "web", "shop")
KINDS: Final = [
    CustomKind("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler"),
    CustomKind("keda.sh", "v1alpha1", "ScaledObject"),
]
GOOD: Final = workload(FULL)
LIVE: Final = 7


def placed(manifest: Manifest) -> Manifest:
    metadata = {**manifest["metadata"], "namespace": "shop"}
    if manifest["kind"] in {"Deployment", "DaemonSet"}:
        containers = [{**each, "image": "web"} for each in manifest["spec"]["template"]["spec"]["containers"]]
        spec = {**manifest["spec"]["template"]["spec"], "containers": containers}
        template = {**manifest["spec"]["template"], "spec": spec}
        manifest = {**manifest, "spec": {**manifest["spec"], "template": template}}
    return {**manifest, "metadata": metadata}


def of(kind: str, api_version: str, **spec: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}


@dataclass(frozen=True)
class Fix:
    """A fix of the linter.

    Args:
        says: What the text of the fix has to say, for the case to follow it.
        before: The objects with the finding, the HPA first.
        after: The objects after the fix; the HPA is missing if the fix deletes it.
        gone: Names of objects that the fix deletes or replaces.
    """

    code: Code
    says: str
    before: Sequence[Manifest]
    after: Sequence[Manifest]
    gone: Sequence[tuple[str, str]] = ()
    gates: FeatureGates = field(default_factory=FeatureGates)
    valid: bool = True


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
        "delete the autoscaler and set replicas in the target to the live count",
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
        "replaced, because selectors are immutable",
        [ALONE, GOOD, canary()],
        [ALONE, GOOD, workload(FULL, name="canary")],
        gone=[("Deployment", "canary")],
    ),
    Fix(
        Code.OVERLAPPING_SELECTORS,
        "replace one of the targets by one that has, in selector and pods, another value of a label",
        [ALONE, GOOD, canary(), kinded(hpa("canary", {**TARGET, "name": "canary"}))],
        [ALONE, GOOD, workload(FULL, name="canary"), kinded(hpa("canary", {**TARGET, "name": "canary"}))],
        gone=[("Deployment", "canary")],
    ),
    Fix(
        Code.SHARED_TARGET,
        "Put the metrics of both into one",
        [ALONE, GOOD, SECOND],
        [kinded(SHARED), GOOD],
        gone=[("HorizontalPodAutoscaler", "second")],
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


@pytest.mark.parametrize("fix", [pytest.param(fix, id=f"{fix.code}: {fix.says}") for fix in FIXES])
async def test_the_fix_is_followed_on_a_live_target(fix: Fix) -> None:
    before, after = ([placed(each) for each in objects] for objects in (fix.before, fix.after))
    cluster = EmbeddedCluster(namespaces=["shop"], kinds=KINDS)
    for each in before if fix.valid else [placed(GOOD)]:
        await cluster.apply(each, field_manager="user")
    live = await cluster.get(KEY)
    await cluster.update({**live, "spec": {**live["spec"], "replicas": LIVE}}, field_manager="controller")
    found = findings(before, fix.gates)
    assert fix.says in found[fix.code]

    for kind, name in fix.gone:
        (deleted,) = (each for each in before if (each["kind"], each["metadata"]["name"]) == (kind, name))
        await cluster.delete(ObjectKey.of(deleted))
    for each in after:
        await cluster.apply(each, field_manager="user")

    assert (await cluster.get(KEY))["spec"]["replicas"] == LIVE
    remaining = findings(after, fix.gates)
    assert fix.code not in remaining
    assert set(remaining) <= set(found)


def test_each_code_has_a_fix_that_is_tried() -> None:
    # That of a rejected HPA is the message of the API server, which says what it allows.
    assert {fix.code for fix in FIXES} | {Code.FIXED_REPLICAS, Code.REJECTED_HPA} == set(Code)
