"""Certificates and proxies, on real TLS connections."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import trustme
import yaml
from aiohttp import web

from ocf.cluster.client import ApiServerCluster, RestConfig, TlsConfig
from ocf.cluster.client.connection import Connection
from ocf.cluster.client.kubeconfig import load_config
from ocf.cluster.client.requests import HttpRequest
from ocf.errors import ConfigError, ServerError
from tests.support import serving_locally

if TYPE_CHECKING:
    from tests.cluster.client.conftest import Server

GET: Final = HttpRequest("GET", "/x")
EPOCH: Final = 1_800_000_000.0


@dataclass
class TlsServer:
    """A server that answers with the name in the client certificate, and notes each connection."""

    port: int
    context: ssl.SSLContext
    peers: set[Any] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


@asynccontextmanager
async def _serve(authority: trustme.CA, *names: str) -> AsyncIterator[TlsServer]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names or ("127.0.0.1",)).configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    seen = TlsServer(0, context)

    async def respond(request: web.Request) -> web.Response:
        assert request.transport
        seen.peers.add(request.transport.get_extra_info("peername"))
        certificate = request.transport.get_extra_info("peercert") or {}
        names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
        return web.json_response({"user": "".join(names), "sni": request.host})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", respond)
    async with serving_locally(app, tls=context) as address:
        seen.port = int(address.rpartition(":")[2])
        yield seen


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def _issue(authority: trustme.CA, user: str, folder: Path) -> None:
    """Write a client certificate, as a tool that rotates it."""
    issued = authority.issue_cert(f"{user}.example.com", common_name=user)
    (folder / "cert").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    (folder / "key").write_bytes(issued.private_key_pem.bytes())


def _files(folder: Path, authority: trustme.CA) -> TlsConfig:
    (folder / "ca").write_bytes(authority.cert_pem.bytes())
    return TlsConfig(ca_file=str(folder / "ca"), cert_file=str(folder / "cert"), key_file=str(folder / "key"))


@dataclass
class Caller:
    connection: Connection
    clock: list[float]

    async def user(self, now: float = EPOCH) -> str:
        self.clock[0] = now
        answer = await self.connection.send(GET)
        return str(answer["user"])


@asynccontextmanager
async def _caller(config: RestConfig, environ: dict[str, str] | None = None) -> AsyncIterator[Caller]:
    clock = [EPOCH]
    connection = Connection(config, timeout=600, idle_timeout=600, environ=environ or {}, now=lambda: clock[0])
    yield Caller(connection, clock)
    await connection.close()


class TestRotation:
    async def test_a_rotated_client_certificate_is_used_within_a_minute(
        self, authority: trustme.CA, tmp_path: Path
    ) -> None:
        """On a new connection: the server knows the old one by its certificate."""
        _issue(authority, "old", tmp_path)
        async with _serve(authority) as server:
            async with _caller(RestConfig(host=server.url, tls=_files(tmp_path, authority))) as caller:
                assert [await caller.user(), await caller.user()] == ["old", "old"]
                assert len(server.peers) == 1
                _issue(authority, "new", tmp_path)
                assert await caller.user(EPOCH + 59) == "old"
                assert await caller.user(EPOCH + 60) == "new"
                assert await caller.user(EPOCH + 61) == "new"

            assert len(server.peers) == 2

    async def test_files_that_do_not_change_keep_their_connection(self, authority: trustme.CA, tmp_path: Path) -> None:
        _issue(authority, "same", tmp_path)
        async with _serve(authority) as server:
            async with _caller(RestConfig(host=server.url, tls=_files(tmp_path, authority))) as caller:
                for minute in range(5):
                    assert await caller.user(EPOCH + 60 * minute) == "same"

            assert len(server.peers) == 1

    async def test_a_certificate_without_its_key_is_used_once_the_key_is_there(
        self, authority: trustme.CA, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        _issue(authority, "old", tmp_path)
        async with (
            _serve(authority) as server,
            _caller(RestConfig(host=server.url, tls=_files(tmp_path, authority))) as caller,
        ):
            await caller.user()
            old_key = (tmp_path / "key").read_bytes()
            _issue(authority, "new", tmp_path)
            new_key = (tmp_path / "key").read_bytes()
            (tmp_path / "key").write_bytes(old_key)
            assert await caller.user(EPOCH + 60) == "old"
            (tmp_path / "key").unlink()
            assert await caller.user(EPOCH + 120) == "old"
            (tmp_path / "key").write_bytes(new_key)
            assert await caller.user(EPOCH + 180) == "new"

        assert "KEY_VALUES_MISMATCH" in caplog.text
        assert f"{tmp_path / 'key'}: No such file" in caplog.text

    async def test_a_rotated_authority_is_trusted_within_a_minute(self, authority: trustme.CA, tmp_path: Path) -> None:
        other = trustme.CA()
        (tmp_path / "ca").write_bytes(other.cert_pem.bytes())
        async with (
            _serve(authority) as server,
            _caller(RestConfig(host=server.url, tls=TlsConfig(ca_file=str(tmp_path / "ca")))) as caller,
        ):
            with pytest.raises(ServerError, match="certificate verify failed"):
                await caller.user()
            (tmp_path / "ca").write_bytes(other.cert_pem.bytes() + authority.cert_pem.bytes())
            with pytest.raises(ServerError, match="certificate verify failed"):
                await caller.user(EPOCH + 59)
            assert await caller.user(EPOCH + 60) == ""

    async def test_a_plugin_rotates_its_certificate(
        self, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from ocf.cluster.client.exec_plugin import ExecCredential
        from ocf.cluster.client.rest_config import ExecConfig
        from ocf.cluster.client.tls import ClientKeyPair

        users = iter(["old", "new"])

        async def run(_: ExecConfig) -> ExecCredential:
            _issue(authority, next(users), tmp_path)
            pair = ClientKeyPair((tmp_path / "cert").read_bytes(), (tmp_path / "key").read_bytes())
            return ExecCredential(pair=pair, expires=EPOCH + 600)

        monkeypatch.setattr("ocf.cluster.client.credentials.run_plugin", run)
        plugin = ExecConfig(command="x", api_version="client.authentication.k8s.io/v1")
        tls = TlsConfig(ca_data=authority.cert_pem.bytes())
        async with (
            _serve(authority) as server,
            _caller(RestConfig(host=server.url, tls=tls, exec=plugin)) as caller,
        ):
            assert [await caller.user(), await caller.user(EPOCH + 599)] == ["old", "old"]
            assert await caller.user(EPOCH + 600) == "new"
            assert len(server.peers) == 2


class TestKubeconfig:
    @pytest.mark.parametrize("inline", [True, False], ids=["data", "relative files"])
    async def test_certificates_of_a_kubeconfig(
        self, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, inline: bool
    ) -> None:
        folder = tmp_path / "folder"
        folder.mkdir()
        _issue(authority, "jane", folder)
        _files(folder, authority)

        def entry(**fields: str) -> dict[str, str]:
            files = {name.replace("_", "-"): file for name, file in fields.items()}
            if not inline:
                return files
            return {
                f"{name}-data": base64.b64encode((folder / file).read_bytes()).decode() for name, file in files.items()
            }

        async with _serve(authority) as server:
            config = {
                "clusters": [{"name": "c", "cluster": {"server": server.url, **entry(certificate_authority="./ca")}}],
                "users": [{"name": "c", "user": entry(client_certificate="cert", client_key="../folder/key")}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
                "current-context": "c",
            }
            (folder / "config").write_text(yaml.safe_dump(config))
            monkeypatch.chdir(tmp_path)
            async with _caller(load_config("folder/config")) as caller:
                assert await caller.user() == "jane"

    async def test_the_server_may_have_another_name(self, authority: trustme.CA) -> None:
        async with _serve(authority, "api.example.com") as server:
            tls = TlsConfig(ca_data=authority.cert_pem.bytes())
            async with _caller(RestConfig(host=server.url, tls=tls)) as caller:
                with pytest.raises(ServerError, match=r"IP address mismatch|certificate verify failed"):
                    await caller.user()
            named = replace(tls, server_name="api.example.com")
            async with _caller(RestConfig(host=server.url, tls=named)) as caller:
                assert await caller.user() == ""

    async def test_an_insecure_connection_accepts_any_server(self, authority: trustme.CA) -> None:
        """Here with an address in upper case, which is TLS, too."""
        async with (
            _serve(authority, "other") as server,
            _caller(RestConfig(host=server.url.upper(), tls=TlsConfig(insecure=True))) as caller,
        ):
            assert await caller.user() == ""

    @pytest.mark.parametrize(
        "settings",
        [
            pytest.param({"ca_data": b"no certificate"}, id="authority"),
            pytest.param({"ca_file": "/does/not/exist"}, id="missing authority"),
            pytest.param({"cert_data": b"no certificate", "key_data": b"s3cr3t"}, id="client certificate"),
        ],
    )
    def test_certificates_that_cannot_be_used_are_an_error(self, settings: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match=r"certificates for https://127\.0\.0\.1:1 cannot be used") as caught:
            ApiServerCluster(RestConfig(host="https://127.0.0.1:1", tls=TlsConfig(**settings)))

        assert "s3cr3t" not in str(caught.value)


@asynccontextmanager
async def _tunnel() -> AsyncIterator[tuple[str, list[str]]]:
    """Run an HTTP proxy; return its URL, and the request lines of its tunnels."""
    asked: list[str] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(2**16):
            writer.write(data)
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        asked.append(head[0])
        host, _, port = head[0].split()[1].rpartition(":")
        there = await asyncio.open_connection("127.0.0.1" if host.startswith("api.") else host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", asked


class TestProxy:
    @pytest.mark.parametrize(
        ("environ", "url", "used"),
        [
            pytest.param({}, "", False, id="none"),
            pytest.param({"HTTPS_PROXY": "{proxy}"}, "", True, id="of the environment"),
            pytest.param({"HTTPS_PROXY": "{proxy}", "NO_PROXY": "*.example.com:1"}, "", True, id="other port"),
            pytest.param({"HTTPS_PROXY": "http://127.0.0.1:1"}, "{proxy}", True, id="the kubeconfig precedes"),
            pytest.param({"NO_PROXY": "*"}, "{proxy}", True, id="NO_PROXY is not for the kubeconfig's"),
        ],
    )
    async def test_the_server_is_reached_through_the_proxy(
        self, authority: trustme.CA, environ: dict[str, str], url: str, *, used: bool
    ) -> None:
        """With TLS to the server inside, so its certificate is checked, not that of the proxy."""
        async with _serve(authority, "api.example.com", "127.0.0.1") as server, _tunnel() as (proxy, asked):
            host = f"https://api.example.com:{server.port}" if used else server.url
            config = RestConfig(
                host=host, tls=TlsConfig(ca_data=authority.cert_pem.bytes()), proxy_url=url.format(proxy=proxy)
            )
            settings = {name: value.format(proxy=proxy) for name, value in environ.items()}
            async with _caller(config, settings) as caller:
                assert await caller.user() == ""

            assert asked == ([f"CONNECT api.example.com:{server.port} HTTP/1.1"] if used else [])

    async def test_a_server_without_tls_is_asked_by_its_whole_address(self, server: Server) -> None:
        server.answer("GET", "http://api.example.com/x", {"user": "proxied"})
        async with _caller(RestConfig(host="http://api.example.com"), {"http_proxy": server.url}) as caller:
            assert await caller.user() == "proxied"
