"""The server: its responses over TLS, and that no request fails during a renewal."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from prometheus_client import CollectorRegistry
from pydantic import BaseModel, model_validator

from ocf.cluster.client import ApiServerCluster
from ocf.concepts import Clock
from ocf.errors import ConfigError, InvalidError
from ocf.objects import Manifest
from ocf.runtime.admission import FileCertificates, SecretCertificates, Url, Webhook, Webhooks, configurations, serving
from ocf.runtime.admission.certificate_source import ServingCertificate
from ocf.runtime.admission.key_pairs import KeyPair, issue
from ocf.runtime.admission.server import WebhookServer
from ocf.testing import VirtualClock
from ocf_server import EmbeddedCluster
from ocf_server.http import serving as serving_cluster
from ocf_server.http import write_kubeconfig
from tests.runtime.crds.shop_versions import GROUP, ONE_TWO, SHOPS, TWO_THREE
from tests.support import Forward, settable_time, until

HOST: Final = "127.0.0.1"
PATH: Final = "/validate/example.com/shops"
DEFAULT_PATH: Final = "/default/example.com/shops"
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


class Stuck:
    """Functions of webhooks that do not return before the test wants them to."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.released = threading.Event()

    def wait(self) -> None:
        self.entered.release()
        self.released.wait()

    def validator(self, *_: Any) -> list[Any]:
        self.wait()
        return []

    def generator(self, *_: Any) -> Iterator[Any]:
        self.wait()
        yield from ()

    def defaulter(self, shop: Any) -> None:
        if shop["metadata"]["name"] == "corner":
            self.wait()

    def conversion(self, _: Any) -> Any:
        self.wait()
        raise ValueError("late")

    async def until_entered(self, times: int = 1) -> None:
        for _ in range(times):
            await asyncio.to_thread(self.entered.acquire)


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    one = Stuck()
    yield one
    one.released.set()


@pytest.fixture
async def forward(monkeypatch: pytest.MonkeyPatch) -> Forward:
    return settable_time(monkeypatch)


class Asking:
    """A server of webhooks, of which some do not return, and the requests of an API server."""

    def __init__(self, server: WebhookServer, session: aiohttp.ClientSession, forward: Forward, stuck: Stuck) -> None:
        self.server = server
        self.session = session
        self._forward = forward
        self._stuck = stuck

    async def ask(self, path: str, question: Manifest = QUESTION) -> Any:
        async with self.session.post(self.server.url + path, json=question) as answer:
            assert answer.status == 200
            return (await answer.json())["response"]

    async def stick(self, path: str, question: Manifest = QUESTION, *, times: int = 1, wait: float = 10) -> list[Any]:
        """Return the responses of calls that hang, after the time that the API server waits."""
        tasks = [asyncio.create_task(self.ask(path, question)) for _ in range(times)]
        await self._stuck.until_entered(times)
        self._forward(wait)
        return list(await asyncio.gather(*tasks))


@pytest.fixture
def asking(stuck: Stuck, forward: Forward) -> Callable[..., Any]:
    @asynccontextmanager
    async def start(webhooks: Webhooks, clock: Clock | None = None) -> AsyncIterator[Asking]:
        given = Given(made(now=clock.now() if clock is not None else None))
        async with (
            serving(webhooks, certificates=given, host=HOST, port=0, clock=clock) as server,
            client(given.pair) as session,
        ):
            try:
                yield Asking(server, session, forward, stuck)
            finally:
                stuck.released.set()

    return start


class Waiting(BaseModel):
    """A model whose own validation does not return."""

    metadata: dict[str, Any]

    @model_validator(mode="after")
    def wait(self) -> Self:
        WAITING[0].wait()
        return self


WAITING: Final[list[Stuck]] = [Stuck()]


def shops_with(**functions: Any) -> Webhooks:
    return Webhooks("shops", [Webhook("example.com", "v1", "Shop", "shops", **functions)])


HANGING: Final[dict[str, tuple[Callable[[Stuck], Webhooks], str, str]]] = {
    "a validator": (lambda stuck: shops_with(validators=[stuck.validator]), PATH, "Stuck.validator"),
    "a validator that yields": (lambda stuck: shops_with(validators=[stuck.generator]), PATH, "Stuck.generator"),
    "a defaulter": (lambda stuck: shops_with(defaulters=[stuck.defaulter]), DEFAULT_PATH, "Stuck.defaulter"),
    "a validator of the model": (lambda _: shops_with(model=Waiting), PATH, "the model Waiting"),
}


@pytest.mark.parametrize(("make", "path", "name"), HANGING.values(), ids=HANGING)
async def test_a_function_that_hangs_is_named_in_time(
    asking: Any, stuck: Stuck, caplog: pytest.LogCaptureFixture, make: Any, path: str, *, name: str
) -> None:
    WAITING[0] = stuck
    async with asking(make(stuck)) as server:
        (response,) = await server.stick(path)
    step = path.split("/")[1]
    assert (response["uid"], response["allowed"], response["status"]["code"]) == ("42", False, 504)
    assert response["status"]["message"] == f"{step}.shops.example.com: {name} did not return within 9 seconds"
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith(f"{name} did not return in time")
    assert "self.released.wait()" in record.getMessage()


async def test_a_conversion_that_hangs_is_named_in_time(asking: Any, stuck: Stuck) -> None:
    hanging = replace(SHOPS, conversions=[ONE_TWO, replace(TWO_THREE, up=stuck.conversion)])
    async with asking(Webhooks("shops", conversions=[hanging])) as server:
        (response,) = await server.stick(CONVERT, conversion("a"), wait=30)
        assert response["result"]["message"] == (
            f"convert.shops.{GROUP}: Stuck.conversion did not return within 27 seconds"
        )


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        pytest.param("?timeout=5s", 5, id="what the API server says"),
        pytest.param("?timeout=1500ms", 1.5, id="a part of a second"),
        pytest.param("", 10, id="nothing: that of the configuration"),
        pytest.param("?timeout=soon", 10, id="no duration"),
        pytest.param("?timeout=0s", 10, id="no time at all"),
        pytest.param("?timeout=-5s", 10, id="a negative time"),
        pytest.param("?timeout=1h", 10, id="more than an API server may wait"),
    ],
)
async def test_the_time_is_that_of_the_request(
    asking: Any, stuck: Stuck, forward: Forward, asked: str, seconds: float
) -> None:
    """The configurations in the cluster may have another timeout than the operator was built with."""
    async with asking(shops_with(validators=[stuck.validator])) as server:
        task = asyncio.create_task(server.ask(PATH + asked))
        await stuck.until_entered()
        forward(0.9 * seconds - 0.5)
        await asyncio.sleep(0)
        assert not task.done()
        forward(0.6)
        assert (await task)["status"]["message"].endswith(f" did not return within {0.9 * seconds:g} seconds")


@pytest.mark.promise("hanging-webhooks", runs="as many functions that never return as there are threads, and more")
async def test_others_go_on_while_functions_hang_and_a_restart_is_asked_for_in_the_end(
    asking: Any, stuck: Stuck, caplog: pytest.LogCaptureFixture
) -> None:
    """A part of a process that hangs while its liveness stays green: project-koku/koku pull request 6278."""
    clock = VirtualClock(datetime.now(UTC))
    fine = Webhook[Any]("example.com", "v1", "Mall", "malls")
    webhooks = Webhooks("shops", [*shops_with(validators=[stuck.validator]).webhooks, fine])
    mall = {"request": {**REQUEST, "kind": {"group": "example.com", "version": "v1", "kind": "Mall"}}}
    async with asking(webhooks, clock) as server:
        for _ in range(4):
            await server.stick(PATH, times=4)
            assert (await server.ask("/validate/example.com/malls", mall))["allowed"]
            assert (server.server.problem(), server.server.live()) == ("", "")
        clock.advance(timedelta(minutes=1))
        assert server.server.problem() == ""
        assert (
            server.server.live() == "for 0:01:00 after their time limit: 16 calls do not return: Stuck.validator (16)"
        )
        await server.stick(PATH, times=4)
        late = asyncio.create_task(server.ask("/validate/example.com/malls", mall))
        await asyncio.sleep(0)
        assert server.server.problem() == ("no function can be called: 20 calls do not return: Stuck.validator (20)")
        stuck.released.set()
        assert (await late)["allowed"]
        await until(lambda: not server.server.problem())
        assert server.server.live() == ""
    assert len(caplog.records) == 20


def waiting_for_a_thread(server: WebhookServer) -> bool:
    return bool(server.threads._free._waiters)


async def test_where_no_thread_is_free_the_answer_names_those_that_hang(
    asking: Any, stuck: Stuck, forward: Forward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ocf.runtime.admission.server._SPARE", 0)
    async with asking(shops_with(validators=[stuck.validator])) as server:
        await server.stick(PATH, times=4)
        task = asyncio.create_task(server.ask(PATH))
        await until(lambda: waiting_for_a_thread(server.server))
        forward(10)
        problem = "no thread was free (4 calls do not return: Stuck.validator (4))"
        assert (await task)["status"]["message"] == f"validate.shops.example.com: {problem} within 9 seconds"


async def test_a_body_that_does_not_arrive_is_named(forward: Forward, webhooks_: Webhooks) -> None:
    given = Given()
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    async with serving(webhooks_, certificates=given, host=HOST, port=0) as server:
        host, port = server.url.removeprefix("https://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), ssl=trusting(given.pair))
        writer.write(head.encode())
        assert b"100 Continue" in await reader.readline()
        for _ in range(10):
            await asyncio.sleep(0)
        forward(10)
        found = await reader.readuntil(b"}}")
        assert b"validate.shops.example.com: the request did not arrive within 9 seconds" in found
        writer.close()


async def test_large_bodies_take_a_limited_amount_of_memory(
    asking: Any, stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ocf.runtime.admission.server._BODIES", 1_000_000)
    fine = Webhook[Any]("example.com", "v1", "Mall", "malls")
    webhooks = Webhooks("shops", [*shops_with(validators=[stuck.validator]).webhooks, fine])
    mall = {"request": {**REQUEST, "kind": {"group": "example.com", "version": "v1", "kind": "Mall"}}}
    large = {**mall, "padding": "x" * 700_000}
    async with asking(webhooks) as server:
        held = asyncio.create_task(server.ask(PATH, {**QUESTION, "padding": "x" * 700_000}))
        await stuck.until_entered()
        assert (await server.ask("/validate/example.com/malls", mall))["allowed"]
        async with server.session.post(server.server.url + "/validate/example.com/malls", json=large) as refused:
            assert (refused.status, "take more than 1000000 bytes" in await refused.text()) == (503, True)
        stuck.released.set()
        assert (await held)["allowed"]
        assert (await server.ask("/validate/example.com/malls", large))["allowed"]


async def test_a_request_whose_client_is_gone_is_not_counted(stuck: Stuck) -> None:
    registry, given = CollectorRegistry(), Given()
    async with (
        serving(
            shops_with(validators=[stuck.validator]), certificates=given, host=HOST, port=0, registry=registry
        ) as server,
        client(given.pair) as session,
    ):
        task = asyncio.create_task(session.post(server.url + PATH, json=QUESTION))
        await stuck.until_entered()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(server.threads.given_up)
        stuck.released.set()
    assert [each for each in registry.collect() if each.name.endswith("requests") and each.samples] == []


class Broken:
    """Certificates whose renewal ends or hangs."""

    def __init__(self, pair: KeyPair, *, hangs: bool) -> None:
        self._pair = pair
        self._hangs = hangs
        self._calls = 0
        self.again = asyncio.Event()

    @property
    def interval(self) -> timedelta:
        if not self._hangs:
            self.again.set()
            raise OSError("no file")
        return timedelta(0)

    async def refresh(self) -> ServingCertificate:
        self._calls += 1
        if self._calls > 1:
            self.again.set()
            await asyncio.get_running_loop().create_future()
        return ServingCertificate(self._pair)


@pytest.mark.parametrize(
    ("hangs", "problem"),
    [
        pytest.param(False, "the task that renews the certificate has ended", id="ends"),
        pytest.param(True, "the renewal of the certificate has not ended for 0:05:00", id="hangs"),
    ],
)
async def test_a_renewal_that_does_not_go_on_asks_for_a_restart(
    webhooks_: Webhooks, *, hangs: bool, problem: str
) -> None:
    clock = VirtualClock()
    given = Broken(made(now=clock.now()), hangs=hangs)
    async with serving(webhooks_, certificates=given, host=HOST, port=0, clock=clock) as server:
        await given.again.wait()
        await asyncio.sleep(0)
        if hangs:
            assert (server.problem(), server.live()) == ("", "")
            clock.advance(timedelta(minutes=5))
        assert (server.problem(), server.live()) == (problem, problem)


async def test_a_renewal_closes_no_connection_and_refuses_none(webhooks_: Webhooks) -> None:
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
    # A function of another test that never returned may end now, and is logged by its own module.
    (record,) = [one for one in caplog.records if one.name == "ocf.runtime.admission.server"]
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
