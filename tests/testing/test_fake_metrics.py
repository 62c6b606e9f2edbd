"""The fake metrics client returns the set values to the matching selectors."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ocf.controllers.metrics_client import RESOURCE_METRICS
from ocf.controllers.metrics_client.client import CUSTOM_METRICS, EXTERNAL_METRICS
from ocf.errors import ServerError
from ocf.testing import VirtualClock
from ocf.testing.fake_metrics import FakeMetricsClient

SERVICE = {"apiVersion": "v1", "kind": "Service", "name": "front"}


def names(entries: object) -> list[str]:
    assert isinstance(entries, list)
    return [(each.get("metadata") or each["describedObject"])["name"] for each in entries]


async def test_usage_is_selected_by_the_labels_of_pods() -> None:
    measured = FakeMetricsClient()
    for pod, app in (("web-0", "web"), ("web-1", "web"), ("db-0", "db")):
        measured.set_usage("shop", pod, {"app": {"cpu": "1"}}, labels={"app": app})

    assert names(await measured.pod_metrics("shop", "app=web")) == ["web-0", "web-1"]
    assert names(await measured.pod_metrics("shop")) == ["web-0", "web-1", "db-0"]
    assert await measured.pod_metrics("blog") == []


async def test_a_value_that_is_set_again_replaces_the_earlier_one() -> None:
    clock = VirtualClock()
    measured = FakeMetricsClient(clock)
    measured.set_pods_metric("shop", "hits", {"web-0": "1", "web-1": "2"})
    clock.advance(timedelta(minutes=1))
    measured.set_pods_metric("shop", "hits", {"web-1": "3"}, window=timedelta(seconds=5))
    found = await measured.pods_metric("shop", "hits")

    assert [(each["value"], each.get("windowSeconds")) for each in found] == [("1", None), ("3", 5)]
    assert [each["timestamp"] for each in found] == ["2026-01-01T12:00:00Z", "2026-01-01T12:01:00Z"]


async def test_series_with_other_labels_are_kept() -> None:
    measured = FakeMetricsClient()
    measured.set_external("shop", "queue", "1", "2", labels={"name": "mail"})
    measured.set_external("shop", "queue", "9", labels={"name": "post"})
    measured.set_external("shop", "queue", "3", labels={"name": "mail"})

    assert [each["value"] for each in await measured.external_metric("shop", "queue")] == ["9", "3"]
    assert [each["value"] for each in await measured.external_metric("shop", "queue", selector="name=mail")] == ["3"]


async def test_an_object_is_identified_by_group_kind_and_name() -> None:
    measured = FakeMetricsClient()
    measured.set_object_metric("shop", SERVICE, "hits", "5", metric_labels={"verb": "get"})

    assert len(await measured.object_metric("shop", {"kind": "Service", "name": "front"}, "hits")) == 1
    assert await measured.object_metric("shop", SERVICE, "hits", metric_selector="verb=put") == []
    assert await measured.object_metric("shop", {**SERVICE, "apiVersion": "example.com/v1"}, "hits") == []
    assert await measured.object_metric("blog", SERVICE, "hits") == []


async def test_a_removed_pod_has_no_metrics() -> None:
    measured = FakeMetricsClient()
    measured.set_usage("shop", "web-0", {"app": {"cpu": "1"}})
    measured.set_pods_metric("shop", "hits", {"web-0": "1"})
    measured.forget_pod("shop", "web-0")

    assert await measured.pod_metrics("shop") == await measured.pods_metric("shop", "hits") == []


async def test_one_api_can_fail_while_the_others_work() -> None:
    measured = FakeMetricsClient()
    measured.fail(RESOURCE_METRICS, ServerError("down"))
    with pytest.raises(ServerError, match="down"):
        await measured.pod_metrics("shop")
    assert await measured.external_metric("shop", "queue") == []
    measured.fail(RESOURCE_METRICS, None)
    measured.fail(EXTERNAL_METRICS, ServerError("down"))
    measured.fail(CUSTOM_METRICS, ServerError("down"))

    assert await measured.pod_metrics("shop") == []
    for asked in (
        measured.external_metric("shop", "queue"),
        measured.pods_metric("shop", "hits"),
        measured.object_metric("shop", SERVICE, "hits"),
    ):
        with pytest.raises(ServerError, match="down"):
            await asked
