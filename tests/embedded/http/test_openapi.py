"""OpenAPI of custom kinds, compared with documents of a real API server."""

import gzip
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.embedded import EmbeddedCluster
from tests.embedded.http.test_exchanges import differing

Client = Callable[..., Awaitable[Any]]
Kubectl = Callable[..., Awaitable[Any]]
RECORDED: Final = json.loads(gzip.decompress((Path(__file__).parent / "recorded" / "openapi.json.gz").read_bytes()))
DELETE: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


def comparable(document: Any) -> Any:
    """Return a document without the groups that have a DeleteOptions: those of the whole server."""
    document["components"]["schemas"][DELETE].pop("x-kubernetes-group-version-kind")
    return document


@pytest.mark.parametrize("version", [pytest.param(version, id=version) for version in RECORDED["documents"]])
async def test_documents_of_custom_kinds_equal_those_of_a_real_api_server(
    version: str, ask: Client, cluster: EmbeddedCluster
) -> None:
    for definition in RECORDED["definitions"]:
        await cluster.create(definition, field_manager="test")
    found = await ask("GET", f"/openapi/v3/apis/recorded.example.com/{version}")
    wanted = comparable(json.loads(json.dumps(RECORDED["documents"][version])))
    assert not list(differing(wanted, comparable(found.json), ""))


async def test_kubectl_explains_a_custom_kind(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    for definition in RECORDED["definitions"]:
        await cluster.create(definition, field_manager="test")
    version = "--api-version=recorded.example.com/v1"
    shown = (await kubectl("explain", "shops.spec", version)).out
    assert "What it sells." in shown
    assert "ports" in shown
    shown = (await kubectl("explain", "shops", version)).out
    assert "Standard object's metadata" in shown
    assert "APIVersion defines the versioned schema" in shown
