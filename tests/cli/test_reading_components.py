"""Components that read the cluster: `ocf diff` reads it, `ocf preview` and `ocf manifests` the objects of files.

As `crossplane render` does with observed and required resources, whose users met:

* https://github.com/crossplane/cli/issues/47 (a copy of the owner among the objects blanks its uid, and all of its
  children are dropped without an error),
* https://github.com/crossplane/crossplane/issues/6206 (what is missing is named by an internal name),
* https://github.com/crossplane/crossplane/issues/5824 (the error of the author's code is replaced by another one).
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from ocf.cli import diff as command
from ocf.cli.app import app
from ocf.objects import Manifest, ObjectKey
from ocf.objects.documents import load_documents
from ocf.testing import RecordingCluster
from ocf_server import CustomKind, EmbeddedCluster

MODULE: Final = """
from ocf.cluster import ListOptions
from ocf.component import Builder, ReconcileContext
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey
from ocf.primitives import configmap
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import Operator, OwnerType


class ShopSpec(CamelModel):
    size: int = 1


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    pass


async def components(shop: Shop, context: ReconcileContext):
    try:
        settings = await context.cluster.get(ObjectKey("v1", "ConfigMap", "settings", "town"))
        motto = settings["data"]["motto"]
    except NotFoundError:
        motto = "none"
    children = await context.children.list("v1", "ConfigMap")
    branches = await context.cluster.list("example.com/v1", "Shop", ListOptions(namespace="town"))
    for child in children:
        if child["metadata"]["name"].startswith("old-"):
            await context.children.delete(child)
    found = {
        "motto": motto,
        "children": ",".join(sorted(child["metadata"]["name"] for child in children)),
        "branches": str(len(branches.items)),
    }
    return Builder("web", owner=shop.key).with_resource(configmap.Builder({"data": found})).build()


shops = Operator(
    name="shops",
    owner=OwnerType.of(Shop),
    components=components,
    reads=[("v1", "ConfigMap")],
    deletes=[("v1", "ConfigMap")],
)


async def failing(shop: Shop, context: ReconcileContext):
    await context.cluster.get(ObjectKey("v1", "Secret", "login", "town"))


async def unserved(shop: Shop, context: ReconcileContext):
    await context.cluster.list("other.example.com/v1", "Mall")


async def writing(shop: Shop, context: ReconcileContext):
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": "town"}}
    await context.cluster.create(made, field_manager="shops")
    context.status["step"] = "made"
    await context.write_status()
    await context.patch_owner({"metadata": {"labels": {"made": "yes"}}})
    return ()
"""
OWNER: Final = """
apiVersion: example.com/v1
kind: Shop
metadata: {name: corner, namespace: town}
spec: {size: 2}
"""
UID: Final = "4f1b7a54-1111-4222-8333-944455556666"


def config_map(name: str, uid: str = "", **data: str) -> Manifest:
    """Return a ConfigMap, which a shop with this uid controls."""
    metadata: Manifest = {"name": name, "namespace": "town"}
    if uid:
        reference = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "corner", "uid": uid, "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def stored_owner(uid: str = UID) -> Manifest:
    metadata = {"name": "corner", "namespace": "town", "uid": uid, "resourceVersion": "12", "generation": 3}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {"size": 9}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a folder with an operator and its owner, as the working directory."""
    (tmp_path / "reading_shop.py").write_text(MODULE)
    (tmp_path / "owner.yaml").write_text(OWNER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("reading_shop", None)


def ocf(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def previewed(*objects: Manifest, owner: str = OWNER) -> tuple[Manifest, str]:
    """Return the data of the one object that is previewed with objects of the cluster, and the notes."""
    Path("owner.yaml").write_text(owner)
    Path("objects.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    answer = ocf("preview", "reading_shop", "--owner=owner.yaml", "--output=json", "--objects=objects.json")
    assert answer.exit_code == 0, answer.stderr
    [item] = json.loads(answer.stdout)["items"]
    found: Manifest = item["data"]
    return found, answer.stderr


class TestPreview:
    def test_components_read_the_given_objects(self) -> None:
        data, notes = previewed(config_map("settings", motto="open"), config_map("front", UID))
        assert data == {"motto": "open", "children": "front", "branches": "1"}
        assert notes == (
            "note: the components of Shop town/corner have read v1/ConfigMap/town/settings, "
            "1 of v1 ConfigMap in town, 1 of example.com/v1 Shop in town\n"
        )

    def test_what_is_missing_is_named(self) -> None:
        answer = ocf("preview", "reading_shop", "--owner=owner.yaml")
        assert answer.exit_code == 0
        [shown] = load_documents(answer.stdout)
        assert shown["data"]["motto"] == "none"
        assert answer.stderr.endswith(
            "note: the components of Shop town/corner have looked for v1/ConfigMap/town/settings, which no file has: "
            "give what exists with --objects FILE\n"
        )

    @pytest.mark.parametrize(
        "owner",
        [
            pytest.param(OWNER, id="an owner without a uid, as in a repository"),
            pytest.param(OWNER.replace("namespace: town", f"namespace: town, uid: {UID}"), id="a stored owner"),
        ],
    )
    @pytest.mark.parametrize(
        "copies", [pytest.param((), id="alone"), pytest.param((stored_owner(),), id="a copy among the objects")]
    )
    def test_children_are_found_whether_or_not_the_owner_has_a_uid(
        self, owner: str, copies: tuple[Manifest, ...]
    ) -> None:
        data, _ = previewed(*copies, config_map("front", UID), config_map("alone"), owner=owner)
        assert data["children"] == "front"

    def test_children_of_several_owners_of_the_name_need_the_uid(self) -> None:
        Path("objects.json").write_text(
            "\n".join(json.dumps(config_map(name, uid)) for name, uid in (("a", "one"), ("b", "two")))
        )
        answer = ocf("preview", "reading_shop", "--owner=owner.yaml", "--objects=objects.json")
        assert answer.exit_code == 2
        assert "the given objects name it with several, one, two: give the owner as `kubectl get" in answer.stderr

    def test_the_spec_is_that_of_the_file_and_the_status_that_of_the_objects(self) -> None:
        data, notes = previewed(stored_owner(), config_map("old-front", UID))
        assert (data["children"], data["branches"]) == ("old-front", "1")
        assert "write themselves: delete v1/ConfigMap/town/old-front\n" in notes

    def test_an_owner_without_a_namespace_is_in_the_default_one(self) -> None:
        Path("owner.yaml").write_text(OWNER.replace(", namespace: town", ""))
        answer = ocf("preview", "reading_shop", "--owner=owner.yaml")
        assert answer.exit_code == 0, answer.stderr
        assert "# component web of Shop default/corner\n" in answer.stdout

    def test_a_mistake_in_the_code_is_reported_with_what_is_missing(self) -> None:
        answer = ocf("preview", "reading_shop:failing", "--owner=owner.yaml")
        assert answer.exit_code == 2
        assert "which no file has: give what exists with --objects FILE" in answer.stderr
        assert "reading_shop:failing for Shop town/corner failed: v1/Secret/town/login not found" in answer.stderr

    def test_a_kind_that_is_not_defined_is_named(self) -> None:
        answer = ocf("preview", "reading_shop:unserved", "--owner=owner.yaml")
        assert answer.exit_code == 2
        assert "objects of other.example.com/v1 Mall, which no file defines: --crd FILE does" in answer.stderr

    def test_objects_of_any_kind_need_no_definition(self) -> None:
        mall = {"apiVersion": "other.example.com/v1", "kind": "Mall", "metadata": {"name": "big"}}
        Path("mall.json").write_text(json.dumps(mall))
        answer = ocf("preview", "reading_shop:unserved", "--owner=owner.yaml", "--objects=mall.json")
        assert "have read 1 of other.example.com/v1 Mall" in answer.stderr

    def test_writes_of_the_code_are_named_and_not_stored(self) -> None:
        answer = ocf("preview", "reading_shop:writing", "--owner=owner.yaml")
        assert answer.exit_code == 0, answer.stderr
        assert "write themselves: create v1/ConfigMap/town/made, patch example.com/v1/Shop/town/corner" in answer.stderr

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            pytest.param("[1]", "is not an object", id="a list"),
            pytest.param("{apiVersion: v1, kind: ConfigMap}", "is not an object", id="no name"),
            pytest.param(
                "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: 3}", "cannot be read as an object", id="a type"
            ),
        ],
    )
    def test_objects_that_cannot_be_read_are_an_error(self, content: str, problem: str) -> None:
        Path("objects.yaml").write_text(content)
        answer = ocf("preview", "reading_shop", "--owner=owner.yaml", "--objects=objects.yaml")
        assert answer.exit_code == 2
        assert problem in answer.stderr

    def test_objects_for_components_that_read_nothing_are_an_error(self, folder: Path) -> None:
        (folder / "plain_shop.py").write_text("def components(owner):\n    return []\n")
        (folder / "objects.json").write_text(json.dumps(config_map("settings")))
        answer = ocf("preview", "plain_shop:components", "--owner=owner.yaml", "--objects=objects.json")
        assert answer.exit_code == 2
        assert "--objects: the components of plain_shop:components read no cluster" in answer.stderr


class TestManifests:
    def test_the_privileges_follow_from_what_is_computed_with_the_given_objects(self, folder: Path) -> None:
        (folder / "objects.json").write_text(json.dumps(config_map("settings", motto="open")))
        words = ["manifests", "reading_shop", "--owner=owner.yaml", "--directory=deploy"]
        for layout in ("kustomize", "helm", "olm"):
            made = ocf(*words, f"--format={layout}", f"--directory={layout}", "--objects=objects.json")
            assert made.exit_code == 0, made.stderr
            assert "have read v1/ConfigMap/town/settings" in made.stderr
            checked = ocf(*words, f"--format={layout}", f"--directory={layout}", "--objects=objects.json", "--check")
            assert checked.exit_code == 0, checked.output

    def test_without_objects_the_cluster_is_empty(self) -> None:
        made = ocf("manifests", "reading_shop", "--owner=owner.yaml", "--directory=deploy")
        assert made.exit_code == 0, made.stderr
        assert "which no file has" in made.stderr


class Env:
    """The cluster that `ocf diff` connects to."""

    def __init__(self) -> None:
        self.inner = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"])
        self.recorded = RecordingCluster(self.inner)

    async def connect(self, *_: object) -> Any:
        @asynccontextmanager
        async def opened() -> AsyncIterator[RecordingCluster]:
            yield self.recorded

        return opened()


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Env:
    found = Env()
    monkeypatch.setattr(command, "connect", found.connect)
    return found


class TestDiff:
    def test_components_read_the_cluster_and_write_dry_runs(self, env: Env, caplog: pytest.LogCaptureFixture) -> None:
        async def prepare() -> None:
            owner = await env.inner.create(next(iter(load_documents(OWNER))), field_manager="user")
            for each in (config_map("settings", motto="open"), config_map("old-front", owner["metadata"]["uid"])):
                await env.inner.create(each, field_manager="user")

        asyncio.run(prepare())
        caplog.set_level(logging.INFO)
        answer = ocf("diff", "reading_shop", "--owner=owner.yaml", "--output=json")
        assert answer.exit_code == 1, answer.output
        own, web = json.loads(answer.stdout)
        assert (own["component"], web["component"]) == ("", "web")
        assert [(one["verb"], one["resource"]) for one in own["objects"]] == [("delete", "v1/ConfigMap/town/old-front")]
        assert web["objects"][0]["after"]["data"] == {"motto": "open", "children": "old-front", "branches": "1"}
        assert env.recorded.writes == ()
        logged = [record.getMessage() for record in caplog.records if record.name == "ocf.component"]
        assert logged
        assert all(line.startswith("dry run: ") for line in logged)

    def test_own_writes_are_shown_as_text(self, env: Env) -> None:
        asyncio.run(env.inner.create(next(iter(load_documents(OWNER))), field_manager="user"))
        answer = ocf("diff", "reading_shop:writing", "--owner=owner.yaml")
        assert answer.exit_code == 1, answer.output
        assert answer.stdout.startswith("# the function that returns the components of Shop town/corner\n")
        assert "# create v1/ConfigMap/town/made\n" in answer.stdout
        assert "+    made: 'yes'\n" in answer.stdout
        assert env.recorded.writes == ()

    def test_an_error_of_the_code_is_one_line(self, env: Env) -> None:
        del env
        answer = ocf("diff", "reading_shop:failing", "--owner=owner.yaml")
        assert answer.exit_code == 2
        assert answer.stderr.splitlines()[-1].startswith("error: reading_shop:failing for Shop town/corner failed: ")


def test_restored_objects_keep_what_a_server_has_set() -> None:
    """Uid, status, times, managers and finalizers, which a create would replace."""
    manifest: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "town",
            "uid": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-02T00:00:00Z",
            "finalizers": ["example.com/a"],
            "generation": 4,
        },
        "status": {"readyReplicas": 2},
    }

    async def restored() -> Manifest:
        cluster = EmbeddedCluster()
        await cluster.restore([manifest])
        return await cluster.get(ObjectKey.of(manifest))

    found = asyncio.run(restored())
    kept = {name: value for name, value in found["metadata"].items() if name != "resourceVersion"}
    assert (kept, found["status"]) == (manifest["metadata"], manifest["status"])
