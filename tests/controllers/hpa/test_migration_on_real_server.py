"""The command `ocf hpa-controller migrate` on a real API server, beside the real kube-controller-manager."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.controllers.hpa import Mode
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.objects import ObjectKey
from ocf.testing.envtest import ControllerName
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf.testing.metrics_stub import MetricsStub
from tests.controllers.change_history import Change, Recorder, in_order
from tests.controllers.hpa.conftest import until
from tests.controllers.hpa.real_server import PERIOD, autoscaler, counts, deployment, has_condition, running

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest, RunControllers

DEPLOYMENT: Final = ("apps/v1", "Deployment")
BOTH: Final = {BUILT_IN[1], OWN[1]}
AT_ONCE: Final = {"scaleDown": {"stabilizationWindowSeconds": 0}}


async def migrate(envtest: Envtest, *arguments: str) -> list[str]:
    """Run the command in a thread, as a process of its own would run, and return what it prints."""
    command = ["hpa-controller", "migrate", "web", "--namespace", envtest.namespace, *arguments]
    result = await asyncio.to_thread(CliRunner().invoke, app, [*command, "--kubeconfig", str(envtest.kubeconfig)])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def replicas(changes: Iterable[Change]) -> list[int]:
    """Return the replicas that the target had, one after the other."""
    seen = [change.object["spec"]["replicas"] for change in in_order(changes) if change.id[0] == DEPLOYMENT[1]]
    return [number for index, number in enumerate(seen) if index == 0 or number != seen[index - 1]]


def autoscalers(changes: Iterable[Change]) -> list[set[str]]:
    """Return the kinds of which there was an autoscaler, one set after the other."""
    kinds: list[set[str]] = []
    for change in in_order(changes):
        kind = change.id[0]
        if kind != DEPLOYMENT[1]:
            before = kinds[-1] if kinds else set[str]()
            after = before - {kind} if change.deleted else before | {kind}
            kinds += [after] if after != before else []
    return kinds


@pytest.mark.promise("one-controller")
async def test_there_and_back_no_instant_has_two_controllers_or_none(
    envtest: Envtest, defined: ApiServerCluster, envtest_controllers: RunControllers
) -> None:
    """The two see different metrics, so a write of the wrong one would show in the history of the target."""
    home, seen_by_ours = envtest.namespace, FakeMetricsClient()
    seen_by_ours.set_external(home, "queue", "70")
    web = await defined.create(deployment(home), field_manager="user")
    hpa = await defined.create(autoscaler(BUILT_IN, home, behavior=AT_ONCE), field_manager="user")
    recorder = Recorder(defined, (DEPLOYMENT, BUILT_IN, OWN), home)
    with envtest_controllers(ControllerName.HORIZONTAL_POD_AUTOSCALER, hpa_sync_period=PERIOD):
        async with (
            MetricsStub(envtest.plane) as stub,
            recorder.recording(),
            running(defined, Mode.OWN_KIND, metrics=seen_by_ours),
        ):
            stub.metrics.set_external(home, "queue", "30")
            await until(defined, ObjectKey.of(hpa), has_condition("AbleToScale", "ReadyForNewScale"))
            there = await migrate(envtest)
            await until(defined, ObjectKey.of(web), counts(7))
            back = await migrate(envtest, "--back")
            await until(defined, ObjectKey.of(web), counts(3))
            await until(defined, ObjectKey.of(hpa), has_condition("AbleToScale", "ReadyForNewScale"))
            await recorder.complete()
    assert replicas(recorder.changes) == [2, 3, 7, 3]
    assert autoscalers(recorder.changes) == [{BUILT_IN[1]}, BOTH, {OWN[1]}, BOTH, {BUILT_IN[1]}]
    steps = ["created", "does not scale while the other one exists", "deleted", "scales"]
    assert [_step(line, steps) for line in there] == steps
    assert [_step(line, steps) for line in back] == [steps[0], steps[1], steps[3], steps[2]]


def _step(line: str, steps: Iterable[str]) -> str:
    return next(step for step in steps if line.startswith(f"{step} ") or line.endswith(f" {step}"))
