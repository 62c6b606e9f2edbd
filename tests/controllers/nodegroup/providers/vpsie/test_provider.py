"""The VPSie provider against a stub that also behaves as its clients have found the API to behave."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ocf.controllers.nodegroup.providers.vpsie import Credentials, VPSieConnection, VPSieProvider, VPSieSettings
from ocf.errors import (
    CapacityExhaustedError,
    ConfigError,
    MachineNotFoundError,
    ProviderError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from ocf.nodegroups import Machine, MachineRequest, MachineState
from ocf.testing.clock import VirtualClock
from tests.controllers.nodegroup.providers.vpsie.stub import CLUSTER, DATACENTER, VPSieStub, serving

START = datetime(2026, 1, 1, tzinfo=UTC)
WORKER = MachineRequest("pool-1", "pool", "12", DATACENTER)
FIRST = "fra-kubernetes-01"


@dataclass
class Env:
    """A provider and the stub it calls.

    Args:
        stub: The stub.
        connection: The connection of the provider.
        provider: The provider.
        settings: Its settings.
        clock: Its clock.
        credentials: What the connection reads before each request.
    """

    stub: VPSieStub
    connection: VPSieConnection
    provider: VPSieProvider
    settings: VPSieSettings
    clock: VirtualClock
    credentials: list[Credentials]


@pytest.fixture
async def env() -> AsyncIterator[Env]:
    stub = VPSieStub()
    clock = VirtualClock(START)
    credentials = [Credentials(token="fixed")]

    async def current() -> Credentials:
        return credentials[0]

    async with serving(stub) as url:
        settings = VPSieSettings(CLUSTER, (DATACENTER,), base_url=url)
        connection = VPSieConnection(settings, current, clock=clock)
        yield Env(stub, connection, VPSieProvider(connection), settings, clock, credentials)
        await connection.close()


async def test_instance_types_are_the_sizes_of_all_datacenters(env: Env) -> None:
    small, large = await env.provider.instance_types()
    assert (small.name, str(small.capacity["cpu"]), str(small.capacity["memory"])) == ("12", "2", "4Gi")
    assert [each.zone for each in small.offerings] == [DATACENTER]
    assert small.offerings[0].price == pytest.approx(0.02)
    assert (str(large.capacity["ephemeral-storage"]), large.offerings[0].price) == ("200Gi", 0.08)


async def test_a_group_of_workers_is_made_once_for_each_size(env: Env) -> None:
    for name in ("pool-1", "pool-2"):
        await env.provider.create(replace(WORKER, name=name))
    await env.provider.create(replace(WORKER, name="pool-3", instance_type="13"))
    assert [group["boxsize_id"] for group in env.stub.groups] == [12, 13]
    assert len(env.stub.workers) == 3


@pytest.mark.parametrize("names_workers", [True, False], ids=["answer with its name", "answer is true"])
async def test_an_added_worker_is_found(env: Env, *, names_workers: bool) -> None:
    env.stub.names_workers = names_workers
    created = await env.provider.create(WORKER)
    assert created.state is MachineState.PENDING
    found = await env.provider.get(replace(WORKER, machine_id=created.id))
    assert (found.id, found.node_name, found.state, found.instance_type, found.zone) == (
        FIRST,
        FIRST,
        MachineState.RUNNING,
        "12",
        DATACENTER,
    )


async def test_a_worker_that_is_not_listed_yet_is_not_found(env: Env) -> None:
    env.stub.listed_at_once = False
    await env.provider.create(WORKER)
    with pytest.raises(MachineNotFoundError, match="no worker of cluster b2f0 belongs to pool-1"):
        await env.provider.get(WORKER)
    env.stub.boot()
    assert (await env.provider.get(WORKER)).id == FIRST


async def test_a_lost_answer_adds_no_second_worker(env: Env) -> None:
    env.stub.groups.append({"id": 1, "group_name": "by hand", "boxsize_id": 12})
    env.stub.lost_answers = 1
    with pytest.raises(ProviderUnavailableError, match="no answer"):
        await env.provider.create(WORKER)
    assert (await env.provider.create(replace(WORKER, retried=True))).id == FIRST
    assert list(env.stub.workers) == ["Fra-kubernetes-01"]


async def test_workers_of_other_nodes_and_from_before_are_not_taken(env: Env) -> None:
    env.stub.workers["by-hand"] = {"identifier": "b", "hostname": "by-hand"}
    await env.provider.create(WORKER)
    excluded = frozenset({"by-hand", FIRST})
    with pytest.raises(MachineNotFoundError):
        await env.provider.get(replace(WORKER, excluded=excluded))
    assert (await env.provider.get(replace(WORKER, excluded=frozenset({"by-hand"})))).id == FIRST


async def test_nodes_of_the_control_plane_are_not_listed(env: Env) -> None:
    assert await env.provider.list() == []


async def test_a_deleted_worker_may_be_deleted_again(env: Env) -> None:
    await env.provider.create(WORKER)
    machine = Machine(FIRST, MachineState.RUNNING)
    await env.provider.delete(machine)
    await env.provider.delete(machine)
    assert not env.stub.workers
    assert env.stub.requests.count(f"DELETE /k8s/cluster/byId/{CLUSTER}/delete/slave") == 1


async def test_a_worker_without_identifier_is_not_taken_for_deleted(env: Env) -> None:
    env.stub.workers["odd"] = {"hostname": "odd", "identifier": ""}
    with pytest.raises(ProviderUnavailableError, match="worker odd has no identifier yet, it cannot be deleted"):
        await env.provider.delete(Machine("odd", MachineState.RUNNING))


async def test_a_worker_that_is_not_found_but_listed_is_not_taken_for_deleted(env: Env) -> None:
    await env.provider.create(WORKER)
    listed = {"error": False, "data": {"nodes": list(env.stub.workers.values())}}
    env.stub.failures = [(200, listed), (404, {"message": "not found"}), (200, listed)]
    with pytest.raises(ProviderUnavailableError, match="not found, but fra-kubernetes-01 is in the list"):
        await env.provider.delete(Machine(FIRST, MachineState.RUNNING))


@pytest.mark.parametrize("call", ["list", "get", "delete"])
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((404, {"error": True, "message": "cluster not found"}), id="404"),
        pytest.param((200, {"error": True, "code": 404, "message": "gone"}), id="404 as 200"),
        pytest.param((200, {"error": True, "message": "Cluster not found"}), id="text as 200"),
    ],
)
async def test_a_missing_cluster_does_not_prove_that_a_worker_is_gone(
    env: Env, call: str, answer: tuple[int, Any]
) -> None:
    env.stub.failures = [answer]
    with pytest.raises(ProviderRefusedError, match="cluster b2f0"):
        await _call(env.provider, call)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"error": True, "message": "try later"}, id="error as 200"),
        pytest.param({"error": "busy", "data": []}, id="error is a text"),
        pytest.param({"data": []}, id="a list of nodes in place of the cluster"),
        pytest.param({"data": {}}, id="no list of nodes"),
        pytest.param({"data": None}, id="null"),
        pytest.param("<html>maintenance</html>", id="a page"),
        pytest.param("", id="nothing"),
    ],
)
async def test_an_unreadable_answer_is_not_an_empty_list(env: Env, body: object) -> None:
    env.stub.failures = [(200, body)]
    with pytest.raises(ProviderUnavailableError):
        await env.provider.list()


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        pytest.param(
            500, {"message": "Worker nodes count exceeds the allowed limit 5"}, ProviderRefusedError, id="limit"
        ),
        pytest.param(200, {"error": True, "message": "Quota Exceeded"}, ProviderRefusedError, id="quota as 200"),
        pytest.param(400, {"message": "invalid KubeSizeID"}, ProviderRefusedError, id="invalid"),
        pytest.param(403, {"message": "forbidden"}, ProviderRefusedError, id="forbidden"),
        pytest.param(500, {"message": "size 12 is sold out"}, CapacityExhaustedError, id="sold out"),
        pytest.param(500, {"message": "oops"}, ProviderUnavailableError, id="500"),
        pytest.param(502, "<html>", ProviderUnavailableError, id="a proxy's page"),
        pytest.param(429, {}, ProviderUnavailableError, id="too many requests"),
        pytest.param(200, {"error": True, "code": 429}, ProviderUnavailableError, id="too many requests as 200"),
        pytest.param(503, {}, ProviderUnavailableError, id="503"),
        pytest.param(504, "<html>", ProviderUnavailableError, id="a gateway gave up"),
        pytest.param(408, {}, ProviderUnavailableError, id="408"),
        pytest.param(409, {}, ProviderUnavailableError, id="409"),
        pytest.param(302, "", ProviderRefusedError, id="redirect"),
    ],
)
async def test_errors_are_classified(env: Env, status: int, body: object, expected: type[ProviderError]) -> None:
    settings = replace(env.settings, exhausted_texts=("sold out",))
    connection = VPSieConnection(settings, _fixed, clock=env.clock)
    env.stub.failures = [(status, body)]
    with pytest.raises(ProviderError) as raised:
        await VPSieProvider(connection).create(WORKER)
    await connection.close()
    assert type(raised.value) is expected
    if isinstance(raised.value, ProviderUnavailableError):
        code = body.get("code", status) if isinstance(body, dict) else status
        assert raised.value.had_no_effect is (code == 429)


async def test_an_issued_token_is_used_until_five_minutes_before_it_expires(env: Env) -> None:
    env.credentials[0] = Credentials(client_id="id", client_secret="secret")
    await env.provider.list()
    env.clock.advance(timedelta(minutes=54))
    await env.provider.list()
    assert env.stub.issued == 1
    env.clock.advance(timedelta(minutes=2))
    await env.provider.list()
    assert env.stub.issued == 2


async def test_a_token_that_is_refused_is_replaced_once(env: Env) -> None:
    env.credentials[0] = Credentials(client_id="id", client_secret="secret")
    await env.provider.list()
    env.stub.tokens.clear()
    await env.provider.list()
    assert env.stub.issued == 2


async def test_refused_credentials_are_an_error_without_the_secret(env: Env) -> None:
    env.credentials[0] = Credentials(client_id="id", client_secret="wrong")
    with pytest.raises(ProviderRefusedError, match="401: invalid client") as raised:
        await env.provider.list()
    assert "wrong" not in str(raised.value)
    assert "wrong" not in repr(env.credentials[0])


async def test_rotated_credentials_are_used_at_once(env: Env) -> None:
    await env.provider.list()
    env.stub.tokens = {"rotated"}
    env.credentials[0] = Credentials(token="rotated")
    await env.provider.list()
    assert env.stub.requests == [f"GET /k8s/cluster/byId/{CLUSTER}"] * 2


async def test_a_fixed_token_may_be_sent_as_bearer(env: Env) -> None:
    settings = replace(env.settings, token_header="Authorization")
    connection = VPSieConnection(settings, _fixed, clock=env.clock)
    assert await VPSieProvider(connection).list() == []
    await connection.close()


async def test_a_server_that_does_not_answer_is_unavailable() -> None:
    settings = VPSieSettings(CLUSTER, (DATACENTER,), base_url="http://127.0.0.1:9")
    connection = VPSieConnection(settings, _fixed)
    with pytest.raises(ProviderUnavailableError, match="no answer"):
        await VPSieProvider(connection).list()
    await connection.close()


async def test_an_instance_type_that_is_not_a_size_is_refused(env: Env) -> None:
    with pytest.raises(ProviderRefusedError, match="instance type 'small' is not the number of a size"):
        await env.provider.create(replace(WORKER, instance_type="small"))


def test_credentials_need_a_token_or_an_id_and_a_secret() -> None:
    with pytest.raises(ConfigError):
        Credentials(client_id="id")


async def _fixed() -> Credentials:
    return Credentials(token="fixed")


async def _call(provider: VPSieProvider, name: str) -> object:
    match name:
        case "list":
            return await provider.list()
        case "get":
            return await provider.get(WORKER)
        case _:
            await provider.delete(Machine(FIRST, MachineState.RUNNING))
            return None
