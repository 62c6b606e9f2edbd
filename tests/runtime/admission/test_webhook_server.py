"""The server: its responses over TLS, and that no request fails during a renewal."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from prometheus_client import CollectorRegistry

from ocf.cluster.client import ApiServerCluster
from ocf.embedded import EmbeddedCluster
from ocf.embedded.http import serving as serving_cluster
from ocf.embedded.http import write_kubeconfig
from ocf.errors import ConfigError, InvalidError
from ocf.objects import Manifest
from ocf.runtime.admission import (
    FileCertificates,
    KeyPair,
    SecretCertificates,
    ServingCertificate,
    Url,
    Webhook,
    Webhooks,
    WebhookServer,
    configurations,
    serving,
)
from ocf.runtime.admission.key_pairs import issue
from ocf.testing import VirtualClock
from tests.runtime.crds.shop_versions import GROUP, SHOPS

HOST: Final = "127.0.0.1"
PATH: Final = "/validate/example.com/shops"
SHOP: Final = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "default"}}
REQUEST: Final = {
    "uid": "42",
    "kind": {"group": "example.com", "version": "v1", "kind": "Shop"},
    "operation": "CREATE",
    "name": "corner",
    "object": SHOP,
}
QUESTION: Final = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": REQUEST}


def made(host: str = HOST, lifetime: timedelta = timedelta(days=1), now: datetime | None = None) -> KeyPair:
    return issue([host], now or datetime.now(UTC), lifetime)


@dataclass
class Given:
    """Certificates that a test hands out."""

    pair: KeyPair = field(default_factory=made)
    problem: str = ""
    interval: timedelta = timedelta(days=1)

    async def refresh(self) -> ServingCertificate:
        return ServingCertificate(self.pair, self.problem)


def trusting(*pairs: KeyPair) -> ssl.SSLContext:
    return ssl.create_default_context(cadata="".join(pair.authority.decode() for pair in pairs))


@asynccontextmanager
async def client(*pairs: KeyPair, keep: bool = True) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=trusting(*pairs), force_close=not keep)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield session


async def shown(server: WebhookServer, sni: str | None = None) -> bytes:
    """Return the certificate that a new connection sees."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = server.url.removeprefix("https://").split(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context, server_hostname=sni or "")
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return found


def leaf(pair: KeyPair) -> bytes:
    return x509.load_pem_x509_certificate(pair.chain).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        pytest.param("POST", PATH, json.dumps(QUESTION), 200, '"allowed": true', id="a review"),
        pytest.param(
            "POST", PATH + "?timeout=10s", json.dumps(QUESTION), 200, '"allowed": true', id="as a server asks"
        ),
        pytest.param("POST", PATH, "{}", 200, '"code": 400', id="no request"),
        pytest.param("POST", PATH, "{", 400, "not an AdmissionReview", id="no JSON"),
        pytest.param("POST", PATH, "[" * 100_000, 400, "not an AdmissionReview", id="too deep"),
        pytest.param("POST", PATH, b"\xff", 400, "not an AdmissionReview", id="no text"),
        pytest.param("POST", PATH, "[]", 400, "not an AdmissionReview", id="no object"),
        pytest.param("POST", PATH, " " * (7 * 1024 * 1024 + 1), 413, "", id="too long"),
        pytest.param("POST", "/validate", "{}", 404, "no webhook at /validate", id="unknown path"),
        pytest.param("GET", PATH, None, 405, "", id="another method"),
        pytest.param("GET", "/readyz", None, 200, "ok", id="ready"),
    ],
)
async def test_what_is_answered(
    webhooks_: Webhooks, method: str, path: str, body: Any, *, status: int, text: str
) -> None:
    given = Given()
    data = None if body is None else io.BytesIO(body if isinstance(body, bytes) else body.encode())
    async with (
        serving(webhooks_, certificates=given, host=HOST, port=0) as server,
        client(given.pair) as session,
        session.request(method, server.url + path, data=data) as answer,
    ):
        assert answer.status == status
        assert text in await answer.text()


@pytest.fixture
def webhooks_(shops: Webhook[Any]) -> Webhooks:
    return Webhooks("shops", [shops])


CONVERT: Final = f"/convert/{GROUP}/shops"


def conversion(*streets: str) -> Manifest:
    """Return a request to convert shops with these streets."""
    head = {"apiVersion": f"{GROUP}/v2", "kind": "Shop", "metadata": {"name": "a"}}
    objects = [{**head, "spec": {"street": street, "city": "b"}} for street in streets]
    return {"request": {"uid": "42", "desiredAPIVersion": f"{GROUP}/v3", "objects": objects}}


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        pytest.param(json.dumps(conversion("a")), 200, '"status": "Success"', id="a review"),
        pytest.param(json.dumps(conversion("bad")), 200, "spec.street: is not a street", id="a failure"),
        pytest.param("{", 400, "the body is not a ConversionReview", id="no JSON"),
        pytest.param(
            " " * 8 * 1024 * 1024 + json.dumps(conversion("a", "b")),
            200,
            '"status": "Success"',
            id="longer than a request of admission may be",
        ),
    ],
)
async def test_how_conversions_are_answered(body: str, *, status: int, text: str) -> None:
    given = Given()
    async with (
        serving(Webhooks("shops", conversions=[SHOPS]), certificates=given, host=HOST, port=0) as server,
        client(given.pair) as session,
        session.post(server.url + CONVERT, data=io.BytesIO(body.encode())) as answer,
    ):
        assert answer.status == status
        assert text in await answer.text()


async def test_requests_and_failures_are_counted(webhooks_: Webhooks) -> None:
    given, registry = Given(), CollectorRegistry()
    both = Webhooks("shops", webhooks_.webhooks, conversions=[SHOPS])
    bodies = [(CONVERT, conversion("a")), (CONVERT, conversion("bad")), (PATH, QUESTION), (CONVERT, [])]
    async with (
        serving(both, certificates=given, host=HOST, port=0, registry=registry) as server,
        client(given.pair) as session,
    ):
        for path, body in bodies:
            await session.post(server.url + path, json=body)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    requests = "controller_runtime_webhook_requests_total"
    assert [value(requests, webhook=CONVERT, code=code) for code in ("200", "400")] == [2, 1]
    assert value(requests, webhook=PATH, code="200") == 1
    assert value("controller_runtime_webhook_latency_seconds_count", webhook=CONVERT) == 3
    assert value("ocf_webhook_failures_total", webhook=CONVERT) == 1
    assert value("ocf_webhook_failures_total", webhook=PATH) == 0


async def test_functions_that_do_not_return_are_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some leave the server at work; as many as it has threads make it unready, until they return."""
    monkeypatch.setattr("ocf.runtime.admission.server._TIMEOUT_FRACTION", 0.02)
    released = threading.Event()

    def stuck(*_: Any) -> list[Any]:
        released.wait()
        return []

    webhooks = Webhooks("shops", [Webhook("example.com", "v1", "Shop", "shops", None, (), [stuck])])
    given = Given()

    async def ask(session: aiohttp.ClientSession, url: str) -> Any:
        async with session.post(url + PATH, json=QUESTION) as answer:
            return (await answer.json())["response"]

    async with serving(webhooks, certificates=given, host=HOST, port=0) as server, client(given.pair) as session:
        try:
            response = await ask(session, server.url)
            assert server.problem() == ""
            await asyncio.gather(*(ask(session, server.url) for _ in range(4)))
            assert server.problem() == "4 calls of functions of webhooks do not return, so no more can be started"
        finally:
            released.set()
        monkeypatch.setattr("ocf.runtime.admission.server._TIMEOUT_FRACTION", 1)
        assert (await ask(session, server.url))["allowed"]
        assert server.problem() == ""
    assert (response["uid"], response["allowed"], response["status"]["code"]) == ("42", False, 504)
    assert response["status"]["message"] == "validate.shops.example.com did not answer within 0.2 seconds"


async def test_a_renewal_closes_nothing_and_refuses_nobody(webhooks_: Webhooks) -> None:
    pairs = [made() for _ in range(5)]
    given = Given(pairs[0])
    stopped = asyncio.Event()
    answers: asyncio.Queue[Any] = asyncio.Queue()

    async def ask(session: aiohttp.ClientSession, url: str) -> None:
        while not stopped.is_set():
            async with session.post(url + PATH, json=QUESTION) as answer:
                answers.put_nowait((await answer.json())["response"]["allowed"])

    async with (
        serving(webhooks_, certificates=given, host=HOST, port=0) as server,
        client(*pairs) as keeping,
        client(*pairs, keep=False) as reconnecting,
        asyncio.TaskGroup() as group,
    ):
        for session in (keeping, reconnecting, reconnecting):
            group.create_task(ask(session, server.url))
        for pair in pairs[1:]:
            given.pair = pair
            await server.refresh()
            assert await shown(server) == leaf(pair)
            assert all([await answers.get() for _ in range(10)])
        stopped.set()


@pytest.mark.parametrize("sni", [None, "shops-webhook.ops.svc"])
async def test_a_pair_with_another_kind_of_key_is_shown(webhooks_: Webhooks, sni: str | None) -> None:
    given = Given()
    async with serving(webhooks_, certificates=given, host=HOST, port=0) as server:
        for pair in (with_rsa(), made(), with_rsa()):
            given.pair = pair
            await server.refresh()
            assert await shown(server, sni) == leaf(pair)


def with_rsa() -> KeyPair:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "webhook")])
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    now = datetime.now(UTC)
    built = built.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    certificate = built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return KeyPair.read(certificate, private)


def write(folder: Path, pair: KeyPair) -> FileCertificates:
    (folder / "tls.crt").write_bytes(pair.chain)
    (folder / "tls.key").write_bytes(pair.key)
    return FileCertificates(folder / "tls.crt", folder / "tls.key")


async def test_files_that_change_are_read_again(webhooks_: Webhooks, tmp_path: Path) -> None:
    first, second = made(), made()
    async with serving(webhooks_, certificates=write(tmp_path, first), host=HOST, port=0) as server:
        assert await shown(server) == leaf(first)
        write(tmp_path, second)
        await server.refresh()
        assert await shown(server) == leaf(second)


TORN: Final[dict[str, Callable[[Path], object]]] = {
    "a key of another": lambda folder: (folder / "tls.key").write_bytes(made().key),
    "half a certificate": lambda folder: (folder / "tls.crt").write_bytes(made().chain[:100]),
    "no PEM": lambda folder: (folder / "tls.key").write_text("hunter2"),
    "no file": lambda folder: (folder / "tls.key").unlink(),
}


@pytest.mark.parametrize("tear", TORN.values(), ids=TORN)
async def test_what_cannot_be_used_changes_nothing(
    webhooks_: Webhooks, tmp_path: Path, tear: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    pair = made()
    certificates = write(tmp_path, pair)
    async with serving(webhooks_, certificates=certificates, host=HOST, port=0) as server:
        tear(tmp_path)
        await server.refresh()
        assert await shown(server) == leaf(pair)
        assert server.problem() == ""
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(tmp_path / "tls.crt") in record.getMessage()
    assert "hunter2" not in caplog.text
    with pytest.raises(ConfigError, match=r"tls\.key"):
        await serving(webhooks_, certificates=certificates, host=HOST, port=0).__aenter__()


async def test_readiness_is_honest(webhooks_: Webhooks) -> None:
    clock = VirtualClock()
    given = Given(made(now=clock.now()))
    async with serving(webhooks_, certificates=given, host=HOST, port=0, clock=clock) as server:
        assert server.problem() == ""
        given.problem = "the certificate is not trusted"
        await server.refresh()
        assert server.problem() == "the certificate is not trusted"
        clock.advance(timedelta(days=1))
        assert server.problem() == (
            "the certificate is valid from 2025-12-31T12:00:00Z to 2026-01-02T12:00:00Z, and it is 2026-01-02T12:00:00Z"
        )


async def test_readiness_is_told_over_http(webhooks_: Webhooks) -> None:
    given = Given(problem="the certificate is not trusted")
    async with (
        serving(webhooks_, certificates=given, host=HOST, port=0) as server,
        client(given.pair) as session,
        session.get(server.url + "/readyz") as answer,
    ):
        assert (answer.status, await answer.text()) == (500, "the certificate is not trusted\n")


async def test_certificates_are_asked_for_as_often_as_they_want(webhooks_: Webhooks) -> None:
    asked = asyncio.Event()

    class Counting(Given):
        count = 0

        async def refresh(self) -> ServingCertificate:
            self.count += 1
            if self.count == 3:
                asked.set()
            if self.count == 2:
                raise RuntimeError("hunter2")
            return await super().refresh()

    given = Counting(interval=timedelta(milliseconds=1))
    async with serving(webhooks_, certificates=given, host=HOST, port=0):
        await asyncio.wait_for(asked.wait(), 600)


def connected(url: str) -> socket.socket:
    """Open a connection and say nothing on it any more, not even goodbye, as an API server does with those it keeps."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = url.removeprefix("https://").split(":")
    with context.wrap_socket(socket.create_connection((host, int(port)), timeout=600), server_hostname=host) as wrapped:
        wrapped.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert wrapped.recv(12) == b"HTTP/1.1 200"
        silent = socket.socket(fileno=wrapped.detach())
    silent.settimeout(600)
    return silent


def read_to_the_end(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


async def test_connections_that_others_keep_end_with_the_server(webhooks_: Webhooks) -> None:
    async with serving(webhooks_, certificates=Given(), host=HOST, port=0) as server:
        connection = await asyncio.to_thread(connected, server.url)
    with connection:
        await asyncio.to_thread(read_to_the_end, connection)


async def test_an_address_that_is_taken_is_told(webhooks_: Webhooks) -> None:
    async with serving(webhooks_, certificates=Given(), host=HOST, port=0) as server:
        port = int(server.url.rsplit(":", 1)[1])
        with pytest.raises(ConfigError, match=f"cannot listen on {HOST}:{port}"):
            await serving(webhooks_, certificates=Given(), host=HOST, port=port).__aenter__()


async def test_the_embedded_cluster_asks(webhooks: Webhooks, definition: Manifest, tmp_path: Path) -> None:
    """Over HTTP, with certificates in a Secret: defaults are filled in, and all errors arrive as causes."""
    async with serving_cluster(EmbeddedCluster()) as served:
        kubeconfig = tmp_path / "kubeconfig"
        write_kubeconfig(served.kubeconfig(), kubeconfig)
        async with await ApiServerCluster.connect(kubeconfig) as cluster:
            await cluster.create(definition, field_manager="t")
            certificates = SecretCertificates(cluster, webhooks, Url(f"https://{HOST}"), namespace="default")
            async with serving(webhooks, certificates=certificates, host=HOST, port=0) as server:
                for manifest in configurations(webhooks, Url(server.url)):
                    await cluster.apply(manifest, field_manager="t")
                await server.refresh()
                assert server.problem() == ""
                stored = await cluster.create({**SHOP, "spec": {}}, field_manager="t")
                assert stored["spec"] == {"replicas": 1, "listeners": []}
                wrong = {**stored, "spec": {"replicas": 2, "autoscaling": {"enabled": True}}}
                with pytest.raises(InvalidError) as refused:
                    await cluster.update(wrong, field_manager="t")
    assert [cause.field for cause in refused.value.causes] == ["spec.replicas", "spec.autoscaling.maxReplicas"]
    assert refused.value.message.startswith(
        'admission webhook "validate.shops.example.com" denied the request: '
        'Shop.example.com "corner" is invalid: [spec.replicas: Forbidden: '
    )
