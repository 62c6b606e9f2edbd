"""Requests of a probe, each on a connection of its own or all on one."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ocf.testing.envtest.certificates import Authority
from ocf.testing.envtest.http_probe import HttpProbe


class Answers(BaseHTTPRequestHandler):
    """Answers with the path, and counts connections; it closes the connection after `/last`, and at once for `/cut`."""

    protocol_version = "HTTP/1.1"
    opened = 0

    def setup(self) -> None:
        super().setup()
        type(self).opened += 1

    def do_GET(self) -> None:
        if self.path == "/cut":
            self.close_connection = True
            return
        answer = f'{{"path": "{self.path}"}}'.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        if self.path == "/last":
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 (the name of the base class)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[HttpProbe, type[Answers]]]:
    authority = Authority(folder)
    files = authority.server("server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    handler = type("Handler", (Answers,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield HttpProbe(server.server_port, authority.certificate, authority.client("tester")), handler
        finally:
            server.shutdown()
            thread.join()


def test_each_request_has_a_connection_of_its_own_unless_the_probe_is_connected(tmp_path: Path) -> None:
    with serving(tmp_path) as (probe, handler):
        for path in ("/a", "/b"):
            assert probe.ask("GET", path) == (200, {"path": path})
        assert handler.opened == 2
        with probe.connected():
            for path in ("/a", "/b", "/c"):
                assert probe.ask("GET", path) == (200, {"path": path})
        assert handler.opened == 3
        assert probe.is_open("/a")
        assert handler.opened == 4


def test_another_thread_does_not_use_the_connection(tmp_path: Path) -> None:
    with serving(tmp_path) as (probe, handler), probe.connected():
        probe.ask("GET", "/a")
        thread = threading.Thread(target=probe.ask, args=("GET", "/b"))
        thread.start()
        thread.join()
        assert handler.opened == 2


def test_a_connection_that_the_server_closes_is_opened_again(tmp_path: Path) -> None:
    with serving(tmp_path) as (probe, handler), probe.connected():
        assert probe.ask("GET", "/last") == (200, {"path": "/last"})
        assert probe.ask("GET", "/a") == (200, {"path": "/a"})
        with pytest.raises(http.client.RemoteDisconnected):
            probe.ask("GET", "/cut")
        assert probe.ask("GET", "/b") == (200, {"path": "/b"})
        assert handler.opened == 3
