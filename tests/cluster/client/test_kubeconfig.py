"""Kubeconfigs are read as client-go reads them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from ocf.cluster.client import Impersonation, RestConfig, TlsConfig
from ocf.cluster.client.kubeconfig import read_kubeconfig
from ocf.cluster.client.rest_config import ExecConfig
from ocf.errors import ConfigError

HOST = "https://10.0.0.1:6443"
V1 = "client.authentication.k8s.io/v1"


def _write(
    folder: Path,
    user: dict[str, Any] | None = None,
    cluster: dict[str, Any] | None = None,
    *,
    name: str = "main",
    file: str = "config",
    current: str | None = None,
) -> str:
    folder.mkdir(exist_ok=True)
    config = {
        "clusters": [{"name": name, "cluster": {"server": HOST, **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name if current is None else current,
    }
    path = folder / file
    path.write_text(yaml.safe_dump(config))
    return str(path)


def _data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("user", "cluster", "expected"),
    [
        pytest.param({"token": "t"}, {}, RestConfig(host=HOST, bearer_token="t"), id="token"),
        pytest.param(
            {"username": "u", "password": "p"},
            {},
            RestConfig(host=HOST, username="u", password="p"),
            id="user name and password",
        ),
        pytest.param(
            {"client-certificate-data": _data("cert"), "client-key-data": _data("key")},
            {"certificate-authority-data": _data("ca"), "tls-server-name": "api"},
            RestConfig(host=HOST, tls=TlsConfig(ca_data=b"ca", cert_data=b"cert", key_data=b"key", server_name="api")),
            id="certificates as data",
        ),
        pytest.param(
            {}, {"insecure-skip-tls-verify": True}, RestConfig(host=HOST, tls=TlsConfig(insecure=True)), id="insecure"
        ),
        pytest.param(
            {}, {"proxy-url": "http://proxy:1"}, RestConfig(host=HOST, proxy_url="http://proxy:1"), id="proxy"
        ),
        pytest.param({}, {"server": f"{HOST}/k8s/"}, RestConfig(host=f"{HOST}/k8s"), id="address with a path"),
        pytest.param({"as": "", "token": None}, {}, RestConfig(host=HOST), id="empty values count as unset"),
        pytest.param(
            {"as": "jane"}, {}, RestConfig(host=HOST, impersonate=Impersonation("jane")), id="impersonated user"
        ),
        pytest.param(
            {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"scopes": ["view", "edit"]}},
            {},
            RestConfig(host=HOST, impersonate=Impersonation("jane", "7", ("a", "b"), {"scopes": ("view", "edit")})),
            id="all attributes of an impersonated user",
        ),
        pytest.param(
            {"auth-provider": {"name": "oidc", "config": {"id-token": "x"}}},
            {},
            RestConfig(host=HOST, auth_provider={"name": "oidc", "config": {"id-token": "x"}}),
            id="auth provider",
        ),
        pytest.param(
            {
                "exec": {
                    "apiVersion": V1,
                    "command": "plugin",
                    "args": ["login"],
                    "env": [{"name": "A", "value": "b"}],
                    "installHint": "install it",
                    "interactiveMode": "Never",
                    "provideClusterInfo": True,
                }
            },
            {
                "certificate-authority-data": _data("ca"),
                "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
            },
            RestConfig(
                host=HOST,
                tls=TlsConfig(ca_data=b"ca"),
                exec=ExecConfig(
                    command="plugin",
                    api_version=V1,
                    args=("login",),
                    env={"A": "b"},
                    install_hint="install it",
                    interactive_mode="Never",
                    cluster={
                        "server": HOST,
                        "certificate-authority-data": _data("ca"),
                        "config": {"audience": "x"},
                    },
                ),
            ),
            id="credential plugin",
        ),
    ],
)
def test_the_fields_of_an_entry(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], expected: RestConfig
) -> None:
    assert read_kubeconfig(_write(tmp_path, user, cluster)) == expected


def test_paths_are_relative_to_the_folder_of_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cluster and user may come from different files; the working directory does not matter."""
    users = {
        "client-certificate": "pki/cert",
        "client-key": "../key",
        "tokenFile": "token",
        "exec": {"apiVersion": V1, "command": "./bin/plugin"},
    }
    first = _write(tmp_path / "a", users)
    Path(first).write_text(Path(first).read_text().replace("clusters:", "others:"))
    second = _write(tmp_path / "b", cluster={"certificate-authority": "ca"})
    monkeypatch.chdir(tmp_path / "a")
    config = read_kubeconfig(f"config:{second}")

    assert config.tls == TlsConfig(
        ca_file=f"{tmp_path}/b/ca", cert_file=f"{tmp_path}/a/pki/cert", key_file=f"{tmp_path}/key"
    )
    assert config.bearer_token_file == f"{tmp_path}/a/token"
    assert config.exec is not None
    assert config.exec.command == f"{tmp_path}/a/bin/plugin"


@pytest.mark.parametrize(
    ("command", "path"),
    [
        pytest.param("plugin", "plugin", id="a name is searched in PATH"),
        pytest.param("bin/plugin", "{}/bin/plugin", id="relative"),
        pytest.param("../plugin", "{}/../plugin", id="in the folder above"),
        pytest.param("/bin/plugin", "/bin/plugin", id="absolute"),
    ],
)
def test_the_command_of_a_plugin_is_a_path_if_it_contains_a_slash(tmp_path: Path, command: str, path: str) -> None:
    config = read_kubeconfig(_write(tmp_path / "a", {"exec": {"apiVersion": V1, "command": command}}))

    assert config.exec is not None
    assert config.exec.command == path.format(tmp_path / "a").replace("/a/..", "")


def test_of_several_files_the_first_wins(tmp_path: Path) -> None:
    """For each entry, and for the current context."""
    first = _write(tmp_path, {"token": "first"}, file="first")
    second = _write(tmp_path, {"token": "second"}, file="second", current="other")
    third = _write(tmp_path, {"token": "third"}, file="third", name="other")
    paths = f"{tmp_path / 'missing'}:{first}:{second}:{third}"

    assert read_kubeconfig(paths).bearer_token == "first"
    assert read_kubeconfig(paths, "other").bearer_token == "third"


@pytest.mark.parametrize(
    ("user", "cluster", "problem"),
    [
        pytest.param({"as-groups": ["system:masters"]}, {}, "users[0].user: as-uid, as-groups", id="groups alone"),
        pytest.param({"as-uid": "1"}, {}, "users[0].user: as-uid, as-groups", id="uid alone"),
        pytest.param({"as-user-extra": {"a": ["b"]}}, {}, "users[0].user: as-uid, as-groups", id="extra alone"),
        pytest.param({"as": ["s3cr3t"]}, {}, "users[0].user.as: expected a text, not list", id="list of users"),
        pytest.param({"as": "j", "as-groups": "s3cr3t"}, {}, "users[0].user.as-groups: expected a list", id="groups"),
        pytest.param(
            {"as": "j", "as-user-extra": {"a": "s3cr3t"}}, {}, "user.as-user-extra.a: expected a list", id="extra"
        ),
        pytest.param({"token": 5}, {}, "users[0].user.token: expected a text, not int", id="number"),
        pytest.param({"client-key-data": "s3cr3t"}, {}, "client-key-data: invalid base64", id="base64"),
        pytest.param({"client-certificate": "c"}, {}, "a client certificate needs its key", id="no key"),
        pytest.param({"token": "s3cr3t", "username": "u"}, {}, "both a token and a user name", id="two credentials"),
        pytest.param({"exec": {"apiVersion": V1}}, {}, "exec: command: required value", id="no command"),
        pytest.param({"exec": {"command": "x", "apiVersion": "v1"}}, {}, "exec: apiVersion: 'v1' is not", id="version"),
        pytest.param(
            {"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "No"}},
            {},
            "exec: interactiveMode: 'No' is not one of",
            id="interactive mode",
        ),
        pytest.param({}, {"server": "10.0.0.1:6443"}, "server: '10.0.0.1:6443' is not an address", id="address"),
        pytest.param({}, {"server": ""}, "clusters[0].cluster.server: required value", id="no address"),
        pytest.param({}, {"proxy-url": "socks5://p:1"}, "clusters[0].cluster.proxy-url: proxies of", id="SOCKS"),
        pytest.param(
            {}, {"insecure-skip-tls-verify": True, "certificate-authority": "x"}, "have no effect", id="insecure"
        ),
        pytest.param({}, {"insecure-skip-tls-verify": "yes"}, "expected true or false, not str", id="text as flag"),
    ],
)
def test_an_entry_that_cannot_be_used_is_an_error_without_its_secrets(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], problem: str
) -> None:
    path = _write(tmp_path, user, cluster)
    with pytest.raises(ConfigError) as caught:
        read_kubeconfig(path)

    assert str(caught.value).startswith(f"kubeconfig {path} cannot be used: ")
    assert problem in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("contexts: []", "no current-context", id="no current context"),
        pytest.param("current-context: a", "it has no context 'a'; there are: none", id="current context is missing"),
        pytest.param(
            "{current-context: a, contexts: [{name: a, context: {cluster: x, user: u}}]}",
            "it has no cluster 'x'",
            id="cluster is missing",
        ),
        pytest.param(
            "{current-context: a, contexts: [{name: a, context: {cluster: x, user: u}}], "
            "clusters: [{name: x, cluster: {server: 'https://a'}}]}",
            "it has no user 'u'",
            id="user is missing",
        ),
        pytest.param("users: [{name: a}, {name: a}]", "two entries with the name 'a'", id="same name twice"),
        pytest.param("users: [a]", "users[0]: expected a map, not str", id="entry is not a map"),
        pytest.param("users: {a: b}", "users: expected a list, not dict", id="section is not a list"),
        pytest.param("[]", "does not contain one YAML map", id="list"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_kubeconfig(str(path))

    assert problem in str(caught.value)


def test_no_representation_contains_a_secret() -> None:
    config = RestConfig(
        host=HOST,
        bearer_token="s3cr3t",
        tls=TlsConfig(cert_data=b"certificate", key_data=b"s3cr3t"),
        exec=ExecConfig(command="x", api_version=V1, args=("s3cr3t",), env={"TOKEN": "s3cr3t"}),
        auth_provider={"config": {"id-token": "s3cr3t"}},
    )

    assert "s3cr3t" not in repr(config)
