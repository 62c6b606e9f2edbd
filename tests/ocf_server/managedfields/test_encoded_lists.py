"""Owners of atomic lists of quantities, as a real API server of Kubernetes 1.36 answered."""

from typing import Any

import pytest

from ocf.cluster import PatchOptions, PatchType
from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest, ObjectKey
from ocf.schema.builtin import struct
from ocf_server import EmbeddedCluster
from ocf_server.managedfields.compare import encoded_lists

KEY = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop")
ANNOTATION: dict[str, Any] = {"metadata": {"annotations": {"x": "y"}}}


def autoscaler(amount: str) -> Manifest:
    target = {"type": "AverageValue", "averageValue": amount}
    return {
        "apiVersion": KEY.api_version,
        "kind": KEY.kind,
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": {"name": "memory", "target": target}}],
        },
    }


def owners(manifest: Manifest, part: str, name: str) -> list[str]:
    entries = manifest["metadata"]["managedFields"]
    return [each["manager"] for each in entries if f"f:{name}" in each["fieldsV1"].get(f"f:{part}", {})]


def merged(manager: str) -> PatchOptions:
    return PatchOptions(patch_type=PatchType.MERGE, field_manager=manager)


@pytest.mark.parametrize(
    "amount",
    [
        *("8Mi", "512Mi", "0.5Gi", "1.5Gi", "800Ki", "1000Mi", "2000Ki", "10000Ki", "1000Ti", "1000Ei"),
        *("123456789012Ki", "12345678901234567890"),
    ],
)
async def test_the_next_writer_owns_metrics_whose_texts_are_computed(cluster: EmbeddedCluster, amount: str) -> None:
    await cluster.apply(autoscaler(amount), field_manager="a")

    patched = await cluster.patch(KEY, ANNOTATION, merged("b"))
    updated = await cluster.update(patched, field_manager="c")

    assert [owners(each, "spec", "metrics") for each in (patched, updated)] == [["b"], ["c"]]


@pytest.mark.parametrize(
    "amount",
    [
        *("500Mi", "1001Mi", "1500Mi", "125Mi", "1Gi", "1024Mi", "2048Mi", "1.1Gi"),
        *("900", "1000", "4096", "1000k", "2000m", "0.5", "1e3", "1E3", "9007199254740993"),
    ],
)
async def test_metrics_whose_texts_are_kept_stay_with_their_owner(cluster: EmbeddedCluster, amount: str) -> None:
    await cluster.apply(autoscaler(amount), field_manager="a")

    assert owners(await cluster.patch(KEY, ANNOTATION, merged("b")), "spec", "metrics") == ["a"]


async def test_the_writer_of_a_status_owns_its_metrics(cluster: EmbeddedCluster) -> None:
    found = await cluster.create(autoscaler("500Mi"), field_manager="a")
    metric = {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "512Mi"}}}
    found["status"] = {"currentReplicas": 1, "desiredReplicas": 1, "currentMetrics": [metric]}
    found = await cluster.update(found, field_manager="s", subresource=Subresource.STATUS)
    found = await cluster.update(found, field_manager="t", subresource=Subresource.STATUS)

    assert owners(found, "status", "currentMetrics") == ["t"]
    assert owners(found, "spec", "metrics") == ["a"]


async def test_applies_and_writers_of_another_version_take_nothing(cluster: EmbeddedCluster) -> None:
    await cluster.apply(autoscaler("512Mi"), field_manager="a")
    await cluster.patch(ObjectKey("autoscaling/v1", *KEY[1:]), ANNOTATION, merged("b"))
    found = await cluster.apply(autoscaler("512Mi"), field_manager="z")

    assert sorted(owners(found, "spec", "metrics")) == ["a", "z"]


async def test_an_update_without_changes_is_a_write_of_another_manager_only(cluster: EmbeddedCluster) -> None:
    first = await cluster.create(autoscaler("512Mi"), field_manager="a")
    same = await cluster.update(first, field_manager="a")
    other = await cluster.update(same, field_manager="b")

    versions = [each["metadata"]["resourceVersion"] for each in (first, same, other)]
    assert versions[0] == versions[1] != versions[2]


def test_a_version_without_metrics_has_no_such_lists() -> None:
    manifest = {"spec": {"metrics": [1, {"value": "512Mi"}]}}

    assert encoded_lists(manifest, manifest, struct("autoscaling.v1.HorizontalPodAutoscaler")) == {}
