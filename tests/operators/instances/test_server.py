"""The operators as processes, on the embedded server and on a real one with their own rights, and in commands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.rbac import PolicyRule
from ocf.testing import serving_http_stub
from tests.examples.memcached.env import served
from tests.operators.instances.contents import Places, dashboard_component, folder_component, source_component
from tests.operators.instances.instances import instance_component
from tests.operators.instances.model import API_VERSION, Dashboard, Folder, Instance, Source
from tests.operators.instances.operator import panels
from tests.operators.instances.servers import Server
from tests.operators.instances.world import KINDS, FakeServers, Panels, in_virtual_time
from tests.operators.world import with_rights
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest

EVERY: Final = {"eu": {"folders": ["news"], "sources": ["db"], "dashboards": ["b", "c"]}}
NOWHERE: Final = Places((), {})


async def life(world: Panels) -> None:
    """Things are made, change with labels and contents, and go with their objects and with their instance."""
    boards, own = (
        ObjectKey("v1", "ConfigMap", "boards", world.home),
        ObjectKey("apps/v1", "Deployment", "own", world.home),
    )
    await world.world.create(boards, data={"b.json": "[1]"})
    await world.world.create(ObjectKey("v1", "Secret", "db", world.home), stringData={"password": "hunter2"})
    await world.make("Instance", "own", deployed={"settings": {"THEME": "dark"}})
    await world.make("Folder", "news", uid="news")
    await world.make("Source", "db", uid="db", url="db:1", password={"name": "db", "key": "password"})
    await world.board("b", folder="news", configMap={"name": "boards", "key": "b.json"})
    await world.board("c")
    await world.until(EVERY["eu"], "eu")
    await world.until(EVERY["eu"], "us")
    await world.world.until(own)
    await world.world.until(ObjectKey("v1", "Service", "own", world.home))
    assert len(await world.password("own")) == 32
    await world.world.edit(boards, {"data": {"b.json": "[2]"}})
    await eventually(lambda: shown(world, "b"), lambda content: content == "[2]")
    for kind, name in (("Folder", "news"), ("Source", "db"), ("Dashboard", "b")):
        await world.change(kind, name, instances={"matchLabels": {"region": "eu"}})
    await world.until({"dashboards": ["c"]}, "us")
    await world.world.cluster.delete(world.key("Instance", "us"))
    await world.world.until_gone(world.key("Instance", "us"))
    await world.until({}, "us")
    for kind, name in (("Dashboard", "b"), ("Dashboard", "c"), ("Folder", "news"), ("Source", "db")):
        await world.world.cluster.delete(world.key(kind, name))
        await world.world.until_gone(world.key(kind, name))
    await world.until({}, "eu")
    assert max(world.servers.created.values()) == 1


async def shown(world: Panels, uid: str) -> object:
    return world.servers.at("eu", "dashboards")[uid]["content"]


def test_the_life_of_things_in_servers() -> None:
    in_virtual_time(life)


async def test_own_rights_suffice(
    envtest: Envtest, envtest_cluster: ApiServerCluster, caplog: pytest.LogCaptureFixture
) -> None:
    envtest.plane.install_crds(*(kind.definition() for kind in KINDS))
    await served(envtest_cluster, *((API_VERSION, kind.kind) for kind in KINDS))
    servers = FakeServers()
    async with (
        serving_http_stub(servers.app) as stub,
        with_rights(envtest, envtest_cluster, generated_rules()) as world,
    ):
        there = Panels(world, servers, stub, home=envtest.namespace)
        await there.server("eu", region="eu")
        await there.server("us", region="us")
        async with there.operating():
            await life(there)
    assert "forbidden" not in caplog.text.lower()


def generated_rules() -> frozenset[PolicyRule]:
    """Return what `ocf manifests` grants for owners in every state."""
    metadata = {"name": "any", "namespace": "any", "uid": "any"}
    definitions = [kind.definition() for kind in KINDS]

    def owner(spec: Mapping[str, Any]) -> Manifest:
        return {"metadata": metadata, "spec": spec}

    entry = {"name": "any", "key": "any"}
    deployed, external = owner({"deployed": {}}), owner({"external": {"secretName": "any"}})
    source = owner({"title": "any", "url": "any", "password": entry})
    board = owner({"folder": "any", "configMap": entry})
    states = [
        [instance_component(Instance.model_validate(one), Server("", "", ""), None) for one in (deployed, external)],
        [folder_component(Folder.model_validate(owner({"title": "any"})), NOWHERE, None)],
        [source_component(Source.model_validate(source), NOWHERE, None)],
        [dashboard_component(Dashboard.model_validate(board), NOWHERE, None)],
    ]
    made = zip(panels(), states, strict=True)
    return frozenset().union(*(operator.policy_rules(state, definitions=definitions) for operator, state in made))


OBJECTS: Final = f"""
apiVersion: {API_VERSION}
kind: Instance
metadata: {{name: eu, namespace: town}}
spec: {{external: {{secretName: eu}}}}
status: {{url: "http://eu"}}
---
apiVersion: v1
kind: Secret
metadata: {{name: eu, namespace: town}}
stringData: {{url: "http://eu", user: admin, password: sesame}}
---
apiVersion: {API_VERSION}
kind: Folder
metadata: {{name: news, namespace: town}}
spec: {{instances: {{}}, title: news, uid: news}}
"""


def no_session() -> None:
    raise AssertionError("a preview has opened a session")


@pytest.mark.promise("external-preview")
@pytest.mark.parametrize(
    ("kind", "spec", "data", "external"),
    [
        pytest.param("Dashboard", {"folder": "news", "inline": "[1]"}, [], ["one@town/eu"], id="inline"),
        pytest.param(
            "Dashboard",
            {"url": "http://shelf/one"},
            ["--data", 'content="[1]"'],
            ["one@town/eu"],
            id="content that is fetched",
        ),
        pytest.param("Folder", {"title": "one"}, [], ["one@town/eu"], id="a folder"),
        pytest.param("Instance", {"external": {"secretName": "eu"}}, [], [], id="an instance"),
    ],
)
def test_a_preview_shows_what_is_desired_and_never_calls_out(
    kind: str, spec: Manifest, data: list[str], *, external: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.operators.instances.servers.ClientSession", no_session)
    monkeypatch.chdir(tmp_path)
    names = "instances, folders, sources, dashboards"
    Path("panel.py").write_text(f"from tests.operators.instances.operator import panels\n{names} = panels()\n")
    placed = {} if kind == "Instance" else {"instances": {}, "uid": "one"}
    owner = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "one", "namespace": "town"}}
    Path("owner.yaml").write_text(json.dumps({**owner, "spec": {**placed, **spec}}))
    Path("objects.yaml").write_text(OBJECTS)
    command = ["preview", "panel", "--owner", "owner.yaml", "--objects", "objects.yaml", "--output", "json", *data]
    answer = CliRunner().invoke(app, command)
    assert answer.exit_code == 0, answer.output
    assert [each["metadata"]["name"] for each in json.loads(answer.stdout).get("external", [])] == external
    assert "sesame" not in answer.output
