"""Asking webhooks over HTTPS; a server of our own on loopback answers."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ocf.embedded import EmbeddedCluster, UnansweredError
from ocf.embedded.admission.webhook_client import HttpAdmissionClient
from ocf.errors import ForbiddenError, ServerError
from ocf.objects import Manifest

QUESTION: Manifest = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}}


class Server:
    """A webhook that answers as it is told."""

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
        if request.path == "/slow":
            await asyncio.Event().wait()
        response = {"uid": body["request"]["uid"], "allowed": self.allowed, "status": {"message": "no", "code": 403}}
        return web.json_response({**QUESTION, "response": response})


def certificate(folder: Path) -> str:
    """Write a certificate for loopback and its key; return the certificate's text."""
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


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    built = Server()
    built.bundle = base64.b64encode(certificate(tmp_path).encode()).decode()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    app = web.Application()
    app.router.add_post("/{path:.*}", built.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    built.address = f"https://127.0.0.1:{runner.addresses[0][1]}"
    yield built
    await runner.cleanup()


def config(server: Server, path: str = "/check", **fields: Any) -> dict[str, Any]:
    return {"clientConfig": {"url": server.address + path, "caBundle": server.bundle, **fields}}


async def test_a_webhook_is_asked_and_told_how_long_it_has(server: Server) -> None:
    answer = await HttpAdmissionClient().ask(config(server), QUESTION, seconds=5)

    assert answer["response"]["allowed"] is True
    assert server.seen == [("/check?timeout=5s", QUESTION)]


async def test_a_service_is_where_it_is_said_to_be(server: Server) -> None:
    admission = HttpAdmissionClient(services={("shop", "webhook"): server.address})
    service = {"namespace": "shop", "name": "webhook", "path": "/check"}
    await admission.ask({"clientConfig": {"service": service, "caBundle": server.bundle}}, QUESTION, seconds=5)

    assert [path for path, _ in server.seen] == ["/check?timeout=5s"]


async def test_a_service_that_nobody_knows() -> None:
    service = {"namespace": "shop", "name": "webhook", "port": 443, "path": "/p"}
    with pytest.raises(UnansweredError) as caught:
        await HttpAdmissionClient().ask({"clientConfig": {"service": service}}, QUESTION, seconds=5)

    expected = 'failed to call webhook: Post "https://webhook.shop.svc:443/p?timeout=5s": service "webhook" not found'
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(
            "/broken", 'an error on the server ("oops") has prevented the request from succeeding', id="a failure"
        ),
        pytest.param("/junk", "Expecting property name", id="no JSON"),
    ],
)
async def test_an_answer_that_is_none(server: Server, path: str, text: str) -> None:
    with pytest.raises(UnansweredError) as caught:
        await HttpAdmissionClient().ask(config(server, path), QUESTION, seconds=5)

    assert str(caught.value).startswith("failed to call webhook: ")
    assert text in str(caught.value)


async def test_a_webhook_that_takes_too_long(server: Server) -> None:
    with pytest.raises(UnansweredError, match="context deadline exceeded"):
        await HttpAdmissionClient().ask(config(server, "/slow"), QUESTION, seconds=0.05)


async def test_a_certificate_that_the_bundle_does_not_know(server: Server, tmp_path: Path) -> None:
    other = base64.b64encode(certificate(tmp_path).encode()).decode()
    with pytest.raises(UnansweredError, match="certificate"):
        await HttpAdmissionClient().ask(config(server, caBundle=other), QUESTION, seconds=5)

    assert server.seen == []


async def test_a_bundle_that_is_none(server: Server) -> None:
    with pytest.raises(UnansweredError, match="failed to call webhook"):
        await HttpAdmissionClient().ask(config(server, caBundle="eA=="), QUESTION, seconds=5)


async def test_a_cluster_asks_over_https_by_itself(server: Server) -> None:
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
