"""Tolerations that the API server adds to a pod are no reason to write it."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.component.apply.drift import find_drift
from ocf.objects import Manifest
from ocf.schema.admission import admitted
from ocf.schema.builtin import builtin_resource

GPU = {"key": "gpu", "operator": "Exists"}


def default(taint: str, seconds: int = 300) -> Manifest:
    key = f"node.kubernetes.io/{taint}"
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


NOT_READY, UNREACHABLE = default("not-ready"), default("unreachable")


def pod(*tolerations: Manifest) -> Manifest:
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"tolerations": list(tolerations)}}


def changes(desired: Manifest, live: Manifest) -> bool:
    fields: Manifest = {"f:spec": {"f:tolerations": {}}}
    entry = {"manager": "us", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    stored = {**live, "metadata": {**live["metadata"], "managedFields": [entry]}}
    resource = builtin_resource("", "v1", "Pod")
    assert resource is not None
    return bool(find_drift(desired, stored, manager="us", rewrites={}, kind=resource.type))


@pytest.mark.parametrize(
    ("declared", "stored"),
    [
        pytest.param([GPU], [GPU, NOT_READY, UNREACHABLE], id="both"),
        pytest.param([GPU], [GPU, default("not-ready", 20), default("unreachable", 0)], id="other settings"),
        pytest.param([NOT_READY], [NOT_READY, UNREACHABLE], id="one is declared"),
        pytest.param([default("not-ready", 5), UNREACHABLE], [default("not-ready", 5), UNREACHABLE], id="declared"),
        pytest.param([{"operator": "Exists"}], [{"operator": "Exists"}], id="everything is tolerated"),
        pytest.param([GPU], [GPU], id="a server without the plugin"),
    ],
)
def test_what_the_plugin_adds_is_not_drift(declared: list[Manifest], stored: list[Manifest]) -> None:
    assert not changes(pod(*declared), pod(*stored))


@pytest.mark.parametrize(
    ("declared", "stored"),
    [
        pytest.param([GPU], [NOT_READY, UNREACHABLE], id="ours is missing"),
        pytest.param([GPU], [GPU, NOT_READY, UNREACHABLE, {"key": "spot"}], id="another one"),
        pytest.param([GPU], [GPU, {**NOT_READY, "effect": "NoSchedule"}, UNREACHABLE], id="another effect"),
        pytest.param([NOT_READY], [NOT_READY, default("not-ready", 5), UNREACHABLE], id="already tolerated"),
        pytest.param([default("not-ready", 5)], [NOT_READY, UNREACHABLE], id="ours has another time"),
    ],
)
def test_any_other_difference_is_drift(declared: list[Manifest], stored: list[Manifest]) -> None:
    assert changes(pod(*declared), pod(*stored))


@pytest.mark.parametrize(
    "desired",
    [
        pytest.param({**pod(), "spec": {}}, id="no declared tolerations"),
        pytest.param(pod(), id="an empty list"),
        pytest.param({**pod(GPU), "apiVersion": "apps/v1", "kind": "Deployment"}, id="another kind"),
    ],
)
def test_nothing_else_is_completed(desired: Any) -> None:
    assert admitted(desired, pod(GPU, NOT_READY, UNREACHABLE)) == desired
