"""An operator's module in a working directory of its own."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ocf.cli.app import app

SHOP = '''
from pydantic import BaseModel

from ocf import component
from ocf.concepts import Data, GuardStatus, StatusReport
from ocf.feature import VersionGate
from ocf.primitives import deployment

BASE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: backend, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: backend}}
  template:
    metadata: {labels: {app: backend}}
    spec: {containers: [{name: app, image: "backend:2", env: [{name: API_TOKEN, value: hunter2}]}]}
"""
ZONE = Data[str]("zone")


def tracing(version):
    def mutate(m):
        m.edit_containers(lambda _, __: True)(lambda container: container.ensure_arg("--tracing"))

    return deployment.Mutation("tracing", mutate, feature=VersionGate(version, ">= 2.1"))


def web(version, size):
    large = deployment.Mutation("size", lambda m: m.ensure_replicas(size))
    resource = deployment.Builder(BASE).with_mutation(large, tracing(version)).build()
    return component.Builder("web", condition_type="WebReady").with_resource(resource).build()


def components(owner):
    return [web(owner["spec"]["version"], owner["spec"].get("size", 3))]


def one(owner):
    return components(owner)[0]


class Spec(BaseModel):
    version: str
    size: int = 3


class Shop(BaseModel):
    spec: Spec


def modelled(owner: Shop):
    return web(owner.spec.version, owner.spec.size)


def zoned(owner):
    annotate = deployment.Mutation(
        "zone", lambda m: m.edit_object_metadata(lambda meta: meta.ensure_annotation("zone", ZONE.require()))
    )
    producer = deployment.Builder(BASE.replace("backend", "source")).extract_into(ZONE, lambda live: "a").build()
    consumer = deployment.Builder(BASE).with_mutation(annotate).with_data_guard(ZONE).build()
    return component.Builder("z", condition_type="Z").with_resource(producer).with_resource(consumer).build()


def fails(owner):
    raise RuntimeError("no such\\nsize")


def half_annotated(owner: "Shop") -> "OnlyForTypeCheckers":
    return web(owner.spec.version, owner.spec.size)


def unknown_model(owner: "OnlyForTypeCheckers"):
    return web(owner.spec.version, owner.spec.size)


def waiting(owner):
    resource = deployment.Builder(BASE).with_guard(lambda base: StatusReport(GuardStatus.BLOCKED, "no license")).build()
    return component.Builder("web", condition_type="WebReady").with_resource(resource).build()


def forgets(owner):
    return component.Builder("web", condition_type="WebReady")


async def waits(owner):
    return None


def nothing(owner):
    return None


def invalid(owner):
    return component.Builder("", condition_type="").build()


SIZE = 3
'''
OWNER = """
apiVersion: example.com/v1
kind: Shop
metadata: {name: corner, namespace: shop}
spec: {version: 2.3.1}
"""


@pytest.fixture
def operator_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a directory with the module and its owner."""
    (tmp_path / "shop_operator.py").write_text(SHOP)
    (tmp_path / "owner.yaml").write_text(OWNER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def rewrite(operator_directory: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Replace a part of the operator's module, and forget that it was imported."""
    del operator_directory
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def change(old: str, new: str) -> None:
        source = Path("shop_operator.py")
        text = source.read_text(encoding="utf-8")
        assert old in text
        source.write_text(text.replace(old, new), encoding="utf-8")
        sys.modules.pop("shop_operator", None)

    return change


@pytest.fixture
def ocf(operator_directory: None) -> Callable[..., Result]:
    """Run a command of the command line."""
    del operator_directory

    def run(*words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, list(words), input=stdin)

    return run
