"""Many autoscalers need few requests, and a failure of one does not affect the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import Metric, MetricTarget, Settings, Unavailable, decide
from ocf.cluster.cache import CachedCluster
from ocf.controllers.hpa.snapshot import DerivedScaleGetter, HpaSnapshot, SnapshotReader, SubresourceScaleGetter
from ocf.controllers.hpa.snapshot.single_flight import SharedMetrics, SingleFlight
from ocf.controllers.metrics_client import RESOURCE_METRICS
from ocf.controllers.metrics_client.query import read_metric
from ocf.errors import ServerError
from ocf.objects import Manifest
from ocf.testing import VirtualClock, run_in_virtual_time
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf_server import EmbeddedCluster
from tests.controllers.hpa.snapshot.conftest import CPU, NOW, Shop, external, hpa


class Asked(FakeMetricsClient):
    """Counts requests."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.count: Counter[str] = Counter()

    async def pod_metrics(self, namespace: str, selector: str = "") -> Any:
        self.count["usage"] += 1
        return await super().pod_metrics(namespace, selector)

    async def external_metric(self, *asked: Any, **selector: Any) -> Any:
        self.count["external"] += 1
        return await super().external_metric(*asked, **selector)


async def requests_of_a_sync(shop: Shop, names: list[str], namespaces: list[str]) -> Counter[str]:
    """Observe every autoscaler once, in parallel, and count the requests to the API server."""
    shop.metrics = asked = Asked(shop.clock)
    for namespace in namespaces:
        for name in names:
            await shop.workload(name, namespace=namespace)
    async with CachedCluster(shop.cluster) as cached:
        scales = DerivedScaleGetter(cached, SubresourceScaleGetter(cached))
        async with SnapshotReader(cached, asked, scales=scales, clock=shop.clock) as observer:
            hpas = [hpa(name, CPU, external("queue"), namespace=home) for home in namespaces for name in names]
            await observer.observe(hpas[0])  # the watches are open
            shop.cluster.requests.clear()
            asked.count.clear()
            shop.clock.advance(timedelta(seconds=15))
            await asyncio.gather(*map(observer.observe, hpas))
    return asked.count + Counter({"cluster": len(shop.cluster.requests)})


@pytest.mark.parametrize("count", [1, 2, 20])
@pytest.mark.parametrize("namespaces", [["shop"], ["shop", "blog"]])
async def test_requests_grow_with_namespaces_and_not_with_autoscalers(
    shop: Shop, count: int, namespaces: list[str]
) -> None:
    found = await requests_of_a_sync(shop, [f"web{number}" for number in range(count)], namespaces)
    assert found == {"usage": len(namespaces), "external": len(namespaces)}


async def test_a_read_is_repeated_when_it_is_too_old(shop: Shop) -> None:
    shop.metrics = asked = Asked(shop.clock)
    for number in range(5):
        await shop.workload(f"web{number}", replicas=1)
    observer = SnapshotReader(shop.cluster, asked, clock=shop.clock, max_age=timedelta(seconds=5))
    counts = []
    for number, seconds in enumerate((0, 4, 1, 4, 60)):
        shop.clock.advance(timedelta(seconds=seconds))
        await observer.observe(hpa(f"web{number}"))
        counts.append(asked.count["usage"])

    assert counts == [1, 1, 2, 2, 3]


async def test_an_autoscaler_with_a_short_period_gets_newer_reads(shop: Shop) -> None:
    shop.metrics = asked = Asked(shop.clock)
    for number in range(5):
        await shop.workload(f"web{number}", replicas=1)
    observer = SnapshotReader(shop.cluster, asked, clock=shop.clock, max_age=timedelta(seconds=5))
    counts = []
    for number, period in enumerate((15, 15, 3, 15)):
        shop.clock.advance(timedelta(seconds=2))
        settings = Settings(sync_period=timedelta(seconds=period))
        await observer.observe(hpa(f"web{number}"), settings=settings)
        counts.append(asked.count["usage"])

    assert counts == [1, 1, 2, 2]


@given(
    period=st.integers(500, 60_000),
    offsets=st.lists(st.floats(0, 1), min_size=1, max_size=4),
    data=st.data(),
)
async def test_no_sync_uses_a_reading_that_an_earlier_one_of_the_same_autoscaler_has_used(
    period: int, offsets: list[float], data: st.DataObject
) -> None:
    """A sync that saw the load from before its last decision again would decide the same once more, and overscale."""
    clock = VirtualClock(NOW)
    shop = Shop(EmbeddedCluster(namespaces=("shop",), now=clock.now), clock)
    shop.metrics = asked = Asked(clock)
    for number in range(len(offsets)):
        await shop.workload(f"web{number}", replicas=1)
    observer = SnapshotReader(shop.cluster, asked, clock=shop.clock)
    settings = Settings(sync_period=timedelta(milliseconds=period))
    # A sync may come a tenth of the period early, or any time early if a spec has changed.
    early = st.one_of(st.floats(0, 0.1), st.floats(0, 0.999))
    times = []
    for number, offset in enumerate(offsets):
        now = offset * period
        for _ in range(6):
            times.append((round(now), number))
            now += period * (1 - data.draw(early))
    read_at: dict[int, int] = {}
    used: dict[int, int] = {}
    last = 0
    for now_ms, number in sorted(times):
        shop.clock.advance(timedelta(milliseconds=now_ms - last))
        last = now_ms
        await observer.observe(hpa(f"web{number}"), settings=settings)
        reading = asked.count["usage"]
        began = read_at.setdefault(reading, now_ms)

        assert used.get(number) != reading
        assert (now_ms - began) * 3 <= period
        used[number] = reading


async def test_a_maximum_age_of_zero_shares_nothing(shop: Shop) -> None:
    shop.metrics = asked = Asked(shop.clock)
    await shop.workload("web")
    observer = SnapshotReader(shop.cluster, asked, clock=shop.clock, max_age=timedelta())
    for _ in range(3):
        await observer.observe(hpa("web"))

    assert asked.count["usage"] == 3


@given(
    pods=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.booleans()), max_size=6),
    selector=st.sampled_from(["app=a", "app in (a,b)", "tier!=x,app", "!tier"]),
)
async def test_a_shared_read_equals_a_request_with_the_selector(
    pods: list[tuple[str, str, bool]], selector: str
) -> None:
    clock = VirtualClock(NOW)
    measured = FakeMetricsClient(clock)
    for number, (app, tier, labelled) in enumerate(pods):
        labels = {"app": app, "tier": tier} if labelled else None
        measured.set_usage("shop", f"{app}-{number}", {"app": {"cpu": "1"}}, labels=labels)
    cpu = Metric("Resource", "cpu", MetricTarget(utilization=50))
    shared = SharedMetrics(measured, SingleFlight())

    assert await read_metric(shared, cpu, namespace="shop", selector=selector) == await read_metric(
        measured, cpu, namespace="shop", selector=selector
    )


IMPATIENT = {"scaleDown": {"stabilizationWindowSeconds": 0}}
TROUBLE = [
    pytest.param("NaN", 2, id="no number"),
    pytest.param("1e9999999", 2, id="huge"),
    pytest.param(None, 2, id="null"),
    pytest.param(["1"], 2, id="a list"),
    # These are numbers, but no pod can use so much or so little.
    pytest.param("-1", 2, id="negative"),
    pytest.param("8E", 2, id="a sum beyond 64 bits"),
]


@pytest.mark.parametrize(("cpu", "expected"), TROUBLE)
async def test_an_invalid_value_affects_only_the_autoscalers_of_its_pod(shop: Shop, cpu: Any, expected: int) -> None:
    await shop.workload("web")
    await shop.workload("db")
    shop.metrics.set_usage("shop", "db-1", {"app": {"cpu": cpu}}, labels={"app": "db"})
    observer = SnapshotReader(shop.cluster, shop.metrics, clock=shop.clock)
    hpas = (hpa("web"), hpa("db", behavior=IMPATIENT))
    web, db = await asyncio.gather(*map(observer.observe, hpas))

    assert (_desired(web), _desired(db)) == (4, expected)


def _desired(seen: HpaSnapshot) -> int:
    return decide(seen.snapshot, settings=Settings(downscale_stabilization=timedelta(milliseconds=1)), now=NOW).desired


@pytest.mark.parametrize("broken", ["missing", "down", "nonsense"])
@pytest.mark.parametrize("metric", [CPU, external("other")], ids=["usage", "external"])
async def test_nothing_is_scaled_down_if_a_metric_is_missing(shop: Shop, broken: str, metric: Manifest) -> None:
    """The queue alone would scale three replicas down to one."""
    await shop.workload("web", replicas=3)
    shop.metrics.set_external("shop", "queue", "1")
    shop.metrics.set_external("shop", "other", *([] if broken == "missing" else ["much"]))
    for number in range(3):
        if broken == "missing":
            shop.metrics.forget_pod("shop", f"web-{number}")
        else:
            shop.metrics.set_usage("shop", f"web-{number}", {"app": {"cpu": "much"}}, labels={"app": "web"})
    if broken == "down":
        shop.metrics.fail(RESOURCE_METRICS, ServerError("down"))
    observer = SnapshotReader(shop.cluster, shop.metrics, clock=shop.clock)
    seen = await observer.observe(hpa("web", metric, external("queue"), behavior=IMPATIENT))
    alone = await observer.observe(hpa("web", external("queue"), behavior=IMPATIENT))

    assert isinstance(seen.snapshot.metric_values[0], Unavailable)
    assert (_desired(seen), _desired(alone)) == (3, 1)


class _Slow(FakeMetricsClient):
    async def external_metric(self, *asked: Any, **selector: Any) -> Any:
        await asyncio.Event().wait()
        return await super().external_metric(*asked, **selector)


def test_an_api_that_never_responds_does_not_block_other_autoscalers(shop: Shop) -> None:
    async def observed() -> list[HpaSnapshot]:
        await shop.workload("web")
        shop.metrics = _Slow(shop.clock)
        await shop.workload("db")
        async with SnapshotReader(shop.cluster, shop.metrics, clock=shop.clock) as observer:
            hpas = (hpa("web", external("queue")), hpa("db"))
            return await asyncio.gather(*map(observer.observe, hpas))

    stuck, well = run_in_virtual_time(observed())

    assert stuck.snapshot.metric_values == (
        Unavailable("unable to fetch metrics from external metrics API: no answer within 60 s"),
    )
    assert _desired(well) == 4
