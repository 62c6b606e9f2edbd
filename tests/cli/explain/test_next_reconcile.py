"""`ocf explain KIND/NAME --components`: what the operator's code would do next."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.cli.explain.next_reconcile import next_reconcile
from ocf.cluster import Request, Verb
from ocf.cluster.interceptor import InterceptingCluster
from ocf.errors import ForbiddenError
from ocf.objects import ObjectKey
from ocf_server import EmbeddedCluster
from tests.cli.explain.test_owner import explain, served, shown
from tests.ownership.world import KINDS, condition, shop, workload

pytestmark = pytest.mark.usefixtures("operator_directory")

PLACE: Final = {"namespace": "shop"}
OWNER: Final = shop(
    condition("WebReady", reason="Creating", message="no pods"), spec={"version": "2.0.9"}, metadata=PLACE
)
KUBECTL: Final = {
    "manager": "kubectl",
    "operation": "Update",
    "apiVersion": "apps/v1",
    "time": "2026-01-31T11:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {"f:replicas": {}}},
}
# Another client has changed the number of replicas.
BACKEND: Final = workload(
    "Deployment",
    OWNER,
    name="backend",
    metadata={**PLACE, "managedFields": [KUBECTL]},
    spec={"replicas": 9, "selector": {"matchLabels": {"app": "backend"}}},
)
BACKEND["spec"]["template"]["metadata"]["labels"] = {"app": "backend"}
WORDS: Final = ("shop/corner", "--namespace", "shop", "--components")


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("cluster"), [OWNER, BACKEND]) as path:
        yield path


def test_a_field_of_another_client_has_its_mutation_and_a_gate_its_reason(kubeconfig: str) -> None:
    text = shown(*WORDS, "shop_operator:one", "--kubeconfig", kubeconfig)
    _, found = " ".join(text.split()).split("The next reconcile ")
    assert found.startswith("component web update apps/v1/Deployment/shop/backend: ")
    assert "spec.replicas: 9 → 3, set by mutation size, edit_deployment_spec" in found
    assert 'spec.replicas is taken over from "kubectl"' in found
    assert found.endswith(
        'apps/v1/Deployment/shop/backend: mutation tracing: gate closed, version 2.0.9 is not ">= 2.1"'
    )
    assert "hunter2" not in text


def test_json_has_the_values_of_a_diff_and_the_gates(kubeconfig: str) -> None:
    [web] = json.loads(shown(*WORDS, "shop_operator:one", "--output", "json", "--kubeconfig", kubeconfig))["next"]
    [replicas] = [one for one in web["objects"][0]["fields"] if one["path"] == "spec.replicas"]
    assert (replicas["before"], replicas["after"]) == (9, 3)
    assert web["gates"] == [
        {
            "of": "apps/v1/Deployment/shop/backend",
            "closed": 'mutation tracing: gate closed, version 2.0.9 is not ">= 2.1"',
        }
    ]


def test_a_guard_that_stops_the_reconcile_is_named(kubeconfig: str) -> None:
    text = shown(*WORDS, "shop_operator:waiting", "--kubeconfig", kubeconfig)
    assert "  component web\n    would stop early, Blocked: Deployment backend: no license\n" in text


def test_the_picture_has_what_is_declared_and_what_was_observed(kubeconfig: str, tmp_path: Path) -> None:
    file = tmp_path / "corner.svg"
    shown(*WORDS, "shop_operator:zoned", "--kubeconfig", kubeconfig, "--picture", str(file))
    svg = file.read_text(encoding="utf-8")
    assert "needs zone" in svg
    assert "1. Deployment source, fills zone, does not exist" in svg
    assert "progressing: has 0 of 9 pods ready" in svg


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param("shop/corner -f x.yaml", "--components explains one owner in a cluster: leave out", id="files"),
        pytest.param("shop --all", "--components explains one owner in a cluster: leave out", id="all"),
        pytest.param("shop/corner --watch", "--components explains one owner in a cluster: leave out", id="watch"),
        pytest.param("web", "--components is for owners: write KIND/NAME", id="autoscaler"),
    ],
)
def test_options_that_do_not_fit_are_an_error(words: str, message: str) -> None:
    found = explain(*words.split(), "--components", "shop_operator:one")
    assert (found.exit_code, found.stderr.count("\n")) == (2, 1)
    assert found.stderr.startswith(f"error: {message}")


def test_an_operator_of_another_kind_is_an_error(kubeconfig: str) -> None:
    Path("copies.py").write_text(
        "from ocf.runtime.operator import Operator, OwnerType\n"
        'operator = Operator(name="copies", owner=OwnerType("v1", "Secret"), components=lambda _: ())\n',
        encoding="utf-8",
    )
    found = explain(*WORDS, "copies", "--kubeconfig", kubeconfig)
    assert found.exit_code == 2
    assert found.stderr == "error: --components copies: no operator of it reconciles example.com/v1 Shop\n"


class Reading(InterceptingCluster):
    """A cluster in which a user may only read."""

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.verb in {Verb.GET, Verb.LIST}:
            return await send()
        raise ForbiddenError(f'User "reader" cannot patch {request.kind}', code=403, reason="Forbidden")


def test_a_reader_gets_the_gates_and_the_right_that_is_missing() -> None:
    async def work() -> list[str]:
        cluster = EmbeddedCluster(kinds=KINDS, namespaces=["shop"])
        await cluster.restore([OWNER, BACKEND])
        found = await next_reconcile("shop_operator:one", ObjectKey.of(OWNER), Reading(cluster))
        return [line for _, line in found.lines()]

    lines = asyncio.run(work())
    assert [line for line in lines if 'User "reader" cannot patch Deployment' in line]
    assert lines[-1].startswith("apps/v1/Deployment/shop/backend: mutation tracing: gate closed")
