"""Several operators of one module, in every command that takes operators; they run in one process.

The process has the name of the first one, so that another operator which is added after it changes no name.
"""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from ocf.cli import dev
from ocf.cli.app import app
from ocf.cli.operator_loader import load_components, load_operators
from ocf.cli.serve.setup import ServeOutput
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.documents import load_documents
from ocf.runtime import operator as runtime

MODULE: Final = """
from ocf.component import Builder, ReconcileContext
from ocf.primitives import configmap, secret
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.admission import Webhook
from ocf.runtime.operator import Operator, OwnerType


class ShopSpec(CamelModel):
    motto: str = "open"


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    pass


class Mall(CustomResource[ShopSpec], group="example.com", version="v1", scope="Cluster"):
    pass


def front(shop: Shop):
    settings = configmap.Builder({"data": {"motto": shop.spec.motto}})
    return Builder("front", owner=shop.key).with_resource(settings).build()


def hall(mall: Mall):
    login = secret.Builder({"metadata": {"namespace": "default"}, "stringData": {"motto": mall.spec.motto}})
    return Builder("hall", owner=mall.key).with_resource(login).build()


shops = Operator(name="shops", owner=OwnerType.of(Shop), components=front)
malls = Operator(
    name="malls", owner=OwnerType.of(Mall), components=hall, published_conditions=["Lit"],
    webhooks=[Webhook.of(Mall, defaulters=[lambda mall: mall])],
)
both = [malls, shops]


def either(owner):
    return front(Shop.model_validate(owner)) if owner["kind"] == "Shop" else hall(Mall.model_validate(owner))


def states():
    return [front(Shop(metadata={"name": name, "namespace": "b"}, spec={})) for name in ("a", "c")]
"""
SHOP: Final[Manifest] = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner", "namespace": "default"},
    "spec": {},
}
MALL: Final[Manifest] = {"apiVersion": "example.com/v1", "kind": "Mall", "metadata": {"name": "big"}, "spec": {}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a package with two operators, and a folder with their owners."""
    package = tmp_path / "two_shops"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "operator.py").write_text(MODULE)
    (package / "parts.py").write_text("from two_shops.operator import front, hall, either\n")
    owners = tmp_path / "samples"
    owners.mkdir()
    namespace: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "town"}}
    for name, owner in (("shop", SHOP), ("mall", MALL), ("town", namespace)):
        (owners / f"{name}.json").write_text(json.dumps(owner))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("two_shops")]:
        del sys.modules[name]


def ocf(*words: str, code: int = 0) -> Result:
    answer = CliRunner().invoke(app, list(words))
    assert answer.exit_code == code, answer.output
    return answer


@pytest.mark.parametrize(
    ("target", "names"),
    [
        pytest.param("two_shops", ["shops", "malls"], id="a package: all, in their order"),
        pytest.param("two_shops.operator", ["shops", "malls"], id="a module"),
        pytest.param("two_shops.operator:malls", ["malls"], id="one of them"),
        pytest.param("two_shops.operator:both", ["malls", "shops"], id="a list of them"),
        pytest.param("two_shops.operator:hall", ["malls"], id="the function of one of them"),
        pytest.param("two_shops.parts:hall", ["malls"], id="the function, in another module than the operator"),
    ],
)
def test_a_target_is_the_same_operators_for_every_command(target: str, names: list[str]) -> None:
    assert [one.name for one in load_operators(target)] == names
    sources = load_components(target)
    assert [one.operator.name for one in sources if one.operator is not None] == names


def test_a_list_of_something_else_is_rejected(folder: Path) -> None:
    (folder / "two_shops" / "lists.py").write_text("nothing = []\nnumbers = [1]\n")
    for name in ("nothing", "numbers"):
        with pytest.raises(ConfigError, match=f"two_shops.lists:{name} is not an operator, got an object of type list"):
            load_operators(f"two_shops.lists:{name}")


class TestPreview:
    def test_each_owner_has_the_components_of_its_operator(self) -> None:
        shown = ocf("preview", "two_shops", "--owner=samples", "--output=text").stdout
        assert [line for line in shown.splitlines() if line.startswith("component")] == [
            "component hall of Mall big",
            "component front of Shop default/corner",
        ]

    @pytest.mark.parametrize(
        "owner", [("--owner=samples/mall.json", "--owner=samples/shop.json"), ("--owner=samples",)]
    )
    def test_a_function_in_place_of_theirs_is_called_for_each_owner(self, owner: tuple[str, ...]) -> None:
        words = ["preview", "two_shops", "--components=two_shops.parts:either", "--output=json"]
        assert [one["kind"] for one in json.loads(ocf(*words, *owner).stdout)["items"]] == ["Secret", "ConfigMap"]

    def test_states_that_a_function_returns_may_share_names(self) -> None:
        words = ["preview", "two_shops:shops", "--owner=samples/shop.json", "--output=json"]
        shown = ocf(*words[:1], "two_shops.operator:shops", *words[2:], "--components=two_shops.operator:states").stdout
        assert [one["metadata"]["name"] for one in json.loads(shown)["items"]] == ["a", "c"]

    def test_objects_of_other_kinds_are_passed_over_with_a_note(self, folder: Path) -> None:
        (folder / "mixed.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [SHOP, MALL]}))
        for command in (["preview"], ["manifests", "--directory=deploy"]):
            answer = ocf(*command, "two_shops.operator:shops", "--owner=mixed.json")
            assert answer.stderr == (
                "note: mixed.json:1: operator shops reconciles Shop of example.com/v1, got Mall of example.com/v1: "
                "passed over\n"
            )

    def test_the_owner_is_checked_by_the_definition_although_the_function_is_elsewhere(self, folder: Path) -> None:
        (folder / "bad.json").write_text(json.dumps({**SHOP, "spec": {"moto": "a"}}))
        answer = ocf("preview", "two_shops.parts:front", "--owner=bad.json", code=2)
        assert 'spec.moto: unknown field, did you mean "motto"?' in answer.stderr


class TestChanges:
    """`--set` with owners of two kinds, of which one has more fields than the other."""

    @pytest.fixture(autouse=True)
    def floors(self, folder: Path) -> None:
        source = folder / "two_shops" / "operator.py"
        spec = "class MallSpec(ShopSpec):\n    floors: int = 1\n\n\nclass Mall(CustomResource[MallSpec]"
        source.write_text(source.read_text().replace("class Mall(CustomResource[ShopSpec]", spec))

    def shown(self, *words: str, code: int = 0) -> tuple[list[str], str]:
        answer = ocf("preview", "two_shops", "--owner=samples", "--output=json", *words, code=code)
        if code:
            return [], answer.stderr
        kept = [one.get("data") or one.get("stringData") for one in json.loads(answer.stdout)["items"]]
        return [str(one) for one in kept], answer.stderr

    def test_a_field_of_all_kinds_is_set_in_all_owners(self) -> None:
        found, notes = self.shown("--set", "spec.motto=closed")
        assert len(found) == 2
        assert "closed" in found[1]
        assert "passed over" not in notes.replace("Namespace of v1: passed over", "")

    def test_a_field_of_one_kind_is_set_in_its_owners_with_a_note(self) -> None:
        _, notes = self.shown("--set", "spec.floors=3")
        assert "note: --set spec.floors=3: Shop has no such field: passed over\n" in notes

    def test_a_value_is_checked_where_it_is_set(self) -> None:
        _, problem = self.shown("--set", "spec.floors=many", code=2)
        assert "--set spec.floors=many: Mall big: spec.floors: Invalid value" in problem
        assert "Shop corner" not in problem

    def test_a_field_of_no_kind_is_an_error_for_each(self) -> None:
        _, problem = self.shown("--set", "spec.moto=closed", code=2)
        for name in ("Shop corner", "Mall big"):
            assert f'--set spec.moto=closed: {name}: spec.moto: unknown field, did you mean "motto"?' in problem


class TestManifests:
    def test_one_process_has_all_that_its_operators_need(self, folder: Path) -> None:
        ocf("manifests", "two_shops", "--owner=samples", "--directory=deploy")
        base = folder / "deploy" / "base"
        definitions = load_documents((base / "definition.yaml").read_text())
        assert [one["metadata"]["name"] for one in definitions] == ["shops.example.com", "malls.example.com"]
        [deployment] = load_documents((base / "deployment.yaml").read_text())
        assert deployment["metadata"]["name"] == "shops"
        rules = [rule for one in load_documents((base / "roles.yaml").read_text()) for rule in one.get("rules", ())]
        granted = {resource for rule in rules for resource in rule["resources"]}
        assert {"configmaps", "secrets", "shops/status", "malls/status", "leases"} <= granted
        called = [
            one for each in load_documents((base / "webhooks.yaml").read_text()) for one in each.get("webhooks", ())
        ]
        assert {resource for one in called for rule in one["rules"] for resource in rule["resources"]} == {"malls"}
        alerts = (folder / "deploy" / "components" / "monitoring" / "alerts.yaml").read_text()
        conditions = re.search(r'condition=~"([^"]+)"', alerts)
        assert conditions is not None
        assert set(conditions[1].split("|")) == {"Ready", "Lit", "shops/Reconciled", "malls/Reconciled"}
        ocf("manifests", "two_shops", "--owner=samples", "--directory=deploy", "--check")

    def test_kinds_without_a_definition_have_privileges_and_a_note(self, folder: Path) -> None:
        """Those of the other operators of the process are known."""
        source = folder / "two_shops" / "operator.py"
        kinds = 'writes=[("example.com/v1", "Shop"), ("other.example.com/v1", "Policy")],\n    published_conditions'
        source.write_text(source.read_text().replace("published_conditions", kinds))
        words = ["manifests", "two_shops", "--owner=samples", "--directory=deploy"]
        assert ocf(*words).stderr == (
            'note: no definition of other.example.com/v1 Policy is given, so its privileges are for "policies" in '
            "namespaces; if that is wrong, give it with --crd FILE\n"
        )
        names = {"kind": "Policy", "plural": "policys"}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "policys.other.example.com"},
            "spec": {
                "group": "other.example.com",
                "names": names,
                "scope": "Namespaced",
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
                ],
            },
        }
        (folder / "policys.json").write_text(json.dumps(definition))
        assert ocf(*words, "--crd=policys.json").stderr == ""
        roles = (folder / "deploy" / "base" / "roles.yaml").read_text()
        assert ("policys" in roles, "policies" in roles) == (True, False)
        assert "policys" not in (folder / "deploy" / "base" / "definition.yaml").read_text()

    @pytest.mark.parametrize("layout", ["helm", "olm"])
    def test_charts_and_bundles_have_all_definitions(self, folder: Path, layout: str) -> None:
        ocf("manifests", "two_shops", "--owner=samples", "--directory=deploy", f"--format={layout}")
        texts = [path.read_text() for path in (folder / "deploy").rglob("*.yaml")]
        for name in ("shops.example.com", "malls.example.com"):
            assert any(f"name: {name}" in text for text in texts)

    def test_a_bundle_cannot_be_limited_to_namespaces_if_one_kind_is_cluster_scoped(self, folder: Path) -> None:
        ocf("manifests", "two_shops", "--owner=samples", "--directory=deploy", "--format=olm")
        [version] = load_documents((folder / "deploy/manifests/shops.clusterserviceversion.yaml").read_text())
        modes = {mode["type"] for mode in version["spec"]["installModes"] if mode["supported"]}
        assert modes == {"AllNamespaces"}
        assert len(version["spec"]["customresourcedefinitions"]["owned"]) == 2

    def test_an_operator_that_is_added_at_the_end_changes_no_name(self, folder: Path) -> None:
        ocf("manifests", "two_shops.operator:shops", "--owner=samples/shop.json", "--directory=one")
        ocf("manifests", "two_shops", "--owner=samples", "--directory=two")

        def names(directory: str) -> set[tuple[str, str]]:
            files = (folder / directory / "base").glob("*.yaml")
            found = [one for file in files for one in load_documents(file.read_text()) if "metadata" in one]
            return {(one["kind"], one["metadata"]["name"]) for one in found}

        assert names("one") <= names("two")

    def test_operators_that_cannot_share_a_process_are_rejected(self, folder: Path) -> None:
        source = folder / "two_shops" / "operator.py"
        source.write_text(
            source.read_text().replace(
                'name="malls", owner=OwnerType.of(Mall)', 'name="shops", owner=OwnerType.of(Mall)'
            )
        )
        answer = ocf("manifests", "two_shops", "--owner=samples", "--directory=deploy", code=2)
        assert "the operators of a process need different names, got shops, shops" in answer.stderr


async def test_they_run_together_in_development(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del folder
    lines: list[str] = []
    monkeypatch.setattr(dev, "echo", lines.append)
    operators = load_operators("two_shops")
    options = dev._DevOptions(
        apply=(), crd=(), controllers=None, port=0, kubeconfig=Path("kubeconfig"), output=ServeOutput.TEXT
    )
    async with dev._serving(operators, options) as (process, _), process.running(operators) as started:
        await started()
        assert [*process.page.view.operators] == ["shops", "malls"]
    assert lines == [
        "operator shops reconciles Shop of example.com/v1",
        "operator malls reconciles Mall of example.com/v1",
    ]


def test_the_process_has_the_name_of_the_first_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[Any, ...]] = []

    def main(*operators: Any, options: Any) -> None:
        started.append(([one.name for one in operators], options.lease.name, options.metrics_prefix))

    monkeypatch.setattr(runtime, "main", main)
    monkeypatch.setenv("POD_NAMESPACE", "ops")
    ocf("run", "two_shops")
    assert started == [(["shops", "malls"], "shops", "shops")]


@pytest.mark.parametrize("error", [None, SystemExit(1), LookupError("no price list")], ids=["none", "exit", "crash"])
def test_the_garbage_collector_has_the_pace_of_an_operator_only_while_it_runs(
    error: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line collects seldom, which `main` would keep."""
    during: list[int] = []

    def main(*_: Any, **__: Any) -> None:
        during.append(gc.get_threshold()[0])
        if error is not None:
            raise error

    monkeypatch.setattr(runtime, "main", main)
    monkeypatch.setenv("POD_NAMESPACE", "ops")
    before = gc.get_threshold()
    CliRunner().invoke(app, ["run", "two_shops"])
    assert (during, gc.get_threshold()) == ([1], before)
