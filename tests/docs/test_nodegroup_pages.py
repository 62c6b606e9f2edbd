"""The files of the pages about nodes fit together: what a reader copies from them works without a change."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.controllers.nodegroup.providers.cluster_api import ClusterAPIProvider
from ocf.nodegroups import InstanceType
from ocf.objects import Manifest
from ocf.objects.documents import load_documents
from ocf_server import EmbeddedCluster
from tests.controllers.nodegroup.providers.fake_cluster_api import DEFINITIONS
from tests.docs.reader import ROOT

FENCE: Final = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
POD: Final = """---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {containers: [{name: web, image: web, resources: {requests: {cpu: "%s"}}}]}
"""


def files(page: str, heading: str = "") -> Iterator[str]:
    """Yield the files of a page from a heading on."""
    _, _, text = (ROOT / page).read_text(encoding="utf-8").partition(f"\n{heading}")
    return iter(FENCE.findall(text))


def deployment() -> Manifest:
    (text,) = files("docs/nodes/node-providers.md")
    return load_documents(text)[0]


@pytest.mark.parametrize(
    ("cpu", "added"), [("1", "add 1 small"), ("6", "add 1 large"), ("60", "Insufficient cpu on large")]
)
def test_the_types_are_those_of_the_group(tmp_path: Path, cpu: str, added: str) -> None:
    group, types, *_ = files("docs/nodes/nodegroup-controller.md", "## Declare a group")
    (tmp_path / "group.yaml").write_text(group + POD % cpu, encoding="utf-8")
    (tmp_path / "types.yaml").write_text(types, encoding="utf-8")
    words = ["nodegroups", "plan", "--types", str(tmp_path / "types.yaml"), str(tmp_path / "group.yaml")]

    answer = CliRunner().invoke(app, words)

    assert added in answer.stdout
    assert not re.search("unknown|does not exist", answer.stdout)


def test_the_machine_deployment_is_an_instance_type_of_the_group() -> None:
    async def test() -> InstanceType:
        cluster = EmbeddedCluster(namespaces=["machines"])
        for definition in DEFINITIONS:
            await cluster.create(definition, field_manager="user")
        await cluster.create(deployment(), field_manager="user")
        (found,) = await ClusterAPIProvider(cluster, "machines").instance_types()
        return found

    found = asyncio.run(test())
    (offering,) = found.offerings
    group, *_ = files("docs/nodes/nodegroup-controller.md", "## Declare a group")
    spec = load_documents(group)[0]["spec"]
    assert (found.problem, found.name in spec["offeringIDs"], offering.zone) == ("", True, spec["datacenterID"])
