"""External resources behind HTTP, in virtual time: what answers, errors and connections of a server mean."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.message import Message
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import pytest
from aiohttp import ClientConnectorError, ClientSession, web
from aiohttp.client_reqrep import ConnectionKey

from ocf import component
from ocf.component.external.calls import failure_of
from ocf.errors import ProviderRefusedError, ServerError, TooManyRequestsError
from ocf.objects import ObjectKey
from ocf.primitives import external
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.testing import LoopClock, run_in_virtual_time, serving_http_stub
from ocf_server import CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ocf.objects import Manifest
    from ocf.testing.http_stub import HttpStub

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
OWNER = ObjectKey("example.com/v1", "Shop", "corner", "town")


class Boards(external.Client[dict[str, Any], dict[str, Any]]):
    """Dashboards, of which a server stores any number under one title; it gives each an id."""

    kind = "Board"

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def read(self, identity: external.Identity) -> dict[str, Any] | None:
        query = {"title": identity.name, "tag": identity.key}
        async with self.session.get(f"http://{identity.target}/boards", params=query) as answer:
            answer.raise_for_status()
            found: list[dict[str, Any]] = await answer.json()
            return found[0] if found else None

    async def apply(
        self, identity: external.Identity, desired: dict[str, Any], observed: dict[str, Any] | None
    ) -> dict[str, Any]:
        body = {**desired, "title": identity.name, "tag": identity.key}
        base = f"http://{identity.target}/boards"
        method, url = ("POST", base) if observed is None else ("PUT", f"{base}/{observed['id']}")
        async with self.session.request(method, url, json=body) as answer:
            answer.raise_for_status()
            return dict(await answer.json())

    async def delete(self, identity: external.Identity) -> None:
        async with self.session.delete(f"http://{identity.target}/boards/{identity.id}") as answer:
            answer.raise_for_status()

    def id_of(self, observed: dict[str, Any]) -> str:
        return str(observed["id"])

    def key_of(self, observed: dict[str, Any]) -> str:
        return str(observed["tag"])


class Server:
    """The boards of all hosts."""

    def __init__(self) -> None:
        self.boards: list[dict[str, Any]] = []
        self.app = web.Application()
        self.app.add_routes(
            [
                web.get("/boards", self.list),
                web.post("/boards", self.store),
                web.put("/boards/{id}", self.change),
                web.delete("/boards/{id}", self.delete),
            ]
        )

    async def list(self, request: web.Request) -> web.Response:
        wanted = {**request.query, "host": request.host}
        return web.json_response([one for one in self.boards if wanted.items() <= one.items()])

    async def store(self, request: web.Request) -> web.Response:
        body = await request.json()
        board = {**body, "host": request.host, "id": str(len(self.boards))}
        self.boards.append(board)
        return web.json_response(board)

    async def change(self, request: web.Request) -> web.Response:
        (board,) = [one for one in self.boards if one["id"] == request.match_info["id"]]
        board.update(await request.json())
        return web.json_response(board)

    async def delete(self, request: web.Request) -> web.Response:
        self.boards = [one for one in self.boards if one["id"] != request.match_info["id"]]
        return web.Response()


def in_an_operator(test: Callable[[EmbeddedCluster, Server, HttpStub], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        server = Server()
        cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"])
        async with serving_http_stub(server.app) as stub:

            def boards(owner: Manifest) -> component.Component:
                board = external.Builder(Boards(stub.session), name="sales", desired={"rows": 3})
                builder = component.Builder("board", owner=ObjectKey.of(owner))
                return builder.with_resource(board.with_targets("eu", "us")).build()

            shops: Operator[Any] = Operator(name="shops", owner=OwnerType("example.com/v1", "Shop"), components=boards)
            async with running(cluster, shops, options=ManagerOptions(listen=None, clock=LoopClock())):
                await test(cluster, server, stub)

    run_in_virtual_time(run())


async def create(cluster: EmbeddedCluster) -> None:
    metadata = {"name": "corner", "namespace": "town"}
    await cluster.create(
        {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {}}, field_manager="user"
    )


def hosts(server: Server) -> list[str]:
    return sorted(one["host"] for one in server.boards)


def test_a_lost_answer_of_a_create_makes_no_second_one() -> None:
    async def check(cluster: EmbeddedCluster, server: Server, stub: HttpStub) -> None:
        stub.lose_answers("us")
        await create(cluster)
        await asyncio.sleep(60)
        assert [one.method for one in stub.requests if one.host == "us"][:2] == ["GET", "POST"]
        assert hosts(server) == ["eu", "us"]
        stub.lose_answers("eu", 2)
        await cluster.delete(OWNER)
        await asyncio.sleep(60)
        assert not server.boards

    in_an_operator(check)


def test_a_retry_after_of_the_server_is_obeyed() -> None:
    async def check(cluster: EmbeddedCluster, server: Server, stub: HttpStub) -> None:
        stub.fail("us", 429, retry_after=300)
        await create(cluster)
        await asyncio.sleep(299)
        assert hosts(server) == ["eu"]
        assert sum(one.host == "us" for one in stub.requests) == 1
        message = (await cluster.get(OWNER))["status"]["conditions"][0]["message"]
        assert message == "external/Board/sales@us: HTTP status 429"
        stub.heal("us")
        await asyncio.sleep(20)
        assert hosts(server) == ["eu", "us"]

    in_an_operator(check)


@pytest.mark.parametrize("asked", [3 * 3600, 365 * 86400])
def test_a_retry_after_of_more_than_an_hour_counts_as_one_and_the_condition_says_so(asked: int) -> None:
    async def check(cluster: EmbeddedCluster, server: Server, stub: HttpStub) -> None:
        stub.fail("us", 503, retry_after=asked)
        await create(cluster)
        await asyncio.sleep(3500)
        assert sum(one.host == "us" for one in stub.requests) == 1
        shown = (await cluster.get(OWNER))["status"]["conditions"][0]
        text = "HTTP status 503 (it asks for a longer pause than 1:00:00, and is called after that)"
        assert shown["message"] == f"external/Board/sales@us: {text}"
        version = cluster.resource_version
        await asyncio.sleep(3600)
        assert sum(one.host == "us" for one in stub.requests) == 2
        assert cluster.resource_version == version
        stub.heal("us")
        await asyncio.sleep(3600)
        assert hosts(server) == ["eu", "us"]

    in_an_operator(check)


LONG = " (it asks for a longer pause than 1:00:00, and is called after that)"


def _response_error(status: int, **headers: str) -> Exception:
    error = ValueError("https://user:hunter2@eu/boards")
    error.status = status  # type: ignore[attr-defined]
    error.headers = headers  # type: ignore[attr-defined]
    return error


def _library_error() -> Exception:
    headers = Message()
    headers["Retry-After"] = "30"
    return HTTPError("https://user:hunter2@eu/boards", 503, "busy", headers, None)


@pytest.mark.parametrize(
    ("error", "text", "of_target", "seconds"),
    [
        pytest.param(TimeoutError(), "no answer within 10 s", True, None, id="no answer"),
        pytest.param(ConnectionRefusedError(), "no connection: ConnectionRefusedError", True, None, id="refused"),
        pytest.param(
            ClientConnectorError(ConnectionKey("db.example", 5432, True, True, None, None, None), OSError("refused")),
            "no connection to db.example:5432: ClientConnectorError",
            True,
            None,
            id="of aiohttp, which knows to which host",
        ),
        pytest.param(_response_error(500), "HTTP status 500", True, None, id="an error of the server"),
        pytest.param(_response_error(429), "HTTP status 429", True, None, id="too many"),
        pytest.param(_response_error(400), "HTTP status 400", False, None, id="an error of the resource"),
        pytest.param(_response_error(503, **{"Retry-After": "30"}), "HTTP status 503", True, 30, id="seconds"),
        pytest.param(
            _response_error(503, **{"Retry-After": "Sat, 31 Jan 2026 12:01:00 GMT"}),
            "HTTP status 503",
            True,
            60,
            id="date",
        ),
        pytest.param(_response_error(503, **{"retry-after": "30"}), "HTTP status 503", True, 30, id="another case"),
        pytest.param(_library_error(), "HTTP status 503", True, 30, id="of the standard library"),
        pytest.param(_response_error(503, **{"Retry-After": "soon"}), "HTTP status 503", True, None, id="nonsense"),
        pytest.param(_response_error(503, **{"Retry-After": "3600"}), "HTTP status 503", True, 3600, id="an hour"),
        pytest.param(_response_error(503, **{"Retry-After": "3601"}), f"HTTP status 503{LONG}", True, 3600, id="more"),
        pytest.param(_response_error(503, **{"Retry-After": "1e300"}), f"HTTP status 503{LONG}", True, 3600, id="huge"),
        pytest.param(
            _response_error(503, **{"Retry-After": "Sun, 31 Jan 2027 12:01:00 GMT"}),
            f"HTTP status 503{LONG}",
            True,
            3600,
            id="a date in a year",
        ),
        pytest.param(
            TooManyRequestsError("slow", code=429, retry_after=1e9), f"slow{LONG}", True, 3600, id="ours with a year"
        ),
        pytest.param(_response_error(503, **{"Retry-After": "-5"}), "HTTP status 503", True, 0, id="in the past"),
        pytest.param(ProviderRefusedError("the quota is used up"), "the quota is used up", False, None, id="ours"),
        pytest.param(TooManyRequestsError("slow", code=429, retry_after=7), "slow", True, 7, id="ours with a delay"),
        pytest.param(ServerError("gone"), "gone", True, None, id="ours without an answer"),
        pytest.param(KeyError("hunter2"), "unexpected KeyError", False, None, id="unknown"),
    ],
)
def test_what_an_error_of_a_call_means(error: Exception, text: str, of_target: bool, seconds: float | None) -> None:
    found = failure_of(error, timedelta(seconds=10), NOON)
    assert (found.text, found.of_target) == (text, of_target)
    assert found.retry_after == (None if seconds is None else timedelta(seconds=seconds))
