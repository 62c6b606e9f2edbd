"""`ocf record --prometheus`: recordings of a past range of time.

The answers are those of a real Prometheus: `scripts/record/prometheus.py` recorded them.
"""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.record.prometheus import Access, Ranges, open_prometheus, record_range
from ocf.errors import ConfigError
from ocf.objects import Manifest, Quantity
from ocf.simulation import load_series, read_scenario, simulate
from ocf.simulation.recording.format import State, read_states
from ocf.simulation.recording.prometheus import Matrix, SeriesSelection, Steps
from tests.cli.record.prometheus_answers import FAILING, Answer, PrometheusStub, Question, hpa, load
from tests.simulation.recording.prometheus_series import (
    CREATED,
    END,
    NEW,
    OLD,
    POD_NAMES,
    SCRAPE,
    START,
    STYLES,
    edited_maximum,
    openmetrics,
    pods_at,
    ready_at,
    use_of,
)

STEPS = Steps.between(START, END, SCRAPE)
EMPTY = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}})
every_style = pytest.mark.parametrize("style", STYLES)


async def recorded(question: Question) -> Answer:
    """Answer as the real server did."""
    return load()[question]


async def empty(_: Question) -> Answer:
    return 200, EMPTY


@asynccontextmanager
async def opened(stub: PrometheusStub, **access: Any) -> AsyncIterator[Ranges]:
    async with stub.running(), open_prometheus(Access(url=stub.url, **access)) as source:
        yield source


async def written(style: str, folder: Path, *, manifest: Manifest | None = None) -> list[State]:
    """Record a namespace, and return the states."""
    path, warnings = folder / "web.jsonl", list[str]()
    async with opened(PrometheusStub(recorded)) as source:
        with path.open("w") as output:
            await record_range(
                source, SeriesSelection(style, "web"), STEPS, output, manifest=manifest, warn=warnings.append
            )
    assert warnings == []
    return [State(state.line, state.at, dict(state.objects)) for state in read_states(path)]


def named(state: State, kind: str) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in state.of(kind)}


@every_style
async def test_a_recording_has_what_was_there(style: str, tmp_path: Path) -> None:
    states = await written(style, tmp_path, manifest=hpa(style))

    assert [state.at for state in states] == [STEPS.at(number) for number in range(STEPS.count)]
    for state in states:
        since = state.at - START
        numbers = pods_at(since)
        (found,) = state.of("HorizontalPodAutoscaler")
        assert found["spec"]["maxReplicas"] == edited_maximum(since)
        assert found["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 60
        assert found["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 60
        assert found["status"]["conditions"] == [{"type": "AbleToScale", "status": "True"}]
        (scale,) = state.of("Scale")
        assert scale["spec"]["replicas"] == scale["status"]["replicas"] == len(numbers)
        pods = named(state, "Pod")
        assert sorted(pods) == [POD_NAMES[number] for number in numbers]
        for number in numbers:
            pod = pods[POD_NAMES[number]]
            (container,) = pod["spec"]["containers"]
            assert container == {"name": "app", "resources": {"requests": {"cpu": "500m", "memory": "1073741824"}}}
            assert pod["spec"]["nodeName"] == "n-1"
            (condition,) = pod["status"]["conditions"]
            assert condition["status"] == str(ready_at(number, since))


@every_style
async def test_use_is_measured_over_the_window(style: str, tmp_path: Path) -> None:
    states = await written(style, tmp_path, manifest=hpa(style))

    compared = 0
    for state in states:
        since, measured = state.at - START, named(state, "PodMetrics")
        uses = {use_of(since - SCRAPE * number) for number in range(6)}
        for number in pods_at(since):
            if len(uses) > 1 or CREATED[number] > since - timedelta(minutes=3):
                continue  # the use has changed within the window
            (container,) = measured[POD_NAMES[number]]["containers"]
            assert container["name"] == "app"
            assert Quantity.parse(container["usage"]["cpu"]).milli == pytest.approx(1000 * uses.copy().pop(), rel=0.01)
            assert container["usage"]["memory"] == str(600 * 2**20)
            compared += 1
    assert compared > 20


async def test_readiness_has_its_time(tmp_path: Path) -> None:
    last = (await written(NEW, tmp_path))[-1]

    ready = named(last, "Pod")[POD_NAMES[2]]["status"]["conditions"][0]
    assert ready == {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T12:03:35Z"}


async def test_old_names_need_a_manifest_for_the_target(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pass a manifest of the HPA with --manifest"):
        await written(OLD, tmp_path)


async def test_a_recording_can_be_replayed(tmp_path: Path) -> None:
    await written(NEW, tmp_path)
    scenario = read_scenario(tmp_path / "web.jsonl")
    result = simulate(scenario, load_series(scenario, tmp_path))

    assert scenario.workload.capacity == 0.5
    assert scenario.duration == END - START
    assert max(result.columns.replicas) == 3


async def test_a_recording_can_be_explained(tmp_path: Path) -> None:
    await written(NEW, tmp_path)

    answer = CliRunner().invoke(app, ["explain", "-f", str(tmp_path / "web.jsonl"), "--now", "2026-01-31T12:02:30Z"])

    assert answer.exit_code == 0, answer.output
    assert "cpu" in answer.output


def test_the_series_are_those_of_the_recording() -> None:
    """The database of the recorded server was made of them."""
    lines = openmetrics().splitlines()

    assert lines[-1] == "# EOF"
    assert len(lines) == len(set(lines))


class TestServer:
    @pytest.mark.parametrize(
        ("name", "message"),
        [
            pytest.param(
                "too many points", "the query failed: exceeded maximum resolution of 11,000 points", id="long"
            ),
            pytest.param("invalid query", "invalid parameter", id="invalid"),
        ],
    )
    async def test_its_errors_are_reported_with_the_query(self, name: str, message: str) -> None:
        expression, length = FAILING[name]
        async with opened(PrometheusStub(recorded)) as source:
            with pytest.raises(ConfigError) as caught:
                await source.range(expression, Steps.between(START, START + length, timedelta(seconds=1)))

        assert message in str(caught.value)
        assert str(caught.value).endswith(f": {expression}")

    async def test_it_returns_as_many_points_as_a_part_may_have(self) -> None:
        expression, length = FAILING["as many points as possible"]
        async with opened(PrometheusStub(recorded)) as source:
            found = await source.range(expression, Steps.between(START, START + length, timedelta(seconds=1)))

        assert found == Matrix()

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            pytest.param((401, "no"), r"denies access \(HTTP 401\): check --bearer-token-file", id="unauthorized"),
            pytest.param((403, "no"), r"denies access \(HTTP 403\)", id="forbidden"),
            pytest.param(
                (502, "<html>"), "answers with HTTP 502, and not as Prometheus: check the address", id="proxy"
            ),
            pytest.param((200, "{}"), "not an answer of Prometheus to a range query", id="other JSON"),
            pytest.param((302, ""), "redirects to", id="redirect"),
        ],
    )
    async def test_other_answers_are_errors_without_credentials(
        self, answer: Answer, message: str, tmp_path: Path
    ) -> None:
        async def ask(_: Question) -> Answer:
            return answer

        (tmp_path / "token").write_text("s3cret\n")
        stub = PrometheusStub(ask)
        async with opened(stub, bearer_token_file=str(tmp_path / "token"), headers={"X-Scope": "t3nant"}) as source:
            with pytest.raises(ConfigError, match=message) as caught:
                await source.range("up", STEPS)

        assert stub.headers[0]["Authorization"] == "Bearer s3cret"
        assert stub.headers[0]["X-Scope"] == "t3nant"
        assert not any(secret in str(caught.value) for secret in ("s3cret", "t3nant"))

    async def test_a_password_is_sent_but_never_shown(self, tmp_path: Path) -> None:
        (tmp_path / "password").write_text("pässword")
        stub = PrometheusStub(empty)
        async with opened(stub, username="me", password_file=str(tmp_path / "password")) as source:
            await source.range("up", STEPS)

        assert stub.headers[0]["Authorization"] == "Basic bWU6cMOkc3N3b3Jk"

    async def test_one_that_is_not_there_cannot_be_reached(self) -> None:
        async with open_prometheus(Access(url="http://127.0.0.1:1")) as source:
            with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:1 cannot be reached: "):
                await source.range("up", STEPS)


class TestMissing:
    async def test_all_missing_series_are_named_with_what_to_do(self) -> None:
        async with opened(PrometheusStub(empty)) as source:
            with pytest.raises(ConfigError) as caught:
                await record_range(source, SeriesSelection("shop", "web"), STEPS, io.StringIO(), warn=print)

        assert str(caught.value) == (
            "HPA shop/web: no series kube_horizontalpodautoscaler_spec_max_replicas or kube_hpa_spec_max_replicas:"
            " scrape kube-state-metrics with its collector horizontalpodautoscalers (from 2026-01-31T12:00:00Z to"
            " 2026-01-31T12:10:00Z)"
        )

    @pytest.mark.parametrize(
        ("name", "required"),
        [
            pytest.param("container_cpu_usage_seconds_total", True, id="use"),
            pytest.param("kube_pod_info", True, id="pods"),
            pytest.param("kube_deployment_spec_replicas", True, id="replicas"),
            pytest.param("kube_pod_created", False, id="creation"),
            pytest.param("kube_pod_status_ready_time", None, id="since when they are ready, which is new"),
        ],
    )
    async def test_series_are_required_expected_or_optional(self, name: str, required: bool | None) -> None:
        async def ask(question: Question) -> Answer:
            # All of the regular expression: the name of one series may be the begin of another one.
            asked = f'"{name}"' in dict(question)["query"] or f"{name}{{" in dict(question)["query"]
            return (200, EMPTY) if asked else await recorded(question)

        warnings = list[str]()
        async with opened(PrometheusStub(ask)) as source:
            reading = record_range(source, SeriesSelection(NEW, "web"), STEPS, io.StringIO(), warn=warnings.append)
            if required:
                with pytest.raises(ConfigError, match=f"no series {name}: scrape "):
                    await reading
            else:
                await reading
        assert [f"no series {name}:" in each for each in warnings] == ([True] if required is False else [])


def test_a_long_range_is_read_in_parts() -> None:
    """Of 22 days at steps of 15 s, which are 126 721 instants."""

    class Counting:
        def __init__(self) -> None:
            self.asked: dict[str, list[Steps]] = {}

        async def range(self, expression: str, steps: Steps) -> Matrix:
            self.asked.setdefault(expression, []).append(steps)
            return Matrix()

    steps = Steps.between(START, START + timedelta(days=22), timedelta(seconds=15))
    source = Counting()
    with pytest.raises(ConfigError):
        asyncio.run(record_range(source, SeriesSelection("shop", "web"), steps, io.StringIO(), warn=print))

    for parts in source.asked.values():
        assert sum(part.count for part in parts) == steps.count == 126_721
        assert max(part.count for part in parts) <= 11_000


@pytest.fixture
def server() -> Iterator[PrometheusStub]:
    """Run the stub in a thread, beside the event loop of the command."""
    stub, loop = PrometheusStub(recorded), asyncio.new_event_loop()
    started, ended = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with stub.running():
            started.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    started.wait()
    yield stub
    loop.call_soon_threadsafe(ended.set)
    thread.join()
    loop.close()


class TestCommand:
    def invoke(self, folder: Path, *words: str) -> tuple[int, str]:
        answer = CliRunner().invoke(app, ["record", "web", "-n", NEW, "-o", str(folder / "web.jsonl"), *words])
        return answer.exit_code, answer.output.replace("\n", " ")

    def test_it_writes_a_recording(self, server: PrometheusStub, tmp_path: Path) -> None:
        times = ("--start", "2026-01-31T12:00:00Z", "--end", "2026-01-31T12:10:00Z")

        assert self.invoke(tmp_path, "--prometheus", server.url, *times) == (0, "")
        assert len(list(read_states(tmp_path / "web.jsonl"))) == STEPS.count

    def test_no_half_recording_is_left(self, server: PrometheusStub, tmp_path: Path) -> None:
        async def ask(question: Question) -> Answer:
            return (502, "") if "container_memory" in dict(question)["query"] else await recorded(question)

        (tmp_path / "hpa.yaml").write_text(json.dumps(hpa(NEW)).replace('"cpu"', '"memory"'))
        server.ask = ask
        times = ("--start", "2026-01-31T12:00:00Z", "--end", "2026-01-31T12:10:00Z")
        code, text = self.invoke(tmp_path, "--prometheus", server.url, *times, "--manifest", str(tmp_path / "hpa.yaml"))

        assert (code, "HTTP 502" in text) == (2, True)
        assert [each.name for each in tmp_path.iterdir()] == ["hpa.yaml"]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            pytest.param((), "--prometheus needs --start, such as 2026-01-31T12:00:00Z", id="no start"),
            pytest.param(("--start", "yesterday"), "--start must be a time such as", id="no time"),
            pytest.param(("--start", "1h", "--end", "2h"), "--end must be after --start", id="order"),
            pytest.param(("--start", "1h", "--step", "10ms"), "--step must be at least 1s, got 0.01s", id="step"),
            pytest.param(("--start", "1h", "--window", "0s"), "--window must be more than 0s", id="window"),
            pytest.param(("--start", "1h", "--pods", "web-("), "--pods must be a regular expression", id="pods"),
            pytest.param(("--start", "1h", "--header", "s3cret"), "--header must be NAME:VALUE", id="header"),
            pytest.param(("--start", "1h", "--username", "me"), "--username and --password-file belong", id="user"),
            pytest.param(("--start", "1h", "--bearer-token-file", "none"), "none cannot be read: No such", id="token"),
            pytest.param(("--start", "1h", "--ca-file", "none"), "none cannot be used: No such file", id="authority"),
            pytest.param(("--start", "1h", "--manifest", "{folder}/other.yaml"), "has the HPA 'other'", id="manifest"),
            pytest.param(("--start", "1h", "-o", "{folder}/other.yaml"), "exists already: name a new file", id="file"),
            pytest.param(("--start", "1h", "--for", "1h"), "--for: not with --prometheus, which", id="cluster"),
            pytest.param(("--start", "1h", "-o", "{folder}/none/web"), "none does not exist", id="folder"),
        ],
    )
    def test_wrong_options_are_errors(self, words: tuple[str, ...], message: str, tmp_path: Path) -> None:
        other = hpa(NEW)
        (tmp_path / "other.yaml").write_text(json.dumps({**other, "metadata": {"name": "other"}}))
        named = [word.format(folder=tmp_path) for word in words]

        code, text = self.invoke(tmp_path, "--prometheus", "http://127.0.0.1:1", *named)

        assert (code, message in text) == (2, True), text
        assert "s3cret" not in text
        assert [each.name for each in tmp_path.iterdir()] == ["other.yaml"]

    @pytest.mark.parametrize(
        ("url", "message"),
        [
            pytest.param("prom:9090", "must be an address that begins with http:// or https://", id="no scheme"),
            pytest.param("https://me:s3cret@prom", "use --username and --password-file", id="password"),
        ],
    )
    def test_wrong_addresses_are_errors_without_credentials(self, url: str, message: str, tmp_path: Path) -> None:
        code, text = self.invoke(tmp_path, "--prometheus", url, "--start", "1h")

        assert (code, message in text, "s3cret" in text) == (2, True, False)
