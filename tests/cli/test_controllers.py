"""Manifests of the commands that install controllers: they apply into a cluster that has nothing of them."""

from __future__ import annotations

from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.objects import Manifest
from ocf.objects.documents import load_documents
from ocf.testing.plugin import Envtest
from ocf_server import EmbeddedCluster

COMMANDS: Final = [
    pytest.param("nodegroups manifests", id="node groups"),
    pytest.param("nodegroups manifests --provider=cluster-api", id="node groups of Cluster API"),
    pytest.param("hpa-controller manifests --mode=own-kind", id="autoscalers"),
]


def printed(command: str) -> tuple[str, str]:
    """Return what a command prints to the standard output and to the standard error."""
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def kinds(manifests: list[Manifest]) -> list[str]:
    return [each["kind"] for each in manifests]


@pytest.mark.parametrize("command", COMMANDS)
async def test_they_apply_in_their_order_and_twice(command: str) -> None:
    cluster = EmbeddedCluster()
    for _ in range(2):
        for manifest in load_documents(printed(command)[0]):
            await cluster.apply(manifest, field_manager="admin")


@pytest.mark.parametrize("command", COMMANDS)
def test_kubectl_applies_them_to_a_real_api_server(command: str, envtest: Envtest) -> None:
    text = printed(command)[0]
    for options in (["--server-side"], [], ["--server-side", "--force-conflicts"]):
        envtest.plane.kubectl("apply", *options, "--filename=-", stdin=text)
    names = [each["metadata"]["name"] for each in load_documents(text) if each["kind"] == "CustomResourceDefinition"]
    for name in names:
        envtest.plane.kubectl("wait", "--for=condition=Established", f"crd/{name}")


@pytest.mark.parametrize(
    ("namespace", "first", "noted"),
    [
        pytest.param("ocf-system", "Namespace", False, id="the default one"),
        # `kubectl delete` with the manifests would delete what others have in it.
        pytest.param("monitoring", "CustomResourceDefinition", True, id="one that others may use"),
        pytest.param("kube-system", "CustomResourceDefinition", False, id="one that each cluster has"),
    ],
)
def test_the_namespace_is_part_of_them_if_it_is_ours(namespace: str, first: str, *, noted: bool) -> None:
    text, notes = printed(f"nodegroups manifests --namespace={namespace}")
    assert kinds(list(load_documents(text)))[0] == first
    expected = f"note: the namespace {namespace} must exist: kubectl create namespace {namespace}\n"
    assert notes == (expected if noted else "")
