"""The time of the API server, as its answers have it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import pytest
from aiohttp import web

from ocf.cluster.client import ApiServerCluster, RestConfig

if TYPE_CHECKING:
    from tests.cluster.client.conftest import Server

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        pytest.param("Sat, 31 Jan 2026 12:00:00 GMT", NOON, id="of HTTP"),
        pytest.param("Saturday, 31-Jan-26 12:00:00 GMT", NOON, id="of old servers"),
        pytest.param("Sat, 31 Jan 2026 13:00:00 +0100", NOON, id="with a zone"),
        pytest.param("Sat, 31 Jan 2026 12:00:00 -0000", NOON, id="without a zone"),
        pytest.param("", None, id="empty"),
        pytest.param("yesterday", None, id="a word"),
        pytest.param("Sat, 31 Jan 2026 99:00:00 GMT", None, id="a time that does not exist"),
        pytest.param("Fri, 31 Dec 9999 23:59:59 -2359", None, id="after the last day"),
    ],
)
async def test_the_date_of_an_answer(server: Server, config: RestConfig, date: str, expected: datetime | None) -> None:
    async def handle(_: web.Request) -> web.Response:
        return web.json_response({}, headers={"Date": date})

    server.handle("GET", "/x", handle)
    async with ApiServerCluster(config) as cluster:
        assert cluster.server_time is None
        await cluster.read_path("/x")
        assert cluster.server_time == expected
