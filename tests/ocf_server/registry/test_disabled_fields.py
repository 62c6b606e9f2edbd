"""Fields with a closed gate are dropped, in pods and templates of pods of every kind, unless they are stored."""

from dataclasses import replace
from typing import Any

import pytest

from ocf.objects import Manifest, copy_json
from ocf.schema.builtin import ApiResource, builtin_resource
from ocf.schema.releases import Release
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


def dropped(new: Manifest, live: Manifest, kind: tuple[str, str, str], release: Release) -> Manifest:
    """Return what is left of an object."""
    found = replace(resource(*kind), release=release)
    drop_disabled_fields(new, live, found)
    return new


JOB_FIELDS = {"managedBy": "a.example.com/b", "podReplacementPolicy": "Failed"}
JOB_GATES = {"JobManagedBy": False, "JobPodReplacementPolicy": False}
CLAIM = {"volumeAttributesClassName": "gold", "dataSourceRef": {"kind": "Backup", "name": "a", "namespace": "b"}}


@pytest.mark.parametrize(
    ("kind", "sent", "kept"),
    [
        pytest.param(("batch", "v1", "Job"), JOB_FIELDS, {}, id="Job"),
        pytest.param(
            ("batch", "v1", "CronJob"),
            {"jobTemplate": {"spec": JOB_FIELDS}},
            {"jobTemplate": {"spec": JOB_FIELDS}},
            id="template of a Job",
        ),
        pytest.param(("", "v1", "PersistentVolumeClaim"), CLAIM, {}, id="PersistentVolumeClaim"),
        pytest.param(
            ("apps", "v1", "StatefulSet"),
            {"volumeClaimTemplates": [{"spec": CLAIM}]},
            {"volumeClaimTemplates": [{"spec": CLAIM}]},
            id="claims of a StatefulSet",
        ),
        pytest.param(
            ("", "v1", "Pod"),
            {"volumes": [{"ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}]},
            {"volumes": [{"ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}]},
            id="claims of a Pod",
        ),
    ],
)
def test_only_templates_of_pods_lose_fields(kind: tuple[str, str, str], sent: Manifest, kept: Manifest) -> None:
    release = Release.of("1.33", {**JOB_GATES, "VolumeAttributesClass": False})
    assert dropped({"spec": copy_json(sent)}, {}, kind, release) == {"spec": kept}


POD = ("", "v1", "Pod")
RESIZED = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]


@pytest.mark.parametrize(
    ("gate", "kind", "live", "new", "kept"),
    [
        pytest.param(
            "InPlacePodVerticalScaling",
            POD,
            {"status": {"containerStatuses": [{"resources": {}}]}},
            {"status": {"containerStatuses": [{"resources": {}, "name": "a"}]}},
            {"status": {"containerStatuses": [{"name": "a"}]}},
            id="of a pod's status, not by the status",
        ),
        pytest.param(
            "InPlacePodVerticalScaling",
            POD,
            {"spec": {"containers": [{"resizePolicy": RESIZED}]}},
            {"status": {"containerStatuses": [{"resources": {}}]}},
            {"status": {"containerStatuses": [{"resources": {}}]}},
            id="of a pod's status, by the spec",
        ),
        pytest.param(
            "VolumeAttributesClass",
            ("", "v1", "PersistentVolumeClaim"),
            {"spec": {"volumeAttributesClassName": "gold"}},
            {"status": {"currentVolumeAttributesClassName": "gold"}},
            {"status": {}},
            id="each field by itself",
        ),
        pytest.param(
            "JobManagedBy",
            ("batch", "v1", "Job"),
            {"spec": {}},
            {"spec": {"managedBy": "a"}},
            {"spec": {"managedBy": "a"}},
            id="always, as an update of it is invalid",
        ),
        pytest.param(
            "PodLevelResources",
            POD,
            {"spec": {"resources": {}}},
            {"spec": {"resources": {"limits": {"cpu": "1"}}}},
            {"spec": {}},
            id="not by an empty value",
        ),
        pytest.param(
            "ProcMountType",
            POD,
            {"spec": {"containers": [{"securityContext": {"procMount": "Default"}}]}},
            {"spec": {"containers": [{"securityContext": {"procMount": "Unmasked"}}]}},
            {"spec": {"containers": [{"securityContext": {"procMount": "Default"}}]}},
            id="not by the default, which takes its place",
        ),
        pytest.param(
            "ProcMountType",
            POD,
            {"spec": {"containers": [{"securityContext": {"procMount": "Unmasked"}}]}},
            {"spec": {"initContainers": [{"securityContext": {"procMount": "Unmasked"}}]}},
            {"spec": {"initContainers": [{"securityContext": {"procMount": "Unmasked"}}]}},
            id="by another value anywhere",
        ),
    ],
)
def test_what_is_stored_keeps_fields(
    gate: str, kind: tuple[str, str, str], live: Manifest, new: Manifest, kept: Manifest
) -> None:
    assert dropped(copy_json(new), live, kind, Release.of("1.33", {gate: False})) == kept


@pytest.mark.parametrize(
    ("lifecycle", "kept"),
    [
        ({"preStop": {"sleep": {"seconds": 1}}}, None),
        ({"preStop": {"sleep": {"seconds": 1}}, "postStart": HOOK}, {"postStart": HOOK}),
        ({"preStop": {"sleep": {"seconds": 1}}, "stopSignal": "SIGTERM"}, None),
        ({"preStop": {"sleep": {"seconds": 1}}, "postStart": {"sleep": {"seconds": 1}}}, None),
    ],
)
def test_a_hook_with_nothing_else_is_dropped(lifecycle: Manifest, kept: Manifest | None) -> None:
    container = {"name": "web", "lifecycle": copy_json(lifecycle)}
    gates = {"PodLifecycleSleepAction": False, "PodLifecycleSleepActionAllowZero": False}
    found = dropped({"spec": {"containers": [container]}}, {}, POD, Release.of("1.33", gates))
    assert found["spec"]["containers"][0].get("lifecycle") == kept


def autoscaler(text: str) -> Manifest:
    return {"metadata": {"annotations": {BEHAVIOR: text}}, "spec": {"maxReplicas": 3}}


BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
TOLERANT = '{"ScaleUp":{"Tolerance":"100m"},"ScaleDown":{"SelectPolicy":"Min"}}'
STRICT = '{"ScaleUp":{"SelectPolicy":"Max"}}'


@pytest.mark.parametrize(
    ("live", "is_kept"), [("", False), (STRICT, False), (TOLERANT, True)], ids=["new", "without", "with"]
)
def test_the_tolerance_in_the_annotation_of_an_old_autoscaler_goes_as_the_field(live: str, *, is_kept: bool) -> None:
    kind = ("autoscaling", "v1", "HorizontalPodAutoscaler")
    stored = autoscaler(live) if live else {}
    found = dropped(autoscaler(TOLERANT), stored, kind, Release("1.34"))
    text = found["metadata"]["annotations"][BEHAVIOR]
    assert ("100m" in text, '"Min"' in text) == (is_kept, True)
