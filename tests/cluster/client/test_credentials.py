"""Credentials arrive with each request, and are renewed without a restart."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from aiohttp import web

from ocf.cluster import ListOptions, ServiceAccount, WatchOptions
from ocf.cluster.client import ApiServerCluster, Impersonation, RestConfig
from ocf.cluster.client.connection import Connection
from ocf.cluster.client.credentials import Credential, Credentials, describe_credentials
from ocf.cluster.client.exec_plugin import parse_credential
from ocf.cluster.client.kubeconfig import load_config
from ocf.cluster.client.requests import HttpRequest
from ocf.cluster.client.rest_config import ExecConfig, TlsConfig
from ocf.errors import ApiError, ConfigError, ForbiddenError, ServerError

if TYPE_CHECKING:
    from tests.cluster.client.conftest import Server

GET: Final = HttpRequest("GET", "/x")
CONFIG_MAPS: Final = "/api/v1/namespaces/shop/configmaps"
V1: Final = "client.authentication.k8s.io/v1"
PLUGIN: Final = ExecConfig(command="plugin", api_version=V1)
EPOCH: Final = 1_800_000_000.0  # 2027-01-15T08:00:00Z


@dataclass
class Caller:
    """Sends requests at a time that the test sets."""

    connection: Connection
    server: Server
    clock: list[float]

    async def authorization(self, now: float = EPOCH) -> str | None:
        """Return the header that arrives with a request at a time."""
        self.clock[0] = now
        self.server.answer("GET", "/x", {})
        await self.connection.send(GET)
        return self.server.last.headers.get("authorization")

    async def rejected(self) -> None:
        """Send a request that is answered 401."""
        self.server.answer("GET", "/x", {"kind": "Status", "code": 401}, status=401)
        with pytest.raises(ApiError) as caught:
            await self.connection.send(GET)
        assert caught.value.code == 401


@asynccontextmanager
async def _caller(server: Server, config: RestConfig) -> AsyncIterator[Caller]:
    clock = [EPOCH]
    connection = Connection(config, timeout=600, idle_timeout=600, environ={}, now=lambda: clock[0])
    yield Caller(connection, server, clock)
    await connection.close()


class TestHeaders:
    @pytest.mark.parametrize(
        ("settings", "header"),
        [
            pytest.param({}, None, id="anonymous"),
            pytest.param({"bearer_token": "t"}, "Bearer t", id="token"),
            pytest.param({"username": "jane", "password": "ü"}, "Basic amFuZTrDvA==", id="user name and password"),
            pytest.param({"bearer_token": "t", "exec": PLUGIN}, "Bearer t", id="a token precedes a plugin"),
            pytest.param(
                {"bearer_token": "t", "auth_provider": {"name": "oidc"}}, "Bearer t", id="a token precedes a provider"
            ),
        ],
    )
    async def test_the_authorization_of_a_request(
        self, server: Server, settings: dict[str, Any], header: str | None
    ) -> None:
        async with _caller(server, RestConfig(host=server.url, **settings)) as caller:
            assert await caller.authorization() == header

    async def test_every_request_impersonates(self, server: Server) -> None:
        """Discovery, reads, writes and watches."""
        jane = Impersonation("jane", "7", ("a", "b"), {"example.com/team": ("x", "y")})
        seen: list[tuple[str, list[tuple[str, str]]]] = []

        async def note(request: web.Request) -> web.Response:
            pairs = [(name, value) for name, value in request.headers.items() if name.startswith("Impersonate-")]
            seen.append((request.query.get("watch", request.method), pairs))
            return web.json_response({"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]})

        for method, path in (("GET", "/api/v1"), ("GET", CONFIG_MAPS), ("POST", CONFIG_MAPS)):
            server.handle(method, path, note)
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}
        async with ApiServerCluster(RestConfig(host=server.url, impersonate=jane)) as cluster:
            await cluster.list("v1", "ConfigMap", ListOptions(namespace="shop"))
            await cluster.create(manifest, field_manager="us")
            options = WatchOptions(resource_version="1", namespace="shop")
            with pytest.raises(ServerError):
                await anext(cluster.watch("v1", "ConfigMap", options))

        assert seen == [(what, list(jane.headers())) for what in ("GET", "GET", "POST", "true")]

    # A proxy kept the groups of one user in the requests of another one:
    # https://github.com/projectcapsule/capsule-proxy/issues/330
    @pytest.mark.parametrize(
        "own",
        [
            pytest.param(None, id="without impersonation of its own"),
            pytest.param(
                Impersonation("jane", "7", ("a", "b"), {"team": ("x",)}), id="of a kubeconfig that impersonates"
            ),
        ],
    )
    async def test_nothing_of_one_user_is_sent_for_another(self, server: Server, own: Impersonation | None) -> None:
        """All share one pool of connections, and what the server serves is looked up once, by the cluster itself."""
        seen: list[tuple[str, tuple[tuple[str, str], ...]]] = []

        async def note(request: web.Request) -> web.Response:
            pairs = ((name, value) for name, value in request.headers.items() if name.startswith("Impersonate-"))
            seen.append((request.path, tuple(pairs)))
            return web.json_response({"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]})

        for path in ("/api/v1", CONFIG_MAPS):
            server.handle("GET", path, note)
        joe = Impersonation("joe", groups=("c",))
        async with ApiServerCluster(RestConfig(host=server.url, impersonate=own)) as cluster:
            acting = cluster.acting_as("joe", groups=["c"])
            for one in (acting, cluster, acting.acting_as(ServiceAccount("deployer", "shop")), acting):
                await one.list("v1", "ConfigMap", ListOptions(namespace="shop"))

        headers = own.headers() if own is not None else ()
        account = (("Impersonate-User", "system:serviceaccount:shop:deployer"),)
        expected = [
            ("/api/v1", headers),
            *((CONFIG_MAPS, one) for one in (joe.headers(), headers, account, joe.headers())),
        ]
        assert seen == expected


class TestTokenFile:
    async def test_it_is_read_again_each_minute(self, server: Server, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text("old\n")
        async with _caller(server, RestConfig(host=server.url, bearer_token_file=str(token))) as caller:
            assert await caller.authorization() == "Bearer old"
            token.write_text("new\n")
            assert await caller.authorization(EPOCH + 59) == "Bearer old"
            assert await caller.authorization(EPOCH + 60) == "Bearer new"

    async def test_it_is_read_again_after_401(self, server: Server, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text("old")
        async with _caller(server, RestConfig(host=server.url, bearer_token_file=str(token))) as caller:
            await caller.authorization()
            token.write_text("new")
            await caller.rejected()
            assert await caller.authorization() == "Bearer new"

    async def test_the_last_token_is_used_while_it_cannot_be_read(
        self, server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Also if there is a token beside the file, which may be older."""
        token = tmp_path / "token"
        token.write_text("old")
        config = RestConfig(host=server.url, bearer_token="oldest", bearer_token_file=str(token))
        async with _caller(server, config) as caller:
            await caller.authorization()
            token.unlink()
            assert await caller.authorization(EPOCH + 60) == "Bearer old"
            assert await caller.authorization(EPOCH + 90) == "Bearer old"
            token.write_text("new")
            assert await caller.authorization(EPOCH + 120) == "Bearer new"

        assert caplog.text.count("not renewed: token file") == 1

    async def test_a_token_beside_the_file_is_used_until_the_file_can_be_read(
        self, server: Server, tmp_path: Path
    ) -> None:
        token = tmp_path / "token"
        config = RestConfig(host=server.url, bearer_token="first", bearer_token_file=str(token))
        async with _caller(server, config) as caller:
            assert await caller.authorization() == "Bearer first"
            token.write_text("second")
            assert await caller.authorization(EPOCH + 60) == "Bearer second"

    @pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff"], ids=["missing", "empty", "blank", "binary"])
    async def test_a_file_without_a_token_is_an_error(self, tmp_path: Path, content: bytes | None) -> None:
        token = tmp_path / "token"
        if content is not None:
            token.write_bytes(content)
        config = tmp_path / "config"
        config.write_text(_kubeconfig("http://127.0.0.1:1", {"tokenFile": "token"}))
        with pytest.raises(ConfigError, match=f"token file {token}"):
            await ApiServerCluster.connect(config)

    async def test_a_clock_that_is_set_back_does_not_stop_the_reading(self, server: Server, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text("old")
        async with _caller(server, RestConfig(host=server.url, bearer_token_file=str(token))) as caller:
            await caller.authorization()
            token.write_text("new")
            assert await caller.authorization(EPOCH - 3600) == "Bearer new"


def _kubeconfig(url: str, user: dict[str, Any]) -> str:
    return yaml.safe_dump(
        {
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "c", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "current-context": "c",
        }
    )


def _credential(status: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


@dataclass
class Plugin:
    """A program that counts its runs and prints what the test sets."""

    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "bin").mkdir()
        script = self.folder / "bin" / "plugin"
        script.write_text(
            f"#!{sys.executable} -SE\nimport os, sys\n"
            f"print(os.environ['KUBERNETES_EXEC_INFO'], *sys.argv[1:], file=open({str(self.folder / 'runs')!r}, 'a'))\n"
            f"print(open({str(self.folder / 'answer')!r}).read())\n"
        )
        script.chmod(0o700)

    def answers(self, token: str, **status: Any) -> None:
        (self.folder / "answer").write_text(_credential({"token": token, **status}))

    @property
    def runs(self) -> list[str]:
        return (self.folder / "runs").read_text().splitlines()

    def config(self, url: str, **settings: Any) -> RestConfig:
        path = self.folder / "config"
        path.write_text(
            _kubeconfig(url, {"exec": {"apiVersion": V1, "command": "bin/plugin", "args": ["login"], **settings}})
        )
        return load_config(path)


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


class TestPlugin:
    async def test_it_is_found_beside_the_kubeconfig(
        self, server: Server, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A program of the same path in the working directory is not run."""
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        plugin.answers("from-plugin")
        async with _caller(server, plugin.config(server.url, interactiveMode="Never")) as caller:
            assert await caller.authorization() == "Bearer from-plugin"

        info, _, arguments = plugin.runs[0].rpartition(" ")
        assert json.loads(info) == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}
        assert arguments == "login"

    async def test_it_gets_the_cluster_if_it_asks(self, server: Server, plugin: Plugin) -> None:
        plugin.answers("t")
        async with _caller(server, plugin.config(server.url, provideClusterInfo=True)) as caller:
            await caller.authorization()

        assert json.loads(plugin.runs[0].rpartition(" ")[0])["spec"]["cluster"] == {"server": server.url}

    async def test_it_runs_again_when_its_credentials_expire(self, server: Server, plugin: Plugin) -> None:
        plugin.answers("old", expirationTimestamp="2027-01-15T08:10:00Z")
        async with _caller(server, plugin.config(server.url)) as caller:
            assert await caller.authorization() == "Bearer old"
            plugin.answers("new", expirationTimestamp="2027-01-15T09:00:00Z")
            assert await caller.authorization(EPOCH + 599) == "Bearer old"
            assert await caller.authorization(EPOCH + 600) == "Bearer new"

        assert len(plugin.runs) == 2

    async def test_credentials_without_an_end_are_kept(self, server: Server, plugin: Plugin) -> None:
        plugin.answers("old")
        async with _caller(server, plugin.config(server.url)) as caller:
            for now in (EPOCH, EPOCH + 3600, EPOCH + 10**8):
                assert await caller.authorization(now) == "Bearer old"

        assert len(plugin.runs) == 1

    async def test_it_runs_again_after_401(self, server: Server, plugin: Plugin) -> None:
        plugin.answers("old")
        async with _caller(server, plugin.config(server.url)) as caller:
            assert await caller.authorization() == "Bearer old"
            plugin.answers("new")
            await caller.rejected()
            assert await caller.authorization() == "Bearer new"

        assert len(plugin.runs) == 2

    async def test_a_failure_is_an_error_of_the_request(self, server: Server, plugin: Plugin) -> None:
        """And of connecting. The next request runs it again."""
        (plugin.folder / "answer").write_text("s3cr3t")
        config = plugin.config(server.url)
        with pytest.raises(ConfigError, match="bin/plugin returned no credentials: its output is not JSON"):
            await ApiServerCluster.connect(plugin.folder / "config")
        async with _caller(server, config) as caller:
            with pytest.raises(
                ServerError, match=r"GET /x: not sent: credentials could not be read: .*not JSON"
            ) as caught:
                await caller.authorization()
            plugin.answers("new")
            assert await caller.authorization() == "Bearer new"

        assert "s3cr3t" not in str(caught.value)

    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            pytest.param(
                {"command": "./none", "installHint": "install it"},
                "none cannot be run: No such file or directory; install it",
                id="missing",
            ),
            pytest.param({"command": sys.executable, "args": ["-c", "exit(3)"]}, "failed with exit code 3", id="fails"),
            pytest.param({"interactiveMode": "Always"}, "needs a terminal", id="needs a terminal"),
        ],
    )
    async def test_a_plugin_that_cannot_be_run_is_an_error(
        self, plugin: Plugin, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], problem: str
    ) -> None:
        monkeypatch.setattr("sys.stdin", None)
        plugin.config("http://127.0.0.1:1", **settings)
        with pytest.raises(ConfigError, match=problem):
            await ApiServerCluster.connect(plugin.folder / "config")

    async def test_a_cancelled_request_ends_the_plugin(self, server: Server) -> None:
        """A plugin that waits for a login would otherwise stay for ever."""
        started, ended = asyncio.Event(), asyncio.Event()

        async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            started.set()
            await reader.read()
            ended.set()
            writer.close()

        async with await asyncio.start_server(note, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            script = f"import socket, time; s = socket.create_connection(('127.0.0.1', {port})); time.sleep(6000)"
            slow = replace(PLUGIN, command=sys.executable, args=("-SEc", script))
            async with _caller(server, RestConfig(host=server.url, exec=slow)) as caller:
                request = asyncio.create_task(caller.connection.send(GET))
                await asyncio.wait_for(started.wait(), 600)
                request.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await request
                await asyncio.wait_for(ended.wait(), 600)


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        pytest.param("", "not JSON", id="empty"),
        pytest.param("[]", "no status", id="list"),
        pytest.param(json.dumps({"kind": "ExecCredential", "apiVersion": V1}), "no status", id="no status"),
        pytest.param(
            _credential({"token": "s3cr3t"}).replace("/v1", "/v2"), "expected an ExecCredential of", id="version"
        ),
        pytest.param(
            _credential({"token": "s3cr3t"}).replace("ExecC", "C"), "expected an ExecCredential of", id="kind"
        ),
        pytest.param(_credential({}), "neither a token nor a certificate", id="nothing"),
        pytest.param(_credential({"token": 5}), "neither a token nor a certificate", id="number"),
        pytest.param(_credential({"token": "s3cr3t", "clientKeyData": "s3cr3t"}), "only one of", id="key alone"),
        pytest.param(_credential({"token": "s3cr3t", "expirationTimestamp": "soon"}), "not a time", id="time"),
    ],
)
def test_an_output_without_credentials_is_an_error_that_does_not_repeat_it(output: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        parse_credential(output.encode(), PLUGIN)

    assert "s3cr3t" not in str(caught.value)


class TestSharing:
    async def test_concurrent_requests_share_one_renewal(self) -> None:
        count = 0

        async def read() -> Credential:
            nonlocal count
            count += 1
            await asyncio.sleep(0)
            return Credential(str(count))

        credentials = Credentials(read, lambda: EPOCH)

        assert {
            (await task).authorization for task in [asyncio.create_task(credentials.current()) for _ in range(5)]
        } == {"1"}

    async def test_a_late_401_does_not_reject_newer_credentials(self) -> None:
        tokens = iter("abc")

        async def read() -> Credential:
            return Credential(next(tokens))

        credentials = Credentials(read, lambda: EPOCH)
        first = await credentials.current()
        credentials.reject(first)
        second = await credentials.current()
        credentials.reject(first)

        assert await credentials.current() is second


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        pytest.param(
            {"name": "gcp", "config": {"access-token": "t", "expiry": "2999-01-01T00:00:00Z"}}, "Bearer t", id="token"
        ),
        pytest.param({"name": "oidc", "config": {"id-token": "s3cr3t"}}, "(ValueError)", id="unreadable"),
        pytest.param({"name": "azure"}, "(KeyError)", id="unknown"),
    ],
)
# Of the official client, which still calls what Python 3.12 and 3.14 have deprecated.
@pytest.mark.filterwarnings("ignore:.*(utcnow|utcfromtimestamp|iscoroutinefunction).*:DeprecationWarning")
async def test_auth_providers_of_the_official_client(server: Server, provider: dict[str, Any], expected: str) -> None:
    async with _caller(server, RestConfig(host=server.url, auth_provider=provider)) as caller:
        if expected.startswith("Bearer"):
            assert await caller.authorization() == expected
            return
        with pytest.raises(ServerError, match="returned no token") as caught:
            await caller.authorization()

    assert expected in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param({"bearer_token": "s3cr3t"}, "the bearer token", id="token"),
        pytest.param({"bearer_token_file": "/var/token"}, "the token in /var/token", id="file"),
        pytest.param({"username": "jane", "password": "s3cr3t"}, "the user name jane with its password", id="user"),
        pytest.param(
            {"exec": ExecConfig(command="aws", api_version="client.authentication.k8s.io/v1", args=("s3cr3t",))},
            "the credentials of the plugin aws",
            id="plugin",
        ),
        pytest.param(
            {"tls": TlsConfig(cert_file="a.crt", key_file="a.key")}, "the client certificate in a.crt", id="file"
        ),
        pytest.param(
            {"tls": TlsConfig(cert_data=b"a", key_data=b"s3cr3t")}, "the client certificate", id="certificate"
        ),
        pytest.param({"auth_provider": {"name": "oidc", "config": {"id-token": "s3cr3t"}}}, "the token of", id="oidc"),
        pytest.param({}, "a request without credentials", id="nothing"),
    ],
)
def test_credentials_are_described_without_a_secret(settings: dict[str, Any], words: str) -> None:
    described = describe_credentials(RestConfig(host="https://10.0.0.1:6443", **settings))
    assert described.startswith(words)
    assert "s3cr3t" not in described


async def test_an_answer_that_rejects_credentials_names_server_and_credentials(server: Server) -> None:
    """The API server says "Unauthorized" only, and people look at the wrong cluster or user.

    https://github.com/canonical/microk8s/issues/1626
    """
    async with _caller(server, RestConfig(host=server.url, bearer_token="s3cr3t")) as caller:
        status = {"kind": "Status", "code": 401, "message": "Unauthorized", "reason": "Unauthorized"}
        server.answer("GET", "/x", status, status=401)
        with pytest.raises(ForbiddenError) as caught:
            await caller.connection.send(GET)
    assert str(caught.value) == f"Unauthorized: {server.url} does not accept the bearer token"
