"""A server is started on a free port, or an error says why it is not ready, and no process is left."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ocf.errors import ConfigError
from ocf.testing.envtest.startup import Launch, RunningServer, free_port, start

if TYPE_CHECKING:
    from ocf.testing.envtest.http_probe import HttpProbe
    from tests.testing.envtest.conftest import Eventually

# Fake server: writes a file named by its port; exits like a Go server if the port is in use.
SERVER = """#!/bin/sh
echo $1 >> $(dirname $0)/tried
case "$1" in
  1) echo "listen tcp 127.0.0.1:1: bind: address already in use"; exit 1 ;;
  2) echo "unknown flag: --x"; exit 2 ;;
  3) echo "waiting for etcd"; echo $$ > $(dirname $0)/pid ;;
  4) exit 3 ;;
  5) echo serving; echo $$ > $(dirname $0)/pid; touch $(dirname $0)/open ;;
  *) touch $(dirname $0)/open ;;
esac
exec sleep 600
"""


class FakeProbe:
    """A fake `HttpProbe` that is ready as soon as the server has written its file."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port = port
        self._file = folder / "open"

    def is_open(self, path: str) -> bool:
        assert path == "/ready"
        return self._file.exists()


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    program = tmp_path / "server"
    program.write_text(SERVER)
    program.chmod(0o755)

    def probe(port: int) -> HttpProbe:
        return FakeProbe(port, tmp_path)  # type: ignore[return-value]  # stands in for one

    def arguments(port: int) -> Sequence[str]:
        return [str(port)]

    return Launch(program=program, arguments=arguments, probe=probe, ready="/ready", folder=tmp_path, seconds=60)


def ports(*numbers: int) -> Callable[[], int]:
    left: Iterator[int] = iter(numbers)
    return lambda: next(left)


def tried(folder: Path) -> list[str]:
    return (folder / "tried").read_text().split()


def test_a_server_that_is_ready_is_returned(launch: Launch) -> None:
    server = start(launch, ports=ports(9))
    assert server.program.running
    assert server.probe.port == 9
    server.program.stop()


def test_a_port_in_use_is_not_tried_again(launch: Launch, tmp_path: Path) -> None:
    server = start(launch, ports=ports(1, 1, 9))
    assert tried(tmp_path) == ["1", "1", "9"]
    server.program.stop()


def test_ports_in_use_are_not_tried_for_ever(launch: Launch, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="server found 5 ports in use, one after another"):
        start(launch, ports=lambda: 1)
    assert len(tried(tmp_path)) == 5


def test_another_exit_is_not_retried_and_shows_the_log(launch: Launch, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        start(launch, ports=lambda: 2)
    assert str(raised.value) == "server ended with code 2 instead of serving; the end of its log:\nunknown flag: --x"
    assert tried(tmp_path) == ["2"]


def test_an_exit_without_output_says_so(launch: Launch) -> None:
    with pytest.raises(ConfigError, match="server ended with code 3 instead of serving; it printed nothing"):
        start(launch, ports=lambda: 4)


class TestInUse:
    """A server that ends while it is in use does not go unnoticed."""

    @pytest.fixture
    def server(self, launch: Launch) -> Iterator[RunningServer]:
        server = start(launch, ports=lambda: 5)
        yield server
        server.program.stop()

    @pytest.fixture
    def kill(self, server: RunningServer, launch: Launch, eventually: Eventually) -> Callable[[], None]:
        def kill() -> None:
            os.kill(int((launch.folder / "pid").read_text()), signal.SIGTERM)
            eventually(lambda: not server.program.running)

        return kill

    def test_a_block_that_succeeds_fails(self, server: RunningServer, kill: Callable[[], None]) -> None:
        with pytest.raises(ConfigError) as raised, server.in_use():
            kill()
        assert str(raised.value) == "server ended with code 143 while it was in use; the end of its log:\nserving"

    def test_an_exception_has_a_note(self, server: RunningServer, kill: Callable[[], None]) -> None:
        for state, act in (("is running", str), ("ended with code 143 while it was in use", kill)):
            with pytest.raises(TimeoutError) as raised, server.in_use():
                raise_after(act)
            assert raised.value.__notes__ == [f"server {state}; the end of its log:\nserving"]


def raise_after(act: Callable[[], object]) -> None:
    act()
    raise TimeoutError


def test_a_server_that_is_never_ready_is_stopped_and_shows_the_log(
    launch: Launch, tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    def clock() -> float:
        """Return 0 until the server runs, then a time after the deadline."""
        return 61 if (tmp_path / "pid").exists() else 0

    with pytest.raises(ConfigError) as raised:
        start(launch, ports=lambda: 3, clock=clock)
    assert str(raised.value) == "server was not ready after 60 s; the end of its log:\nwaiting for etcd"
    assert gone(int((tmp_path / "pid").read_text()))


def test_waiting_can_be_aborted_from_another_thread(launch: Launch) -> None:
    given_up = threading.Event()
    given_up.set()
    with pytest.raises(ConfigError, match="the start of server was aborted"):
        start(launch, ports=lambda: 3, given_up=given_up)


def test_a_free_port_is_free() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))
