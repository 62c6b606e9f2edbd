"""The retry of a write after a conflict: what it reads, how often it writes, and which errors end it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import DeleteOptions, PatchOptions, PatchType
from ocf.cluster.retry import MOST_TRIES, retry_on_conflict
from ocf.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    NotFoundError,
    OcfError,
    ReconcileError,
    ServerError,
    api_error,
)
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster

KEY = ObjectKey("v1", "ConfigMap", "counter", "default")
COUNTER: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "counter", "namespace": "default"}}
CONFLICT = api_error("the object has been modified", code=409, reason="Conflict")


@dataclass
class Server:
    """An object of which each read is a version of its own, and whose writes answer as listed: an error, or none."""

    answers: Sequence[OcfError | None]
    log: list[str] = field(default_factory=list)
    reads: int = 0
    writes: int = 0

    async def read(self) -> str:
        self.reads += 1
        self.log.append("read")
        return f"read {self.reads}"

    async def write(self, seen: str) -> str:
        self.log.append(f"write {seen}")
        answer = self.answers[self.writes]
        self.writes += 1
        if answer is not None:
            raise answer
        return f"{seen} written"


@given(conflicts=st.integers(0, 8), tries=st.integers(1, 8), live=st.sampled_from([None, "live"]))
async def test_each_retry_writes_what_was_read_after_the_conflict(conflicts: int, tries: int, live: str | None) -> None:
    """A retry without a read would send the same resourceVersion: https://github.com/keikoproj/aws-auth/issues/13."""
    server = Server([CONFLICT] * conflicts + [None])
    try:
        written = await retry_on_conflict(server.read, server.write, live=live, tries=tries)
    except ConflictError:
        written = ""
    writes = min(tries, conflicts + 1)
    seen = [f"read {number + 1}" for number in range(writes)]
    if live is not None:
        seen = [live, *seen[:-1]]
    assert [each for each in server.log if each != "read"] == [f"write {each}" for each in seen]
    assert server.reads == writes - (live is not None)
    assert written == (f"{seen[-1]} written" if conflicts < tries else "")


@given(tries=st.integers(1, 20))
async def test_conflicts_that_never_end_raise_the_last_one(tries: int) -> None:
    """Also asked of client-go, which once lost it: https://github.com/kubernetes/kubernetes/pull/82284."""
    conflicts = [api_error(f"conflict {number}", code=409, reason="Conflict") for number in range(tries + 1)]
    server = Server(conflicts)
    with pytest.raises(ConflictError) as raised:
        await retry_on_conflict(server.read, server.write, tries=tries)
    assert raised.value is conflicts[tries - 1]
    assert server.log[-1].startswith("write"), "nothing is read that no write uses"


async def test_the_default_is_that_of_client_go() -> None:
    server = Server([CONFLICT] * 100)
    with pytest.raises(ConflictError):
        await retry_on_conflict(server.read, server.write)
    assert server.reads == MOST_TRIES == 5


@pytest.mark.parametrize(
    "error",
    [
        # A create of what exists is no stale read: https://github.com/Cyoda/cyoda-go/issues/126.
        pytest.param(AlreadyExistsError("it exists", code=409, reason="AlreadyExists"), id="another 409"),
        pytest.param(NotFoundError("gone", code=404, reason="NotFound"), id="gone"),
        pytest.param(InvalidError("invalid", code=422, reason="Invalid"), id="invalid"),
        pytest.param(ServerError("etcd timed out", code=500, reason="InternalError"), id="an error of the API server"),
        # As in https://github.com/ovn-kubernetes/ovn-kubernetes/pull/1959: who wraps a conflict handles it.
        pytest.param(
            ReconcileError("web", "the object has been modified"), id="a conflict in an error of another class"
        ),
    ],
)
@pytest.mark.parametrize("conflicts", [pytest.param(0, id="at once"), pytest.param(2, id="after two conflicts")])
async def test_other_errors_of_a_write_are_not_retried(error: OcfError, conflicts: int) -> None:
    server = Server([*[CONFLICT] * conflicts, error, None])
    with pytest.raises(type(error)) as raised:
        await retry_on_conflict(server.read, server.write)
    assert raised.value is error
    assert server.reads == conflicts + 1


@pytest.mark.parametrize("live", [pytest.param(None, id="at first"), pytest.param("live", id="after a conflict")])
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(NotFoundError("gone", code=404, reason="NotFound"), id="the object is gone"),
        pytest.param(CONFLICT, id="a conflict, which is not one of a write"),
    ],
)
async def test_an_error_of_a_read_ends_it(error: OcfError, live: str | None) -> None:
    """As asked in https://github.com/cloudfoundry/service-fabrik-broker/pull/743."""
    server = Server([CONFLICT] * 2)

    async def read() -> str:
        raise error

    with pytest.raises(type(error)) as raised:
        await retry_on_conflict(read, server.write, live=live)
    assert raised.value is error
    assert len(server.log) == (live is not None)


@pytest.mark.parametrize("steps", [pytest.param(1, id="in a read"), pytest.param(2, id="in a write")])
async def test_a_cancellation_ends_it(steps: int) -> None:
    log: list[str] = []
    waits = asyncio.Event()

    async def step(name: str) -> str:
        log.append(name)
        if len(log) == steps:
            waits.set()
            await asyncio.Event().wait()
        return name

    task = asyncio.create_task(retry_on_conflict(lambda: step("read"), lambda _: step("write")))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["read", "write"][:steps]


async def _count(cluster: EmbeddedCluster, writer: str) -> None:
    """Add one to a counter, as one of several writers."""

    async def write(live: Manifest) -> Manifest:
        await asyncio.sleep(0)  # the others read the same version
        data = {"count": str(int(live.get("data", {}).get("count", "0")) + 1)}
        metadata = {"resourceVersion": live["metadata"]["resourceVersion"]}
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager=writer)
        return await cluster.patch(KEY, {"metadata": metadata, "data": data}, options)

    await retry_on_conflict(lambda: cluster.get(KEY), write, tries=100)


@pytest.mark.parametrize("writers", [pytest.param(1, id="one"), pytest.param(7, id="several")])
async def test_no_write_of_several_writers_is_lost(writers: int) -> None:
    cluster = EmbeddedCluster()
    await cluster.create(COUNTER, field_manager="test")
    await asyncio.gather(*(_count(cluster, f"writer-{number}") for number in range(writers)))
    assert (await cluster.get(KEY))["data"] == {"count": str(writers)}


async def test_an_object_that_is_deleted_after_the_conflict_is_gone() -> None:
    cluster = EmbeddedCluster()
    live = await cluster.create(COUNTER, field_manager="test")
    await cluster.patch(KEY, {"data": {"a": "b"}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="other"))

    async def write(seen: Manifest) -> Manifest:
        try:
            return await cluster.update({**seen, "data": {}}, field_manager="test")
        finally:
            await cluster.delete(KEY, DeleteOptions())

    with pytest.raises(NotFoundError):
        await retry_on_conflict(lambda: cluster.get(KEY), write, live=live)
