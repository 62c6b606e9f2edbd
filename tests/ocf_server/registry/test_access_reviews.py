"""Reviews are answered and not stored: the same requests in the process and to a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
import pytest_asyncio

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType
from ocf.cluster.cache import CachedCluster
from ocf.errors import ApiError, ForbiddenError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import RecordingCluster
from ocf.testing.envtest import ControlPlane
from ocf_server import EmbeddedCluster
from tests.support import eventually

AUTHORIZATION: Final = "authorization.k8s.io/v1"
RBAC: Final = "rbac.authorization.k8s.io"
MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="test")
SELF: Final = "SelfSubjectAccessReview"
KEY: Final = ObjectKey(AUTHORIZATION, SELF, "x")


@dataclass(frozen=True)
class Site:
    """A cluster of an administrator, a namespace, and a user who may get the ConfigMaps in it."""

    cluster: Cluster
    namespace: str
    user: str

    @property
    def as_user(self) -> Cluster:
        return self.cluster.acting_as(self.user)

    def attributes(self, verb: str = "get", resource: str = "configmaps", **more: str) -> dict[str, Any]:
        return {"resourceAttributes": {"verb": verb, "resource": resource, "namespace": self.namespace, **more}}


def review(kind: str, spec: dict[str, Any], namespace: str = "", api_version: str = AUTHORIZATION) -> Manifest:
    home = {"metadata": {"namespace": namespace}} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, **home, "spec": spec}


async def ask(cluster: Cluster, kind: str, spec: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    """Return the status of a review of access."""
    found: dict[str, Any] = (await cluster.create(review(kind, spec, namespace), field_manager="test"))["status"]
    return found


@pytest_asyncio.fixture(params=["embedded", "real"])
async def site(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    if request.param == "embedded":
        yield await _granted(EmbeddedCluster(namespaces=["shop"], authorization=True), "shop")
        return
    plane: ControlPlane = request.getfixturevalue("envtest_plane")
    with plane.namespace() as namespace:
        async with await plane.cluster() as cluster:
            yield await _granted(cluster, namespace)


async def _granted(cluster: Cluster, namespace: str) -> Site:
    site = Site(cluster, namespace, f"alice-{namespace}")
    home = {"name": "reader", "namespace": namespace}
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "reader"}
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": site.user}]
    for content in (
        {"kind": "Role", "rules": rules},
        {"kind": "RoleBinding", "roleRef": reference, "subjects": subjects},
    ):
        await cluster.create({"apiVersion": f"{RBAC}/v1", "metadata": home, **content}, field_manager="test")
    await eventually(lambda: ask(site.as_user, SELF, site.attributes()), lambda status: bool(status["allowed"]))
    return site


@pytest.mark.parametrize("wrapped", [lambda cluster: cluster, RecordingCluster, CachedCluster])
async def test_users_ask_what_they_may_do_themselves(site: Site, wrapped: Callable[[Cluster], Cluster]) -> None:
    cluster = wrapped(site.cluster).acting_as(site.user)

    allowed = await ask(cluster, SELF, site.attributes())
    assert allowed["allowed"] is True
    assert allowed["reason"].startswith('RBAC: allowed by RoleBinding "reader/')
    assert await ask(cluster, SELF, site.attributes("delete")) == {"allowed": False}
    assert (await ask(cluster, SELF, {"nonResourceAttributes": {"verb": "get", "path": "/version"}}))["allowed"] is True


@pytest.mark.parametrize("kind", ["SubjectAccessReview", "LocalSubjectAccessReview"])
async def test_an_administrator_asks_what_others_may_do(site: Site, kind: str) -> None:
    namespace = site.namespace if kind.startswith("Local") else ""
    spec = {"user": site.user, **site.attributes()}

    assert (await ask(site.cluster, kind, spec, namespace))["allowed"] is True
    for other in ({**spec, "user": "bob"}, {**spec, **site.attributes("delete")}):
        assert await ask(site.cluster, kind, other, namespace) == {"allowed": False}


async def test_the_rules_of_a_user_in_a_namespace_are_listed(site: Site) -> None:
    found = await ask(site.as_user, "SelfSubjectRulesReview", {"namespace": site.namespace})

    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]} in found["resourceRules"]
    assert found["incomplete"] is False


async def test_who_a_user_is(site: Site) -> None:
    sent = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

    found = await site.as_user.create(sent, field_manager="test")
    assert found["status"]["userInfo"]["username"] == site.user


async def test_to_ask_for_others_is_a_right(site: Site) -> None:
    with pytest.raises(ForbiddenError, match='cannot create resource "subjectaccessreviews" in API group'):
        await ask(site.as_user, "SubjectAccessReview", {"user": "bob", **site.attributes()})


async def test_the_namespace_of_a_local_review_need_not_exist(site: Site) -> None:
    attributes = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "nowhere"}}

    assert await ask(site.cluster, "LocalSubjectAccessReview", {"user": "bob", **attributes}, "nowhere") == {
        "allowed": False
    }


@pytest.mark.parametrize(
    ("kind", "spec", "code", "problem"),
    [
        (SELF, {}, 422, "exactly one of nonResourceAttributes or resourceAttributes must be specified"),
        ("SubjectAccessReview", {"resourceAttributes": {}}, 422, "at least one of user or group must be specified"),
        ("SelfSubjectRulesReview", {}, 400, "no namespace on request"),
    ],
)
async def test_an_invalid_review_is_refused(
    site: Site, kind: str, spec: dict[str, Any], code: int, problem: str
) -> None:
    with pytest.raises(ApiError, match=problem) as caught:
        await ask(site.cluster, kind, spec)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("call", "code"),
    [
        pytest.param(lambda cluster: cluster.get(KEY), 404, id="get"),
        pytest.param(lambda cluster: cluster.list(AUTHORIZATION, SELF, ListOptions()), 405, id="list"),
        pytest.param(lambda cluster: cluster.delete(KEY), 404, id="delete"),
        pytest.param(lambda cluster: cluster.patch(KEY, {}, MERGE), 404, id="patch"),
        pytest.param(
            lambda cluster: cluster.update({**review(SELF, {}), "metadata": {"name": "x"}}, field_manager="test"),
            404,
            id="update",
        ),
        pytest.param(
            lambda cluster: cluster.apply({**review(SELF, {}), "metadata": {"name": "x"}}, field_manager="test"),
            404,
            id="apply",
        ),
    ],
)
async def test_a_review_has_only_the_verb_create(
    site: Site, call: Callable[[Cluster], Awaitable[Any]], code: int
) -> None:
    with pytest.raises(ApiError) as caught:
        await call(site.cluster)
    text = {404: "could not find the requested resource", 405: "does not allow this method on the requested resource"}
    assert caught.value.code == code
    assert text[code] in caught.value.message


async def test_without_authorization_everything_is_allowed() -> None:
    cluster = EmbeddedCluster().acting_as("bob")

    spec = {"resourceAttributes": {"verb": "get", "resource": "secrets"}}
    assert await ask(cluster, SELF, spec) == {"allowed": True}
    assert [request.changed for request in cluster.requests] == [False]
