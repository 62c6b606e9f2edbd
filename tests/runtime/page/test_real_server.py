"""The page on a real API server, which authenticates its callers by their tokens and authorizes them by RBAC.

Public reports that are rebuilt here: https://github.com/kubernetes-sigs/headlamp/issues/5112 (a token that expires
while its page is open), https://github.com/metal3-io/baremetal-operator/pull/2145 (a process without the right to
create the reviews of its callers).
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ocf.cluster import ServiceAccount
from ocf.objects import Manifest
from ocf.runtime.crds import CRDVersion, crd
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.runtime.page import PageOptions, access, server
from ocf.runtime.rbac import PolicyRule, roles
from tests.runtime.operator.conftest import Shop, shop
from tests.runtime.page.conftest import VALUE, Process, components_of
from tests.support import eventually, until_granted

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest import ControlPlane

GROUP: Final = "page.example.com"
# All tests share the server, and other tests have shops of their own.
DEFINITION: Final = crd(GROUP, CRDVersion("v1", Shop))
OPERATOR: Final = Operator(name="shops", owner=OwnerType.of(Shop, DEFINITION), components=components_of)


def shop_in(namespace: str, name: str) -> Manifest:
    made = shop(name, motto=f"fresh bread of {name}")
    return {**made, "apiVersion": f"{GROUP}/v1", "metadata": {"name": name, "namespace": namespace}}


def path_of(namespace: str, name: str) -> str:
    return f"/Shop.{GROUP}/{namespace}/{name}"


@asynccontextmanager
async def serving(
    plane: ControlPlane, admin: ApiServerCluster, namespace: str, *, without: str = ""
) -> AsyncIterator[Process]:
    """Run the operator with the rights of its own roles, but one, and its page."""
    await asyncio.to_thread(plane.install_crds, DEFINITION)
    settings = ManagerOptions(listen=None, page=PageOptions(port=0))
    example = Shop.model_validate({"metadata": {"name": "example", "namespace": namespace}})
    rules = OPERATOR.policy_rules([components_of(example)]) | settings.policy_rules(OPERATOR)
    rules = frozenset(one for one in rules if one.resource != without)
    account = ServiceAccount("shops", namespace)
    for one in roles(rules, name=f"page-{namespace}", account=account):
        await admin.create(one, field_manager="admin")
    user = f"system:serviceaccount:{namespace}:shops"
    await until_granted(admin, user, rules)
    kubeconfig = await asyncio.to_thread(plane.kubeconfig_for, user, "system:serviceaccounts")
    async with await plane.cluster(kubeconfig) as own, running(own, OPERATOR, options=settings) as manager:
        await manager.started()
        assert manager.page is not None
        assert manager.page.address is not None
        yield Process(admin, manager.page, manager.page.address.url, GROUP, namespace)


async def caller(process: Process, name: str, **allowed: Sequence[str]) -> str:
    """Return the token of an account, as soon as the API server knows its roles."""
    token = await process.token(name, **allowed)
    for resource, verbs in allowed.items():
        plural = resource.removeprefix("all_")
        group = GROUP if plural == "shops" else ""
        where = "" if plural != resource else process.namespace
        await until_granted(
            process.cluster,
            f"system:serviceaccount:{process.namespace}:{name}",
            [PolicyRule(group, plural, verb) for verb in verbs],
            namespace=where,
        )
    return token


async def test_a_caller_sees_what_rbac_allows_and_no_value_of_a_secret(
    envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster
) -> None:
    with envtest_plane.namespace("town-") as town, envtest_plane.namespace("village-") as village:
        async with serving(envtest_plane, envtest_cluster, town) as process:
            await process.made(shop_in(town, "corner"), shop_in(village, "cottage"))
            corner, cottage = path_of(town, "corner"), path_of(village, "cottage")
            pages = ["/", "/activity", corner, cottage]
            names = {
                "": "",
                "no token of the cluster": "e30.e30.c2ln",
                "without": await caller(process, "without", secrets=["get", "list"], configmaps=["get"]),
                "of the town": await caller(process, "town", shops=["get", "list"], configmaps=["get"]),
                "of all": await caller(process, "all", all_shops=["get", "list"], all_secrets=["get"]),
            }
            seen = {name: [await process.get(path, token) for path in pages] for name, token in names.items()}
    assert {name: [status for status, _ in answers] for name, answers in seen.items()} == {
        "": [401, 401, 401, 401],
        "no token of the cluster": [401, 401, 401, 401],
        "without": [403, 403, 403, 403],
        "of the town": [200, 200, 200, 403],
        "of all": [200, 200, 200, 200],
    }
    texts = {name: "".join(text for _, text in answers[:3]) for name, answers in seen.items()}
    assert {name: ("corner-settings" in text, "cottage" in text) for name, text in texts.items()} == {
        "": (False, False),
        "no token of the cluster": (False, False),
        "without": (False, False),
        "of the town": (True, False),
        "of all": (True, True),
    }
    # Values of ConfigMaps, to who may read these.
    assert {name for name, text in texts.items() if "fresh bread" in text} == {"of the town"}
    assert not [name for name, answers in seen.items() for _, text in answers if VALUE in text]


async def test_the_right_that_a_page_names_is_the_one_that_is_missing(
    envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_NO_SECONDS", 0.0)
    with envtest_plane.namespace("town-") as town:
        async with serving(envtest_plane, envtest_cluster, town) as process:
            await process.made(shop_in(town, "corner"))
            token = await caller(process, "jane")
            status, text = await process.get(path_of(town, "corner"), token)
            rules = [json.loads(one) for one in re.findall(r"the rule (\{.*?\}) of a Role", unescape(text))]
            where = {"metadata": {"name": "jane", "namespace": town}, "apiVersion": "rbac.authorization.k8s.io/v1"}
            await envtest_cluster.create({**where, "kind": "Role", "rules": rules}, field_manager="admin")
            to = {"kind": "Role", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
            subjects = [{"kind": "ServiceAccount", "name": "jane", "namespace": town}]
            bound = {**where, "kind": "RoleBinding", "roleRef": to, "subjects": subjects}
            await envtest_cluster.create(bound, field_manager="admin")
            after, _ = await eventually(
                lambda: process.get(path_of(town, "corner"), token), lambda answer: answer[0] != 403
            )
            # Nothing else is allowed by it.
            other, _ = await process.get(path_of(town, "other"), token)
    assert (status, after, other) == (403, 200, 403)


@pytest.mark.parametrize("without", ["tokenreviews", "subjectaccessreviews"])
async def test_a_process_that_may_not_review_its_callers_lets_none_in(
    envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster, without: str
) -> None:
    with envtest_plane.namespace("town-") as town:
        async with serving(envtest_plane, envtest_cluster, town, without=without) as process:
            await process.made(shop_in(town, "corner"))
            token = await caller(process, "jane", shops=["get", "list"])
            status, text = await process.get("/", token)
    assert status == 503
    assert "the operator lacks the right to create tokenreviews and subjectaccessreviews" in text
    assert ("corner" in text, "serviceaccount" in text) == (False, False)


def until(token: str, end: float, folder: Path) -> str:
    """Return a token of a service account with another end of its time, signed by the keys of the API server."""
    head, body, _ = token.split(".")
    claims = json.loads(urlsafe_b64decode(f"{body}=="))
    claims |= {"exp": int(end), "iat": int(end) - 600, "nbf": int(end) - 600}
    signed = f"{head}.{_encoded(json.dumps(claims).encode())}"
    key = load_pem_private_key((folder / "service-accounts.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    pair = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    return f"{signed}.{_encoded(b''.join(one.to_bytes(32) for one in pair))}"


def _encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


async def test_a_token_that_expires_ends_the_page_that_it_opened(
    envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_ALIVE", 0.5)
    monkeypatch.setattr(access, "_YES_SECONDS", 0.0)
    with envtest_plane.namespace("town-") as town:
        async with serving(envtest_plane, envtest_cluster, town) as process:
            await process.made(shop_in(town, "corner"))
            folder = envtest_plane.authority.parent
            token = await caller(process, "jane", shops=["get", "list"])
            # The API server accepts a token for another minute, and one that it has accepted for ten seconds more.
            expired = until(token, time.time() - 120, folder)
            ending = until(token, time.time() - 57, folder)
            async with process.opened("/changes?of=owners", ending) as stream:
                first, status = await stream.content.readuntil(b"\n\n"), stream.status
                rest = await stream.content.read()
            answers = [(await process.get("/", one))[0] for one in (token, expired, ending)]
    assert status == 200
    assert b"corner" in first
    assert b"corner" not in rest
    assert answers == [200, 401, 401]
