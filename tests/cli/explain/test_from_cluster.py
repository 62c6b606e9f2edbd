"""`ocf explain` of an autoscaler in a cluster: what it reads, and the range for what it cannot read."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from ocf.autoscaling.algorithm import History, Settings, decide
from ocf.autoscaling.explain import explain_unknown
from ocf.cli.app import app
from ocf.cli.explain import from_cluster as explain_cluster
from ocf.cli.explain.watch import ObservedAutoscaler, collect_history
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.cluster.interceptor import InterceptingCluster
from ocf.cluster.request_log import Request
from ocf.controllers.hpa.crd import definition
from ocf.controllers.hpa.modes import OWN
from ocf.controllers.hpa.snapshot import SnapshotReader, SubresourceScaleGetter, observer
from ocf.errors import ForbiddenError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.timestamps import format_time
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf.testing.virtual_time import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
WEB: Final = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop")
TARGET: Final = ObjectKey("apps/v1", "Deployment", "web", "shop")


def deployment(name: str, labels: dict[str, str], replicas: int = 3) -> Manifest:
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def hpa(name: str = "web", **spec: Any) -> Manifest:
    queue = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    whole = {
        "scaleTargetRef": reference,
        "maxReplicas": 9,
        "metrics": [{"type": "External", "external": queue}],
        **spec,
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": whole,
    }


def status_of(able: str, *, current: int = 3, scaled: datetime | None = None) -> Manifest:
    """Return a status as a controller writes it."""
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": "some text",
            "lastTransitionTime": format_time(NOON),
        }
        for kind, status, reason in (
            ("AbleToScale", "True", able),
            ("ScalingActive", "True", "ValidMetricFound"),
            ("ScalingLimited", "False", "DesiredWithinRange"),
        )
    ]
    times = {} if scaled is None else {"lastScaleTime": format_time(scaled)}
    return {"currentReplicas": current, "desiredReplicas": current, "conditions": conditions, **times}


class Shop:
    """A cluster with an autoscaler and a metric."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.cluster = EmbeddedCluster(namespaces=["shop"], now=clock.now)
        self.metrics = FakeMetricsClient(clock)

    async def create(self, *manifests: Manifest) -> None:
        for each in manifests:
            await self.cluster.create(each, field_manager="shop")

    async def status(self, status: Manifest) -> None:
        live = await self.cluster.get(WEB)
        await self.cluster.update(
            {**live, "status": status}, field_manager="controller", subresource=Subresource.STATUS
        )

    async def scale(self, replicas: int, *, at: datetime) -> None:
        """Scale the target and write the status, as a controller does."""
        change = {"spec": {"replicas": replicas}}
        await self.cluster.patch(TARGET, change, PatchOptions(patch_type=PatchType.MERGE, field_manager="controller"))
        await self.status({**status_of("SucceededRescale", current=replicas), "lastScaleTime": format_time(at)})

    def autoscaler(self, key: ObjectKey = WEB, settings: Settings | None = None) -> ObservedAutoscaler:
        scales = SubresourceScaleGetter(self.cluster)
        reader = SnapshotReader(
            self.cluster, self.metrics, scales=scales, settings=settings or Settings(), max_age=timedelta()
        )
        return ObservedAutoscaler(self.cluster, reader, scales, key, self.clock)

    def forbid(self, monkeypatch: pytest.MonkeyPatch, forbidden: Callable[[Request], bool]) -> None:
        """Forbid requests for what surrounds the autoscaler."""

        class Limited(InterceptingCluster):
            async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                if forbidden(request):
                    raise ForbiddenError("no right", code=403, reason="Forbidden")
                return await send()

        whole = self.autoscaler

        def limited(key: ObjectKey = WEB, settings: Settings | None = None) -> ObservedAutoscaler:
            found = whole(key, settings)
            return replace(found, cluster=Limited(found.cluster))

        monkeypatch.setattr(self, "autoscaler", limited)


class FixedClock:
    """A clock with a fixed time."""

    def now(self) -> datetime:
        return NOON

    def elapsed(self) -> timedelta:
        return timedelta()


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    found = Shop(FixedClock())
    found.metrics.set_external("shop", "queue", "15")

    @asynccontextmanager
    async def open_autoscaler(
        _file: object, _context: object, key: ObjectKey, settings: Settings
    ) -> AsyncIterator[ObservedAutoscaler]:
        yield found.autoscaler(key, settings)

    monkeypatch.setattr(explain_cluster, "open_autoscaler", open_autoscaler)
    asyncio.run(found.create(deployment("web", {"app": "web"}), hpa()))
    return found


def explain(*words: str) -> Result:
    return CliRunner().invoke(app, ["explain", *words])


def shown(*words: str) -> str:
    answer = explain(*words)
    assert (answer.exit_code, answer.exception) == (0, None), answer.output
    return answer.stdout


def as_json(*words: str) -> Any:
    return json.loads(shown(*words, "--output", "json"))


def test_an_autoscaler_that_was_never_synced(shop: Shop) -> None:
    """A controller that starts keeps the current replicas for a window."""
    del shop
    text = shown("web", "-n", "shop")
    assert "Nothing yet: no controller has synced this autoscaler." in text
    assert "2 wanted, but a controller starts with the current size, 3: 3 stays." in text


@pytest.mark.parametrize(
    ("able", "least", "most"),
    [
        pytest.param("ReadyForNewScale", 3, 3, id="held-by-the-last-sync"),
        pytest.param("ScaleDownStabilized", 2, 3, id="the-hold-may-have-ended"),
    ],
)
def test_the_range_is_what_the_status_permits(shop: Shop, able: str, least: int, most: int) -> None:
    asyncio.run(shop.status(status_of(able)))
    found = as_json("web", "-n", "shop")
    assert (found["replicas"]["least"], found["replicas"]["most"]) == (least, most)
    assert found["exact"] is (least == most)
    assert found["replicas"]["desired"] == (least if least == most else None)
    assert found["unknown"] == ["the recommendations of the last 5m"]
    assert found["observed"]["status"]["conditions"][0]["reason"] == able


def test_the_last_status_and_events_of_the_controller_are_shown(shop: Shop) -> None:
    event: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "shop"},
        "involvedObject": {"kind": "HorizontalPodAutoscaler", "name": "web", "namespace": "shop"},
        "type": "Normal",
        "reason": "SuccessfulRescale",
        "message": "New size: 3; reason: All metrics below target",
        "lastTimestamp": "2026-01-31T11:30:00Z",
    }
    other = {
        **event,
        "metadata": {"name": "b.1", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "shop"},
    }
    # An autoscaler that is created again is another one: https://github.com/apache/flink-kubernetes-operator/pull/261.
    former = {
        **event,
        "metadata": {"name": "web.0", "namespace": "shop"},
        "involvedObject": {**event["involvedObject"], "uid": "former"},
    }
    asyncio.run(shop.create(event, other, former))
    asyncio.run(shop.status(status_of("ReadyForNewScale", scaled=NOON - timedelta(minutes=30))))
    text = shown("web", "-n", "shop")
    assert "Last scaled: 2026-01-31 11:30:00 UTC." in text
    assert text.count("Event Normal SuccessfulRescale at 2026-01-31T11:30:00Z") == 1


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("New size: 3; reason: external metric queue(nil) above target", True, id="added"),
        pytest.param("New size: 3; reason: All metrics below target", False, id="removed"),
    ],
)
def test_the_history_is_limited_by_the_creation_and_by_the_last_event(
    shop: Shop, message: str, *, expected: bool
) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "shop"},
        "involvedObject": {"kind": "HorizontalPodAutoscaler", "name": "web", "namespace": "shop"},
        "reason": "SuccessfulRescale",
        "message": message,
        "lastTimestamp": format_time(NOON),
    }
    asyncio.run(shop.create(event))
    asyncio.run(shop.status(status_of("ReadyForNewScale", scaled=NOON)))
    found = asyncio.run(explain_cluster.observe("web", "shop", None, None, None, Settings()))
    assert (found.known.created, found.known.scaled_up) == (NOON, expected)


def test_another_autoscaler_that_selects_the_same_pods_is_reported(shop: Shop) -> None:
    twin = deployment("twin", {"app": "web"})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
    }
    containers = {"spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    asyncio.run(shop.create(twin, hpa("twin"), hpa("lost"), {**pod, **containers}))
    text = shown("web", "-n", "shop")
    assert "pods by selector app=web are controlled by multiple HPAs: [shop/twin" in text
    assert "Pods are counted by selector, not by owner" in text


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        pytest.param(
            lambda shop: shop.cluster.delete(TARGET),
            ('deployments.apps "web" not found', "check that the target exists"),
            id="no-target",
        ),
        pytest.param(
            lambda shop: shop.cluster.patch(
                WEB, {"spec": {"maxReplicas": 2}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="shop")
            ),
            ("2 replicas next: the target has 3 replicas, more than maxReplicas (2)",),
            id="above-the-maximum",
        ),
    ],
)
def test_what_stops_a_sync_is_shown(
    shop: Shop, prepare: Callable[[Shop], Awaitable[Any]], expected: tuple[str, ...]
) -> None:
    async def work() -> None:
        await prepare(shop)

    asyncio.run(work())
    text = " ".join(shown("web", "-n", "shop").split())
    for each in expected:
        assert each in text


def test_a_forbidden_read_is_an_error_of_the_command(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    message = 'deployments.apps "web" is forbidden: User "jane" cannot get resource "deployments/scale"'

    async def scale(_: object, target: ObjectKey) -> Manifest:
        del target
        raise ForbiddenError(message, code=403, reason="Forbidden")

    del shop
    monkeypatch.setattr(SubresourceScaleGetter, "scale", scale)
    role = "which `ocf explain --role --namespace shop` prints"
    problem = f"error: explain needs the read permissions of the controller, {role}: {message}\n"
    answer = explain("web", "-n", "shop", "--output", "json")
    assert (answer.exit_code, answer.stdout, answer.stderr) == (2, "", problem)
    answer = explain("web", "-n", "shop")
    assert (answer.exit_code, answer.stderr) == (2, problem)
    assert message in " ".join(answer.stdout.split())


CONDITIONS: Final = {
    "AbleToScale": ("True", "ReadyForNewScale", "recommended size matches current size"),
    "ScalingActive": ("True", "ValidMetricFound", "the HPA was able to successfully calculate a replica count"),
    "ScalingLimited": ("False", "DesiredWithinRange", "the desired count is within the acceptable range"),
}


@pytest.mark.parametrize(
    ("changed", "desired", "expected"),
    [
        pytest.param({}, 3, "At the last sync nothing held back what the metrics wanted", id="in-balance"),
        pytest.param({}, 5, "At the last sync it scaled from 3 to 5", id="scaled"),
        pytest.param(
            {"ScalingLimited": ("True", "TooManyReplicas", "")},
            9,
            "At the last sync maxReplicas is 9, and more were wanted",
            id="the-maximum",
        ),
        pytest.param(
            {"AbleToScale": ("True", "ScaleDownStabilized", "")},
            3,
            "At the last sync a higher recommendation in the scale-down window held the replicas",
            id="held",
        ),
        pytest.param(
            {"ScalingActive": ("False", "FailedGetExternalMetric", "no metrics")},
            3,
            "The last sync could not decide: no metrics [FailedGetExternalMetric]",
            id="failed",
        ),
        pytest.param(None, 3, "No controller has synced this autoscaler yet", id="never-synced"),
    ],
)
def test_without_the_inputs_the_page_begins_with_the_cause_that_was_last_reported(
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[str, tuple[str, str, str]] | None,
    desired: int,
    expected: str,
) -> None:
    async def values(*_: object) -> None:
        raise ForbiddenError('pods is forbidden: User "jane" cannot list resource "pods"', code=403, reason="Forbidden")

    monkeypatch.setattr(observer, "list_pods", values)
    if changed is not None:
        names = ("status", "reason", "message")
        found = [
            {"type": kind, **dict(zip(names, each, strict=True)), "lastTransitionTime": format_time(NOON)}
            for kind, each in (CONDITIONS | changed).items()
        ]
        current = {"metric": {"name": "queue"}, "current": {"averageValue": "15"}}
        metrics = [{"type": "External", "external": current}]
        status = {"currentReplicas": 3, "desiredReplicas": desired, "conditions": found, "currentMetrics": metrics}
        asyncio.run(shop.status(status))
    answer = explain("web", "-n", "shop")
    text = " ".join(answer.stdout.split())
    assert answer.exit_code == 2
    assert text.index(expected) < text.index('cannot list resource "pods"') < text.index("Who else writes?")
    if changed is not None and "ScalingActive" not in changed:
        assert "queue was at 15 per pod, target 10 per pod" in text


def test_other_autoscalers_that_cannot_be_listed_are_not_known(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.forbid(monkeypatch, lambda request: request.kind == WEB.kind and request.verb == "list")
    text = " ".join(shown("web", "-n", "shop").split())
    assert "Not known, as not everything could be read: which other autoscalers scale it." in text
    assert "no other autoscaler scales it" not in text
    missing = explain("api", "-n", "shop")
    assert "autoscalers in namespace shop: not known (no right)" in missing.stderr


def test_an_autoscaler_that_does_not_exist(shop: Shop) -> None:
    del shop
    answer = explain("api", "-n", "shop")
    assert answer.exit_code == 2
    assert 'horizontalpodautoscalers.autoscaling "api" not found; autoscalers in namespace shop: web' in answer.stderr


class TestSurroundings:
    """What is read beside the inputs of a sync, and what happens without the right to read it."""

    def test_other_writers_scalers_and_rollouts_are_read(self, shop: Shop) -> None:
        def replica_set(name: str, replicas: int) -> Manifest:
            whole = deployment(name, {"app": "web"}, replicas)
            owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": True}
            return {**whole, "kind": "ReplicaSet", "metadata": {**whole["metadata"], "ownerReferences": [owner]}}

        twin = hpa()
        twin["metadata"]["name"] = "twin"

        async def work() -> None:
            await shop.create(replica_set("web-new", 1), replica_set("web-old", 3), twin)
            change = {"spec": {"replicas": 4}}
            options = PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl", subresource=Subresource.SCALE)
            await shop.cluster.patch(TARGET, change, options)

        asyncio.run(work())
        found = as_json("web", "-n", "shop")
        assert [(each["manager"], each["scale"]) for each in found["observed"]["writers"]] == [("kubectl", True)]
        assert found["observed"]["scalers"] == ["HorizontalPodAutoscaler twin"]
        assert {each["name"] for each in found["observed"]["replicaSets"]} == {"web-new", "web-old"}
        text = " ".join(shown("web", "-n", "shop").split())
        assert "Who else writes? Field managers that own spec.replicas of the target: kubectl through the scale" in text
        assert text.index("Questions") < text.index("What the controller last reported")

    @pytest.mark.parametrize("kind", ["Event", "ReplicaSet", "ScaledObject", "VerticalPodAutoscaler", "Deployment"])
    def test_a_missing_right_shortens_the_page(self, shop: Shop, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
        shop.forbid(monkeypatch, lambda request: request.kind == kind)
        found = as_json("web", "-n", "shop")
        assert len(found["observed"]["unread"]) == 1
        assert kind in found["observed"]["unread"][0]
        assert "Not read, so that answers may be incomplete" in " ".join(shown("web", "-n", "shop").split())


class TestOwnKind:
    def own(self, **status: Any) -> Manifest:
        whole = hpa(settings={"tolerance": "0.05", "downscaleStabilizationSeconds": 90})
        return {**whole, "apiVersion": OWN[0], "kind": OWN[1], **status}

    def test_its_own_settings_are_applied(self, shop: Shop) -> None:
        asyncio.run(shop.create(definition(), self.own()))
        found = as_json("web", "-n", "shop", "--own-kind", "--sync-period", "5s")
        assumed = found["settings"]
        assert (assumed["tolerance"], assumed["downscaleStabilization"], assumed["syncPeriod"]) == (0.05, 90, 5)
        assert found["exact"]

    def test_one_that_is_not_synced_is_reported(self, shop: Shop) -> None:
        claimed = {"type": "AbleToScale", "status": "False", "reason": "TargetClaimed", "message": "of web"}
        key = ObjectKey(*OWN, "web", "shop")

        async def work() -> None:
            await shop.create(definition(), self.own())
            live = {**await shop.cluster.get(key), "status": {"desiredReplicas": 3, "conditions": [claimed]}}
            await shop.cluster.update(live, field_manager="controller", subresource=Subresource.STATUS)

        asyncio.run(work())
        assert "Its controller does not sync it for that reason" in shown("web", "-n", "shop", "--own-kind")


class TestWatch:
    """Watch a controller in virtual time."""

    def run(self, syncs: int, values: list[int], *, watch: timedelta, behavior: Manifest | None = None) -> Any:
        """Run a controller, watch it, and return the explanation and the controller's actual decision."""
        settings = Settings(downscale_stabilization=timedelta(seconds=60))

        async def work() -> Any:
            clock = LoopClock(NOON)
            shop = Shop(clock)
            spec: dict[str, Any] = {} if behavior is None else {"behavior": behavior}
            await shop.create(deployment("web", {"app": "web"}), hpa(**spec))
            running = _Running(shop, settings, values)
            task = asyncio.create_task(running.run(syncs))
            await asyncio.sleep(15 * 6 + 5)
            known, snapshot = await collect_history(shop.autoscaler(settings=settings), watch, settings)
            found = explain_unknown(snapshot, known, settings=settings, now=clock.now())
            real = decide(snapshot, running.history, settings=settings, now=clock.now())
            task.cancel()
            return found, real

        return run_in_virtual_time(work())

    def test_after_a_window_the_history_is_known(self) -> None:
        found, real = self.run(40, [35, 35, 62, 20], watch=timedelta(seconds=90))
        assert found.range.unknown == ()
        assert found.exact
        assert found.decision.desired == real.desired
        assert found.hold is not None
        assert not found.is_assumed(found.hold.recommendation.at)

    @pytest.mark.parametrize("seconds", [0, 20, 50])
    @pytest.mark.parametrize("values", [[35, 62, 20], [80, 10, 10, 10, 10, 10, 10], [30]])
    def test_before_that_the_result_is_within_the_range(self, seconds: int, values: list[int]) -> None:
        found, real = self.run(40, values, watch=timedelta(seconds=seconds))
        most = found.range.high.desired
        assert found.range.low.desired <= real.desired <= most

    @pytest.mark.parametrize(("outage", "survives"), [(10, True), (60, False)])
    def test_a_short_outage_does_not_end_the_watch(self, outage: int, *, survives: bool) -> None:
        async def work() -> Any:
            clock = LoopClock(NOON)
            shop = Shop(clock)
            shop.metrics.set_external("shop", "queue", "30")
            await shop.create(deployment("web", {"app": "web"}), hpa())
            autoscaler = shop.autoscaler()
            down = NOON + timedelta(seconds=40)

            class FailingCluster(InterceptingCluster):
                async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
                    if down <= clock.now() < down + timedelta(seconds=outage):
                        raise ServerError("no answer")
                    return await super().get(key, subresource=subresource)

            failing = replace(autoscaler, cluster=FailingCluster(autoscaler.cluster))
            known, _ = await collect_history(failing, timedelta(seconds=75), Settings())
            return known.history.recommendations

        if survives:
            assert len(run_in_virtual_time(work())) >= 5
        else:
            with pytest.raises(ServerError):
                run_in_virtual_time(work())

    def test_changes_are_recorded_with_their_size(self) -> None:
        policy = {"type": "Pods", "value": 2, "periodSeconds": 60}
        behavior = {
            "scaleUp": {"policies": [policy]},
            "scaleDown": {"stabilizationWindowSeconds": 0, "policies": [policy]},
        }
        found, real = self.run(60, [30, 30, 90, 90, 90], watch=timedelta(seconds=120), behavior=behavior)
        assert found.range.unknown == ()
        assert found.decision.desired == real.desired
        assert sum(each.change for each in (*found.history.scale_ups, *found.history.scale_downs)) > 0


class _Running:
    """A running controller."""

    def __init__(self, shop: Shop, settings: Settings, values: list[int]) -> None:
        self.shop, self.settings, self.values, self.history = shop, settings, values, History()

    async def run(self, syncs: int) -> None:
        autoscaler = self.shop.autoscaler(settings=self.settings)
        for number in range(syncs):
            self.shop.metrics.set_external("shop", "queue", str(self.values[number % len(self.values)]))
            decision = decide(await autoscaler.read(), self.history, settings=self.settings, now=self.shop.clock.now())
            self.history = decision.history
            if decision.rescale:
                await self.shop.scale(decision.desired, at=self.shop.clock.now())
            await self.shop.status(decision.status.to_manifest())
            await asyncio.sleep(15)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Serve a cluster without any metrics API over HTTP, and return how to open_autoscaler it."""
    path, ready, over = tmp_path / "kubeconfig", threading.Event(), threading.Event()

    async def work() -> None:
        shop = Shop(FixedClock())
        await shop.create(deployment("web", {"app": "web"}), hpa())
        async with serving(shop.cluster) as server:
            config = server.kubeconfig()
            config["contexts"][0]["context"]["namespace"] = "shop"
            write_kubeconfig(config, path)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    assert ready.wait(10)
    yield path
    over.set()
    thread.join(10)


def test_over_http_without_a_metrics_api(kubeconfig: Path) -> None:
    """The namespace is that of the context; a missing API is reported with the controller's message and with advice."""
    text = " ".join(shown("web", "--kubeconfig", str(kubeconfig)).split())
    assert "shop/web scales Deployment web" in text
    assert "FailedGetExternalMetric: unable to get external metric shop/queue/nil: unable to fetch metrics" in text
    assert "lists external.metrics.k8s.io." in text
    assert "Who else writes?" in text
    assert "Not read" not in text


def test_a_missing_kubeconfig_is_one_line(tmp_path: Path) -> None:
    answer = explain("web", "--kubeconfig", str(tmp_path / "none"))
    assert (answer.exit_code, answer.stderr.count("\n")) == (2, 1)
