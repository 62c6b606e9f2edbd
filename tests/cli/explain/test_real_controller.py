"""`ocf explain` next to the real controller, on a real API server, with real metrics APIs."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.autoscaling.linter.namespace_index import VERTICAL
from ocf.cli.explain.role import role
from ocf.cli.explain.surroundings import SCALED_OBJECT
from ocf.controllers.hpa.modes import OWN as OWN_KIND
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.testing.envtest import ControllerName
from ocf.testing.metrics_stub import MetricsStub
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest, RunControllers

PERIOD: Final = timedelta(milliseconds=300)
LABELS: Final = {"app": "web"}


def deployment(namespace: str) -> Manifest:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": LABELS}, "template": template}
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def hpa(namespace: str, **more: Any) -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    queue = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    spec = {"scaleTargetRef": reference, "maxReplicas": 9, "metrics": [{"type": "External", "external": queue}], **more}
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


async def until(cluster: ApiServerCluster, key: ObjectKey, holds: Callable[[Manifest], bool]) -> Manifest:
    """Wait until a condition holds for an object, or fail."""
    return await eventually(lambda: cluster.get(key), holds)


def has_reason(reason: str) -> Callable[[Manifest], bool]:
    def holds(live: Manifest) -> bool:
        return any(each["reason"] == reason for each in (live.get("status") or {}).get("conditions") or ())

    return holds


async def explained(envtest: Envtest, *words: str, kubeconfig: Path | None = None) -> Any:
    """Run the command as another process, as this one serves the metrics."""
    config = str(kubeconfig or envtest.kubeconfig)
    line = ["explain", "web", "-n", envtest.namespace, "--kubeconfig", config, "--output", "json"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "from ocf.cli import main; main()", *line, "--sync-period", "1s", *words, stdout=PIPE
    )
    answer, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(answer)


async def test_the_result_is_that_of_the_real_controller(
    envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
) -> None:
    home = envtest.namespace
    web = await envtest_cluster.create(deployment(home), field_manager="user")
    key = ObjectKey.of(await envtest_cluster.create(hpa(home), field_manager="user"))
    async with MetricsStub(envtest.plane) as stub:
        stub.metrics.set_external(home, "queue", "45")
        before = await explained(envtest)
        with envtest_controllers(ControllerName.HORIZONTAL_POD_AUTOSCALER, hpa_sync_period=PERIOD):
            await until(envtest_cluster, ObjectKey.of(web), lambda live: live["spec"]["replicas"] == 5)
            live = await until(envtest_cluster, key, has_reason("ReadyForNewScale"))
            in_sync = await explained(envtest)
            stub.metrics.set_external(home, "queue", "12")
            await until(envtest_cluster, key, has_reason("ScaleDownStabilized"))
            held = await explained(envtest)

    assert before["observed"]["status"].get("conditions", []) == []
    assert (before["exact"], before["replicas"]["desired"]) == (True, 5)
    assert before["least"]["events"][0]["message"].startswith("New size: 5; reason: external metric queue(nil) above")

    theirs = {each["type"]: (each["status"], each["reason"], each["message"]) for each in live["status"]["conditions"]}
    ours = {each["type"]: (each["status"], each["reason"], each["message"]) for each in in_sync["least"]["conditions"]}
    assert (in_sync["exact"], in_sync["replicas"]["desired"]) == (True, 5)
    assert ours == theirs

    # The autoscaler is younger than the window, so the recommendation that holds it cannot have left the window.
    assert (held["replicas"]["least"], held["replicas"]["most"]) == (5, 5)
    assert held["most"]["hold"]["replicas"] == 5
    assert {each["reason"] for each in held["observed"]["events"]} >= {"SuccessfulRescale"}


async def test_after_watching_the_history_is_known(
    envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
) -> None:
    home = envtest.namespace
    policies = [{"type": "Pods", "value": 1, "periodSeconds": 1}]
    behavior = {
        "scaleUp": {"policies": policies},
        "scaleDown": {"policies": policies, "stabilizationWindowSeconds": 2},
    }
    web = await envtest_cluster.create(deployment(home), field_manager="user")
    await envtest_cluster.create(hpa(home, behavior=behavior), field_manager="user")
    async with MetricsStub(envtest.plane) as stub:
        stub.metrics.set_external(home, "queue", "45")
        with envtest_controllers(ControllerName.HORIZONTAL_POD_AUTOSCALER, hpa_sync_period=PERIOD):
            await until(envtest_cluster, ObjectKey.of(web), lambda live: live["spec"]["replicas"] == 4)
            found = await explained(envtest, "--watch", "4s", "--sync-period", "300ms")

    side = found["least"]
    assert (found["exact"], found["unknown"], found["replicas"]["desired"]) == (True, [], 5)
    assert {each["replicas"] for each in side["history"]["recommendations"]} == {5}
    assert [each["change"] for each in side["history"]["scaleUps"]] in ([], [1])


def every_api() -> list[Manifest]:
    """Return metrics that need all three metrics APIs."""
    one = {"type": "AverageValue", "averageValue": "10"}
    described = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return [
        {"type": "Resource", "resource": {"name": "memory", "target": one}},
        {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": one}},
        {"type": "Object", "object": {"metric": {"name": "hits"}, "describedObject": described, "target": one}},
        {"type": "External", "external": {"metric": {"name": "queue"}, "target": one}},
    ]


def rule(group: str, resource: str, *verbs: str) -> Manifest:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


OWN: Final = [rule("autoscaling", "horizontalpodautoscalers", "get"), rule("apps", "deployments", "get")]
INPUTS: Final = [*OWN, rule("", "pods", "list"), rule("external.metrics.k8s.io", "*", "list")]
AROUND: Final = [rule("autoscaling", "horizontalpodautoscalers", "list"), rule("", "events", "list")]


@pytest.mark.parametrize(
    ("rules", "status", "missing"),
    [
        pytest.param(OWN, 2, ['cannot list resource "pods"'], id="the-autoscaler-and-its-target"),
        pytest.param(OWN[:1], 2, ['cannot get resource "deployments/scale"'], id="only-the-autoscaler"),
        pytest.param([*OWN, INPUTS[2]], 2, ['cannot list resource "queue"'], id="no-metrics"),
        pytest.param(
            INPUTS,
            0,
            [f'cannot list resource "{each}"' for each in ("events", "replicasets", "horizontalpodautoscalers")],
            id="no-surroundings",
        ),
        pytest.param([*INPUTS, *AROUND], 0, ['cannot list resource "replicasets"'], id="no-replica-sets"),
    ],
)
async def test_with_few_rights_there_is_a_page_that_names_those_that_are_missing(
    envtest: Envtest, envtest_cluster: ApiServerCluster, rules: list[Manifest], status: int, missing: list[str]
) -> None:
    """The right to list a kind that is not served is not missed, although the API server asks for it first."""
    home, user = envtest.namespace, f"few-of-{envtest.namespace}"
    group = "rbac.authorization.k8s.io"
    metadata = {"name": "few", "namespace": home}
    granted = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "few"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    for each in (granted, binding, deployment(home), hpa(home)):
        await envtest_cluster.create(each, field_manager="user")
    kubeconfig = await asyncio.to_thread(envtest.plane.kubeconfig_for, user, namespace=home)
    autoscalers = (SCALED_OBJECT, VERTICAL, OWN_KIND)
    before = {kind for kind in autoscalers if await is_served(envtest_cluster, *kind)}
    async with MetricsStub(envtest.plane) as stub:
        stub.metrics.set_external(home, "queue", "45")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from ocf.cli import main; main()", "explain", "web", "-n", home),
            *("--kubeconfig", str(kubeconfig)),
            stdout=PIPE,
        )
        answer, _ = await process.communicate()
    page = " ".join(answer.decode().split())
    assert process.returncode == status
    assert [each for each in missing if each not in page] == [], page
    first = "No controller has synced this autoscaler yet" if status else "5 replicas next"
    assert page.partition("UTC ")[2].startswith(first)
    # Another test may have defined these kinds, and may define or delete them while this one runs.
    after = {kind for kind in autoscalers if await is_served(envtest_cluster, *kind)}
    for kind in {*autoscalers} - before - after:
        assert f"{kind[1].lower()}s" not in page
    # Whether others write is not claimed where it could not be looked up, and known where it could.
    claimed = "which other autoscalers scale it" in page
    others = {SCALED_OBJECT, OWN_KIND}
    assert claimed in {AROUND[0] not in rules or not others.isdisjoint(served) for served in (before, after)}


async def is_served(cluster: ApiServerCluster, api_version: str, kind: str) -> bool:
    """Read the definition; what a client has discovered may be older."""
    name = f"{kind.lower()}s.{api_version.partition('/')[0]}"
    try:
        await cluster.get(ObjectKey("apiextensions.k8s.io/v1", "CustomResourceDefinition", name))
    except NotFoundError:
        return False
    return True


async def test_the_rights_of_the_role_are_enough(envtest: Envtest, envtest_cluster: ApiServerCluster) -> None:
    home, user = envtest.namespace, f"explainer-of-{envtest.namespace}"
    group = "rbac.authorization.k8s.io"
    granted = role(home)
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": granted["metadata"],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": granted["metadata"]["name"]},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    for each in (granted, binding, deployment(home), hpa(home, metrics=every_api())):
        await envtest_cluster.create(each, field_manager="user")
    kubeconfig = await asyncio.to_thread(envtest.plane.kubeconfig_for, user, namespace=home)
    async with MetricsStub(envtest.plane) as stub:
        stub.metrics.set_external(home, "queue", "45")
        found = await explained(envtest, kubeconfig=kubeconfig)

    failures = [each["failure"] for each in found["metrics"]]
    assert failures[-1] is None
    assert "forbidden" not in json.dumps(found)
