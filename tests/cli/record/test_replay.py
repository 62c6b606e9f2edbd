"""A run of the controller is recorded and replayed: it scales as it did, or the replay says what the recording lacks.

https://github.com/kubernetes/kubernetes/issues/102017: the metrics API fails once or twice a day, and only events are
left of it.
"""

import asyncio
import io
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.record.cluster import RecordedAutoscaler, record
from ocf.controllers.hpa.modes import BUILT_IN, Mode
from ocf.controllers.hpa.snapshot import SubresourceScaleGetter
from ocf.errors import ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.timestamps import parse_time
from ocf.simulation import load_series, read_scenario, simulate
from ocf.simulation.recording.format import read_states
from ocf.simulation.scenario.replay import ReplayComparison, compare_replay
from ocf.testing.virtual_time import run_in_virtual_time
from tests.controllers.hpa.conftest import NAMESPACE, Env

PERIOD: Final = 15
CPU: Final[Manifest] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
}
WAITING: Final[Manifest] = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}
DOWN: Final = ServerError("unable to read http://reader:hunter2@prometheus:9090", code=503, reason="ServiceUnavailable")
Happen = Callable[[Env, float], None]
"""Changes the world at a time, in seconds."""
LOADS: Final[Mapping[str, Callable[[float], float]]] = {
    "steps": lambda at: 150 if at < 120 else 900 if at < 600 else 240,
    "a ramp": lambda at: 100 + min(at, 900) * 1.6,
    "waves": lambda at: 500 + 400 * ((int(at) // 200) % 2),
}
"""CPU in use by all pods, in thousandths of a core; each pod requests 100m."""


def recorded(
    folder: Path,
    load: Callable[[float], float],
    seconds: int = 1500,
    happen: Happen | None = None,
    **spec: Any,
) -> Path:
    """Record a run of the controller over pods that share a load."""

    async def whole() -> str:
        env, output = Env(), io.StringIO()
        await env.set_up()
        await env.deploy(replicas=3)
        key = await env.autoscale(of=BUILT_IN, **{"minReplicas": 2, "metrics": [CPU], **spec})
        source = RecordedAutoscaler(env.cluster, env.metrics, SubresourceScaleGetter(env.cluster), key, env.clock)

        async def live() -> None:
            for at in range(seconds):
                await env.sync_pods()
                pods = await env.replicas()
                for number in range(25):
                    env.metrics.forget_pod(NAMESPACE, f"web-{number}")
                env.use_cpu("web", f"{load(at) / pods:.0f}m", pods)
                env.queue(int(load(at) / 10))
                if happen is not None:
                    happen(env, at)
                await asyncio.sleep(1)

        living = asyncio.create_task(live())
        await asyncio.sleep(0.5)
        async with env.running(Mode.REPLACE):
            every, period = timedelta(seconds=PERIOD), timedelta(seconds=seconds - PERIOD)
            await record(source, output, every=every, period=period, warn=lambda _: None)
        living.cancel()
        return output.getvalue()

    path = folder / "web.jsonl"
    path.write_text(run_in_virtual_time(whole()))
    return path


def replayed(path: Path) -> ReplayComparison:
    scenario = read_scenario(path)
    return compare_replay(path, scenario, simulate(scenario, load_series(scenario, path.parent)))


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_replay_scales_as_the_controller_did(tmp_path: Path, load: Callable[[float], float]) -> None:
    found = replayed(recorded(tmp_path, load))

    assert found.is_same, list(found.lines())
    assert len(found.recorded) >= 3
    assert found.apart <= timedelta(seconds=2 * PERIOD)


def failing(*apis: str, since: float = 110, until: float = 320) -> Happen:
    def happen(env: Env, at: float) -> None:
        for api in apis:
            env.metrics.fail(api, DOWN if since <= at < until else None)

    return happen


def test_an_outage_of_the_metrics_is_replayed(tmp_path: Path) -> None:
    """The load rises while nothing can be read, and the controller scales when it can read again."""
    path = recorded(tmp_path, LOADS["steps"], happen=failing("metrics.k8s.io"))

    outages = read_scenario(path).metrics.outages
    assert [(each.at, each.duration) for each in outages] == [(timedelta(seconds=120), timedelta(seconds=210))]
    found = replayed(path)
    assert found.is_same, list(found.lines())
    assert found.recorded[0].at >= parse_time("2026-01-01T12:05:00Z")


def test_a_metric_that_fails_alone_is_named_if_the_replay_differs(tmp_path: Path) -> None:
    happen = failing("external.metrics.k8s.io", since=600, until=1100)
    path = recorded(tmp_path, LOADS["steps"], happen=happen, metrics=[CPU, WAITING])

    assert read_scenario(path).metrics.outages == ()
    found = replayed(path)
    assert not found.is_same
    assert any("the External queue metric from 2026-01-01 12:10:" in each for each in found.lacking), found.lacking


def test_who_else_scales_the_target_is_named(tmp_path: Path) -> None:
    def happen(env: Env, at: float) -> None:
        if at == 400:
            by_hand.append(asyncio.create_task(set_replicas(env, 12)))

    async def set_replicas(env: Env, replicas: int) -> None:
        await env.change(ObjectKey("apps/v1", "Deployment", "web", NAMESPACE), {"spec": {"replicas": replicas}})

    by_hand: list[asyncio.Task[None]] = []
    found = replayed(recorded(tmp_path, lambda _: 180, seconds=800, happen=happen))

    assert not found.is_same
    assert (
        found.lacking[0]
        == "who changed the replicas from 3 to 12 at 2026-01-01 12:06:45: not the HPA, by its lastScaleTime"
    )


def run(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, list(arguments))
    return found.exit_code, found.output


def test_the_command_says_whether_the_replay_is_as_recorded(tmp_path: Path) -> None:
    path = recorded(tmp_path, LOADS["steps"], happen=failing("metrics.k8s.io"))

    code, text = run("simulate", str(path), "--no-report")
    assert code == 0
    assert "as recorded: all 4 changes of the replicas are the same\n" in text
    found = json.loads(run("simulate", str(path), "--no-report", "--output", "json")[1].partition("\n")[2])
    replay: dict[str, Any] = found["runs"][0]["replay"]
    assert (replay["same"], replay["lacking"], len(replay["recorded"])) == (4, [], 4)


def test_an_explanation_of_the_outage_says_what_the_metrics_api_answered(tmp_path: Path) -> None:
    path = recorded(tmp_path, LOADS["steps"], happen=failing("metrics.k8s.io"))

    _, text = run("explain", "-f", str(path), "--now", "2026-01-01T12:03:00Z")
    assert "HTTP 503 ServiceUnavailable" in " ".join(text.split())
    failures = [str(each) for state in read_states(path) for each in state.of("MetricFailure")]
    assert failures
    assert "hunter2" not in "".join(failures)
    _, later = run("explain", "-f", str(path), "--now", "2026-01-01T12:10:00Z")
    assert "503" not in later
