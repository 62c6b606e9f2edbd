"""Who the user of a request is: impersonation, client certificates and missing credentials."""

from __future__ import annotations

import base64
import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ocf.cluster.client import ApiServerCluster
from ocf.errors import ForbiddenError
from ocf.objects import ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from ocf_server.http.server import HttpServer
from tests.kubectl import Kubectl
from tests.ocf_server.http.conftest import Client, Either
from tests.support import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from ocf.testing.envtest.binaries import Programs

WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
AUTHENTICATED = "system:authenticated"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MAY_REQUEST = {
    "metadata": {"name": "requestor"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "requestor"}],
}
ROBOT = "system:serviceaccount:shop:robot"


async def whoami(ask: Client, **headers: Any) -> dict[str, Any]:
    reply = await ask("POST", WHOAMI, {}, **headers)
    assert reply.status == 201, reply.text
    found: dict[str, Any] = reply.json["status"]["userInfo"]
    return found


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        pytest.param({"Impersonate_User": "alice"}, {"username": "alice", "groups": [AUTHENTICATED]}, id="a user"),
        pytest.param(
            {
                "Impersonate_User": "alice",
                "Impersonate_Group": ("dev", "ops"),
                "Impersonate_Uid": "1",
                "Impersonate_Extra_Scopes": ("a", "b"),
                "Impersonate_Extra_acme.com%2Fproject": "x",
            },
            {
                "username": "alice",
                "uid": "1",
                "groups": ["dev", "ops", AUTHENTICATED],
                "extra": {"acme.com/project": ["x"], "scopes": ["a", "b"]},
            },
            id="all that a user has",
        ),
        pytest.param(
            {"Impersonate_User": ROBOT},
            {
                "username": ROBOT,
                "groups": ["system:serviceaccounts", "system:serviceaccounts:shop", AUTHENTICATED],
            },
            id="a service account is in the groups of all",
        ),
        pytest.param(
            {"Impersonate_User": ROBOT, "Impersonate_Group": "dev"},
            {"username": ROBOT, "groups": ["dev", AUTHENTICATED]},
            id="a service account with groups is in those only",
        ),
        pytest.param(
            {"Impersonate_User": "alice", "Impersonate_Group": AUTHENTICATED},
            {"username": "alice", "groups": [AUTHENTICATED]},
            id="a group that is added is not added twice",
        ),
        pytest.param(
            {"Impersonate_User": "alice", "Impersonate_Group": ""},
            {"username": "alice", "groups": ["", AUTHENTICATED]},
            id="an empty group",
        ),
        pytest.param(
            {"Impersonate_User": ("alice", "bob")},
            {"username": "alice", "groups": [AUTHENTICATED]},
            id="the first of two users",
        ),
        pytest.param(
            {"Impersonate_User": "system:serviceaccount:shop"},
            {"username": "system:serviceaccount:shop", "groups": [AUTHENTICATED]},
            id="no service account without a name",
        ),
    ],
)
async def test_a_request_acts_as_the_user_in_its_headers(
    either: Either, headers: dict[str, Any], user: dict[str, Any]
) -> None:
    assert await whoami(either.ask, **headers) == user


async def test_an_empty_user_is_none(either: Either) -> None:
    assert (await whoami(either.ask, Impersonate_User=""))["username"] == "admin"


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ({"Impersonate_Group": "dev"}, 'UID:"", Groups:[]string{"dev"}, Extra:map[string][]string(nil)'),
        ({"Impersonate_Uid": "1"}, 'UID:"1", Groups:[]string(nil), Extra:map[string][]string(nil)'),
        (
            {"Impersonate_Extra_Scopes": "a"},
            'UID:"", Groups:[]string(nil), Extra:map[string][]string{"scopes":[]string{"a"}}',
        ),
    ],
    ids=["groups", "uid", "extra"],
)
async def test_headers_without_a_user_are_an_error(either: Either, headers: dict[str, str], shown: str) -> None:
    reply = await either.ask("POST", WHOAMI, {}, **headers)
    assert (reply.status, reply.json["reason"]) == (400, "BadRequest")
    text = f'requested &user.DefaultInfo{{Name:"", {shown}}} without impersonating a user name'
    assert reply.json["message"] == text


async def test_a_certificate_request_has_the_user_who_sent_it(either: Either) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    draft = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    sent = base64.b64encode(draft.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)).decode()
    spec = {"request": sent, "signerName": "example.com/s", "usages": ["any"], "username": "somebody", "uid": "else"}
    await either.ask("POST", f"{RBAC}/clusterrolebindings", MAY_REQUEST)
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

    async def reply() -> Any:
        body = {"metadata": {"generateName": "r-"}, "spec": spec}
        sent_by = {"Impersonate_User": "requestor", "Impersonate_Group": "dev", "Impersonate_Extra_Scopes": "a"}
        return await either.ask("POST", path, body, **sent_by)

    found = (await eventually(reply, lambda each: each.status != 403)).json["spec"]
    wanted = {"username": "requestor", "groups": ["dev", AUTHENTICATED], "extra": {"scopes": ["a"]}}
    assert {name: value for name, value in found.items() if name not in spec or name in ("username", "uid")} == wanted


@pytest.mark.parametrize("name", ["system:anonymous", "alice"])
async def test_who_is_not_authenticated_may_do_nothing_of_that(either: Either, name: str) -> None:
    groups = {"Impersonate_Group": "system:unauthenticated"} if name == "alice" else {}
    reply = await either.ask("POST", WHOAMI, {}, Impersonate_User=name, **groups)
    problem = f'User "{name}" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io"'
    assert reply.json["message"] == (
        f"selfsubjectreviews.authentication.k8s.io is forbidden: {problem} at the cluster scope"
    )


@pytest.fixture
def authorized() -> EmbeddedCluster:
    return EmbeddedCluster(namespaces=["shop"], authorization=True)


async def ask_over_tls(server: HttpServer, path: str, **headers: str) -> tuple[int, str]:
    context = ssl.create_default_context(cadata=server.authority.decode())
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        reply = await Client(server.url, session)("GET", path, **headers)
        return reply.status, reply.text


async def test_over_tls_a_request_without_credentials_is_anonymous(authorized: EmbeddedCluster) -> None:
    async with serving(authorized, tls=True) as server:
        status, text = await ask_over_tls(server, "/api/v1/pods")
        assert status == 403
        assert r"User \"system:anonymous\" cannot list" in text
        assert (await ask_over_tls(server, "/version"))[0] == 200


@pytest.mark.parametrize("tls", [False, True])
async def test_an_unknown_token_is_refused_where_requests_are_authorized(
    authorized: EmbeddedCluster, *, tls: bool
) -> None:
    async with serving(authorized, tls=tls) as server, aiohttp.ClientSession() as session:
        sent = {"Authorization": "Bearer guessed"}
        if tls:
            status, text = await ask_over_tls(server, "/api/v1/pods", **sent)
        else:
            reply = await Client(server.url, session)("GET", "/api/v1/pods", **sent)
            status, text = reply.status, reply.text
        assert (status, '"Unauthorized"' in text) == (401, True)


@pytest.mark.parametrize("tls", [False, True])
async def test_a_kubeconfig_can_be_that_of_a_user(authorized: EmbeddedCluster, tmp_path: Path, *, tls: bool) -> None:
    async with serving(authorized, tls=tls) as server:
        write_kubeconfig(server.kubeconfig("alice", ["dev"]), tmp_path / "alice")
        write_kubeconfig(server.kubeconfig(), tmp_path / "admin")
        async with await ApiServerCluster.connect(tmp_path / "alice") as alice:
            with pytest.raises(ForbiddenError, match='User "alice" cannot get resource "nodes"'):
                await alice.get(ObjectKey("v1", "Node", "one"))
        async with await ApiServerCluster.connect(tmp_path / "admin") as admin:
            assert (await admin.get(ObjectKey("v1", "Namespace", "shop")))["metadata"]["name"] == "shop"


@pytest.mark.parametrize("tls", [False, True])
async def test_kubectl_reads_the_kubeconfig_of_a_user(
    authorized: EmbeddedCluster, envtest_programs: Programs, tmp_path: Path, *, tls: bool
) -> None:
    """`kubectl --as` had no effect over plain HTTP: https://github.com/kubernetes/kubernetes/issues/53077."""
    from ocf.testing.envtest.binaries import Program

    async with serving(authorized, tls=tls) as server:
        write_kubeconfig(server.kubeconfig("alice", ["dev"]), tmp_path / "alice")
        kubectl = Kubectl(envtest_programs.path(Program.KUBECTL), tmp_path / "alice", tmp_path)
        found = await kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
        assert found.out == 'alice ["dev","system:authenticated"]'
        answer = await kubectl("auth", "can-i", "list", "secrets", code=1)
        assert answer.out.strip() == "no"
