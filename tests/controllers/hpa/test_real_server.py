"""The controller on a real API server, beside the real controllers of workloads, and beside the built-in one."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from ocf.cluster import ListOptions, PatchOptions, PatchType, Subresource
from ocf.controllers.hpa import Mode
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.controllers.hpa.status_writer import FIELD_MANAGER
from ocf.controllers.hpa.take_over import last_foreign_write
from ocf.objects import Manifest, ObjectKey
from ocf.testing.envtest import ControllerName
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf.testing.metrics_stub import MetricsStub
from tests.controllers.hpa.conftest import until
from tests.controllers.hpa.real_server import (
    LABELS,
    PERIOD,
    autoscaler,
    counts,
    deployment,
    has_condition,
    posted,
    running,
)

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest, RunControllers


def average(live: Manifest) -> str | None:
    (metric,) = live["status"].get("currentMetrics") or [{}]
    found: str | None = metric.get("external", {}).get("current", {}).get("averageValue")
    return found


async def test_an_autoscaler_of_our_kind_scales_a_real_deployment(
    envtest: Envtest, defined: ApiServerCluster, envtest_controllers: RunControllers
) -> None:
    home = envtest.namespace
    web = await defined.create(deployment(home), field_manager="user")
    ours = await defined.create(autoscaler(OWN, home), field_manager="user")
    with envtest_controllers(ControllerName.DEPLOYMENT, ControllerName.REPLICA_SET):
        async with MetricsStub(envtest.plane) as stub, running(defined, Mode.OWN_KIND):
            stub.metrics.set_external(home, "queue", "40")
            await until(defined, ObjectKey.of(web), counts(4))
            await until(defined, ObjectKey.of(web), lambda live: live["status"].get("replicas") == 4)
            is_able = has_condition("AbleToScale", "ReadyForNewScale")
            await until(defined, ObjectKey.of(ours), lambda live: is_able(live) and average(live) == "10")
            assert (
                len((await defined.list("v1", "Pod", ListOptions(namespace=home, label_selector="app=web"))).items) == 4
            )
            shown = await asyncio.to_thread(envtest.kubectl, "get", "oha", "web", "--no-headers")
            columns = ["web", "Deployment", "web", "10/10", "(avg)", "1", "9", "4", "True", "ValidMetricFound"]
            assert shown.split()[:10] == columns
            stub.metrics.set_external(home, "queue", "10")
            await until(defined, ObjectKey.of(web), counts(1))
        events = await defined.list("events.k8s.io/v1", "Event", ListOptions(namespace=home))
        reasons = {one["reason"] for one in events.items if one["regarding"]["kind"] == OWN[1]}
        assert "SuccessfulRescale" in reasons


async def test_in_place_of_the_built_in_controller_it_scales_by_cpu(
    envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
) -> None:
    home = envtest.namespace
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    web = await envtest_cluster.create(deployment(home), field_manager="user")
    hpa = autoscaler(BUILT_IN, home, metrics=[{"type": "Resource", "resource": resource}])
    await envtest_cluster.create(hpa, field_manager="user")
    with envtest_controllers(ControllerName.DEPLOYMENT, ControllerName.REPLICA_SET):
        await until(envtest_cluster, ObjectKey.of(web), lambda live: (live.get("status") or {}).get("replicas") == 2)
        async with MetricsStub(envtest.plane) as stub:
            for pod in (await envtest_cluster.list("v1", "Pod", ListOptions(namespace=home))).items:
                ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T10:00:00Z"}
                status = {"phase": "Running", "startTime": "2026-01-01T10:00:00Z", "conditions": [ready]}
                await envtest_cluster.patch(
                    ObjectKey.of(pod),
                    {"status": status},
                    PatchOptions(patch_type=PatchType.MERGE, field_manager="kubelet", subresource=Subresource.STATUS),
                )
                stub.metrics.set_usage(home, pod["metadata"]["name"], {"app": {"cpu": "75m"}}, labels=LABELS)
            async with running(envtest_cluster, Mode.REPLACE):
                await until(envtest_cluster, ObjectKey.of(web), counts(3))
                live = await until(
                    envtest_cluster, ObjectKey.of(hpa), has_condition("ScalingActive", "ValidMetricFound")
                )
                current = live["status"]["currentMetrics"][0]["resource"]["current"]
                assert current == {"averageUtilization": 75, "averageValue": "75m"}


@pytest.mark.promise("one-controller")
async def test_beside_the_built_in_controller_its_targets_are_rejected(
    envtest: Envtest, defined: ApiServerCluster, envtest_controllers: RunControllers
) -> None:
    home = envtest.namespace
    web = await defined.create(deployment(home), field_manager="user")
    theirs = await defined.create(autoscaler(BUILT_IN, home, minReplicas=3), field_manager="user")
    ours = await defined.create(autoscaler(OWN, home, minReplicas=6), field_manager="user")
    with envtest_controllers(
        ControllerName.DEPLOYMENT,
        ControllerName.REPLICA_SET,
        ControllerName.HORIZONTAL_POD_AUTOSCALER,
        hpa_sync_period=PERIOD,
    ):
        async with running(defined, Mode.OWN_KIND):
            await until(defined, ObjectKey.of(ours), has_condition("AbleToScale", "TargetClaimed"))
            await until(defined, ObjectKey.of(web), counts(3))  # the built-in controller raises it to its minimum
            await until(defined, ObjectKey.of(theirs), has_condition("AbleToScale", "SucceededGetScale"))
            assert counts(3)(await defined.get(ObjectKey.of(web)))
            await defined.delete(ObjectKey.of(theirs))
            await until(defined, ObjectKey.of(web), counts(6))


@pytest.mark.promise("one-controller")
async def test_what_the_built_in_controller_runs_is_left_alone_until_it_is_switched_off_and_taken_over(
    envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
) -> None:
    home = envtest.namespace
    web = await envtest_cluster.create(deployment(home), field_manager="user")
    hpa = await envtest_cluster.create(autoscaler(BUILT_IN, home, minReplicas=3), field_manager="user")
    with envtest_controllers(ControllerName.HORIZONTAL_POD_AUTOSCALER, hpa_sync_period=PERIOD):
        await until(envtest_cluster, ObjectKey.of(hpa), has_condition("AbleToScale", "SucceededRescale"))
    async with running(envtest_cluster, Mode.REPLACE):
        before = await envtest_cluster.apply(
            {**autoscaler(BUILT_IN, home, minReplicas=5), "metadata": {"name": "web", "namespace": home}},
            field_manager="user",
            force=True,
        )
        await asyncio.sleep(4 * PERIOD.total_seconds())  # nothing is to happen
        assert counts(3)(await envtest_cluster.get(ObjectKey.of(web)))
        assert (await envtest_cluster.get(ObjectKey.of(hpa)))["status"] == before["status"]
    async with running(envtest_cluster, Mode.REPLACE, take_over=True):
        await until(envtest_cluster, ObjectKey.of(web), counts(5))


@pytest.mark.promise("one-controller")
async def test_beside_the_built_in_controller_it_yields_before_it_scales(
    envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
) -> None:
    """The two see different metrics, so each would change what the other one wrote."""
    home, ours = envtest.namespace, FakeMetricsClient()
    ours.set_external(home, "queue", "70")
    web = await envtest_cluster.create(deployment(home), field_manager="user")
    hpa = await envtest_cluster.create(autoscaler(BUILT_IN, home), field_manager="user")
    with envtest_controllers(ControllerName.HORIZONTAL_POD_AUTOSCALER, hpa_sync_period=PERIOD):
        async with MetricsStub(envtest.plane) as stub:
            stub.metrics.set_external(home, "queue", "30")
            await until(envtest_cluster, ObjectKey.of(web), counts(3))
            await until(envtest_cluster, ObjectKey.of(hpa), has_condition("AbleToScale", "ReadyForNewScale"))
            async with running(envtest_cluster, Mode.REPLACE, take_over=True, metrics=ours):
                await posted(envtest_cluster, home, "LeftAlone")
                live = await until(envtest_cluster, ObjectKey.of(hpa), has_condition("AbleToScale", "ReadyForNewScale"))
                assert last_foreign_write(live, FIELD_MANAGER) is not None
    live = await envtest_cluster.get(ObjectKey.of(web))
    assert counts(3)(live)
    assert FIELD_MANAGER not in {each["manager"] for each in live["metadata"]["managedFields"]}


async def test_an_autoscaler_is_run_once_the_built_in_controller_is_switched_off(
    envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
) -> None:
    home, ours = envtest.namespace, FakeMetricsClient()
    ours.set_external(home, "queue", "70")
    web = await envtest_cluster.create(deployment(home), field_manager="user")
    hpa = await envtest_cluster.create(autoscaler(BUILT_IN, home), field_manager="user")
    with ExitStack() as built_in:
        built_in.enter_context(envtest_controllers(ControllerName.HORIZONTAL_POD_AUTOSCALER, hpa_sync_period=PERIOD))
        async with MetricsStub(envtest.plane) as stub:
            stub.metrics.set_external(home, "queue", "30")
            await until(envtest_cluster, ObjectKey.of(hpa), has_condition("AbleToScale", "ReadyForNewScale"))
            async with running(envtest_cluster, Mode.REPLACE, take_over=True, metrics=ours):
                await posted(envtest_cluster, home, "LeftAlone")
                built_in.close()
                await until(envtest_cluster, ObjectKey.of(web), counts(7))


async def test_a_target_is_found_by_its_kind_whatever_version_is_named(
    envtest: Envtest, envtest_cluster: ApiServerCluster
) -> None:
    home = envtest.namespace
    web = await envtest_cluster.create(deployment(home), field_manager="user")
    reference = {"apiVersion": "apps/v1beta2", "kind": "Deployment", "name": "web"}
    hpa = autoscaler(BUILT_IN, home, minReplicas=3, scaleTargetRef=reference)
    await envtest_cluster.create(hpa, field_manager="user")
    async with running(envtest_cluster, Mode.REPLACE):
        await until(envtest_cluster, ObjectKey.of(web), counts(3))
