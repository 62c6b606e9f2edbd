"""Paths are protected against path traversal."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import Subresource
from ocf.cluster.client.paths import DiscoveredResource, collection_path, home_path, key_of, object_path, type_of
from ocf.errors import BadRequestError
from ocf.objects import ObjectKey

WEB = DiscoveredResource("x.io/v1", "Web", "webs", namespaced=True)
NODE = DiscoveredResource("v1", "Node", "nodes", namespaced=False)


@pytest.mark.parametrize("value", ["", ".", "..", "a/b", "/", "a%2Fb", "../../x"])
@pytest.mark.parametrize("place", ["name", "namespace"])
def test_a_name_with_path_traversal_is_rejected(place: str, value: str) -> None:
    """An empty name would delete the whole collection, `..` the namespace, and a slash would address a subresource."""
    key = ObjectKey("x.io/v1", "Web", **{"name": "web", "namespace": "shop", place: value})
    with pytest.raises(BadRequestError, match=rf"metadata\.{place}") as caught:
        object_path(WEB, key)

    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


@given(name=st.text(min_size=1).filter(lambda name: name not in {".", ".."} and not set(name) & {"/", "%"}))
def test_any_other_name_is_one_segment(name: str) -> None:
    path = object_path(WEB, ObjectKey("x.io/v1", "Web", name.encode(errors="replace").decode(), "shop"))

    assert path.count("/") == 7
    assert unquote(path.rpartition("/")[2]) == name.encode(errors="replace").decode()


@pytest.mark.parametrize(
    ("resource", "key", "subresource", "path"),
    [
        pytest.param(
            WEB,
            ObjectKey("x.io/v1", "Web", "web", "shop"),
            None,
            "/apis/x.io/v1/namespaces/shop/webs/web",
            id="namespaced",
        ),
        pytest.param(
            WEB,
            ObjectKey("x.io/v1", "Web", "web", "shop"),
            Subresource.SCALE,
            "/apis/x.io/v1/namespaces/shop/webs/web/scale",
            id="subresource",
        ),
        pytest.param(NODE, ObjectKey("v1", "Node", "n1"), None, "/api/v1/nodes/n1", id="cluster-scoped"),
        pytest.param(
            NODE, ObjectKey("v1", "Node", "system:x y"), None, "/api/v1/nodes/system%3Ax%20y", id="escaped characters"
        ),
    ],
)
def test_path_of_an_object(
    resource: DiscoveredResource, key: ObjectKey, subresource: Subresource | None, path: str
) -> None:
    assert object_path(resource, key, subresource) == path


def test_a_collection_covers_one_namespace_or_all() -> None:
    assert collection_path(WEB, "shop") == "/apis/x.io/v1/namespaces/shop/webs"
    assert collection_path(WEB) == "/apis/x.io/v1/webs"
    assert collection_path(NODE) == "/api/v1/nodes"


def test_a_cluster_scoped_kind_has_no_collection_in_a_namespace() -> None:
    with pytest.raises(BadRequestError, match="Node is cluster-scoped, it has no objects in namespace 'shop'"):
        collection_path(NODE, "shop")


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    with pytest.raises(BadRequestError, match="Node is cluster-scoped"):
        object_path(NODE, ObjectKey("v1", "Node", "n1", "shop"))


def test_a_namespace_in_a_cluster_scoped_manifest_is_ignored() -> None:
    """As by the server."""
    manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "namespace": "shop"}}

    assert object_path(NODE, key_of(NODE, manifest)) == "/api/v1/nodes/n1"


def test_a_namespaced_object_is_not_created_without_a_namespace() -> None:
    with pytest.raises(BadRequestError, match=r"new Web: metadata\.namespace: required value"):
        home_path(WEB, "", "new Web")


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"kind": "Web"}, id="no apiVersion"),
        pytest.param({"apiVersion": "v1", "kind": ""}, id="empty kind"),
        pytest.param({"apiVersion": 1, "kind": "Web"}, id="number"),
    ],
)
def test_a_manifest_needs_api_version_and_kind(manifest: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError, match="needs apiVersion and kind"):
        type_of(manifest)


def test_a_scale_does_not_identify_the_scaled_object() -> None:
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    with pytest.raises(BadRequestError, match="does not identify the scaled object"):
        type_of(scale, Subresource.SCALE)

    assert type_of(scale) == ("autoscaling/v1", "Scale")


def test_a_manifest_without_a_name_is_a_bad_request() -> None:
    with pytest.raises(BadRequestError, match=r"metadata\.name: required value"):
        key_of(WEB, {"apiVersion": "v1", "kind": "Web", "metadata": {}})
