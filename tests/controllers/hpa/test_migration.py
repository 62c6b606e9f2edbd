"""Migration between the kinds: at every instant exactly one controller is responsible for the target."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.cluster import Subresource
from ocf.controllers.hpa.migration import migrate, to_built_in_kind, to_own_kind
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.errors import ConfigError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from tests.controllers.hpa.conftest import NAMESPACE, PERIOD, Env, RunScenario, periods

HPA: Final = ObjectKey(*BUILT_IN, "web", NAMESPACE)
OURS: Final = ObjectKey(*OWN, "web", NAMESPACE)
DEPLOYMENT: Final = ObjectKey("apps/v1", "Deployment", "web", NAMESPACE)
SPEC: Final = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 9}


def manifest(kind: tuple[str, str], **metadata: Any) -> Manifest:
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "web", **metadata}, "spec": dict(SPEC)}


@pytest.mark.parametrize(
    ("source", "convert", "target"),
    [
        pytest.param(BUILT_IN, to_own_kind, OWN, id="to our own kind"),
        pytest.param(OWN, to_built_in_kind, BUILT_IN, id="back"),
    ],
)
def test_what_a_user_wrote_is_converted_and_nothing_else(
    source: tuple[str, str], convert: Callable[[Manifest], Manifest], target: tuple[str, str]
) -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "shop"}
    live = manifest(
        source,
        namespace=NAMESPACE,
        labels={"a": "b"},
        annotations=applied,
        uid="1",
        resourceVersion="7",
        managedFields=[],
        ownerReferences=[],
    ) | {"status": {"currentReplicas": 3}}
    expected = manifest(target, namespace=NAMESPACE, labels={"a": "b"}, annotations={"team": "shop"})
    assert convert(live) == expected


def test_settings_have_no_counterpart_in_the_built_in_kind() -> None:
    ours = manifest(OWN)
    ours["spec"]["settings"] = {"tolerance": "0.05", "syncPeriodSeconds": 5}
    with pytest.raises(ConfigError, match=r"HorizontalAutoscaler web: spec.settings has syncPeriodSeconds, tolerance"):
        to_built_in_kind(ours)


@asynccontextmanager
async def built_in(env: Env, scaled: list[str]) -> AsyncIterator[None]:
    """Run a controller of HorizontalPodAutoscalers that scales to eight whenever there is one."""

    async def run() -> None:
        while True:
            await asyncio.sleep(PERIOD)
            if await env.is_present(HPA):
                if await env.replicas() != 8:
                    scaled.append("built-in")
                    await env.set_scale(DEPLOYMENT, 8, by="kube-controller-manager")
                able = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": ""}
                conditions = [{**able, "lastTransitionTime": "2026-01-01T12:00:00Z"}]
                await env.patch_status(HPA, {"desiredReplicas": 8, "conditions": conditions}, by="built-in")

    task = asyncio.create_task(run())
    yield
    task.cancel()
    await asyncio.wait([task])


def test_there_and_back_each_target_has_one_controller_all_the_time(run_scenario: RunScenario) -> None:
    """The two want different numbers, so two at a time would show as changes in both directions."""

    async def scenario(env: Env) -> None:
        await env.deploy(replicas=3)
        env.queue(50)
        await env.autoscale(of=BUILT_IN)
        scaled: list[str] = []
        steps: list[str] = []
        async with built_in(env, scaled), env.running():
            await periods(2)
            assert (await env.replicas(), scaled) == (8, ["built-in"])
            await migrate(env.cluster, "web", NAMESPACE, report=steps.append)
            assert not await env.is_present(HPA)
            assert (await env.conditions(OURS))["AbleToScale"][0] == "True"
            await periods(22)
            assert (await env.replicas(), scaled) == (5, ["built-in"])
            await migrate(env.cluster, "web", NAMESPACE, back=True, report=steps.append)
            assert not await env.is_present(OURS)
            await periods(4)
            assert (await env.replicas(), scaled) == (8, ["built-in"] * 2)
        ours = [one for one in env.writes if one.subresource is Subresource.SCALE]
        assert len(ours) == 1 + 2  # ours once, the built-in controller twice
        assert [step.partition(" ")[0] for step in steps[:2]] == ["created", str(OURS)]
        assert [step.split()[0] for step in steps if "deleted" in step] == ["deleted"] * 2

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("back", "source", "target", "problem"),
    [
        pytest.param(False, BUILT_IN, OURS, "the controller of ocf does not run", id="to our own kind"),
        pytest.param(True, OWN, HPA, "does not run", id="back"),
    ],
)
def test_without_the_other_controller_everything_is_as_before(
    run_scenario: RunScenario, *, back: bool, source: tuple[str, str], target: ObjectKey, problem: str
) -> None:
    async def scenario(env: Env) -> None:
        await env.deploy(replicas=3)
        key = await env.autoscale(of=source)
        before = await env.cluster.get(key)
        with pytest.raises(ServerError, match=problem):
            await migrate(env.cluster, "web", NAMESPACE, back=back, limit=timedelta(minutes=1))
        assert not await env.is_present(target)
        assert await env.cluster.get(key) == before

    run_scenario(scenario)


def test_a_spec_that_changes_meanwhile_is_not_lost(run_scenario: RunScenario) -> None:
    async def scenario(env: Env) -> None:
        await env.deploy(replicas=3)
        key = await env.autoscale(of=BUILT_IN)
        async with env.running():
            migrating = asyncio.create_task(migrate(env.cluster, "web", NAMESPACE))
            await asyncio.sleep(5)
            await env.change(key, {"spec": {"maxReplicas": 30}})
            with pytest.raises(ServerError, match="has changed during the migration; migrate it again"):
                await migrating
        assert (await env.cluster.get(key))["spec"]["maxReplicas"] == 30
        assert not await env.is_present(OURS)

    run_scenario(scenario)


def test_an_autoscaler_that_does_not_exist(run_scenario: RunScenario) -> None:
    async def scenario(env: Env) -> None:
        with pytest.raises(NotFoundError):
            await migrate(env.cluster, "web", NAMESPACE)

    run_scenario(scenario)
