"""`main` as the program of a container: the messages if it cannot start."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ocf.errors import ConfigError
from ocf.runtime.operator import Listen, ManagerOptions, Operator, main
from ocf.runtime.operator.run import run_to_its_end
from ocf.testing.virtual_time import VirtualLoop
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig

from .conftest import SHOPS

OPERATOR = Operator(name="shops", owner=SHOPS, components=lambda _: ())


def critical_message(caplog: pytest.LogCaptureFixture, **options: Any) -> str:
    """Run it, and return the critical log message."""
    with pytest.raises(SystemExit) as ended:
        main(OPERATOR, options=ManagerOptions(**options))
    assert ended.value.code == 1
    return next(record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL)


def test_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    assert critical_message(caplog).startswith(
        f"no kubeconfig at {tmp_path / 'missing'}; name one, set KUBECONFIG, or run in a pod"
    )


@pytest.mark.parametrize(("port", "problem"), [(None, "Address already in use"), (70_000, "a port is 0 to 65535")])
def test_an_address_that_is_not_available(
    port: int | None,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def kubeconfig() -> None:
        async with serving(EmbeddedCluster()) as server:
            write_kubeconfig(server.kubeconfig(), tmp_path / "kubeconfig")

    asyncio.run(kubeconfig())
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        tried = port or taken.getsockname()[1]
        message = critical_message(caplog, listen=Listen(port=tried, host="127.0.0.1"))
    assert message.startswith(f"endpoints: cannot listen on 127.0.0.1:{tried}: ")
    assert problem in message


def test_a_kind_that_is_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The cluster is served meanwhile, in another thread."""
    ready, ended = threading.Event(), threading.Event()

    async def cluster() -> None:
        async with serving(EmbeddedCluster()) as server:
            write_kubeconfig(server.kubeconfig(), tmp_path / "kubeconfig")
            ready.set()
            await asyncio.to_thread(ended.wait)

    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with ThreadPoolExecutor() as threads:
        served = threads.submit(lambda: asyncio.run(cluster()))
        try:
            ready.wait()
            message = critical_message(caplog, listen=None, cache_sync_timeout=timedelta(seconds=0.2))
        finally:
            ended.set()
        served.result()
    assert message.startswith("shops: the caches did not sync within cache_sync_timeout, 0:00:00.200000: ")
    assert "example.com/v1 Shop is not read yet: the API server does not serve it; install its" in message


def test_a_task_that_ignores_its_cancellation_does_not_hold_the_process(caplog: pytest.LogCaptureFixture) -> None:
    loop, released = VirtualLoop(), asyncio.Event()

    async def stubborn() -> None:
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()

    async def work() -> None:
        tasks.append(asyncio.create_task(stubborn(), name="Buckets.apply of external/Bucket/corner"))
        await asyncio.sleep(1)

    tasks: list[asyncio.Task[None]] = []
    run_to_its_end(work(), lambda: loop)
    assert loop.time() < 5
    assert "the process ends, although Buckets.apply of external/Bucket/corner goes on" in caplog.text
    released.set()
    loop.run_until_complete(tasks[0])
    loop.close()


@pytest.mark.parametrize("error", [None, ConfigError("no")], ids=["an end", "an error"])
def test_all_other_tasks_are_cancelled_at_the_end_of_the_process(error: ConfigError | None) -> None:
    loop, ended = VirtualLoop(), list[str]()

    async def tidy() -> None:
        try:
            await asyncio.sleep(1e9)
        finally:
            ended.append("tidy")

    async def work() -> None:
        tasks.append(asyncio.create_task(tidy()))
        await asyncio.sleep(1)
        if error is not None:
            raise error

    tasks: list[asyncio.Task[None]] = []
    with pytest.raises(ConfigError) if error is not None else nullcontext():
        run_to_its_end(work(), lambda: loop)
    assert ended == ["tidy"]
    assert loop.is_closed()


async def test_a_running_loop() -> None:
    with pytest.raises(ConfigError, match='call it under `if __name__ == "__main__":`'):
        main(OPERATOR)
