"""Calls of webhooks over HTTPS, to a test server on loopback."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ocf.embedded import EmbeddedCluster, UnansweredError
from ocf.embedded.admission.webhook_client import HttpAdmissionClient
from ocf.errors import ForbiddenError, ServerError
from ocf.objects import Manifest

REVIEW: Manifest = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}}


class Server:
    """A webhook with configurable responses."""

    def __init__(self) -> None:
        self.allowed = True
        self.seen: list[tuple[str, Any]] = []
        self.address = ""
        self.bundle = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.seen.append((request.path_qs, body))
        if request.path == "/broken":
            return web.Response(status=500, text="oops")
        if request.path == "/junk":
            return web.Response(text="{")
        if request.path == "/moved":
            raise web.HTTPTemporaryRedirect("/check")
        if request.path == "/slow":
            await asyncio.Event().wait()
        response = {"uid": body["request"]["uid"], "allowed": self.allowed, "status": {"message": "no", "code": 403}}
        return web.json_response({**REVIEW, "response": response})


def certificate(folder: Path) -> str:
    """Write a certificate for loopback and its key; return the certificate as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "webhook")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    text = built.public_bytes(serialization.Encoding.PEM)
    (folder / "tls.crt").write_bytes(text)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "tls.key").write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    return text.decode()


@asynccontextmanager
async def running(context: ssl.SSLContext, bundle: bytes) -> AsyncIterator[Server]:
    built = Server()
    built.bundle = base64.b64encode(bundle).decode()
    app = web.Application()
    app.router.add_post("/{path:.*}", built.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    built.address = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield built
    finally:
        await runner.cleanup()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    bundle = certificate(tmp_path).encode()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    async with running(context, bundle) as built:
        yield built


def config(server: Server, path: str = "/check", **fields: Any) -> dict[str, Any]:
    return {"clientConfig": {"url": server.address + path, "caBundle": server.bundle, **fields}}


async def test_a_call_contains_the_timeout(server: Server) -> None:
    response = await HttpAdmissionClient().ask(config(server), REVIEW, seconds=30)

    assert response["response"]["allowed"] is True
    assert server.seen == [("/check?timeout=30s", REVIEW)]


async def test_a_service_is_called_at_its_configured_address(server: Server) -> None:
    admission = HttpAdmissionClient(services={("shop", "webhook"): server.address})
    service = {"namespace": "shop", "name": "webhook", "path": "/check"}
    await admission.ask({"clientConfig": {"service": service, "caBundle": server.bundle}}, REVIEW, seconds=30)

    assert [path for path, _ in server.seen] == ["/check?timeout=30s"]


async def test_a_service_without_a_configured_address_is_an_error() -> None:
    service = {"namespace": "shop", "name": "webhook", "port": 443, "path": "/p"}
    with pytest.raises(UnansweredError) as caught:
        await HttpAdmissionClient().ask({"clientConfig": {"service": service}}, REVIEW, seconds=30)

    expected = 'failed to call webhook: Post "https://webhook.shop.svc:443/p?timeout=30s": service "webhook" not found'
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("path", "called"),
    [
        ("/check", "/check"),
        ("//check", "/check"),
        ("/check/", "/check"),
        ("/a/../check", "/check"),
        ("", "/"),
        ("/", "/"),
    ],
)
async def test_the_path_is_cleaned(server: Server, path: str, called: str) -> None:
    """Clients such as controller-runtime's envtest register URLs with a doubled slash."""
    admission = HttpAdmissionClient(services={("shop", "webhook"): server.address})
    service = {"service": {"namespace": "shop", "name": "webhook", "path": path}}
    for one in ({"url": server.address + path}, service):
        await admission.ask({"clientConfig": {**one, "caBundle": server.bundle}}, REVIEW, seconds=30)

    assert [path for path, _ in server.seen] == [f"{called}?timeout=30s"] * 2


async def test_a_bundle_may_hold_the_serving_certificate_itself() -> None:
    """Also where another authority has issued it, which is not in the bundle."""
    leaf = trustme.CA().issue_cert("127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(context)
    async with running(context, leaf.cert_chain_pems[0].bytes()) as server:
        response = await HttpAdmissionClient().ask(config(server), REVIEW, seconds=30)

    assert response["response"]["allowed"] is True


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(
            "/broken", 'an error on the server ("oops") has prevented the request from succeeding', id="a failure"
        ),
        pytest.param("/junk", "Expecting property name", id="not JSON"),
        pytest.param("/moved", 'redirects to "/check" are not followed; register that URL instead', id="a redirect"),
    ],
)
async def test_an_invalid_response_is_an_error(server: Server, path: str, text: str) -> None:
    with pytest.raises(UnansweredError) as caught:
        await HttpAdmissionClient().ask(config(server, path), REVIEW, seconds=30)

    assert str(caught.value).startswith("failed to call webhook: ")
    assert text in str(caught.value)


async def test_a_slow_webhook_times_out(server: Server) -> None:
    with pytest.raises(UnansweredError, match="context deadline exceeded"):
        await HttpAdmissionClient().ask(config(server, "/slow"), REVIEW, seconds=0.05)


async def test_a_certificate_of_another_authority_is_rejected(server: Server, tmp_path: Path) -> None:
    other = base64.b64encode(certificate(tmp_path).encode()).decode()
    with pytest.raises(UnansweredError, match="certificate"):
        await HttpAdmissionClient().ask(config(server, caBundle=other), REVIEW, seconds=30)

    assert server.seen == []


async def test_an_invalid_ca_bundle_is_an_error(server: Server) -> None:
    with pytest.raises(UnansweredError, match="failed to call webhook"):
        await HttpAdmissionClient().ask(config(server, caBundle="eA=="), REVIEW, seconds=30)


async def test_a_cluster_calls_webhooks_over_https_by_default(server: Server) -> None:
    cluster = EmbeddedCluster()
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    webhook = {
        "name": "hook.example.com",
        **config(server),
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    hooks: Manifest = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hooks"},
        "webhooks": [webhook],
    }
    await cluster.create(hooks, field_manager="test")
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    await cluster.create(settings, field_manager="test")
    server.allowed = False
    with pytest.raises(ForbiddenError, match="denied the request: no"):
        await cluster.create({**settings, "metadata": {"name": "b", "namespace": "default"}}, field_manager="test")
    webhook["clientConfig"] = {"url": "https://127.0.0.1:1/gone"}
    await cluster.apply(hooks, field_manager="test", force=True)
    with pytest.raises(ServerError, match=r"failed calling webhook .hook\.example\.com"):
        await cluster.create({**settings, "metadata": {"name": "c", "namespace": "default"}}, field_manager="test")
