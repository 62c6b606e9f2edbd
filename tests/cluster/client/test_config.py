"""The configured cluster: kubeconfig, environment, and the service account of a pod."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import ocf
from ocf.cluster.client import ApiServerCluster, RestConfig, TlsConfig
from ocf.cluster.client.kubeconfig import load_config
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


async def test_a_user_without_credentials_is_anonymous(server: Server, tmp_path: Path) -> None:
    """As behind a proxy that authenticates."""
    server.answer("GET", "/api/v1/namespaces/shop", NAMESPACE)
    async with await ApiServerCluster.connect(_write(tmp_path / "c", server.url, {})) as cluster:
        await cluster.get(KEY)

    assert "authorization" not in server.last.headers


@pytest.mark.parametrize(
    ("host", "address"),
    [
        pytest.param("10.0.0.1", "https://10.0.0.1:443", id="IPv4"),
        pytest.param("fd00::1", "https://[fd00::1]:443", id="IPv6"),
        pytest.param("kubernetes.default.svc", "https://kubernetes.default.svc:443", id="name"),
    ],
)
def test_in_a_pod_the_service_account_is_used(tmp_path: Path, host: str, address: str) -> None:
    (tmp_path / "token").write_text("pod")
    (tmp_path / "ca.crt").write_text("authority")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}

    assert load_config(environ=environ, account=tmp_path) == RestConfig(
        host=address, tls=TlsConfig(ca_file=str(tmp_path / "ca.crt")), bearer_token_file=str(tmp_path / "token")
    )


@pytest.mark.parametrize("missing", ["token", "ca.crt", "port"])
def test_a_pod_without_a_service_account_is_an_error(tmp_path: Path, missing: str) -> None:
    for name in {"token", "ca.crt"} - {missing}:
        (tmp_path / name).write_text("x")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "" if missing == "port" else "443"}
    with pytest.raises(ConfigError, match="service account of this pod cannot be used"):
        load_config(environ=environ, account=tmp_path)


async def test_an_unknown_context_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    path = _write(tmp_path / "c", "https://127.0.0.1:1", {"token": "s3cr3t"})
    [known] = [each["name"] for each in yaml.safe_load(path.read_text())["contexts"]]
    with pytest.raises(ConfigError) as caught:
        await ApiServerCluster.connect(path, context="other")

    assert str(caught.value) == f"kubeconfig {path} has no context 'other'; there are: {known}"


async def test_a_missing_kubeconfig_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"no kubeconfig at {tmp_path / 'nowhere'}"):
        await ApiServerCluster.connect(tmp_path / "nowhere")


def test_a_kubeconfig_of_the_environment_precedes_the_service_account(tmp_path: Path) -> None:
    environ = {"KUBECONFIG": str(tmp_path / "nowhere"), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    with pytest.raises(ConfigError, match="no kubeconfig at"):
        load_config(environ=environ)


def test_a_context_selects_a_kubeconfig_even_in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="no kubeconfig at"):
        load_config(context="other", environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})


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
    """Not even a traceback may contain them."""
    path = tmp_path / "c"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"cannot be used|has no context") as caught:
        await ApiServerCluster.connect(path, context=context)

    assert str(path) in str(caught.value)
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value)).replace(text or "-", "")


def test_connecting_does_not_import_the_official_client() -> None:
    """It takes longer to import than everything else that a command needs."""
    program = "import sys, ocf.cluster.client; sys.exit('kubernetes' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0  # noqa: S603 (ours)
