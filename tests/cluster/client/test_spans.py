"""The span of a request: its path as a template, and names of the conventions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import ListOptions, Subresource
from ocf.cluster.client import requests
from ocf.cluster.client.paths import DiscoveredResource
from ocf.cluster.client.requests import HttpRequest, path_parts, request_span
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.: $@-]{0,20}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("path", "template", "about"),
    [
        pytest.param("/version", "/version", ("", "", "", ""), id="no API"),
        pytest.param("/", "/", ("", "", "", ""), id="the root"),
        pytest.param("/api", "/api", ("", "", "", ""), id="versions of the core group"),
        pytest.param("/apis/apps", "/apis/apps", ("", "", "", ""), id="a group"),
        pytest.param("/apis/apps/v1", "/apis/apps/v1", ("", "", "", ""), id="discovery"),
        pytest.param("/api/v1/pods", "/api/v1/pods", ("", "pods", "", ""), id="all namespaces"),
        pytest.param(
            "/api/v1/namespaces/shop/pods",
            "/api/v1/namespaces/{namespace}/pods",
            ("", "pods", "shop", ""),
            id="one namespace",
        ),
        pytest.param(
            "/api/v1/namespaces/shop", "/api/v1/namespaces/{name}", ("", "namespaces", "", "shop"), id="a Namespace"
        ),
        pytest.param(
            "/api/v1/namespaces/shop/finalize",
            "/api/v1/namespaces/{name}/finalize",
            ("", "namespaces", "", "shop"),
            id="a part of a Namespace",
        ),
        pytest.param(
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/rate",
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/{name}/rate",
            ("custom.metrics.k8s.io", "pods", "shop", "*"),
            id="a metric",
        ),
        pytest.param(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}",
            ("rbac.authorization.k8s.io", "clusterroles", "", "system:node"),
            id="an escaped name",
        ),
    ],
)
def test_a_template_has_no_names(path: str, template: str, about: tuple[str, str, str, str]) -> None:
    assert path_parts(path) == (template, *about)


@given(name=NAMES, namespace=st.sampled_from(["", "status", "shop"]), part=st.sampled_from([None, *Subresource]))
def test_the_path_of_every_request_is_read_back(name: str, namespace: str, part: Subresource | None) -> None:
    resource = DiscoveredResource("example.com/v1", "Shop", "shops", bool(namespace))
    request = requests.get(resource, ObjectKey("example.com/v1", "Shop", name, namespace), part)

    found = path_parts(request.path)
    assert (found.group, found.plural, found.namespace, found.name) == ("example.com", "shops", namespace, name)
    placed = "namespaces/{namespace}/" if namespace else ""
    assert found.template == f"/apis/example.com/v1/{placed}shops/{{name}}" + (f"/{part}" if part else "")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        pytest.param("https://cluster.example", "https://cluster.example:443/api/v1/pods?limit=5", id="a default port"),
        pytest.param("https://me:hunter2@host:6443", "https://host:6443/api/v1/pods?limit=5", id="a password"),
        pytest.param("http://[::1]:8080", "http://[::1]:8080/api/v1/pods?limit=5", id="an IPv6 address"),
        pytest.param("https://host/k8s/c-1", "https://host:443/k8s/c-1/api/v1/pods?limit=5", id="a path of a proxy"),
    ],
)
def test_the_url_has_no_password(host: str, url: str) -> None:
    request = requests.listing(DiscoveredResource("v1", "Pod", "pods", namespaced=True), ListOptions(limit=5))
    assert request_span(host, request).attributes["url.full"] == url


def test_only_a_read_may_find_nothing() -> None:
    expected = {method: request_span("http://host", HttpRequest(method, "/api/v1/pods")).expected for method in METHODS}
    assert expected == {"GET": (NotFoundError,), "PATCH": (), "POST": (), "PUT": (), "DELETE": ()}


METHODS = ("GET", "PATCH", "POST", "PUT", "DELETE")
