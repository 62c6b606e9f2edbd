"""NodeGroup and VPSieNode: defaults, and invalid values, of the models and of API servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from pydantic import ValidationError

from ocf.cluster import Cluster
from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition
from ocf.controllers.nodegroup.model import GROUP, NodeGroup
from ocf.errors import InvalidError
from ocf.objects import Manifest
from ocf.testing.envtest import ControlPlane
from ocf_server import EmbeddedCluster

SPEC: Final = {"minNodes": 1, "maxNodes": 3, "datacenterID": "fra", "offeringIDs": ["small", "large"]}

INVALID: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "minNodes above maxNodes": ({"minNodes": 4}, "minNodes must not be above maxNodes"),
    "minNodes is negative": ({"minNodes": -1}, "minNodes"),
    "maxNodes is zero": ({"maxNodes": 0, "minNodes": 0}, "maxNodes"),
    "maxNodes above 1000": ({"maxNodes": 1001}, "maxNodes"),
    "datacenter with a blank": ({"datacenterID": "fra 1"}, "datacenterID"),
    "no offering": ({"offeringIDs": []}, "offeringIDs"),
    "an offering twice": ({"offeringIDs": ["small", "small"]}, "offeringIDs"),
    "offering with a blank": ({"offeringIDs": ["a b"]}, "offeringIDs"),
    "unknown preferred type": ({"preferredInstanceType": "huge"}, "must be one of offeringIDs"),
    "unknown selection": ({"instanceSelection": "Random"}, "instanceSelection"),
    "reserved label": ({"labels": {"node.kubernetes.io/pool": "a"}}, "reserved"),
    "reserved label of k8s.io": ({"labels": {"k8s.io/pool": "a"}}, "reserved"),
    "invalid label value": ({"labels": {"pool": "a b"}}, "labels"),
    "long label value": ({"labels": {"pool": "a" * 64}}, "labels"),
    "taint without key": ({"taints": [{"key": "", "effect": "NoSchedule"}]}, "taints"),
    "unknown effect": ({"taints": [{"key": "a", "effect": "Never"}]}, "taints"),
    "reserved taint": ({"taints": [{"key": "node.kubernetes.io/ready", "effect": "NoSchedule"}]}, "reserved"),
    "a taint twice": ({"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}, "taints"),
    "a text as duration": ({"scaleDownCooldown": "ten minutes"}, "scaleDownCooldown"),
    "negative duration": ({"scaleDownCooldown": "-5m"}, "scaleDownCooldown"),
    "more than 100 percent": ({"scaleDownPolicy": {"cpuThreshold": 101}}, "cpuThreshold"),
    "negative batch size": ({"scaleUpBatchSize": -1}, "scaleUpBatchSize"),
}


def group(changes: dict[str, Any]) -> Manifest:
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": "pool", "namespace": "default"},
        "spec": {**SPEC, **changes},
    }


@pytest.fixture(params=["embedded", "envtest"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    if request.param == "embedded":
        embedded = EmbeddedCluster()
        for definition in (node_group_definition(), node_definition()):
            await embedded.create(definition, field_manager="test")
        yield embedded
        return
    plane: ControlPlane = request.getfixturevalue("envtest_plane")
    plane.install_crds(node_group_definition(), node_definition())
    async with await plane.cluster() as real:
        yield real


@pytest.mark.parametrize(("changes", "message"), INVALID.values(), ids=INVALID)
def test_the_model_rejects(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        NodeGroup.model_validate(group(changes))
    assert message in str(raised.value)


async def test_the_api_server_rejects_what_the_model_rejects(cluster: Cluster) -> None:
    for name, (changes, message) in INVALID.items():
        with pytest.raises(InvalidError) as raised:
            await cluster.create(group(changes), field_manager="test", dry_run=True)
        assert message in str(raised.value), name


async def test_the_api_server_fills_in_the_defaults_of_the_model(cluster: Cluster) -> None:
    stored = await cluster.create(group({}), field_manager="test", dry_run=True)
    expected = NodeGroup.model_validate(group({})).spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert stored["spec"] == expected


@pytest.mark.parametrize(
    ("changes", "field", "expected"),
    [
        pytest.param({}, "scaleDownCooldown", "10m", id="absent is ten minutes"),
        pytest.param({"scaleDownCooldown": "0s"}, "scaleDownCooldown", "0s", id="zero is none"),
        pytest.param({}, "scaleUpCooldown", "0s", id="no cooldown between scale-ups"),
        pytest.param({}, "scaleUpBatchSize", 0, id="no limit of the batch size"),
    ],
)
def test_defaults(changes: dict[str, Any], field: str, expected: object) -> None:
    spec = NodeGroup.model_validate(group(changes)).spec
    assert spec.model_dump(mode="json", by_alias=True)[field] == expected
