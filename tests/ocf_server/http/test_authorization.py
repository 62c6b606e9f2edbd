"""What RBAC allows and how it refuses: the same requests on the embedded API server and on a real one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.ocf_server.http.conftest import Either, Reply
from tests.support import eventually

RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS: Final = "/apis/authorization.k8s.io/v1"
GROUP: Final = "rbac.authorization.k8s.io"
APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"

Rules = Sequence[Mapping[str, Any]]


@dataclass
class Site:
    """A server, a namespace in it, and a user whom no other test knows.

    Attributes:
        namespace: Name of the namespace.
        user: Name of the user.
    """

    either: Either
    namespace: str
    user: str

    async def ask(self, method: str, path: str, body: Any = None, *, user: str = "", **more: Any) -> Reply:
        """Send a request as the user; `{ns}` in the path is the namespace."""
        shown = path.format(ns=self.namespace)
        return await self.either.ask(method, shown, body, Impersonate_User=user or self.user, **more)

    async def grant(self, *rules: Mapping[str, Any], cluster: bool = False, name: str = "granted") -> None:
        """Grant rights to the user, in the namespace or in the whole cluster, and wait until they are known."""
        # A path or a resource that is granted last, so that it is known when the rest is.
        name = f"{self.namespace}-{name}"
        mark = {"apiGroups": ["mark.example.com"], "resources": [name], "verbs": ["get"]}
        kind = "ClusterRole" if cluster else "Role"
        home = RBAC if cluster else f"{RBAC}/namespaces/{self.namespace}"
        role = {"metadata": {"name": name}, "rules": [*rules, mark]}
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
            "subjects": [{"kind": "User", "apiGroup": GROUP, "name": self.user}],
        }
        for plural, body in ((f"{kind.lower()}s", role), (f"{kind.lower()}bindings", binding)):
            reply = await self.either.ask("POST", f"{home}/{plural}", body)
            assert reply.status == 201, reply.text

        async def is_known() -> bool:
            asked = {"verb": "get", "group": "mark.example.com", "resource": name, "namespace": self.namespace}
            return bool((await self.review({"resourceAttributes": asked}))["allowed"])

        await eventually(is_known)

    async def review(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        reply = await self.ask("POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec})
        found: dict[str, Any] = reply.json["status"]
        return found

    def role(self, name: str, *rules: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        return {"metadata": {"name": name}, "rules": list(rules), **more}

    def binding(self, name: str, kind: str, role: str) -> dict[str, Any]:
        subject = {"kind": "User", "apiGroup": GROUP, "name": self.user}
        reference = {"apiGroup": GROUP, "kind": kind, "name": role}
        return {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}


@pytest_asyncio.fixture
async def site(either: Either) -> Site:
    namespace = either.path.rpartition("/")[2]
    return Site(either, namespace, f"alice-{namespace}")


def rule(group: str, resources: str, verbs: str, *names: str) -> dict[str, Any]:
    found: dict[str, Any] = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return {**found, "resourceNames": list(names)} if names else found


@pytest.mark.parametrize(
    ("method", "path", "problem"),
    [
        ("GET", "/api/v1/namespaces/{ns}/pods", 'pods: list "pods" "" {ns}'),
        ("GET", "/api/v1/namespaces/{ns}/pods/x", 'pods "x": get "pods" "" {ns}'),
        ("HEAD", "/api/v1/namespaces/{ns}/pods/x", ""),
        ("GET", "/api/v1/namespaces/{ns}/pods/x/log", 'pods "x": get "pods/log" "" {ns}'),
        ("GET", "/api/v1/pods", 'pods: list "pods" "" *'),
        ("GET", "/api/v1/pods?watch=1", 'pods: watch "pods" "" *'),
        ("GET", "/api/v1/watch/namespaces/{ns}/pods", 'pods: watch "pods" "" {ns}'),
        ("GET", "/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dx", 'pods "x": watch "pods" "" *'),
        (
            "GET",
            "/api/v1/namespaces/{ns}/pods?fieldSelector=status.phase%3DRunning,metadata.name%3Dx",
            'pods "x": list "pods" "" {ns}',
        ),
        ("GET", "/api/v1/namespaces/{ns}", 'namespaces "{ns}": get "namespaces" "" {ns}'),
        ("GET", "/api/v1/namespaces", 'namespaces: list "namespaces" "" *'),
        ("GET", "/api/v1/nodes/n", 'nodes "n": get "nodes" "" *'),
        ("DELETE", "/api/v1/namespaces/{ns}", 'namespaces "{ns}": delete "namespaces" "" {ns}'),
        ("DELETE", "/api/v1/namespaces/{ns}/pods", 'pods: deletecollection "pods" "" {ns}'),
        (
            "DELETE",
            "/api/v1/namespaces/{ns}/pods?fieldSelector=metadata.name%3Dx",
            'pods: deletecollection "pods" "" {ns}',
        ),
        ("DELETE", "/api/v1/namespaces/{ns}/pods/x", 'pods "x": delete "pods" "" {ns}'),
        ("POST", "/api/v1/namespaces/{ns}/configmaps", 'configmaps: create "configmaps" "" {ns}'),
        ("PUT", "/api/v1/namespaces/{ns}/configmaps/x", 'configmaps "x": update "configmaps" "" {ns}'),
        ("PATCH", "/api/v1/namespaces/{ns}/configmaps/x", 'configmaps "x": patch "configmaps" "" {ns}'),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/{ns}/deployments/x/status",
            'deployments.apps "x": patch "deployments/status" "apps" {ns}',
        ),
        ("POST", "/api/v1/namespaces/{ns}/pods/x/eviction", 'pods "x": create "pods/eviction" "" {ns}'),
        ("GET", "/api/v1/namespaces/{ns}/pods/x/exec", 'pods "x": get "pods/exec" "" {ns}'),
        ("GET", "/api/v1/namespaces/{ns}/nothing/x", 'nothing "x": get "nothing" "" {ns}'),
        (
            "GET",
            "/apis/nothing.example.com/v1/namespaces/{ns}/nothing/x",
            'nothing.nothing.example.com "x": get "nothing" "nothing.example.com" {ns}',
        ),
    ],
)
async def test_a_user_without_rights_gets_the_text_of_the_api_server(
    site: Site, method: str, path: str, problem: str
) -> None:
    reply = await site.ask(method, path, {} if method in ("POST", "PUT", "PATCH") else None, kind=MERGE)

    assert reply.status == 403
    if problem:
        subject, _, rest = problem.format(ns=site.namespace).rpartition(": ")
        verb, resource, group, where = rest.split()
        where = "at the cluster scope" if where == "*" else f'in the namespace "{where}"'
        wanted = f'User "{site.user}" cannot {verb} resource {resource} in API group {group} {where}'
        assert reply.json["message"] == f"{subject} is forbidden: {wanted}"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api", 200),
        ("GET", "/apis/apps/v1", 200),
        ("GET", "/version", 200),
        ("GET", "/healthz", 200),
        ("GET", "/openapi/v3", 200),
        ("GET", "/metrics", 403),
        ("POST", "/metrics", 403),
        ("GET", "/nothing", 403),
    ],
)
async def test_every_user_may_ask_what_is_served(site: Site, method: str, path: str, status: int) -> None:
    reply = await site.ask(method, path)

    assert reply.status == status
    if status == 403:
        text = f'forbidden: User "{site.user}" cannot {method.lower()} path "{path}"'
        assert (reply.json["message"], reply.json["details"]) == (text, {})


@pytest.mark.parametrize(
    ("granted", "method", "path", "status"),
    [
        pytest.param(rule("", "configmaps", "list"), "GET", "/api/v1/namespaces/{ns}/configmaps", 200, id="a rule"),
        pytest.param(rule("", "configmaps", "get"), "GET", "/api/v1/namespaces/{ns}/configmaps", 403, id="a verb"),
        pytest.param(rule("*", "*", "*"), "GET", "/api/v1/namespaces/{ns}/secrets", 200, id="all of a namespace"),
        pytest.param(rule("*", "*", "*"), "GET", "/api/v1/secrets", 403, id="not all namespaces"),
        pytest.param(rule("*", "*", "*"), "GET", "/api/v1/namespaces/{ns}", 200, id="the namespace itself"),
        pytest.param(rule("apps", "configmaps", "*"), "GET", "/api/v1/namespaces/{ns}/configmaps", 403, id="a group"),
        pytest.param(
            rule("", "configmaps", "list", "x"),
            "GET",
            "/api/v1/namespaces/{ns}/configmaps?fieldSelector=metadata.name%3Dx",
            200,
            id="a list of one name",
        ),
        pytest.param(
            rule("", "configmaps", "list", "x"),
            "GET",
            "/api/v1/namespaces/{ns}/configmaps?fieldSelector=metadata.name%3Dy",
            403,
            id="not of another name",
        ),
        pytest.param(
            rule("", "configmaps", "list", "x"), "GET", "/api/v1/namespaces/{ns}/configmaps", 403, id="not of all names"
        ),
        pytest.param(
            rule("", "configmaps", "deletecollection", "x"),
            "DELETE",
            "/api/v1/namespaces/{ns}/configmaps?fieldSelector=metadata.name%3Dx",
            403,
            id="a delete of a collection has no name",
        ),
        pytest.param(
            rule("apps", "deployments", "*"),
            "GET",
            "/apis/apps/v1/namespaces/{ns}/deployments/x/scale",
            403,
            id="a subresource is another resource",
        ),
        pytest.param(
            rule("apps", "*/scale", "get"),
            "GET",
            "/apis/apps/v1/namespaces/{ns}/deployments/x/scale",
            404,
            id="a subresource of all resources",
        ),
        pytest.param(
            rule("apps", "deployments/scale", "get", "x"),
            "GET",
            "/apis/apps/v1/namespaces/{ns}/deployments/x/scale",
            404,
            id="a subresource of one object",
        ),
        pytest.param(
            rule("", "configmaps", "update"), "PUT", "/api/v1/namespaces/{ns}/configmaps/x", 404, id="an update"
        ),
    ],
)
async def test_a_rule_allows_what_it_names(
    site: Site, granted: dict[str, Any], method: str, path: str, status: int
) -> None:
    await site.grant(granted)
    body = {"metadata": {"name": "x"}} if method == "PUT" else None

    assert (await site.ask(method, path, body)).status == status


APPLIED: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
CONFIG_MAP: Final = "/api/v1/namespaces/{ns}/configmaps/x?fieldManager=me"


async def test_an_apply_that_creates_needs_the_right_to_create(site: Site) -> None:
    """Decided in https://github.com/kubernetes/kubernetes/pull/64892; met as https://github.com/kcp-dev/kcp/pull/3439."""
    await site.grant(rule("", "configmaps", "get patch update"))

    reply = await site.ask("PATCH", CONFIG_MAP, APPLIED, kind=APPLY)
    problem = f'User "{site.user}" cannot create resource "configmaps" in API group "" in the namespace'
    assert reply.json["message"] == f'configmaps "x" is forbidden: {problem} "{site.namespace}"'
    assert reply.json["details"] == {"name": "x", "kind": "configmaps"}

    await site.either.ask("POST", f"{site.either.path}/configmaps", {"metadata": {"name": "x"}})
    assert (await site.ask("PATCH", CONFIG_MAP, APPLIED, kind=APPLY)).status == 200


async def test_an_invalid_object_is_that_before_it_is_forbidden_to_create(site: Site) -> None:
    await site.grant(rule("", "configmaps", "patch"))
    invalid = {**APPLIED, "metadata": {"name": "x", "labels": {"a b": "c"}}}

    assert (await site.ask("PATCH", CONFIG_MAP, invalid, kind=APPLY)).status == 422


async def test_an_apply_needs_patch_even_if_it_creates(site: Site) -> None:
    """Met as https://github.com/curie-eng/curie/issues/2922."""
    await site.grant(rule("", "configmaps", "get create update delete"))

    reply = await site.ask("PATCH", CONFIG_MAP, APPLIED, kind=APPLY)
    assert (reply.status, "cannot patch resource" in reply.text) == (403, True)


async def test_the_right_to_create_one_name_is_enough_for_an_apply_but_not_for_a_create(site: Site) -> None:
    await site.grant(rule("", "configmaps", "create patch", "x"))

    assert (await site.ask("POST", "/api/v1/namespaces/{ns}/configmaps", APPLIED)).status == 403
    assert (await site.ask("PATCH", CONFIG_MAP, APPLIED, kind=APPLY)).status == 201


async def test_an_update_that_creates_needs_the_right_to_create(site: Site) -> None:
    await site.grant(rule("coordination.k8s.io", "leases", "update"))
    lease = {"metadata": {"name": "l"}}

    reply = await site.ask("PUT", "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l", lease)
    assert (reply.status, 'cannot create resource "leases"' in reply.json["message"]) == (403, True)


async def test_a_binding_to_a_role_that_is_gone_is_named(site: Site) -> None:
    for kind in ("ClusterRole", "Role"):
        body = site.binding(f"dangling-{kind.lower()}", kind, f"gone-{site.namespace}")
        await site.either.ask("POST", f"{RBAC}/namespaces/{site.namespace}/rolebindings", body)
    listed = [f'{kind}.{GROUP} "gone-{site.namespace}" not found' for kind in ("clusterrole", "role")]

    async def is_named() -> bool:
        text: str = (await site.ask("GET", "/api/v1/namespaces/{ns}/pods/x")).json["message"]
        return text.endswith(f'in the namespace "{site.namespace}": RBAC: [{", ".join(listed)}]')

    await eventually(is_named)


WRITES: Final = rule(GROUP, "roles rolebindings", "get create update patch")


def missing(user: str, *rules: str, groups: str = '"system:authenticated"') -> str:
    listed = "\n".join(rules)
    return f'user "{user}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{listed}'


@pytest.mark.parametrize(
    ("rules", "lines"),
    [
        pytest.param([rule("", "configmaps", "patch")], [], id="rights that the user has"),
        pytest.param([], [], id="none"),
        pytest.param(
            [rule("", "pods nodes", "get list")],
            [
                '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}',
                '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
            ],
            id="others",
        ),
        pytest.param(
            [rule("", "configmaps", "patch get", "q")],
            ['{APIGroups:[""], Resources:["configmaps"], ResourceNames:["q"], Verbs:["get"]}'],
            id="others for a name",
        ),
        pytest.param([rule("*", "*", "*")], ['{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'], id="all"),
        pytest.param(
            [rule("", "pods", "get", "a"), rule("", "pods", "list"), rule("apps", "deployments/scale", "get")],
            [
                '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}',
                '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}',
                '{APIGroups:["apps"], Resources:["deployments/scale"], Verbs:["get"]}',
            ],
            id="several",
        ),
    ],
)
async def test_a_user_cannot_grant_more_than_they_have(site: Site, rules: Rules, lines: list[str]) -> None:
    """The text is that of https://github.com/kubernetes/kubernetes/pull/65909."""
    await site.grant(WRITES, rule("", "configmaps", "patch"))

    created = await site.ask("POST", f"{RBAC}/namespaces/{{ns}}/roles", site.role("r", *rules))
    await site.either.ask("POST", f"{RBAC}/namespaces/{site.namespace}/roles", site.role("known"))
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Role", **site.role("known", *rules)}
    path = f"{RBAC}/namespaces/{{ns}}/roles/known?fieldManager=me&force=true"
    changed = await site.ask("PATCH", path, body, kind=APPLY)

    assert (created.status, changed.status) == ((403, 403) if lines else (201, 200))
    if lines:
        for reply, name in ((created, "r"), (changed, "known")):
            problem = f'roles.{GROUP} "{name}" is forbidden: {missing(site.user, *lines)}'
            assert reply.json["message"] == problem


async def test_the_right_to_escalate_allows_any_role(site: Site) -> None:
    await site.grant(WRITES, rule(GROUP, "roles", "escalate"))

    reply = await site.ask("POST", f"{RBAC}/namespaces/{{ns}}/roles", site.role("r", rule("*", "*", "*")))
    assert reply.status == 201


async def test_an_owner_reference_of_a_role_needs_no_more_rights(site: Site) -> None:
    await site.grant(WRITES)
    role = site.role("known", rule("*", "*", "*"))
    await site.either.ask("POST", f"{RBAC}/namespaces/{site.namespace}/roles", role)

    path = f"{RBAC}/namespaces/{{ns}}/roles/known"
    assert (await site.ask("PATCH", path, {"metadata": {"finalizers": ["a.b/c"]}}, kind=MERGE)).status == 200
    assert (await site.ask("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, kind=MERGE)).status == 403
    await site.either.ask("PATCH", path.format(ns=site.namespace), {"metadata": {"finalizers": None}}, kind=MERGE)


@pytest.mark.parametrize(
    ("kind", "role", "more", "problem"),
    [
        pytest.param("Role", "{ns}-granted", [], None, id="a role whose rights the user has"),
        pytest.param("Role", "other", [], ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'], id="another"),
        pytest.param("Role", "other", [rule(GROUP, "roles", "bind", "other")], None, id="another that may be bound"),
        pytest.param("Role", "gone", [], 404, id="one that is gone"),
        pytest.param("Role", "gone", [rule(GROUP, "roles", "bind")], None, id="one that is gone and may be bound"),
        pytest.param(
            "ClusterRole",
            "cluster-admin",
            [],
            ['{APIGroups:["*"], Resources:["*"], Verbs:["*"]}', '{NonResourceURLs:["*"], Verbs:["*"]}'],
            id="that of the administrator",
        ),
    ],
)
async def test_a_user_binds_roles_whose_rights_they_have(
    site: Site, kind: str, role: str, more: Rules, problem: list[str] | int | None
) -> None:
    await site.grant(WRITES, *more)
    other = site.role("other", rule("", "pods", "get"))
    await site.either.ask("POST", f"{RBAC}/namespaces/{site.namespace}/roles", other)

    async def bound() -> Reply:
        body = site.binding("b", kind, role.format(ns=site.namespace))
        return await site.ask("POST", f"{RBAC}/namespaces/{{ns}}/rolebindings", body)

    reply = await bound()
    if problem is None:
        assert reply.status == 201
    elif isinstance(problem, int):
        text = f'rolebindings.{GROUP} "{role}" not found'
        assert (reply.status, reply.json["message"]) == (problem, text)
    else:
        text = f'rolebindings.{GROUP} "b" is forbidden: {missing(site.user, *problem)}'
        assert (reply.status, reply.json["message"]) == (403, text)


async def test_only_an_administrator_aggregates_roles(site: Site) -> None:
    await site.grant(rule(GROUP, "clusterroles", "create"), cluster=True)
    aggregation = {"clusterRoleSelectors": [{"matchLabels": {"a": site.namespace}}]}
    role = site.role(f"{site.namespace}-all", aggregationRule=aggregation)

    reply = await site.ask("POST", f"{RBAC}/clusterroles", role)
    problem = "must have cluster-admin privileges to use the aggregationRule"
    assert reply.json["message"] == f'clusterroles.{GROUP} "{site.namespace}-all" is forbidden: {problem}'


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param(
            {"resourceAttributes": {"verb": "patch", "resource": "configmaps", "namespace": "{ns}"}},
            {"allowed": True, "reason": 'Role "{ns}-granted" to User "{user}"'},
            id="a right",
        ),
        pytest.param(
            {"resourceAttributes": {"verb": "patch", "resource": "configmaps", "namespace": "other"}},
            {"allowed": False},
            id="no right",
        ),
        pytest.param(
            {"nonResourceAttributes": {"verb": "get", "path": "/api"}},
            {"allowed": True, "reason": 'ClusterRole "system:discovery" to Group "system:authenticated"'},
            id="a path",
        ),
        pytest.param({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, {"allowed": False}, id="no path"),
    ],
)
async def test_reviews_of_access_are_answered_by_the_same_rules(
    site: Site, spec: dict[str, Any], status: dict[str, Any]
) -> None:
    """A client may take the absence of `denied` for a right: https://github.com/kubernetes/kubernetes/issues/71791."""
    await site.grant(rule("", "configmaps", "patch"))
    spec = json.loads(json.dumps(spec).replace("{ns}", site.namespace))
    groups = ["system:authenticated"]

    own = await site.review(spec)
    for kind, user in (("subjectaccessreviews", site.user), ("subjectaccessreviews", "system:serviceaccount:a:b")):
        reply = await site.either.ask("POST", f"{REVIEWS}/{kind}", {"spec": {**spec, "user": user, "groups": groups}})
        found = reply.json["status"]
        assert found == own if user == site.user else found["allowed"] is ("/api" in str(spec))
    assert own["allowed"] is status["allowed"]
    assert own.get("reason", "").endswith(status.get("reason", "").format(ns=site.namespace, user=site.user))
    assert own.keys() == status.keys()


async def test_a_local_review_is_of_its_namespace(site: Site) -> None:
    await site.grant(rule("", "configmaps", "patch"))
    asked = {"verb": "patch", "resource": "configmaps", "namespace": site.namespace}
    path = f"{REVIEWS}/namespaces/{site.namespace}/localsubjectaccessreviews"

    body = {"spec": {"user": site.user, "resourceAttributes": asked}, "metadata": {"namespace": site.namespace}}
    reply = await site.either.ask("POST", path, body)
    binding = f'RoleBinding "{site.namespace}-granted/{site.namespace}" of Role "{site.namespace}-granted"'
    assert reply.json["status"] == {
        "allowed": True,
        "reason": f'RBAC: allowed by {binding} to User "{site.user}"',
    }


async def test_a_review_of_rules_lists_those_of_the_user(site: Site) -> None:
    await site.grant(rule("", "configmaps", "patch", "x"))

    reply = await site.ask("POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": site.namespace}})
    status = reply.json["status"]
    found = [each for each in status["resourceRules"] if "configmaps" in each["resources"]]
    assert found == [{"verbs": ["patch"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["x"]}]
    assert status["incomplete"] is False
    assert {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]} in status[
        "nonResourceRules"
    ]


ANYBODY: Final = rule("", "users", "impersonate")


@pytest.mark.parametrize(
    ("granted", "headers", "text"),
    [
        pytest.param(rule("", "pods", "get"), {}, "impersonate-on:user-info:list", id="no right"),
        pytest.param(rule("", "users", "impersonate", "carol"), {}, "impersonate-on:user-info:list", id="another user"),
        pytest.param(rule("", "users", "impersonate", "bob"), {}, "", id="the user"),
        pytest.param(ANYBODY, {"Impersonate_Group": "dev"}, "impersonate-on:user-info:list", id="no group"),
        pytest.param(rule("", "users groups", "impersonate"), {"Impersonate_Group": "dev"}, "", id="a group"),
        pytest.param(
            ANYBODY,
            {"Impersonate_User": "system:serviceaccount:shop:robot"},
            "impersonate-on:serviceaccount:list",
            id="a service account is no user",
        ),
        pytest.param(
            rule("", "pods", "get"),
            {"Impersonate_User": "system:node:one"},
            "impersonate-on:arbitrary-node:list",
            id="a node",
        ),
    ],
)
async def test_a_user_needs_the_right_to_impersonate(
    site: Site, granted: dict[str, Any], headers: dict[str, str], text: str
) -> None:
    await site.grant(granted, cluster=True)
    ask = site.either.client_of(site.user)

    reply = await ask("GET", f"/api/v1/namespaces/{site.namespace}/pods", **{"Impersonate_User": "bob", **headers})
    user, verb = (site.user, text) if text else ("bob", "list")
    where = f'in API group "" in the namespace "{site.namespace}"'
    assert reply.json["message"] == f'pods is forbidden: User "{user}" cannot {verb} resource "pods" {where}'


@pytest.mark.parametrize(
    ("headers", "subject", "resource", "group"),
    [
        ({"Impersonate_Group": "dev"}, 'groups "dev"', "groups", ""),
        ({"Impersonate_Uid": "1"}, 'uids.authentication.k8s.io "1"', "uids", "authentication.k8s.io"),
        (
            {"Impersonate_Extra_Scopes": "a"},
            'userextras.authentication.k8s.io "a"',
            "userextras/scopes",
            "authentication.k8s.io",
        ),
    ],
    ids=["groups", "uid", "extra"],
)
async def test_who_has_impersonated_before_gets_the_right_that_is_missing(
    site: Site, headers: dict[str, str], subject: str, resource: str, group: str
) -> None:
    """A missing right for a value of `extra` was met as https://github.com/vmware/pinniped/pull/528."""
    await site.grant(ANYBODY, cluster=True)
    ask = site.either.client_of(site.user)
    path = f"/api/v1/namespaces/{site.namespace}/pods"
    assert 'User "bob" cannot list' in (await ask("GET", path, Impersonate_User="bob")).json["message"]

    reply = await ask("GET", path, Impersonate_User="bob", **headers)
    problem = f'User "{site.user}" cannot impersonate resource "{resource}" in API group "{group}" at the cluster scope'
    assert reply.json["message"] == f"{subject} is forbidden: {problem}"


@pytest.mark.parametrize("name", ["system:serviceaccount:shop:robot", "system:node:one"])
async def test_with_a_uid_a_service_account_and_a_node_are_impersonated_like_a_user(site: Site, name: str) -> None:
    await site.grant(rule("", "users serviceaccounts", "impersonate"), cluster=True)
    ask = site.either.client_of(site.user)

    reply = await ask("GET", f"/api/v1/namespaces/{site.namespace}/pods", Impersonate_User=name, Impersonate_Uid="1")
    assert f'uids.authentication.k8s.io "1" is forbidden: User "{site.user}"' in reply.json["message"]


async def test_a_policy_can_ask_what_the_user_may_do(site: Site) -> None:
    await site.grant(rule("", "configmaps", "create"), rule("", "secrets", "get", "s"))
    name, policies = site.namespace, "/apis/admissionregistration.k8s.io/v1"
    checks = {
        "request": "authorizer.requestResource.check('create').allowed()",
        "other-verb": "authorizer.requestResource.check('delete').allowed()",
        "resource": f"authorizer.group('').resource('secrets').namespace('{name}').name('s').check('get').allowed()",
        "other-name": f"authorizer.group('').resource('secrets').namespace('{name}').name('t').check('get').allowed()",
        "group": f"authorizer.group('a').resource('secrets').namespace('{name}').name('s').check('get').allowed()",
        "part": (
            f"authorizer.group('').resource('secrets').subresource('x').namespace('{name}').name('s')"
            ".check('get').allowed()"
        ),
        "path": "authorizer.path('/version').check('get').allowed()",
        "other-path": "authorizer.path('/metrics').check('get').allowed()",
        "account": (
            f"authorizer.serviceAccount('{name}', 'default').group('').resource('secrets').namespace('{name}')"
            ".name('s').check('get').allowed()"
        ),
        "reason": f"authorizer.requestResource.check('create').reason().contains('{name}-granted')",
        "user": f"request.userInfo.username == '{site.user}' && 'system:authenticated' in request.userInfo.groups",
    }
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    policy = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": rules, "namespaceSelector": selector},
            "validations": [{"expression": text, "message": f"not {label}"} for label, text in checks.items()],
        },
    }
    binding = {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Warn"]}}
    for plural, body in (("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)):
        assert (await site.either.ask("POST", f"{policies}/{plural}", body)).status == 201

    async def denied() -> set[str]:
        sent = {"metadata": {"generateName": "c-"}}
        reply = await site.ask("POST", "/api/v1/namespaces/{ns}/configmaps", sent)
        assert reply.status == 201, reply.text
        return {text.rpartition("not ")[2].rstrip('"') for text in reply.warnings}

    # A real API server knows a new policy a moment later.
    assert await eventually(denied) == {"other-verb", "other-name", "group", "part", "other-path", "account"}
    for plural in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
        await site.either.ask("DELETE", f"{policies}/{plural}/{name}")
