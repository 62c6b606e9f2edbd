"""Resources of a pod as a whole: what an API server sets from those of the containers, and the quality of service."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ocf.cluster import Cluster
from ocf.errors import InvalidError
from ocf.objects import Manifest
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Programs
from ocf_server import EmbeddedCluster

ONE: Final = {"cpu": "1", "memory": "1Gi"}
HALF: Final = {"cpu": "500m", "memory": "1Gi"}
PAGES: Final = {"hugepages-2Mi": "4Mi"}

PODS: Final[dict[str, tuple[Manifest, list[Manifest]]]] = {
    "a limit, two containers": ({"limits": {"cpu": "4"}}, [{"limits": HALF}, {"limits": ONE}]),
    "a request, two containers": ({"requests": {"cpu": "4"}}, [{"limits": HALF}, {"limits": ONE}]),
    "a small request": ({"requests": {"memory": "3Gi"}}, [{"limits": HALF}, {"limits": ONE, "requests": HALF}]),
    "a container without limits": ({"requests": {"cpu": "4"}}, [{"limits": ONE}, {"requests": {"cpu": "1"}}]),
    "containers without resources": ({"limits": {"cpu": "1"}}, [{}, {}]),
    "huge pages": (
        {"limits": {"cpu": "4", "memory": "8Gi"}},
        [{"limits": {**ONE, **PAGES}}, {"limits": {**HALF, **PAGES}}],
    ),
    "zero and a suffix": (
        {"limits": {"memory": "4Gi"}},
        [{"requests": {"memory": "0"}}, {"requests": {"memory": "1G"}}],
    ),
    "empty resources": ({}, [{"limits": ONE}]),
    "empty maps": ({"limits": {}, "requests": {}}, [{"limits": ONE}]),
}


def pod(name: str) -> Manifest:
    whole, containers = PODS[name]
    parts = [{"name": f"c{index}", "image": "c:1", "resources": one} for index, one in enumerate(containers)]
    sidecar = {"name": "side", "image": "c:1", "restartPolicy": "Always", "resources": {"limits": ONE}}
    metadata = {"name": name.replace(" ", "-").replace(",", ""), "namespace": "default"}
    spec = {"resources": whole, "containers": parts, "initContainers": [sidecar]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def stored(cluster: Cluster, name: str) -> tuple[Any, Any, Any]:
    created = await cluster.create(pod(name), field_manager="test")
    kept = created["spec"].pop("resources", None)
    created["metadata"] = {**pod(name)["metadata"], "labels": {"changed": "yes"}}
    # What a client that does not know the field writes; that is refused unless the field is kept.
    try:
        updated = (await cluster.update(created, field_manager="test"))["spec"].get("resources")
    except InvalidError:
        updated = "refused"
    return kept, created["status"]["qosClass"], updated


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.36", {"limits": {"cpu": "4"}, "requests": {"cpu": "2500m", "memory": "3Gi"}})],
)
async def test_requests_are_the_sum_of_those_of_the_containers(version: str, expected: Manifest) -> None:
    kept, quality, _ = await stored(EmbeddedCluster(kubernetes_version=version), "a limit, two containers")
    assert (kept, quality) == (expected, "Burstable")


@pytest.mark.parametrize("version", ["1.36"])
async def test_a_real_server_of_the_release_sets_the_same(version: str, envtest_programs: Programs) -> None:
    ours = EmbeddedCluster(kubernetes_version=version)
    seen = {name: await stored(ours, name) for name in PODS}
    async with ControlPlane(envtest_programs) as plane, await plane.cluster() as real:
        assert seen == {name: await stored(real, name) for name in PODS}
