"""Other users than the administrator: whom admission sees, and what RBAC lets them do in process."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Final

import aiohttp
import pytest

from ocf.cluster import (
    DeleteOptions,
    ListOptions,
    PatchOptions,
    PatchType,
    ServiceAccount,
    Subresource,
    WatchOptions,
)
from ocf.cluster.client import ApiServerCluster
from ocf.errors import ConfigError, ForbiddenError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import RecordingCluster
from ocf_server import ControllerSettings, EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig

GROUP: Final = "rbac.authorization.k8s.io"
ADMISSION: Final = "admissionregistration.k8s.io/v1"
SETTINGS: Final = ObjectKey("v1", "ConfigMap", "settings", "shop")
MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="t")
ANYTHING: Final = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]


class Recorder:
    """Allows every request, and records its user."""

    def __init__(self) -> None:
        self.users: list[Manifest] = []
        self.cluster: EmbeddedCluster | None = None

    async def ask(self, webhook: Mapping[str, Any], review: Manifest, *, seconds: float) -> Any:
        del webhook, seconds
        self.users.append(review["request"]["userInfo"])
        # As a webhook of an operator in the same process, which makes requests of its own.
        if self.cluster is not None and review["request"]["name"] == "settings":
            await self.cluster.create(config_map("log"), field_manager="webhook")
        response = {"uid": review["request"]["uid"], "allowed": True}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def config_map(name: str = "settings", **content: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, **content}


def configuration(**fields: Any) -> Manifest:
    hook = {
        "name": "a.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"namespace": "shop", "name": "hook"}},
        "rules": [{**ANYTHING[0], "apiGroups": [""], "resources": ["configmaps"]}],
        **fields,
    }
    return {
        "apiVersion": ADMISSION,
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [hook],
    }


async def grant(cluster: EmbeddedCluster, user: str, *rules: Mapping[str, Any], name: str = "granted") -> None:
    role = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [*rules]}
    await cluster.create(role, field_manager="test")
    await bind(cluster, user, name)


async def bind(cluster: EmbeddedCluster, user: str, role: str, namespace: str = "") -> None:
    place = {"namespace": namespace} if namespace else {}
    await cluster.create(
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
            "metadata": {"name": f"{role}-{user}".replace(":", "."), **place},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
        },
        field_manager="test",
    )


def rule(resources: str, verbs: str, *names: str, group: str = "") -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "resources": resources.split(),
        "verbs": verbs.split(),
        **({"resourceNames": [*names]} if names else {}),
    }


ALICE: Final = {
    "username": "alice",
    "uid": "1",
    "groups": ["dev", "system:authenticated"],
    "extra": {"scopes": ["a", "b"]},
}


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def observed(recorder: Recorder) -> EmbeddedCluster:
    return EmbeddedCluster(namespaces=["shop"], admission=recorder)


@pytest.fixture
def authorized() -> EmbeddedCluster:
    return EmbeddedCluster(namespaces=["shop"], authorization=True)


def alice(cluster: EmbeddedCluster) -> EmbeddedCluster:
    return cluster.acting_as("alice", groups=["dev"], uid="1", extra={"scopes": ["a", "b"]})


async def test_webhooks_see_the_user_of_each_write(observed: EmbeddedCluster, recorder: Recorder) -> None:
    await observed.create(configuration(), field_manager="test")
    cluster = alice(observed)

    await cluster.create(config_map(), field_manager="test")
    await cluster.apply(config_map(data={"a": "b"}), field_manager="test", force=True)
    live = await cluster.get(SETTINGS)
    await cluster.update({**live, "data": {"a": "c"}}, field_manager="test")
    await cluster.patch(SETTINGS, {"data": None}, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))
    await cluster.delete(SETTINGS)
    assert recorder.users == [ALICE] * 5

    await observed.create(config_map(), field_manager="test")
    assert recorder.users[5:] == [{"username": "admin", "groups": ["system:masters", "system:authenticated"]}]


async def test_subresources_have_the_user_of_the_request(observed: EmbeddedCluster, recorder: Recorder) -> None:
    await observed.create(configuration(rules=ANYTHING), field_manager="test")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}}
    pod["spec"] = {"containers": [{"name": "a", "image": "a:1"}]}
    await observed.create(pod, field_manager="test")
    recorder.users.clear()

    pod.pop("spec")
    await alice(observed).create({**pod}, field_manager="test", subresource=Subresource.EVICTION)
    assert recorder.users
    assert all(user == ALICE for user in recorder.users)


@pytest.mark.parametrize(("user", "calls"), [("alice", 1), ("system:serviceaccount:shop:operator", 0)])
async def test_match_conditions_see_the_user(
    observed: EmbeddedCluster, recorder: Recorder, user: str, calls: int
) -> None:
    text = "!('system:serviceaccounts:shop' in request.userInfo.groups)"
    await observed.create(
        configuration(matchConditions=[{"name": "no-account", "expression": text}]), field_manager="test"
    )

    await observed.acting_as(user).create(config_map(), field_manager="test")
    assert len(recorder.users) == calls


async def test_mutating_policies_see_the_user(observed: EmbeddedCluster) -> None:
    text = "Object{metadata: Object.metadata{labels: {'by': request.userInfo.username}}}"
    spec = {
        "matchConstraints": {"resourceRules": [{**ANYTHING[0], "resources": ["configmaps"], "operations": ["CREATE"]}]},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}],
    }
    for kind, content in (("MutatingAdmissionPolicy", spec), ("MutatingAdmissionPolicyBinding", {"policyName": "by"})):
        body = {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": "by"}, "spec": content}
        await observed.create(body, field_manager="test")

    created = await alice(observed).create(config_map(), field_manager="test")
    assert created["metadata"]["labels"] == {"by": "alice"}


async def test_a_webhook_in_the_process_makes_requests_as_itself(observed: EmbeddedCluster, recorder: Recorder) -> None:
    await observed.create(configuration(), field_manager="test")
    recorder.cluster = observed
    async with serving(observed) as server, aiohttp.ClientSession() as session:
        url, headers = f"{server.url}/api/v1/namespaces/shop/configmaps", {"Impersonate-User": "alice"}
        async with session.post(url, json=config_map(), headers=headers) as reply:
            assert reply.status == 201

    assert [user["username"] for user in recorder.users] == ["alice", "admin"]


async def test_a_service_account_is_a_user_in_its_groups(observed: EmbeddedCluster, recorder: Recorder) -> None:
    await observed.create(configuration(), field_manager="test")

    await observed.acting_as(ServiceAccount("operator", "ops")).create(config_map(), field_manager="test")
    groups = ["system:serviceaccounts", "system:serviceaccounts:ops", "system:authenticated"]
    assert recorder.users == [{"username": "system:serviceaccount:ops:operator", "groups": groups}]


@pytest.mark.parametrize(
    ("user", "groups", "problem"),
    [("", (), "without a user; name one"), ("alice", "dev", "groups must be a list of texts")],
)
def test_a_user_without_a_name_is_an_error(observed: EmbeddedCluster, user: str, groups: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        observed.acting_as(user, groups=groups)


async def test_the_requests_of_all_users_are_in_one_log(observed: EmbeddedCluster) -> None:
    await observed.acting_as("alice").create(config_map(), field_manager="test")

    await observed.create(config_map("b"), field_manager="test")

    assert [(request.name, request.user) for request in observed.requests] == [("settings", "alice"), ("b", "")]


async def first_change(cluster: EmbeddedCluster) -> None:
    async with aclosing(
        cluster.watch("v1", "ConfigMap", WatchOptions(namespace="shop", resource_version=""))
    ) as events:
        async for _ in events:
            break


REQUESTS: Final = [
    pytest.param(lambda cluster: cluster.get(SETTINGS), "get", id="get"),
    pytest.param(lambda cluster: cluster.list("v1", "ConfigMap", ListOptions(namespace="shop")), "list", id="list"),
    pytest.param(first_change, "watch", id="watch"),
    pytest.param(lambda cluster: cluster.create(config_map(), field_manager="t"), "create", id="create"),
    pytest.param(lambda cluster: cluster.update(config_map(), field_manager="t"), "update", id="update"),
    pytest.param(lambda cluster: cluster.apply(config_map(), field_manager="t"), "patch", id="apply"),
    pytest.param(
        lambda cluster: cluster.patch(SETTINGS, {}, PatchOptions(patch_type=PatchType.MERGE, field_manager="t")),
        "patch",
        id="patch",
    ),
    pytest.param(lambda cluster: cluster.delete(SETTINGS), "delete", id="delete"),
    pytest.param(
        lambda cluster: cluster.delete(SETTINGS, DeleteOptions(dry_run=True)), "delete", id="a dry run of a delete"
    ),
]


@pytest.mark.parametrize(("call", "verb"), REQUESTS)
async def test_each_verb_is_authorized(authorized: EmbeddedCluster, call: Any, verb: str) -> None:
    cluster = authorized.acting_as("alice")
    seen = authorized.requests

    with pytest.raises(ForbiddenError, match=f'User "alice" cannot {verb} resource "configmaps" in API group ""'):
        await call(cluster)
    assert [request.code for request in seen] == [403]
    await grant(authorized, "alice", rule("configmaps", "get list watch create update patch delete"))
    if verb != "create":
        await authorized.apply(config_map(), field_manager="t")
    await call(cluster)


@pytest.mark.parametrize(
    ("name", "read", "write", "roles"),
    [("view", True, False, False), ("edit", True, True, False), ("admin", True, True, True)],
)
async def test_the_roles_of_users_are_aggregated(
    authorized: EmbeddedCluster, name: str, *, read: bool, write: bool, roles: bool
) -> None:
    await bind(authorized, "alice", name, "shop")
    cluster = authorized.acting_as("alice")

    async def may(call: Any) -> bool:
        try:
            await call
        except ForbiddenError:
            return False
        return True

    role = {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": "r", "namespace": "shop"}, "rules": []}
    assert await may(cluster.list("apps/v1", "Deployment", ListOptions(namespace="shop"))) is read
    assert await may(cluster.create(config_map(), field_manager="t")) is write
    assert await may(cluster.create(role, field_manager="t")) is roles
    assert not await may(cluster.list("v1", "Secret"))


async def test_a_role_that_a_label_adds_is_aggregated_at_once(authorized: EmbeddedCluster) -> None:
    await bind(authorized, "alice", "view", "shop")
    labels = {f"{GROUP}/aggregate-to-view": "true"}
    role = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": "more", "labels": labels}}
    await authorized.create({**role, "rules": [rule("secrets", "list")]}, field_manager="test")

    await authorized.acting_as("alice").list("v1", "Secret", ListOptions(namespace="shop"))


async def test_who_acts_as_another_needs_the_right(authorized: EmbeddedCluster) -> None:
    await grant(authorized, "bob", rule("configmaps", "list"), name="bobs")
    bob = authorized.authenticated_as("alice").acting_as("bob")

    with pytest.raises(ForbiddenError, match='User "alice" cannot impersonate-on:user-info:list'):
        await bob.list("v1", "ConfigMap")
    await grant(authorized, "alice", rule("users", "impersonate", "bob"))
    await bob.list("v1", "ConfigMap")
    with pytest.raises(ForbiddenError, match='User "alice" cannot impersonate resource "users" in API group ""'):
        await bob.acting_as("carol").list("v1", "ConfigMap")


async def test_who_acts_as_a_third_user_is_still_who_authenticates(authorized: EmbeddedCluster) -> None:
    """As with every client: the second user is replaced, and needs no right to impersonate the third."""
    await grant(authorized, "bob", rule("configmaps", "list"))

    await authorized.acting_as("alice").acting_as("bob").list("v1", "ConfigMap")


async def test_a_clone_has_roles_of_its_own(authorized: EmbeddedCluster) -> None:
    clone = authorized.clone()
    await grant(clone, "alice", rule("configmaps", "list"))

    await clone.acting_as("alice").list("v1", "ConfigMap")
    with pytest.raises(ForbiddenError):
        await authorized.acting_as("alice").list("v1", "ConfigMap")


async def test_controllers_are_not_limited_by_the_user(authorized: EmbeddedCluster) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
    web["spec"] = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await authorized.create(web, field_manager="test")

    await authorized.acting_as("alice").controllers(ControllerSettings()).settle()
    assert len((await authorized.list("v1", "Pod")).items) == 1


async def test_over_http_the_right_to_delete_a_collection_is_enough(authorized: EmbeddedCluster) -> None:
    await authorized.create(config_map(), field_manager="test")
    await grant(authorized, "alice", rule("configmaps", "deletecollection"))
    async with serving(authorized) as server, aiohttp.ClientSession() as session:
        url, headers = f"{server.url}/api/v1/namespaces/shop/configmaps", {"Impersonate-User": "alice"}
        async with session.delete(url, headers=headers) as reply:
            assert reply.status == 200

    assert (await authorized.list("v1", "ConfigMap")).items == ()


async def test_a_wrapper_behind_the_server_makes_requests_as_their_user(
    authorized: EmbeddedCluster, tmp_path: Any
) -> None:
    await grant(authorized, "alice", rule("configmaps", "create"))
    async with serving(authorized, wrap=RecordingCluster) as server:
        write_kubeconfig(server.kubeconfig("alice"), tmp_path / "alice")
        async with await ApiServerCluster.connect(tmp_path / "alice") as cluster:
            await cluster.create(config_map(), field_manager="test")
            with pytest.raises(ForbiddenError, match='User "alice" cannot get'):
                await cluster.get(SETTINGS)


async def test_without_authorization_no_user_is_refused(observed: EmbeddedCluster) -> None:
    cluster = observed.acting_as("system:anonymous").acting_as("alice")

    await cluster.create(config_map(), field_manager="test")
    assert (await cluster.list("v1", "ConfigMap")).items
