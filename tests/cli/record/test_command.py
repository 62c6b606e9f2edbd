"""`ocf record`: recordings of an autoscaler in a cluster."""

import asyncio
import errno
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TextIO

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.record import cluster
from ocf.cli.record.cluster import RecordedAutoscaler, record
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.cluster.interceptor import InterceptingCluster
from ocf.controllers.hpa.snapshot import SubresourceScaleGetter
from ocf.errors import ConfigError, ForbiddenError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.simulation import load_series
from ocf.simulation.recording.format import read_states
from ocf.simulation.scenario.recorded import recorded_scenario
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf.testing.virtual_time import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.simulation.recording.recordings import hpa, node, pod

KEY = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop")
TARGET = ObjectKey("apps/v1", "Deployment", "web", "shop")
LABELS = {"app": "web"}
PERIOD = timedelta(seconds=15)


class Shop:
    """A cluster with an autoscaler, and metrics."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.cluster = EmbeddedCluster(namespaces=["shop"], now=self.clock.now)
        self.metrics = FakeMetricsClient(self.clock)
        self.output = io.StringIO()
        self.warnings: list[str] = []

    async def create(self) -> None:
        """Create the autoscaler, its target and two pods."""
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template},
        }
        for each in (deployment, hpa(), pod(0, self.clock.now()), pod(1, self.clock.now())):
            await self.cluster.create(each, field_manager="test")
        self.measure("400m", "20")

    def measure(self, cpu: str, queue: str) -> None:
        """Set the metrics."""
        for number in range(2):
            self.metrics.set_usage("shop", f"web-{number}", {"app": {"cpu": cpu}}, labels=LABELS)
        self.metrics.set_external("shop", "queue", queue)

    async def scale(self, replicas: int) -> None:
        """Scale the target."""
        change = {"spec": {"replicas": replicas}}
        await self.cluster.patch(TARGET, change, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))

    def source(self, cluster: Any = None) -> RecordedAutoscaler:
        """Return the autoscaler to be recorded."""
        chosen = cluster or self.cluster
        return RecordedAutoscaler(chosen, self.metrics, SubresourceScaleGetter(chosen), KEY, self.clock)

    async def record(self, seconds: float, cluster: Any = None, *, output: TextIO | None = None) -> None:
        """Record."""
        await record(
            self.source(cluster),
            output or self.output,
            every=PERIOD,
            period=timedelta(seconds=seconds),
            warn=self.warnings.append,
        )

    def lines(self) -> list[Any]:
        """Return the lines of the recording."""
        return [json.loads(line) for line in self.output.getvalue().splitlines()]


def run(work: Callable[[Shop], Awaitable[None]]) -> Shop:
    """Run in virtual time, with the autoscaler."""

    async def whole() -> Shop:
        shop = Shop()
        await shop.create()
        await work(shop)
        return shop

    return run_in_virtual_time(whole())


def kinds(line: Any) -> list[str]:
    """Return the kinds of the objects of a line."""
    return sorted(each["kind"] for each in line["changed"])


def test_everything_that_a_sync_reads_is_recorded_once() -> None:
    shop = run(lambda shop: shop.record(60))
    header, first, *others = shop.lines()

    named = {"name": "web", "namespace": "shop", "format": 3}
    assert header == {"apiVersion": "ocf.dev/v1", "kind": "Recording", **named}
    expected = ["ExternalMetricValue", "HorizontalPodAutoscaler", "Pod", "Pod", "PodMetrics", "PodMetrics", "Scale"]
    assert kinds(first) == expected
    assert others == []
    assert "a secret" not in shop.output.getvalue()


def test_changes_are_recorded_when_they_are_seen() -> None:
    async def work(shop: Shop) -> None:
        async def change() -> None:
            await asyncio.sleep(20)
            await shop.scale(4)
            await asyncio.sleep(15)
            shop.measure("600m", "30")

        await asyncio.gather(change(), shop.record(60))

    shop = run(work)
    _, _, scaled, measured = shop.lines()

    assert kinds(scaled) == ["Scale"]
    assert scaled["changed"][0]["spec"]["replicas"] == 4
    assert kinds(measured) == ["ExternalMetricValue", "PodMetrics", "PodMetrics"]


def test_edits_of_the_autoscaler_are_recorded() -> None:
    async def work(shop: Shop) -> None:
        async def edit() -> None:
            await asyncio.sleep(20)
            change = {"spec": {"maxReplicas": 20}}
            await shop.cluster.patch(KEY, change, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))

        await asyncio.gather(edit(), shop.record(60))

    _, first, edited = run(work).lines()

    assert [each["spec"]["maxReplicas"] for each in first["changed"] if each["kind"] == KEY.kind] == [9]
    assert kinds(edited) == [KEY.kind]
    assert edited["changed"][0]["spec"]["maxReplicas"] == 20


async def bind(shop: Shop, *pods: str) -> None:
    """Bind pods to the node n-1, and create another node."""
    await shop.cluster.create(node(), field_manager="test")
    await shop.cluster.create({**node(), "metadata": {"name": "n-2"}}, field_manager="test")
    for name in pods:
        target = {"apiVersion": "v1", "kind": "Node", "name": "n-1"}
        binding = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"}}
        await shop.cluster.create({**binding, "target": target}, field_manager="test", subresource=Subresource.BINDING)


def test_nodes_of_the_pods_are_recorded() -> None:
    async def work(shop: Shop) -> None:
        await bind(shop, "web-0", "web-1")

        async def remove() -> None:
            await asyncio.sleep(20)
            await shop.cluster.delete(ObjectKey("v1", "Node", "n-1"))

        await asyncio.gather(remove(), shop.record(60))

    shop = run(work)
    _, first, removed = shop.lines()

    assert [each["metadata"]["name"] for each in first["changed"] if each["kind"] == "Node"] == ["n-1"]
    assert removed["removed"] == ["Node/n-1"]
    assert "a secret" not in shop.output.getvalue()


NO_NODES: Final = (
    'nodes "one" is forbidden: User "jane" cannot get resource "nodes" in API group "" at the cluster scope'
)


def test_nodes_that_may_not_be_read_are_left_out() -> None:
    class Forbidding(InterceptingCluster):
        async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
            if key.kind == "Node":
                raise ForbiddenError(NO_NODES, code=403, reason="Forbidden")
            return await super().get(key, subresource=subresource)

    async def work(shop: Shop) -> None:
        await bind(shop, "web-0")
        await shop.record(60, Forbidding(shop.cluster))

    shop = run(work)

    assert "Node" not in kinds(shop.lines()[1])
    [warning] = shop.warnings
    assert warning.startswith(f"nodes are not recorded: {NO_NODES}; allow it with the rule ")
    assert "as printed by kubectl create clusterrole get-nodes --verb=get --resource=nodes " in warning


class FullDisk(io.RawIOBase):
    """A file on a disk that has room for some bytes."""

    def __init__(self, path: Path, room: int) -> None:
        super().__init__()
        self._path, self._room = path, room

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        fits = bytes(content)[: self._room]
        if not fits:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._room -= len(fits)
        with self._path.open("ab") as file:
            file.write(fits)
        return len(fits)


def full_disk(path: Path, room: int) -> io.TextIOWrapper:
    path.touch()
    return io.TextIOWrapper(io.BufferedWriter(FullDisk(path, room)), encoding="utf-8")


def measured_twice(shop: Shop, output: TextIO | None = None) -> Awaitable[None]:
    async def work() -> None:
        async def measure() -> None:
            await asyncio.sleep(20)
            shop.measure("600m", "30")

        await asyncio.gather(measure(), shop.record(60, output=output))

    return work()


def test_what_was_written_before_the_disk_was_full_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "web.jsonl"
    whole = run(measured_twice).output.getvalue()

    async def work(shop: Shop) -> None:
        disk = full_disk(path, len(whole) - 40)
        with pytest.raises(ConfigError, match="written any further: No space left on device; what is written can be"):
            await measured_twice(shop, disk)
        # Closing writes what is buffered, and a file that is not closed is an error of its own from Python 3.14 on.
        with pytest.raises(OSError, match="No space left"):
            disk.close()

    run(work)
    (state,) = read_states(path)

    assert path.read_text() == whole[:-40]
    assert len(state.of("Pod")) == 2


def test_what_was_recorded_can_be_replayed(tmp_path: Path) -> None:
    async def work(shop: Shop) -> None:
        async def change() -> None:
            await asyncio.sleep(20)
            shop.measure("600m", "30")
            await asyncio.sleep(15)
            shop.measure("700m", "35")

        await asyncio.gather(change(), shop.record(60))

    path = tmp_path / "web.jsonl"
    path.write_text(run(work).output.getvalue())
    scenario = recorded_scenario(path)
    load = load_series(scenario, tmp_path)

    assert scenario.workload.replicas == 2
    assert list(load.rates)[:2] == pytest.approx([0.8, 1.2])


class Failing(InterceptingCluster):
    """A cluster whose reads of the HPA fail at some instants."""

    def __init__(self, shop: Shop, error: Exception, reads: set[int]) -> None:
        super().__init__(shop.cluster)
        self._error = error
        self._reads = reads
        self._count = 0

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Fail, or read."""
        if key.kind == KEY.kind:
            self._count += 1
            if self._count in self._reads:
                raise self._error
        return await super().get(key, subresource=subresource)


UNAVAILABLE = ServerError("the server is down", code=503, reason="ServiceUnavailable")
GONE = NotFoundError("not found", code=404, reason="NotFound")


def test_an_instant_without_an_answer_is_left_out() -> None:
    shop = run(lambda shop: shop.record(60, Failing(shop, UNAVAILABLE, {2, 3})))

    assert len(shop.lines()) == 2  # nothing has changed, and nothing is removed
    assert shop.warnings == ["the server is down"]


def test_the_recording_ends_when_the_autoscaler_is_deleted() -> None:
    shop = run(lambda shop: shop.record(600, Failing(shop, GONE, {3})))

    assert shop.warnings == ["web was deleted: the recording ends"]
    assert len(shop.lines()) == 2


def test_a_server_that_does_not_answer_at_the_start_is_an_error() -> None:
    with pytest.raises(ServerError):
        run(lambda shop: shop.record(60, Failing(shop, UNAVAILABLE, {1})))


def test_an_autoscaler_that_does_not_exist_is_an_error_with_those_of_its_namespace() -> None:
    with pytest.raises(ConfigError, match=r"^not found; autoscalers in namespace shop: web$"):
        run(lambda shop: shop.record(60, Failing(shop, GONE, {1})))


def test_metrics_that_cannot_be_read_are_not_recorded() -> None:
    async def work(shop: Shop) -> None:
        shop.metrics.fail("metrics.k8s.io", UNAVAILABLE)
        await shop.record(60)

    shop = run(work)

    assert "PodMetrics" not in kinds(shop.lines()[1])
    assert shop.warnings == ["Resource metric cpu: the server is down"]


class TestCommand:
    @pytest.fixture(autouse=True)
    def _cluster(self, monkeypatch: pytest.MonkeyPatch) -> None:
        @asynccontextmanager
        async def opened(*found: str | None) -> AsyncIterator[RecordedAutoscaler]:
            shop = Shop()
            await shop.create()
            key = KEY if found[2:] == ("web", "shop") else ObjectKey(KEY.api_version, KEY.kind, str(found[2]), "shop")
            source = shop.source()
            yield RecordedAutoscaler(source.cluster, source.metrics, source.scales, key, source.clock)

        monkeypatch.setattr(cluster, "open_recorded", opened)
        # The command starts its own loop; in virtual time no test waits.
        monkeypatch.setattr(asyncio, "run", run_in_virtual_time)

    def invoke(self, *words: str) -> tuple[int, str]:
        """Run the command."""
        answer = CliRunner().invoke(app, ["record", "web", "-n", "shop", *words])
        return answer.exit_code, answer.output

    def test_it_writes_a_recording(self, tmp_path: Path) -> None:
        path = tmp_path / "web.jsonl"

        assert self.invoke("-o", str(path), "--for", "1m") == (0, "")
        assert len(list(read_states(path))) == 1

    def test_it_prints_a_recording(self) -> None:
        code, text = self.invoke("-o", "-", "--for", "1m", "--every", "5s")

        assert code == 0
        assert text.startswith('{"apiVersion":"ocf.dev/v1","kind":"Recording"')

    def test_a_full_disk_is_an_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "web.jsonl"
        disk, opened = full_disk(path, 1500), Path.open

        def open_once(file: Path, mode: str = "r", **options: Any) -> Any:
            return disk if mode == "x" else opened(file, mode, **options)

        monkeypatch.setattr(Path, "open", open_once)
        code, text = self.invoke("-o", str(path), "--for", "1m")

        assert code == 2
        assert "the recording cannot be written any further: No space left on device" in text.replace("\n", " ")
        assert path.stat().st_size == 1500

    def test_after_an_interrupt_the_recording_can_be_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(work: Any) -> None:
            run_in_virtual_time(work)
            raise KeyboardInterrupt

        monkeypatch.setattr(asyncio, "run", interrupted)
        path = tmp_path / "web.jsonl"

        assert self.invoke("-o", str(path), "--for", "1m") == (0, "")
        assert len(list(read_states(path))) == 1

    @pytest.mark.parametrize(
        ("words", "problem"),
        [
            pytest.param(("--for", "1 hour"), "--for must be a duration like 1m30s, not '1 hour'", id="duration"),
            pytest.param(("--start", "2h", "--step", "1m"), "--start, --step: only with --prometheus", id="range"),
            pytest.param(("--every", "0s"), "--every must be more than 0s, got '0s'", id="period"),
            pytest.param(
                ("-o", "{folder}/none/web.jsonl"), "cannot be written: No such file or directory", id="folder"
            ),
            pytest.param(("-o", "{folder}/old.jsonl"), "exists already: name a new file", id="existing file"),
        ],
    )
    def test_wrong_options_are_errors(self, words: tuple[str, ...], problem: str, tmp_path: Path) -> None:
        (tmp_path / "old.jsonl").write_text("kept")
        named = [word.format(folder=tmp_path) for word in words]

        code, text = self.invoke("-o", str(tmp_path / "web.jsonl"), *named)

        assert code == 2
        assert problem in text.replace("\n", " ")
        assert [each.name for each in tmp_path.iterdir()] == ["old.jsonl"]
        assert (tmp_path / "old.jsonl").read_text() == "kept"

    def test_no_empty_file_is_left(self, tmp_path: Path) -> None:
        answer = CliRunner().invoke(app, ["record", "db", "-n", "shop", "-o", str(tmp_path / "db.jsonl")])

        assert answer.exit_code == 2
        assert list(tmp_path.iterdir()) == []
