"""The choice of the proxy, compared with Go's `httpproxy` package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.cluster.client.proxy import environment_proxy, is_excluded, proxy_address
from ocf.errors import ConfigError

TABLE: Final[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "no_proxy.json").read_text())
URL: Final = "https://api.example.com:6443"


@pytest.mark.parametrize("no_proxy", [pytest.param(text, id=text or "empty") for text in TABLE["direct"]])
def test_go_excludes_the_same_addresses(no_proxy: str) -> None:
    """The table is recorded by scripts/record/no_proxy.py."""
    assert [url for url in TABLE["urls"] if is_excluded(url, no_proxy)] == TABLE["direct"][no_proxy]


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        pytest.param(URL, {}, "", id="no proxy"),
        pytest.param(URL, {"HTTPS_PROXY": "http://p:1"}, "http://p:1", id="upper case"),
        pytest.param(URL, {"https_proxy": "http://p:1"}, "http://p:1", id="lower case"),
        pytest.param(URL, {"HTTPS_PROXY": "http://p:1", "https_proxy": "http://q:1"}, "http://p:1", id="both cases"),
        pytest.param(URL, {"HTTPS_PROXY": "", "https_proxy": "http://q:1"}, "http://q:1", id="empty counts as unset"),
        pytest.param(URL, {"HTTP_PROXY": "http://p:1"}, "", id="proxy of the other scheme"),
        pytest.param("http://api", {"HTTP_PROXY": "http://p:1"}, "http://p:1", id="server without TLS"),
        pytest.param(URL, {"ALL_PROXY": "http://p:1"}, "", id="ALL_PROXY is not read"),
        pytest.param(URL, {"HTTPS_PROXY": "p:3128"}, "http://p:3128", id="proxy without a scheme"),
        pytest.param(URL, {"HTTPS_PROXY": "https://u:w@p:1"}, "https://u:w@p:1", id="proxy with TLS and password"),
        pytest.param(URL, {"HTTPS_PROXY": "p:1", "NO_PROXY": ".example.com"}, "", id="excluded"),
        pytest.param(URL, {"HTTPS_PROXY": "p:1", "no_proxy": ".example.com"}, "", id="excluded in lower case"),
        pytest.param(
            URL, {"HTTPS_PROXY": "p:1", "NO_PROXY": "x", "no_proxy": "*"}, "http://p:1", id="NO_PROXY in both cases"
        ),
        pytest.param("https://127.0.0.1", {"HTTPS_PROXY": "p:1"}, "", id="loopback address"),
        pytest.param(URL, {"HTTPS_PROXY": "p:1", "REQUEST_METHOD": "GET"}, "http://p:1", id="CGI script with TLS"),
    ],
)
def test_the_environment_sets_the_proxy(url: str, environ: dict[str, str], proxy: str) -> None:
    assert environment_proxy(url, environ) == proxy


def test_a_cgi_script_does_not_use_a_proxy_that_its_client_can_set() -> None:
    with pytest.raises(ConfigError, match="HTTP_PROXY is not used in a CGI script"):
        environment_proxy("http://api", {"HTTP_PROXY": "p:1", "REQUEST_METHOD": "GET"})


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        pytest.param("socks5://u:s3cr3t@p:1080", "proxies of type 'socks5' are not supported", id="SOCKS"),
        pytest.param("http://", "not the URL of a proxy", id="without a host"),
        pytest.param("http://u:s3cr3t@p:port", "not the URL of a proxy", id="port that is not a number"),
        pytest.param("http://[::1", "not the URL of a proxy", id="open bracket"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_an_error_without_its_password(url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        proxy_address(url, "HTTPS_PROXY")

    assert str(caught.value).startswith("HTTPS_PROXY: ")
    assert "s3cr3t" not in str(caught.value)
