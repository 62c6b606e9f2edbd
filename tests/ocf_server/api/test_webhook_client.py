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

from ocf.errors import ForbiddenError, ServerError
from ocf.objects import Manifest
from ocf_server import EmbeddedCluster
from ocf_server.api.webhook_client import HttpAdmissionClient, UnansweredError
from tests.support import serving_locally

REVIEW: Manifest = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}}

BODIES = {"/junk": "{", "/list": "[]", "/empty": ""}


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
        if request.path == "/lost":
            return web.Response(status=404, body=b"not here")
        if request.path in BODIES:
            return web.Response(text=BODIES[request.path], content_type="application/json")
        if request.path == "/closed":
            assert request.transport is not None
            request.transport.close()
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
    async with serving_locally(app, tls=context) as built.address:
        yield built


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
        pytest.param("/lost", "the server could not find the requested resource", id="an unknown path"),
        pytest.param(
            "/junk", "couldn't get version/kind; json parse error: unexpected end of JSON input", id="not JSON"
        ),
        pytest.param("/list", "json: cannot unmarshal array into Go value of type struct", id="not an object"),
        pytest.param(
            "/empty", "0-length response with status code: 200 and content type: application/json", id="empty"
        ),
        pytest.param("/closed", '/closed?timeout=30s": EOF', id="a closed connection"),
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
    text = ": tls: failed to verify certificate: x509: certificate signed by unknown authority"
    with pytest.raises(UnansweredError, match=f"{text}$"):
        await HttpAdmissionClient().ask(config(server, caBundle=other), REVIEW, seconds=30)

    assert server.seen == []


async def test_a_webhook_that_does_not_listen_is_named_with_its_address(server: Server, unused_tcp_port: int) -> None:
    address = f"127.0.0.1:{unused_tcp_port}"
    webhook = {"clientConfig": {"url": f"https://{address}/check", "caBundle": server.bundle}}
    with pytest.raises(UnansweredError) as caught:
        await HttpAdmissionClient().ask(webhook, REVIEW, seconds=30)

    post = f'Post "https://{address}/check?timeout=30s"'
    expected = f"failed to call webhook: {post}: dial tcp {address}: connect: connection refused"
    assert str(caught.value) == expected


async def test_a_webhook_without_tls_is_an_error() -> None:
    def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening:
        with pytest.raises(UnansweredError, match="tls: first record does not look like a TLS handshake"):
            await HttpAdmissionClient().ask({"clientConfig": {"url": url}}, REVIEW, seconds=30)


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
