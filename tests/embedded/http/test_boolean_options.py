"""Boolean options of a query, as the real API server and the embedded one read them."""

import ssl
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import aiohttp
import pytest
import pytest_asyncio
import yaml

from ocf.embedded import EmbeddedCluster
from ocf.embedded.http import serving
from tests.embedded.http.conftest import Client

# A watch ends after a second, so that its body is complete; a list ignores the timeout.
LIST = "/api/v1/namespaces/default/configmaps?timeoutSeconds=1"


@pytest_asyncio.fixture(params=["embedded", "real"])
async def either(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """Return a client of one API server and then of the other."""
    if request.param == "embedded":
        async with serving(EmbeddedCluster()) as server, aiohttp.ClientSession() as session:
            yield Client(server.url, session)
        return
    plane = request.getfixturevalue("envtest_plane")
    user = yaml.safe_load(plane.kubeconfig.read_text())["users"][0]["user"]
    context = ssl.create_default_context(cafile=str(plane.authority))
    context.load_cert_chain(user["client-certificate"], user["client-key"])
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        yield Client(plane.url, session)


@pytest.mark.parametrize(
    ("value", "watches"),
    [
        ("true", True),
        ("True", True),
        ("1", True),
        ("yes", True),
        ("", True),
        ("0.0", True),
        ("false", False),
        ("FALSE", False),
        ("0", False),
    ],
)
async def test_only_zero_and_false_are_false(value: str, watches: bool, either: Client) -> None:
    reply = await either("GET", f"{LIST}&{urlencode({'watch': value})}")
    assert reply.status == 200
    assert ('"kind":"ConfigMapList"' in reply.text) is not watches


async def test_an_option_without_a_value_is_true(either: Client) -> None:
    assert '"kind":"ConfigMapList"' not in (await either("GET", f"{LIST}&watch")).text


async def test_the_first_of_several_values_counts(either: Client) -> None:
    assert '"kind":"ConfigMapList"' in (await either("GET", f"{LIST}&watch=0&watch=1")).text
