"""Events are validated by the rules of the API version that they are written in."""

from typing import Any

import pytest

from ocf.errors import InvalidError
from ocf.objects import Manifest
from ocf_server import EmbeddedCluster

SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "namespace": "shop"}


def old(**fields: Any) -> Manifest:
    metadata = {"name": "changed", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": SETTINGS, **fields}


def new(**fields: Any) -> Manifest:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "changed", "namespace": "shop"},
        "regarding": SETTINGS,
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Normal",
        "reason": "Changed",
        "action": "Changing",
        "reportingController": "example.com/tester",
        "reportingInstance": "tester-0",
        **fields,
    }


async def create(event: Manifest) -> list[str]:
    cluster = EmbeddedCluster(namespaces=["shop"])
    try:
        await cluster.create(event, field_manager="test")
    except InvalidError as error:
        return [f"{cause.field}: {cause.message}" for cause in error.causes]
    return []


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(old(), [], id="valid in the older API"),
        pytest.param(new(), [], id="valid in the newer API"),
        pytest.param(
            old(involvedObject={"namespace": "other"}),
            ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
            id="object of another namespace",
        ),
        pytest.param(
            old(involvedObject={}),
            ['involvedObject.namespace: Invalid value: "": does not match event.namespace'],
            id="object of no namespace",
        ),
        pytest.param(
            old(eventTime="2026-01-01T00:00:00.000000Z"),
            [
                "reportingComponent: Required value",
                'reportingComponent: Invalid value: "": name part must be non-empty',
                "reportingInstance: Required value",
                "action: Required value",
                "reason: Required value",
            ],
            id="a new event in the older API",
        ),
        pytest.param(new(eventTime=None), ["eventTime: Required value"], id="no time"),
        pytest.param(new(type="Other"), ['type: Invalid value: "": has invalid value: Other'], id="another type"),
        pytest.param(new(note="x" * 1025), ['message: Invalid value: "": can have at most 1024 characters'], id="long"),
        pytest.param(new(deprecatedCount=1), ['count: Invalid value: "": needs to be unset'], id="deprecated field"),
        pytest.param(
            new(series={"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}),
            ['series.count: Invalid value: "": should be at least 2'],
            id="short series",
        ),
    ],
)
async def test_new_events(event: Manifest, expected: list[str]) -> None:
    found = await create(event)
    assert [text for text in found if "must consist of" not in text] == expected


async def test_an_event_of_the_newer_api_is_immutable_but_for_its_series() -> None:
    cluster = EmbeddedCluster(namespaces=["shop"])
    live = await cluster.create(new(), field_manager="test")
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
    live = await cluster.update({**live, "series": series}, field_manager="test")
    with pytest.raises(InvalidError, match='reason: Invalid value: "Other": field is immutable'):
        await cluster.update({**live, "reason": "Other"}, field_manager="test")
