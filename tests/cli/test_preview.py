"""`ocf preview` shows the objects and the origin of each field, without a cluster."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ocf.cli import output
from ocf.cli.operator_loader import ComponentSource
from ocf.objects import Manifest
from ocf.objects.documents import load_documents
from ocf.runtime.operator import Operator, OwnerType

pytestmark = pytest.mark.usefixtures("operator_directory")

Run = Callable[..., Result]
ONE = ("preview", "shop_operator:one", "--owner", "owner.yaml")

EXPLAINED = """\
apps/v1/Deployment/shop/backend, component web of Shop shop/corner
  field                                          value                          set by                               was
  apiVersion                                     apps/v1                        base
  kind                                           Deployment                     base
  metadata.name                                  backend                        base
  metadata.namespace                             shop                           base
  spec.replicas                                  3                              mutation size, edit_deployment_spec  2 by base
  spec.selector.matchLabels.app                  backend                        base
  spec.template.metadata.labels.app              backend                        base
  spec.template.spec.containers[0].env[0].name   API_TOKEN                      base
  spec.template.spec.containers[0].env[0].value  redacted, sha256 f52fbd32b2b3  base
  spec.template.spec.containers[0].image         backend:2                      base
  spec.template.spec.containers[0].name          app                            base
mutations
  name     effect       because
  size     changed
  tracing  gate closed  version 2.0.9 is not ">= 2.1"
"""  # noqa: E501 (a table)


def test_yaml_is_what_would_be_applied(ocf: Run) -> None:
    answer = ocf(*ONE)
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout.startswith("---\n# component web of Shop shop/corner\napiVersion: apps/v1\nkind: Deployment\n")
    [manifest] = load_documents(answer.stdout)
    assert manifest["spec"]["replicas"] == 3
    assert manifest["spec"]["template"]["spec"]["containers"][0]["args"] == ["--tracing"]


def test_an_owner_that_is_paused_has_a_note(ocf: Run) -> None:
    owner = Path("owner.yaml")
    paused = owner.read_text(encoding="utf-8").replace(
        "metadata: {", 'metadata: {annotations: {ocf.ocf.dev/paused: "true"}, ', 1
    )
    plain = ocf(*ONE).stdout
    owner.write_text(paused, encoding="utf-8")
    answer = ocf(*ONE)
    assert answer.stderr == (
        'note: Shop shop/corner is paused by the annotation ocf.ocf.dev/paused: "true"; '
        "these objects are applied once the pause ends\n"
    )
    assert answer.stdout == plain


@pytest.mark.parametrize("selected", [True, False])
def test_an_owner_that_is_not_selected_has_a_note(capsys: pytest.CaptureFixture[str], *, selected: bool) -> None:
    operator: Operator[Manifest] = Operator(
        name="copies", owner=OwnerType("v1", "Secret"), components=lambda _: (), select="copy=true"
    )
    metadata = {"name": "login", "namespace": "town", "labels": {"copy": str(selected).lower()}}
    owner = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    ComponentSource("operator:copies", None, operator).note_unreconciled(owner, "")
    note = "note: Secret town/login is not selected by the operator copies, which does not reconcile it\n"
    assert capsys.readouterr().err == ("" if selected else note)


def test_json_is_a_list_that_kubectl_reads(ocf: Run) -> None:
    shown = json.loads(ocf(*ONE, "--output", "json").stdout)
    assert (shown["apiVersion"], shown["kind"]) == ("v1", "List")
    assert [item["kind"] for item in shown["items"]] == ["Deployment"]


def test_text_is_an_overview(ocf: Run) -> None:
    assert ocf(*ONE, "--output", "text").stdout == (
        "component web of Shop shop/corner\n"
        "  resource                         state    active mutations\n"
        "  apps/v1/Deployment/shop/backend  applied  size, tracing\n"
    )


def test_components_are_drawn(ocf: Run) -> None:
    mermaid = ocf(*ONE, "--output", "mermaid", "--set", "spec.version=2.0.9").stdout.splitlines()
    assert mermaid[:3] == [
        "flowchart TB",
        '  subgraph n0["Shop shop/corner"]',
        '    subgraph n1["1. component web<br>condition WebReady"]',
    ]
    assert "mutation tracing: gate closed, version 2.0.9 is not #quot;#gt;= 2.1#quot;" in mermaid[3]
    assert ocf(*ONE, "--output", "picture").stdout.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<svg ')


def test_fields_are_not_drawn(ocf: Run) -> None:
    answer = ocf(*ONE, "--explain", "--output", "picture")
    assert answer.stderr == "error: --explain shows fields: give --output text, json or yaml, not picture\n"


def test_explain_shows_the_origin_of_every_field(ocf: Run) -> None:
    answer = ocf(*ONE, "--explain", "--set", "spec.version=2.0.9")
    assert answer.stdout == EXPLAINED


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_explain_as_json_and_yaml(ocf: Run, output: str) -> None:
    text = ocf(*ONE, "--explain", "--output", output).stdout
    [explained] = json.loads(text) if output == "json" else load_documents(text)
    fields = {field["path"]: field["settings"] for field in explained["fields"]}
    assert fields["spec.replicas"] == [
        {"by": "base", "value": 2},
        {"by": "mutation size, edit_deployment_spec", "value": 3},
    ]
    assert explained["mutations"][1] == {"name": "tracing", "effect": "changed", "reason": ""}
    assert (explained["owner"], explained["component"]) == ("Shop shop/corner", "web")


def test_a_terminal_gets_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    output.grid("title", ("a", "b"), [("[bold]1[/bold]", "2")])
    shown = capsys.readouterr().out
    assert "title" in shown
    assert "│ [bold]1[/bold] │ 2 │" in shown


def test_owners_come_from_standard_input_too(ocf: Run) -> None:
    text = Path("owner.yaml").read_text(encoding="utf-8")
    both = f"{text}---{text.replace('corner', 'main')}"
    shown = ocf("preview", "shop_operator:one", "--owner", "-", "--output", "text", stdin=both).stdout
    assert [line for line in shown.splitlines() if line.startswith("component")] == [
        "component web of Shop shop/corner",
        "component web of Shop shop/main",
    ]


class TestSecrets:
    @pytest.mark.parametrize("how", [(), ("--output", "json"), ("--explain",), ("--explain", "--output", "json")])
    def test_they_are_not_shown(self, ocf: Run, how: tuple[str, ...]) -> None:
        answer = ocf(*ONE, *how)
        assert answer.exit_code == 0
        assert "hunter2" not in answer.output
        assert "redacted, sha256 f52fbd32b2b3" in answer.stdout

    def test_they_are_shown_on_request(self, ocf: Run) -> None:
        assert "hunter2" in ocf(*ONE, "--show-secrets").stdout


class TestGeneratedValues:
    """A value that is generated once has none to show, and a word of ours must not be taken for it."""

    LOGIN = """
def generating(owner):
    from ocf.primitives import secret
    login = secret.Builder({"metadata": {"name": "login", "namespace": "shop"}, "stringData": {"user": "a"}})
    builder = component.Builder("login", condition_type="LoginReady")
    return builder.with_resource(login.with_generated("password", fails), writes="create-only").build()


def fails(owner):"""
    ARGUMENTS = ("preview", "shop_operator:generating", "--owner", "owner.yaml")

    @pytest.mark.parametrize("how", [(), ("--output", "json"), ("--show-secrets",), ("--explain",)], ids=" ".join)
    def test_they_are_shown_as_generated(self, ocf: Run, rewrite: Callable[[str, str], None], how: list[str]) -> None:
        rewrite("def fails(owner):", self.LOGIN)
        answer = ocf(*self.ARGUMENTS, *how)
        assert answer.exit_code == 0
        (line,) = [line for line in answer.stdout.splitlines() if "password" in line]
        assert "(generated)" in line

    def test_the_overview_names_the_writes(self, ocf: Run, rewrite: Callable[[str, str], None]) -> None:
        rewrite("def fails(owner):", self.LOGIN)
        answer = ocf(*self.ARGUMENTS, "--output", "text")
        assert [line.split() for line in answer.stdout.splitlines() if "login" in line][1:] == [
            ["v1/Secret/shop/login", "create-only"]
        ]


class TestData:
    ZONED = ("preview", "shop_operator:zoned", "--owner", "owner.yaml")

    def test_an_empty_data_cell_is_named_with_the_option_to_fill_it(self, ocf: Run) -> None:
        answer = ocf(*self.ZONED)
        assert answer.exit_code == 2
        assert answer.stderr.endswith(
            'data "zone": data not extracted; without a reconcile, fill it with --data zone=VALUE\n'
        )

    def test_a_cell_can_be_filled(self, ocf: Run) -> None:
        manifests = load_documents(ocf(*self.ZONED, "--data", "zone=b").stdout)
        assert manifests[1]["metadata"]["annotations"] == {"zone": "b"}

    def test_an_unknown_data_cell_is_rejected(self, ocf: Run) -> None:
        answer = ocf(*self.ZONED, "--data", "zon=b")
        assert answer.stderr == 'error: invalid data "zon=b": write NAME=VALUE; the data cells are: zone\n'


class TestErrors:
    def test_they_are_one_line_and_status_2(self, ocf: Run) -> None:
        answer = ocf("preview", "shop_operator:fails", "--owner", "owner.yaml")
        assert answer.exit_code == 2
        assert answer.stdout == ""
        assert answer.stderr.startswith(
            "error: shop_operator:fails for Shop shop/corner failed: RuntimeError: no such size (shop_operator.py:"
        )
        assert answer.stderr.count("\n") == 1

    def test_the_traceback_is_shown_on_request(self, ocf: Run) -> None:
        answer = ocf("preview", "shop_operator:fails", "--owner", "owner.yaml", "--traceback")
        assert answer.exit_code == 1
        assert isinstance(answer.exception, Exception)
        assert isinstance(answer.exception.__cause__, RuntimeError)

    def test_a_failing_mutation_is_named(self, ocf: Run) -> None:
        answer = ocf(*ONE, "--set", "spec.version=latest")
        assert answer.exit_code == 2
        assert "failed to apply mutation intent for tracing: 'latest' is not a version" in answer.stderr

    def test_the_owner_is_required(self, ocf: Run) -> None:
        assert ocf("preview", "shop_operator:one").exit_code == 2


@pytest.mark.parametrize(
    ("how", "state"),
    [("suspend()", "suspended"), ("with_feature_gate(VersionGate('1', '>= 2'))", "disabled by its gate")],
)
def test_a_component_that_does_not_run_has_a_note(
    ocf: Run, rewrite: Callable[[str, str], None], how: str, state: str
) -> None:
    rewrite("with_resource(resource).build()", f"with_resource(resource).{how}.build()")
    answer = ocf(*ONE)
    assert answer.stderr == (
        f"note: component web of Shop shop/corner is {state}; these objects are applied while it runs\n"
    )
    assert load_documents(answer.stdout)[0]["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ("component.Builder('again', condition_type='WebReady').build()", 'have the same condition type "WebReady"'),
        (
            "component.Builder('again', condition_type='Again').with_resource(one(shop).entries[0].resource).build()",
            'resource apps/v1/Deployment/shop/backend is managed by component "again" and by component "web"',
        ),
    ],
)
def test_components_that_no_reconcile_accepts_together_are_an_error(ocf: Run, second: str, problem: str) -> None:
    source = Path("shop_operator.py")
    added = f"\n\ndef both(shop):\n    return [one(shop), {second}]\n"
    source.write_text(source.read_text(encoding="utf-8") + added, encoding="utf-8")
    answer = ocf("preview", "shop_operator:both", "--owner", "owner.yaml")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.startswith("error: components of Shop shop/corner: ")
    assert problem in answer.stderr


def test_components_of_which_one_is_disabled_may_have_the_same_object(ocf: Run) -> None:
    source = Path("shop_operator.py")
    second = "component.Builder('again', condition_type='Again').with_resource(one(shop).entries[0].resource)"
    gated = f"{second}.with_feature_gate(VersionGate('1', '>= 2')).build()"
    added = f"\n\ndef both(shop):\n    return [one(shop), {gated}]\n"
    source.write_text(source.read_text(encoding="utf-8") + added, encoding="utf-8")
    assert ocf("preview", "shop_operator:both", "--owner", "owner.yaml").exit_code == 0


STORE = """
from pydantic import BaseModel, SecretStr

from ocf import component
from ocf.concepts import Data
from ocf.objects import ObjectKey
from ocf.primitives import external, secret

PASSWORD = Data[str]("password")


class Role(BaseModel):
    login: bool = True
    password: SecretStr


class Roles(external.Client[Role, Role]):
    kind = "Role"

    async def read(self, identity):
        raise AssertionError("a preview must not call out")

    apply = delete = read


def one(owner):
    role = external.Builder(Roles(), name="corner", desired=lambda: Role(password=SecretStr(PASSWORD.require())))
    role.with_data_guard(PASSWORD).with_targets("eu", "us")
    login = secret.Builder({"stringData": {"user": "corner"}}).with_generated("password")
    login.extract_into(PASSWORD, lambda live: live.data["password"])
    return component.Builder("web", owner=ObjectKey.of(owner)).with_resource(login).with_resource(role).build()
"""


@pytest.mark.promise("external-preview")
def test_what_is_desired_outside_of_the_cluster_is_shown_and_not_called(ocf: Run) -> None:
    Path("store.py").write_text(STORE, encoding="utf-8")
    command = ("preview", "store:one", "--owner", "owner.yaml")
    failed = ocf(*command)
    assert failed.exit_code == 2
    assert "--data password=VALUE" in failed.stderr
    answer = ocf(*command, "--data", "password=hunter2")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout.count("# outside of the cluster, component web of Shop shop/corner\n") == 2
    assert "# kind: Role\n" in answer.stdout
    assert "#   login: true\n" in answer.stdout
    # `kubectl apply` reads the objects only.
    assert [each["kind"] for each in load_documents(answer.stdout) if each] == ["Secret"]
    found = json.loads(ocf(*command, "--data", "password=hunter2", "--output", "json").stdout)
    assert [each["metadata"]["name"] for each in found["external"]] == ["corner@eu", "corner@us"]
    assert "hunter2" not in answer.stdout + str(found)
    table = ocf(*command, "--data", "password=hunter2", "--output", "text").stdout
    assert "external/Role/corner@eu  managed, outside of the cluster" in table
