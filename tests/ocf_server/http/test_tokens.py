"""Tokens of service accounts: issued, reviewed, and sent with requests."""

import base64
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from ocf_server import EmbeddedCluster
from ocf_server.http import serving
from tests.ocf_server.http.conftest import Client, Either
from tests.support import eventually

Kubectl = Callable[..., Awaitable[Any]]
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


async def token(ask: Client, home: str, **spec: Any) -> str:
    reply = await ask("POST", f"{home}/serviceaccounts/robot/token", {"spec": spec})
    assert reply.status == 201, reply.text
    return str(reply.json["status"]["token"])


async def reviewed(ask: Client, issued: str, *audiences: str) -> dict[str, Any]:
    reply = await ask("POST", REVIEWS, {"spec": {"token": issued, "audiences": list(audiences)}})
    found: dict[str, Any] = reply.json["status"]
    return found


async def test_a_token_is_accepted_by_a_review(either: Either) -> None:
    account = await either.ask("POST", f"{either.path}/serviceaccounts", {"metadata": {"name": "robot"}})
    found = await reviewed(either.ask, await token(either.ask, either.path))
    namespace = either.path.rpartition("/")[2]
    extra = found["user"].pop("extra")
    assert found == {
        "authenticated": True,
        "user": {
            "username": f"system:serviceaccount:{namespace}:robot",
            "uid": account.json["metadata"]["uid"],
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
        },
        "audiences": ["https://kubernetes.default.svc"],
    }
    assert extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


async def test_a_token_is_for_its_audiences(either: Either) -> None:
    await either.ask("POST", f"{either.path}/serviceaccounts", {"metadata": {"name": "robot"}})
    issued = await token(either.ask, either.path, audiences=["vault", "shop"])
    assert (await reviewed(either.ask, issued, "shop", "other"))["audiences"] == ["shop"]
    found = await reviewed(either.ask, issued)
    listed = '["vault" "shop"] is invalid for the target audiences ["https://kubernetes.default.svc"]'
    assert found == {"user": {}, "error": f"[invalid bearer token, token audiences {listed}]"}


async def test_a_token_ends_with_its_pod(either: Either) -> None:
    await either.ask("POST", f"{either.path}/serviceaccounts", {"metadata": {"name": "robot"}})
    spec = {"serviceAccountName": "robot", "containers": [{"name": "a", "image": "a"}]}
    pod = await either.ask("POST", f"{either.path}/pods", {"metadata": {"name": "p"}, "spec": spec})
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    # Two tokens, because a real API server remembers for some seconds that a token was valid.
    first, second = [await token(either.ask, either.path, boundObjectRef=bound) for _ in range(2)]
    extra = (await reviewed(either.ask, first))["user"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [pod.json["metadata"]["uid"]]
    await either.ask("DELETE", f"{either.path}/pods/p?gracePeriodSeconds=0")

    async def is_refused() -> bool:
        return "authenticated" not in await reviewed(either.ask, second)

    await eventually(is_refused)  # the cache in which a real API server looks for the pod may be a moment behind


async def test_a_changed_token_is_not_accepted(either: Either) -> None:
    await either.ask("POST", f"{either.path}/serviceaccounts", {"metadata": {"name": "robot"}})
    header, claims, signature = (await token(either.ask, either.path)).split(".")
    changed = {**json.loads(base64.urlsafe_b64decode(claims + "===")), "exp": 1 << 40}
    forged = base64.urlsafe_b64encode(json.dumps(changed).encode()).rstrip(b"=").decode()
    found = await reviewed(either.ask, f"{header}.{forged}.{signature}")
    problem = "go-jose/go-jose: error in cryptographic primitive"
    assert found == {"user": {}, "error": f"[invalid bearer token, {problem}]"}


async def test_a_request_with_a_token_is_one_of_its_service_account() -> None:
    """Until it expires; a request with another token, or without one, is one of the administrator."""
    times = [START]
    cluster = EmbeddedCluster(namespaces=["shop"], now=lambda: times[-1])
    async with serving(cluster) as server, aiohttp.ClientSession() as session:
        ask, home = Client(server.url, session), "/api/v1/namespaces/shop"
        await ask("POST", f"{home}/serviceaccounts", {"metadata": {"name": "robot"}})
        issued = await token(ask, home, expirationSeconds=600)

        async def name(**headers: str) -> Any:
            reply = await ask("POST", WHOAMI, {}, **headers)
            return reply.json["status"]["userInfo"]["username"] if reply.status == 201 else reply.json["message"]

        assert await name(Authorization=f"Bearer {issued}") == "system:serviceaccount:shop:robot"
        assert (await name(), await name(Authorization="Bearer a.b.c")) == ("admin", "admin")
        times.append(START + timedelta(seconds=600))
        assert await name(Authorization=f"Bearer {issued}") == "Unauthorized"
        found = await reviewed(ask, issued)
        assert found == {"user": {}, "error": "[invalid bearer token, service account token has expired]"}


@pytest.mark.parametrize("spec", [{"audiences": "a"}, {"expirationSeconds": "x"}, "x", {"boundObjectRef": 1}])
async def test_a_request_of_wrong_types_is_rejected(spec: Any, ask: Client) -> None:
    await ask("POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "robot"}})
    reply = await ask("POST", "/api/v1/namespaces/shop/serviceaccounts/robot/token", {"spec": spec})
    assert reply.status == 400
    assert reply.json["message"].startswith('TokenRequest in version "v1" cannot be handled as a TokenRequest: json: ')


async def test_kubectl_uses_the_subresources(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """It creates tokens, debugs and resizes pods, and approves certificates."""
    await kubectl("create", "serviceaccount", "robot", "-n", "shop")
    assert (await kubectl("create", "token", "robot", "-n", "shop")).out.count(".") == 2
    await kubectl("run", "web", "-n", "shop", "--image=nginx:1")
    await kubectl("debug", "web", "-n", "shop", "--image=busybox", "--container=debug", "--profile=general")
    shown = "-o=jsonpath={.spec.ephemeralContainers[*].name}"
    assert (await kubectl("get", "pod", "web", "-n", "shop", shown)).out == "debug"
    patch = (
        '{"spec":{"containers":[{"name":"web","resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"}]}]}}'
    )
    rejected = await kubectl("patch", "pod", "web", "-n", "shop", "--subresource=resize", f"--patch={patch}", code=1)
    assert "only cpu and memory resources are mutable" in rejected.err
    request = {"request": base64.b64encode(b"-").decode(), "signerName": "example.com/x", "usages": ["client auth"]}
    manifest = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "spec": request}
    await cluster.create({**manifest, "metadata": {"name": "mine"}}, field_manager="test")
    approved = await kubectl("certificate", "approve", "mine")
    assert approved.out.strip().endswith("mine approved")
