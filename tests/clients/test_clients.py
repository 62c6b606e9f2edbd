"""Clients in Python and JavaScript take the same steps on the embedded API server and on a real one.

`make clients` installs them. A client that is not installed is skipped, unless `OCF_REQUIRE` lists `clients`.
"""

import json
from typing import Any, Final

import pytest

from ocf.objects import Manifest
from tests.clients.support import JAVASCRIPT, Server, command, run

PYTHON: Final = ("kubernetes", "kubernetes_asyncio", "lightkube", "kr8s", "pykube")

DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}
SHOPS: Final[Manifest] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "shops.clients.example.com"},
    "spec": {
        "group": "clients.example.com",
        "scope": "Namespaced",
        "names": {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            }
        ],
    },
}
RESULT: Final = {
    "created": {"colour": "red"},
    "duplicate": [409, "AlreadyExists"],
    "missing": [404, "NotFound"],
    "listed": ["settings"],
    "watched": [["MODIFIED", "settings"], ["DELETED", "settings"]],
    "patched": {"colour": "blue", "size": "1"},
    "scaled": 5,
    "custom": {"size": 3},
    "invalid": [422, "Invalid"],
}


@pytest.fixture
def definitions() -> list[Manifest]:
    return [SHOPS]


async def result(client: str, server: Server) -> Any:
    """Run the program of a client against a server; return what it prints."""
    environ = {"DEPLOYMENT": json.dumps(DEPLOYMENT)}
    return json.loads(await run([*command(client), server.namespace], server, environ))


@pytest.mark.parametrize("client", [*PYTHON, *JAVASCRIPT])
async def test_on_the_embedded_server(client: str, embedded: Server) -> None:
    assert await result(client, embedded) == RESULT


@pytest.mark.parametrize("client", [*PYTHON, *JAVASCRIPT])
async def test_on_a_real_server(client: str, real: Server) -> None:
    assert await result(client, real) == RESULT
