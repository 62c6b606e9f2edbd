"""`SnapshotReader`: snapshots, and the messages of failed reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf.autoscaling.algorithm import Scale, Settings, Snapshot, Unavailable, decide
from ocf.cluster import InterceptingCluster, Request
from ocf.controllers.hpa.snapshot import SnapshotReader
from ocf.errors import ServerError
from ocf.objects import Manifest, ObjectKey
from tests.controllers.hpa.snapshot.conftest import CPU, NOW, Shop, external, hpa

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def observed(shop: Shop, manifest: Manifest, observer: SnapshotReader | None = None) -> Snapshot:
    observer = observer or SnapshotReader(shop.cluster, shop.metrics, clock=shop.clock)
    return (await observer.observe(manifest)).snapshot


async def test_a_snapshot_has_everything_that_a_reconcile_needs(shop: Shop) -> None:
    await shop.workload("web")
    await shop.workload("db")
    shop.metrics.set_external("shop", "queue", "12", labels={"name": "mail"})
    shop.metrics.set_external("shop", "queue", "70", labels={"name": "post"})
    seen = await observed(shop, hpa("web", CPU, external("queue", matchLabels={"name": "mail"})))

    assert seen.scale == Scale(2, 0, "app=web")
    assert [pod.name for pod in seen.pods] == ["web-0", "web-1"]
    assert [sorted(reading) if isinstance(reading, dict) else reading for reading in seen.metric_values] == [
        ["web-0", "web-1"],
        (12_000,),
    ]
    assert decide(seen, now=NOW).trace.combination is not None


async def test_the_scale_has_the_version_for_a_write(shop: Shop) -> None:
    await shop.workload("web")
    seen = await SnapshotReader(shop.cluster, shop.metrics).observe(hpa("web"))
    live = await shop.cluster.get(ObjectKey("apps/v1", "Deployment", "web", "shop"))

    assert seen.target == ObjectKey.of(live)
    assert seen.scale is not None
    assert seen.scale["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        pytest.param({"name": "gone"}, 'deployments.apps "gone" not found', id="no such object"),
        pytest.param({"kind": "Gone"}, "the server could not find the requested resource", id="no such kind"),
        pytest.param(
            {"kind": "ConfigMap", "apiVersion": "v1"}, "the server could not find the requested resource", id="no scale"
        ),
    ],
)
async def test_a_target_that_cannot_be_read_is_an_unavailable_scale(
    shop: Shop, reference: dict[str, str], message: str
) -> None:
    await shop.workload("web")
    manifest = hpa("web")
    manifest["spec"]["scaleTargetRef"].update(reference)
    seen = await observed(shop, manifest)

    assert seen.scale == Unavailable(message)
    assert [event.reason for event in decide(seen, now=NOW).events] == ["FailedGetScale"]


async def test_no_request_is_sent_for_an_invalid_version(shop: Shop) -> None:
    manifest = hpa("web")
    manifest["spec"]["scaleTargetRef"]["apiVersion"] = "apps/v1/beta"
    seen = await observed(shop, manifest)

    assert not shop.cluster.requests.reads
    assert [event.message for event in decide(seen, now=NOW).events] == ["unexpected GroupVersion string: apps/v1/beta"]


@pytest.mark.parametrize(
    ("replicas", "spec"),
    [
        pytest.param(0, {}, id="paused"),
        pytest.param(3, {"maxReplicas": 2}, id="too many"),
        pytest.param(1, {"minReplicas": 2}, id="too few"),
    ],
)
async def test_metrics_that_the_algorithm_does_not_need_are_not_requested(
    shop: Shop, replicas: int, spec: dict[str, Any]
) -> None:
    await shop.workload("web", replicas=replicas)
    shop.cluster.requests.clear()
    observer = SnapshotReader(shop.cluster, shop.metrics)
    seen = await observed(shop, hpa("web", **spec), observer)

    assert seen.metric_values == ()
    assert [request.kind for request in shop.cluster.requests] == ["Deployment"]
    assert len(observer.selectors) == 0


async def test_another_autoscaler_of_the_same_pods_counts_once_it_was_observed(shop: Shop) -> None:
    await shop.workload("web")
    observer = SnapshotReader(shop.cluster, shop.metrics, clock=shop.clock)
    first = await observed(shop, hpa("web"), observer)
    both = hpa("both")
    both["spec"]["scaleTargetRef"]["name"] = "web"
    second = await observed(shop, both, observer)
    observer.selectors.forget("shop", "web")
    third = await observed(shop, both, observer)

    assert list(first.others) == list(third.others) == []
    assert list(second.others) == ["web"]
    assert decide(second, now=NOW).events[0].reason == "AmbiguousSelector"


class _Broken(InterceptingCluster):
    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.kind == "Pod":
            raise ServerError("no answer")
        return await send()


async def test_an_error_of_the_pods_makes_every_metric_unavailable(shop: Shop) -> None:
    await shop.workload("web")
    shop.metrics.set_external("shop", "queue", "1")
    observer = SnapshotReader(_Broken(shop.cluster), shop.metrics)
    seen = await observed(shop, hpa("web", CPU, external("queue", "1000")), observer)

    assert seen.metric_values == (Unavailable("unable to list pods: no answer"),) * 2
    assert decide(seen, settings=Settings(), now=NOW).desired == 2
