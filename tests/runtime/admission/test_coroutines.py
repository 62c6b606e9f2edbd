"""Handlers that are coroutine functions: they look at other objects, out of the cache of the process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, cast

import pytest

from ocf.cluster import Cluster, ListOptions, Verb, WatchEvent, WatchOptions
from ocf.cluster.protocol import EventType
from ocf.component import Component
from ocf.errors import ApiError, ConfigError, InvalidError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import (
    AdmissionRequest,
    Deny,
    FieldError,
    Operation,
    SecretCertificates,
    Step,
    Url,
    Warn,
    Webhook,
    Webhooks,
    invalid,
    required,
    review,
    serving,
)
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, WebhookOptions, running
from ocf.testing import RecordingCluster
from ocf_server import CustomKind, EmbeddedCluster
from tests.support import eventually

HOME: Final = "default"
SHOP: Final = ("example.com/v1", "Shop")
HOST: Final = "127.0.0.1"
LOCAL: Final = WebhookOptions(address=Url(f"https://{HOST}"), namespace=HOME, host=HOST, port=0, register=True)

Findings = list[FieldError | Warn]
Request = AdmissionRequest[Manifest]


def shop(name: str, street: str = "main") -> Manifest:
    metadata = {"name": name, "namespace": HOME}
    return {"apiVersion": SHOP[0], "kind": SHOP[1], "metadata": metadata, "spec": {"street": street}}


@dataclass
class Seen:
    """What a handler was asked."""

    requests: list[tuple[Operation, bool, str]] = field(default_factory=list)

    def handler(self) -> Callable[[Request, Cluster], Awaitable[Findings]]:
        """Return a handler of which two shops of a street are an error."""

        async def alone(request: Request, cluster: Cluster) -> Findings:
            new, old = request.new, request.old
            before = old["spec"]["street"] if old is not None else ""
            self.requests.append((request.operation, request.dry_run, before))
            others = await cluster.list(*SHOP, ListOptions(namespace=HOME))
            taken = {one["spec"]["street"]: one["metadata"]["name"] for one in others.items}
            if taken.get(new["spec"]["street"], new["metadata"]["name"]) != new["metadata"]["name"]:
                return [invalid("spec.street", new["spec"]["street"], "has a shop already")]
            return [Warn("the street is narrow")]

        return alone


def named(new: Manifest, _old: Manifest | None, _operation: Operation) -> Findings:
    return [] if new["spec"].get("street") else [required("spec.street")]


def of(*handlers: Any) -> Webhook[Manifest]:
    return Webhook("example.com", "v1", "Shop", "shops", validators=[named], validating=handlers)


def components(_: Manifest) -> list[Component]:
    return []


@asynccontextmanager
async def operating(
    webhook: Webhook[Manifest], *, limit: timedelta = timedelta(seconds=10), late: bool = False
) -> AsyncIterator[tuple[EmbeddedCluster, RecordingCluster]]:
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")])
    process = _Late(cluster) if late else RecordingCluster(cluster)
    owner: OwnerType[Manifest] = OwnerType(*SHOP)
    operator = Operator(name="shops", owner=owner, components=components, webhooks=[webhook])
    admission = replace(LOCAL, timeout=limit)
    async with running(process, operator, options=ManagerOptions(listen=None, admission=admission)) as one:
        await one.started()
        yield cluster, process


async def test_it_sees_other_objects_the_operation_and_whether_it_is_a_dry_run() -> None:
    seen = Seen()
    async with operating(of(seen.handler())) as (cluster, _):
        await cluster.create(shop("a"), field_manager="user", dry_run=True)
        stored = await cluster.create(shop("a"), field_manager="user")
        await cluster.update({**stored, "spec": {"street": "side"}}, field_manager="user")
        assert seen.requests == [
            (Operation.CREATE, True, ""),
            (Operation.CREATE, False, ""),
            (Operation.UPDATE, False, "main"),
        ]

        async def is_refused() -> bool:
            try:
                await cluster.create(shop("b", "side"), field_manager="user", dry_run=True)
            except InvalidError as error:
                return [cause.field for cause in error.causes] == ["spec.street"]
            return False

        await eventually(is_refused)  # once the watch has reported the first one
        await cluster.create(shop("b", "high"), field_manager="user")


async def test_it_reads_from_the_cache() -> None:
    seen = Seen()
    async with operating(of(seen.handler())) as (cluster, process):
        await cluster.create(shop("a"), field_manager="user")
        process.requests.clear()
        for number in range(20):
            await cluster.create(shop(f"b{number}", f"street {number}"), field_manager="user", dry_run=True)
        assert len(seen.requests) == 21
        assert not [one for one in process.requests if one.kind == "Shop"]


class _Late(RecordingCluster):
    """A cluster whose watches report nothing after the first list, as on a busy machine."""

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        async for event in super().watch(api_version, kind, options):
            if event.type is EventType.BOOKMARK:
                yield event


async def test_an_object_that_the_cache_has_not_seen_yet_is_asked_of_the_api_server() -> None:
    """A namespace, and at once an object in it.

    https://github.com/kubernetes/kubernetes/pull/135359, https://github.com/open-policy-agent/gatekeeper/issues/289.
    """
    found: list[str] = []

    async def of_team(request: Request, cluster: Cluster) -> FieldError | None:
        namespace = await cluster.get(ObjectKey("v1", "Namespace", request.namespace, ""))
        found.append(namespace["metadata"]["labels"]["team"])
        return None

    async with operating(of(of_team), late=True) as (cluster, process):
        labels = {"team": "web"}
        for name in ("new", "newer"):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
            await cluster.create(namespace, field_manager="user")
            made = shop("a")
            made["metadata"]["namespace"] = name
            await cluster.create(made, field_manager="user")
        assert found == ["web", "web"]
        asked = [one.name for one in process.requests.of(Verb.GET) if one.kind == "Namespace"]
        assert asked[-1:] == ["newer"], "the first one may be read before the cache has listed the kind"


async def test_it_is_not_called_for_what_the_others_reject() -> None:
    seen = Seen()
    async with operating(of(seen.handler())) as (cluster, _):
        with pytest.raises(InvalidError, match="street: Required value"):
            await cluster.create({**shop("a"), "spec": {}}, field_manager="user")
    assert not seen.requests


async def fails(_request: Request) -> Findings:
    raise LookupError("the token is hunter2")


async def hangs(_request: Request) -> Findings:
    await asyncio.Event().wait()
    return []


async def gives_up(_request: Request) -> Findings:
    raise asyncio.CancelledError


async def is_disturbed(_request: Request) -> Findings:
    """Wait for what another task has cancelled."""
    other = asyncio.ensure_future(asyncio.Event().wait())
    asyncio.get_running_loop().call_soon(other.cancel)
    await other
    return []


def gives_up_at_once(_request: Request) -> Findings:
    raise asyncio.CancelledError


async def accepts_late(_request: Request) -> Findings:
    """Take the cancellation at the limit for an answer."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return []


async def babbles(_request: Request, _cluster: Cluster) -> Any:
    return ["no"]


async def exits(_request: Request) -> Findings:
    raise SystemExit(3)


def exits_at_once(_request: Request) -> Findings:
    raise SystemExit(3)


async def is_closed(_request: Request) -> Findings:
    raise GeneratorExit


async def generates(_request: Request) -> Any:
    """Return what runs only while it is iterated over, for ever."""
    return (Warn("again") for _ in iter(int, 1))


async def warns_of_a_number(_request: Request) -> Any:
    return [Warn(cast("str", 5))]


async def denies_without_a_text(_request: Request) -> Any:
    return Deny(cast("str", None))


async def finds_a_set(_request: Request) -> Any:
    return [invalid("spec.street", {1}, "is no street")]


def fails_in_the_middle(_request: Request) -> Any:
    class Found(Sequence[Warn]):
        def __getitem__(self, _: Any) -> Any:
            raise LookupError("hunter2")

        def __len__(self) -> int:
            return 1

    return Found()


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        pytest.param(exits, "exits failed with SystemExit", id="what ends a process"),
        pytest.param(exits_at_once, "exits_at_once failed with SystemExit", id="a function that ends the process"),
        pytest.param(is_closed, "is_closed failed with GeneratorExit", id="what ends a generator"),
        pytest.param(generates, "generates must return None, a list, or one of Deny", id="an endless generator"),
        pytest.param(warns_of_a_number, "warns_of_a_number failed with ConfigError", id="a warning that is no text"),
        pytest.param(denies_without_a_text, "denies_without_a_text failed with ConfigError", id="a Deny without text"),
        pytest.param(finds_a_set, "failed with TypeError", id="a value that JSON does not have"),
        pytest.param(fails_in_the_middle, "failed with LookupError", id="findings that fail in the middle"),
        pytest.param(fails, "fails failed with LookupError, see the operator's log", id="an error"),
        pytest.param(hangs, "hangs did not return within 0.9 seconds", id="no end"),
        pytest.param(gives_up, "gives_up failed with CancelledError", id="a cancellation of its own"),
        pytest.param(is_disturbed, "is_disturbed failed with CancelledError", id="a cancellation of what it waits for"),
        pytest.param(gives_up_at_once, "gives_up_at_once failed with CancelledError", id="a function that raises it"),
        pytest.param(accepts_late, "accepts_late did not return within 0.9 seconds", id="it ignores its cancellation"),
        pytest.param(
            babbles, "babbles must return Deny, FieldError, Warn or AuditAnnotation, got str", id="another type"
        ),
    ],
)
async def test_one_that_fails_is_named_without_its_text(handler: Any, problem: str) -> None:
    async with operating(of(handler), limit=timedelta(seconds=1)) as (cluster, _):
        with pytest.raises(ApiError) as refused:
            await cluster.create(shop("a"), field_manager="user")
    assert problem in refused.value.message
    assert "hunter2" not in refused.value.message
    assert isinstance(refused.value, ServerError) or refused.value.code >= 500


async def test_one_that_never_ends_holds_up_no_response() -> None:
    ended = asyncio.Event()

    async def goes_on(_request: Request) -> Findings:
        while not ended.is_set():
            with suppress(asyncio.CancelledError):
                await ended.wait()
        return []

    async with operating(of(goes_on), limit=timedelta(seconds=1)) as (cluster, _):
        for name in "ab":
            with pytest.raises(ApiError, match="goes_on did not return within"):
                await cluster.create(shop(name), field_manager="user")
        ended.set()


def test_without_a_cluster_a_test_has_to_await_it() -> None:
    kind = {"group": "example.com", "version": "v1", "kind": "Shop"}
    request = {"uid": "1", "kind": kind, "operation": "CREATE", "name": "a", "object": shop("a")}
    with pytest.raises(ConfigError, match="review calls plain functions only, and fails is a coroutine function"):
        review(of(fails), Step.VALIDATE, {"request": request})


async def test_a_server_without_a_cluster_for_it_does_not_start() -> None:
    cluster = EmbeddedCluster()
    webhooks = Webhooks("shops", [of(babbles)])
    certificates = SecretCertificates(cluster, webhooks, Url("https://127.0.0.1"), namespace=HOME)
    with pytest.raises(ConfigError, match=r"functions of Shop take the cluster, .* pass `cluster`"):
        async with serving(webhooks, certificates=certificates, host="127.0.0.1", port=0):
            pass


class Scheduled(list[str]):
    """The threads in which functions run."""

    def plain(self, _: Request) -> None:
        self.append(threading.current_thread().name)

    async def coroutine(self, _: Request) -> None:
        self.append(threading.current_thread().name)


async def test_a_coroutine_function_runs_in_the_loop_and_a_plain_function_in_a_thread() -> None:
    scheduled = Scheduled()
    webhook: Webhook[Manifest] = Webhook(
        "example.com",
        "v1",
        "Shop",
        "shops",
        mutating=[scheduled.coroutine, scheduled.plain],
        validating=[scheduled.coroutine, scheduled.plain],
    )
    here = threading.current_thread().name
    async with operating(webhook) as (cluster, _):
        await cluster.create(shop("a"), field_manager="user")
    # Of those that check, plain functions are called first: a coroutine may be expensive.
    assert scheduled == [here, "admission", "admission", here]
