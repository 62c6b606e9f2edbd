"""Fields of pods with a closed feature gate are dropped, in pods and in templates of every kind."""

from typing import Any

import pytest

from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource, builtin_resource
from ocf_server.registry.disabled_fields import drop_disabled_fields

HOOK = {"exec": {"command": ["true"]}}


def resource(group: str, version: str, kind: str) -> ApiResource:
    found = builtin_resource(group, version, kind)
    assert found is not None
    return found


def spec(lifecycle: dict[str, Any], source: dict[str, Any], **fields: Any) -> dict[str, Any]:
    volume = {"name": "all", "projected": {"sources": [source]}}
    return {"containers": [{"name": "web", "lifecycle": lifecycle}], "volumes": [volume], **fields}


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        pytest.param(("", "v1", "Pod"), ["spec"], id="Pod"),
        pytest.param(("", "v1", "PodTemplate"), ["template", "spec"], id="PodTemplate"),
        pytest.param(("apps", "v1", "Deployment"), ["spec", "template", "spec"], id="Deployment"),
        pytest.param(("batch", "v1", "CronJob"), ["spec", "jobTemplate", "spec", "template", "spec"], id="CronJob"),
    ],
)
def test_only_fields_with_a_closed_gate_are_dropped(kind: tuple[str, str, str], place: list[str]) -> None:
    sent: dict[str, Any] = spec(
        {"stopSignal": "SIGTERM", "preStop": HOOK}, {"podCertificate": {}, "secret": {"name": "s"}}, schedulingGroup={}
    )
    kept: dict[str, Any] = spec({"preStop": HOOK}, {"secret": {"name": "s"}})
    for name in reversed(place):
        sent, kept = {name: sent}, {name: kept}

    drop_disabled_fields(sent, {}, resource(*kind))

    assert sent == kept


def test_a_lifecycle_with_nothing_else_is_dropped() -> None:
    pod = {"spec": {"containers": [{"name": "web", "lifecycle": {"stopSignal": "SIGTERM"}}]}}
    drop_disabled_fields(pod, {}, resource("", "v1", "Pod"))

    assert pod == {"spec": {"containers": [{"name": "web"}]}}


def test_other_kinds_are_left_alone() -> None:
    service: Manifest = {"spec": {"schedulingGroup": {}}}
    drop_disabled_fields(service, {}, resource("", "v1", "Service"))

    assert service == {"spec": {"schedulingGroup": {}}}
