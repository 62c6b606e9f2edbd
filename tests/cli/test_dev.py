"""`ocf dev` as a process: the operator runs, its webhooks are called, and it stops on a signal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.operator_loader import load_operators
from ocf.errors import ConfigError

SHOP: Final = """
from ocf import component
from ocf.primitives import deployment
from ocf.runtime.admission import Webhook, invalid
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import Operator, OwnerType


class ShopSpec(CamelModel):
    branches: int | None = None


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    spec: ShopSpec = ShopSpec()


def components(shop: Shop) -> component.Component:
    pod = {"spec": {"containers": [{"name": "shop", "image": "shop:1"}]}}
    web = deployment.Builder({"spec": {"replicas": shop.spec.branches, "template": pod}})
    return component.Builder("web", owner=shop.key).with_resource(web).build()


def default(shop):
    return shop.model_copy(update={"spec": ShopSpec(branches=shop.spec.branches or 3)})


def validate_shop(shop, old, operation):
    if (shop.spec.branches or 0) > 9:
        yield invalid("spec.branches", shop.spec.branches, "must be at most 9")


WEBHOOK = Webhook.of(Shop, defaulters=[default], validators=[validate_shop])
shops = Operator(name="shops", owner=OwnerType.of(Shop), components=components, webhooks=[WEBHOOK])


def made():
    return shops


def failing():
    raise RuntimeError("no licence")
"""
CORNER: Final = "{apiVersion: example.com/v1, kind: Shop, metadata: {name: corner}}"
SHOPS: Final = "/apis/example.com/v1/namespaces/default/shops"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
CONFIGURATION: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/shops"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a folder with the operator, as the working directory."""
    (tmp_path / "dev_shop.py").write_text(SHOP)
    (tmp_path / "dev_package").mkdir()
    (tmp_path / "dev_package" / "__init__.py").write_text("")
    (tmp_path / "dev_package" / "operator.py").write_text(SHOP)
    (tmp_path / "dev_two.py").write_text(
        f"{SHOP}\nothers = Operator(name='o', owner=shops.owner, components=components)"
    )
    (tmp_path / "dev_none.py").write_text("components = 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in {*sys.modules} - before:
        if name.startswith("dev_"):
            del sys.modules[name]


@dataclass
class Running:
    """The process and its start message."""

    process: asyncio.subprocess.Process
    started: dict[str, Any]
    session: aiohttp.ClientSession

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self.session.request(method, self.started["url"] + path, json=body) as answer:
            return answer.status, await answer.json(content_type=None)

    async def first(self, path: str) -> Any:
        """Return the first object of a kind, as soon as there is one."""
        url = f"{self.started['url']}{path}?watch=1"
        async with self.session.get(url) as answer, asyncio.timeout(600):
            return json.loads(await answer.content.readline())["object"]


async def start(*arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    program = "from ocf.cli import main\nmain()"
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, "dev", *arguments, stdout=pipe, stderr=pipe, env=dict(os.environ)
    )


def error_of(*arguments: str) -> str:
    """Run the command in this process: it ends at once."""
    done = CliRunner().invoke(app, ["dev", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    return done.stderr


@asynccontextmanager
async def dev(*arguments: str) -> AsyncIterator[Running]:
    process = await start("--output", "json", *arguments)
    try:
        assert process.stdout is not None
        line = await process.stdout.readline()
        assert line, (await process.communicate())[1].decode()
        async with aiohttp.ClientSession() as session:
            yield Running(process, json.loads(line), session)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_operator_runs_until_a_signal(folder: Path, number: signal.Signals) -> None:
    (folder / "corner.yaml").write_text(CORNER)
    async with dev("dev_shop", "--apply", "corner.yaml") as running:
        deployment = await running.first(DEPLOYMENTS)
        assert deployment["metadata"]["ownerReferences"][0]["name"] == "corner"
        assert deployment["spec"]["replicas"] == 3, "the defaulting webhook was called"
        running.process.send_signal(number)
        out, err = await running.process.communicate()
    assert (running.process.returncode, out, err) == (0, b"", b"")


async def test_a_save_replaces_the_operator_and_its_webhooks(folder: Path) -> None:
    (folder / "corner.yaml").write_text(CORNER)
    async with dev("dev_shop", "--reload", "--apply", "corner.yaml") as running:
        before = await running.first(DEPLOYMENTS)
        (folder / "dev_shop.py").write_text(SHOP.replace("shop.spec.branches or 3", "shop.spec.branches or 5"))
        assert running.process.stderr is not None
        assert await running.process.stderr.readline() == b"reloaded: dev_shop.py\n"
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "new"}, "spec": {}}
        assert (await running.request("POST", SHOPS, shop))[1]["spec"]["branches"] == 5
        after = await running.first(DEPLOYMENTS)
        running.process.send_signal(signal.SIGINT)
        out, err = await running.process.communicate()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert (running.process.returncode, out, err) == (0, b"", b"")


@pytest.mark.usefixtures("folder")
async def test_the_webhooks_are_called() -> None:
    async with dev("dev_package") as running:
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "big"}, "spec": {"branches": 10}}
        status, error = await running.request("POST", SHOPS, shop)
        assert status == 422
        assert "spec.branches: Invalid value: 10: must be at most 9" in error["message"]
        _, configuration = await running.request("GET", CONFIGURATION)
        assert configuration["webhooks"][0]["clientConfig"]["caBundle"]


@pytest.mark.usefixtures("folder")
async def test_rollouts_are_simulated_on_request(folder: Path) -> None:
    (folder / "corner.yaml").write_text(CORNER)
    async with dev(
        "dev_shop.py:made", "--controllers", "all", "--ready-after", "0s", "--apply", "corner.yaml"
    ) as running:
        url = f"{running.started['url']}{SHOPS}?watch=1"
        async with running.session.get(url) as answer, asyncio.timeout(600):
            async for line in answer.content:
                conditions = (json.loads(line)["object"].get("status") or {}).get("conditions") or [{}]
                if conditions[0].get("reason") == "Healthy":
                    break


def ruled(rule: str) -> str:
    """Return the operator with a CEL rule for its spec."""
    program = SHOP.replace("class ShopSpec(", f"@rules(ValidationRule({rule!r}))\nclass ShopSpec(")
    return program.replace(
        "import CamelModel, CustomResource", "import CamelModel, CustomResource, ValidationRule, rules"
    )


@pytest.mark.usefixtures("folder")
def test_cel_rules_are_evaluated(folder: Path) -> None:
    (folder / "dev_ruled.py").write_text(ruled("!has(self.branches) || self.branches > 0"))
    (folder / "none.yaml").write_text(CORNER.replace("}}", "}, spec: {branches: -1}}"))

    assert "failed rule: !has(self.branches) || self.branches > 0" in error_of("dev_ruled", "--apply", "none.yaml")


@pytest.mark.usefixtures("folder")
async def test_unsupported_cel_rules_are_skipped_with_a_note(folder: Path) -> None:
    (folder / "dev_ruled.py").write_text(ruled("!'a'.matches('(abcdefghijk){1000}')"))
    async with dev("dev_ruled") as running:
        assert (await running.request("GET", SHOPS))[0] == 200
        running.process.send_signal(signal.SIGINT)
        _, err = await running.process.communicate()
    note = (
        "note: the CEL rules (x-kubernetes-validations) of shops.example.com are not evaluated: "
        "the embedded cluster cannot evaluate regular expressions that need more than 10000 instructions in CEL "
        "expressions; "
        "rewrite the expression without it, or test it against a real API server\n"
    )
    assert err.decode() == note


@pytest.mark.usefixtures("folder")
def test_an_invalid_manifest_is_a_one_line_error(folder: Path) -> None:
    (folder / "broken.yaml").write_text("{apiVersion: example.com/v1, kind: Shop, metadata: {name: Corner}}")
    error = error_of("dev_shop", "--apply", "broken.yaml")

    assert error.startswith('error: broken.yaml:1: Shop Corner: metadata.name: Invalid value: "Corner": ')
    assert error.count("\n") == 1


def test_an_object_of_a_kind_that_is_not_served_is_named_with_its_file(folder: Path) -> None:
    (folder / "more.yaml").write_text(
        f"{CORNER}\n---\napiVersion: foo.example.com/v1\nkind: Foo\nmetadata: {{name: x}}\n"
    )
    error = error_of("dev_shop", "--apply", "more.yaml")

    assert error == (
        "error: more.yaml:3: Foo x cannot be applied: Foo of foo.example.com/v1 is neither a built-in kind nor "
        "defined; load its CustomResourceDefinition, too\n"
    )


def test_an_object_in_a_namespace_that_does_not_exist_is_named_with_the_remedy(folder: Path) -> None:
    settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: office}}"
    (folder / "more.yaml").write_text(f"{CORNER}\n---\n{settings}\n")
    error = error_of("dev_shop", "--apply", "more.yaml")

    problem = 'namespaces "office" not found; apply its Namespace, too'
    assert error == f"error: more.yaml:3: ConfigMap settings cannot be applied: {problem}\n"


@pytest.mark.usefixtures("folder")
def test_custom_resources_are_checked_before_the_operator_runs(folder: Path) -> None:
    (folder / "owners.yaml").write_text(f"{CORNER}\n---\n{CORNER.replace('}}', '}, spec: {branch: 3}}')}")
    error = error_of("dev_shop", "--apply", "owners.yaml")

    assert error == 'error: owners.yaml:3: Shop corner: spec.branch: unknown field, did you mean "branches"?\n'


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "target",
    [
        pytest.param("dev_shop:components", id="the function of an operator"),
        pytest.param("dev_shop", id="a module"),
        pytest.param("dev_shop.py", id="a file"),
        pytest.param("./dev_shop.py", id="a file, as shells complete it"),
        pytest.param("dev_package", id="a package with a module operator"),
        pytest.param("dev_package/", id="a folder"),
        pytest.param("dev_package/operator.py", id="a file in a folder"),
        pytest.param("dev_package.operator:shops", id="a name"),
        pytest.param("dev_two:shops", id="one of several"),
        pytest.param("dev_shop:made", id="a function"),
    ],
)
def test_an_operator_is_found(target: str) -> None:
    assert [operator.name for operator in load_operators(target)] == ["shops"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("target", "problem"),
    [
        pytest.param("dev_none", "module dev_none has no operator", id="none"),
        pytest.param(
            "dev_none:components",
            "dev_none:components is not an operator, got an object of type int; declare one, operator = Operator",
            id="something else",
        ),
        pytest.param(
            "dev_two:components",
            r"dev_two:components is not an operator, got the function components\(shop.*; name one of shops, others",
            id="the function of two operators",
        ),
        pytest.param(
            "dev_shop:Shop", "dev_shop:Shop is not an operator, got the class Shop; name one of shops", id="owner"
        ),
        pytest.param("dev_shop:shop", 'module dev_shop has no "shop", did you mean "shops"?', id="misspelt"),
        pytest.param(
            "dev_shop:failing", r"dev_shop:failing failed: RuntimeError: no licence \(dev_shop.py:", id="fails"
        ),
        pytest.param("dev_shop:", 'invalid target "dev_shop:": write MODULE or MODULE:NAME', id="no name"),
        pytest.param("dev_nothing", 'module "dev_nothing" not found', id="no module"),
        pytest.param("/shops/shop.py", "is an absolute path: change to the folder", id="an absolute path"),
    ],
)
def test_an_invalid_operator_is_rejected(target: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_operators(target)


async def test_a_module_that_runs_its_operator_on_import_is_rejected(folder: Path) -> None:
    """An event loop runs during the import; otherwise the operator would run on the configured cluster."""
    (folder / "dev_running.py").write_text(f"{SHOP}\nfrom ocf.runtime.operator import main\nmain(shops)")
    with pytest.raises(ConfigError, match=r"main\(\.\.\.\) cannot run in a running event loop: .* \(dev_running.py:"):
        load_operators("dev_running")
