"""Client configuration: kubeconfig, service account, and the refresh of credentials."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import incluster_config

import ocf
from ocf.cluster.client import ApiServerCluster
from ocf.cluster.client.config import Refresh, open_client
from ocf.errors import ConfigError
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from tests.cluster.client.conftest import Server

KEY = ObjectKey("v1", "Namespace", "shop")
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def _write(path: Path, url: str, user: dict[str, Any], *, name: str = "main") -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.write_text(yaml.safe_dump(config))
    return path


async def _ask(cluster: ApiServerCluster, server: Server) -> str:
    """Send a request and return the credentials that arrived with it."""
    server.answer("GET", "/api/v1/namespaces/shop", NAMESPACE)
    assert await cluster.get(KEY) == NAMESPACE
    return server.last.headers["authorization"]


async def test_a_kubeconfig_names_server_and_token(server: Server, tmp_path: Path) -> None:
    async with await ApiServerCluster.connect(_write(tmp_path / "c", server.url, {"token": "abc"})) as cluster:
        assert await _ask(cluster, server) == "Bearer abc"

    assert server.last.headers["user-agent"] == f"ocf/{ocf.__version__}"


async def test_without_a_kubeconfig_the_environment_names_one(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of files is merged; missing files are ignored."""
    path = _write(tmp_path / "c", server.url, {"token": "abc"})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{path}")
    async with await ApiServerCluster.connect() as cluster:
        assert await _ask(cluster, server) == "Bearer abc"


async def test_another_context_can_be_selected(server: Server, tmp_path: Path) -> None:
    first = _write(tmp_path / "a", "http://127.0.0.1:1", {"token": "abc"})
    second = _write(tmp_path / "b", server.url, {"token": "def"}, name="other")
    async with await ApiServerCluster.connect(f"{first}:{second}", context="other") as cluster:
        assert await _ask(cluster, server) == "Bearer def"


async def test_a_token_comes_from_a_plugin(server: Server, tmp_path: Path) -> None:
    script = "import sys; sys.stdout.write(sys.argv[1])"
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "from-plugin", "expirationTimestamp": "2999-01-01T00:00:00Z"},
    }
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", script, json.dumps(credential)],
    }
    path = _write(tmp_path / "c", server.url, {"exec": plugin})
    async with await ApiServerCluster.connect(path) as cluster:
        assert await _ask(cluster, server) == "Bearer from-plugin", shlex.join(plugin["args"])


async def test_a_failing_plugin_is_an_error_at_once(tmp_path: Path) -> None:
    """Otherwise every request would be sent without credentials."""
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(tmp_path / "no-such-plugin")}
    with pytest.raises(ConfigError, match="credential plugin returned no credentials"):
        await ApiServerCluster.connect(_write(tmp_path / "c", "https://127.0.0.1:1", {"exec": plugin}))


async def test_a_user_without_credentials_is_anonymous(server: Server, tmp_path: Path) -> None:
    """As behind a proxy that authenticates."""
    server.answer("GET", "/api/v1/namespaces/shop", NAMESPACE)
    async with await ApiServerCluster.connect(_write(tmp_path / "c", server.url, {})) as cluster:
        await cluster.get(KEY)

    assert "authorization" not in server.last.headers


async def test_invalid_certificates_are_an_error(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("no certificate")
    path = _write(tmp_path / "c", "https://127.0.0.1:1", {"token": "abc"})
    config = yaml.safe_load(path.read_text())
    config["clusters"][0]["cluster"]["certificate-authority"] = str(authority)
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(ConfigError, match=r"certificates for https://127\.0\.0\.1:1 cannot be used"):
        await ApiServerCluster.connect(path)


async def test_a_token_file_that_changes_is_read_again(server: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    now = 0.0
    client = await open_client(_write(tmp_path / "c", server.url, {"tokenFile": str(token)}))
    hook: Any = client.configuration.refresh_api_key_hook
    hook.clock = lambda: now
    hook._last = now
    async with ApiServerCluster(client, close_client=True) as cluster:
        assert await _ask(cluster, server) == "Bearer old"
        token.write_text("new")
        now = 59.0
        assert await _ask(cluster, server) == "Bearer old"
        now = 60.0
        assert await _ask(cluster, server) == "Bearer new"


async def test_in_a_pod_the_service_account_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("pod")
    (tmp_path / "ca.crt").write_text("authority")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    settings: list[Configuration] = []
    monkeypatch.setattr("ocf.cluster.client.config.ApiClient", settings.append)
    with pytest.raises(AttributeError):
        await open_client()

    assert settings[0].host == "https://10.0.0.1:443"
    assert settings[0].api_key == {"BearerToken": "bearer pod"}
    assert settings[0].retries is None


@pytest.mark.parametrize("missing", ["account", "port"])
async def test_a_pod_without_a_service_account_is_an_error(missing: str) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"} | (
        {"KUBERNETES_SERVICE_PORT": "443"} if missing == "account" else {}
    )
    with pytest.raises(ConfigError, match="service account of this pod cannot be used"):
        await open_client(environ=environ)


async def test_an_unknown_context_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    path = _write(tmp_path / "c", "https://127.0.0.1:1", {"token": "s3cr3t"})
    [known] = [each["name"] for each in yaml.safe_load(path.read_text())["contexts"]]
    with pytest.raises(ConfigError) as caught:
        await ApiServerCluster.connect(path, context="other")

    assert str(caught.value) == f"kubeconfig {path} has no context 'other'; there are: {known}"


async def test_a_missing_kubeconfig_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"no kubeconfig at {tmp_path / 'nowhere'}"):
        await ApiServerCluster.connect(tmp_path / "nowhere")


async def test_a_kubeconfig_of_the_environment_precedes_the_service_account(tmp_path: Path) -> None:
    environ = {"KUBECONFIG": str(tmp_path / "nowhere"), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    with pytest.raises(ConfigError, match="no kubeconfig at"):
        await open_client(environ=environ)


async def test_a_context_selects_a_kubeconfig_even_in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="no kubeconfig at"):
        await open_client(context="other", environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})


@pytest.mark.parametrize(
    ("text", "context"),
    [
        pytest.param("", None, id="empty"),
        pytest.param("s3cr3t: [", None, id="not YAML"),
        pytest.param("{users: [{name: u, user: {token: s3cr3t}}], clusters: [], contexts: []}", None, id="no context"),
        pytest.param(
            "{users: [{name: u, user: {token: s3cr3t}}], current-context: c, "
            "contexts: [{name: c, context: {user: u, cluster: k}}], clusters: [{name: k, token: s3cr3t}]}",
            None,
            id="incomplete entry",
        ),
        pytest.param(
            "{users: [], clusters: [], contexts: [], current-context: c, token: s3cr3t}", "other", id="another context"
        ),
    ],
)
async def test_a_bad_kubeconfig_is_an_error_without_its_secrets(tmp_path: Path, text: str, context: str | None) -> None:
    """The message of the loader quotes whole entries; not even a traceback may contain it."""
    path = tmp_path / "c"
    path.write_text(text)
    with pytest.raises(ConfigError, match="cannot be used") as caught:
        await ApiServerCluster.connect(path, context=context)

    assert str(path) in str(caught.value)
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value)).replace(text or "-", "")


class Loader:
    """Counts its calls; fails while `broken` is set."""

    def __init__(self) -> None:
        self.count = 0
        self.broken = False

    async def load_and_set(self, client_configuration: Configuration) -> None:
        self.count += 1
        await asyncio.sleep(0)
        if self.broken:
            raise OSError("no such file")
        client_configuration.api_key["BearerToken"] = f"token {self.count}"


class TestRefresh:
    async def test_credentials_are_read_at_most_once_a_minute(self) -> None:
        now, loader, counts = 0.0, Loader(), []
        refresh = Refresh(loader, clock=lambda: now)
        for now in (0.0, 59.0, 60.0, 61.0, 119.0, 120.0):  # noqa: B007 (the clock reads it)
            await refresh(Configuration())
            counts.append(loader.count)

        assert counts == [0, 0, 1, 1, 1, 2]

    async def test_concurrent_requests_wait_for_one_refresh(self) -> None:
        """None of them is sent with expired credentials."""
        now, loader, settings = 0.0, Loader(), Configuration()
        refresh = Refresh(loader, clock=lambda: now)
        now = 60.0

        async def request() -> str:
            await refresh(settings)
            return settings.api_key["BearerToken"]

        assert await asyncio.gather(*(request() for _ in range(5))) == ["token 1"] * 5

    async def test_a_failed_refresh_is_repeated_by_the_next_request(self) -> None:
        now, loader = 0.0, Loader()
        refresh = Refresh(loader, clock=lambda: now)
        now, loader.broken = 60.0, True
        with pytest.raises(OSError, match="no such file"):
            await refresh(Configuration())
        loader.broken = False
        await refresh(Configuration())

        assert loader.count == 2


@pytest.mark.parametrize(
    ("proxies", "asked"),
    [
        pytest.param({}, False, id="no proxy"),
        pytest.param({"https_proxy": "http://proxy:3128"}, True, id="a proxy"),
        pytest.param({"https_proxy": "http://proxy:3128", "no_proxy": "example.com"}, False, id="not for this host"),
        pytest.param({"http_proxy": "http://proxy:3128"}, False, id="a proxy of another scheme"),
    ],
)
async def test_the_session_trusts_the_environment_only_if_it_sets_a_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxies: dict[str, str], *, asked: bool
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in proxies.items():
        monkeypatch.setenv(name, value)
    client = await open_client(_write(tmp_path / "c", "https://example.com:6443", {"token": "abc"}))
    async with client:
        session = client.rest_client._create_pool_manager()
        assert session.trust_env is asked
        await session.close()
