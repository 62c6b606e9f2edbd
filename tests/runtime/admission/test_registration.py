"""What several processes register is there until the last one ends, and nothing is left then."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Final

import pytest

from ocf.cluster import Cluster, InterceptingCluster, Request
from ocf.errors import ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission.registration import registered
from ocf.testing.envtest import ControlPlane
from ocf_server import EmbeddedCluster

API: Final = "admissionregistration.k8s.io/v1"


def configuration(path: str = "/validate", name: str = "shops") -> Manifest:
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["shops"]}
    hook = {
        "name": "shops.example.com",
        "clientConfig": {"url": f"https://127.0.0.1{path}"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    kind = "ValidatingWebhookConfiguration"
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "webhooks": [hook]}


KEY: Final = ObjectKey.of(configuration())


@pytest.fixture(params=["embedded", "real"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    if request.param == "embedded":
        yield EmbeddedCluster()
        return
    plane: ControlPlane = request.getfixturevalue("envtest_plane")
    async with await plane.cluster() as found:
        yield found


async def url(cluster: Cluster) -> str:
    """Return where the API server calls the webhook; empty if it calls none."""
    try:
        live = await cluster.get(KEY)
    except NotFoundError:
        return ""
    return str(live["webhooks"][0]["clientConfig"]["url"]).removeprefix("https://127.0.0.1")


class Processes:
    """Processes that register one configuration, by name."""

    def __init__(self, cluster: Cluster, *, shared: bool) -> None:
        self.cluster, self.shared = cluster, shared
        self.stacks: dict[str, AsyncExitStack] = {}

    async def step(self, change: str) -> None:
        """Start a process, `+a`, or end it, `-a`."""
        name = change[1:]
        if change[0] == "-":
            await self.stacks.pop(name).aclose()
            return
        self.stacks[name] = AsyncExitStack()
        manifest = configuration("/validate" if self.shared else f"/{name}")
        block = registered(self.cluster, [manifest], field_manager="shops-webhooks", shared=self.shared)
        await self.stacks[name].enter_async_context(block)


@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        pytest.param("+a -a", "/validate -", id="one"),
        pytest.param("+a +b -a -b", "/validate /validate /validate -", id="a rolling update"),
        pytest.param("+a +b -b -a", "/validate /validate /validate -", id="the second ends first"),
        pytest.param("+a +b -a +c -b -c", "/validate /validate /validate /validate /validate -", id="three replicas"),
        pytest.param("+a -a +b -b", "/validate - /validate -", id="one after the other"),
    ],
)
async def test_what_replicas_share_is_there_until_the_last_one_ends(cluster: Cluster, steps: str, seen: str) -> None:
    """Of https://github.com/kyverno/kyverno/issues/1181: the old pod of an update removed what the new one used."""
    processes = Processes(cluster, shared=True)
    for change, wanted in zip(steps.split(), seen.split(), strict=True):
        await processes.step(change)
        assert (await url(cluster) or "-") == wanted, change


@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        pytest.param("+a +b -a -b", "/a /b /b -", id="the first ends first"),
        pytest.param("+a +b -b -a", "/a /b - -", id="the second ends first"),
    ],
)
async def test_an_address_of_one_process_is_that_of_the_last_one(cluster: Cluster, steps: str, seen: str) -> None:
    processes = Processes(cluster, shared=False)
    for change, wanted in zip(steps.split(), seen.split(), strict=True):
        await processes.step(change)
        assert (await url(cluster) or "-") == wanted, change


@pytest.mark.parametrize("shared", [True, False])
async def test_what_a_killed_process_has_left_is_taken_over(cluster: Cluster, *, shared: bool) -> None:
    """A process that is killed deletes nothing; an address that only it had is not called any more."""
    killed = Processes(cluster, shared=shared)
    await killed.step("+killed")
    processes = Processes(cluster, shared=shared)
    await processes.step("+a")
    await processes.step("-a")
    # Replicas cannot know that one of them was killed: what guards the cluster stays.
    assert bool(await url(cluster)) is shared
    if shared:
        await cluster.delete(KEY)


async def test_another_writer_does_not_keep_it_in_place(cluster: Cluster) -> None:
    """As the CA bundle that is renewed while the process runs."""
    async with registered(cluster, [configuration()], field_manager="shops-webhooks", shared=True):
        live = await cluster.get(KEY)
        live["webhooks"][0]["clientConfig"]["url"] = "https://127.0.0.1/other"
        await cluster.update(live, field_manager="other")
    assert not await url(cluster)


async def test_what_another_client_has_installed_is_not_taken() -> None:
    cluster = EmbeddedCluster()
    await cluster.create(configuration(), field_manager="kubectl")
    with pytest.raises(ConfigError, match="kubectl has installed it"):
        async with registered(cluster, [configuration()], field_manager="shops-webhooks", shared=True):
            pass
    assert await url(cluster)


class Interleaved(InterceptingCluster):
    """Lets other tasks run before and after each request."""

    def __init__(self, inner: Cluster, choose: random.Random) -> None:
        super().__init__(inner)
        self._choose = choose

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        del request
        await self._pause()
        answer = await send()
        await self._pause()
        return answer

    async def _pause(self) -> None:
        for _ in range(self._choose.randrange(4)):
            await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(40))
async def test_whatever_the_order_of_the_requests_is_the_last_process_deletes_it(seed: int) -> None:
    cluster, choose = EmbeddedCluster(), random.Random(seed)  # noqa: S311 (no secret)
    problems: list[str] = []

    async def process(number: int) -> None:
        own = Interleaved(cluster, choose)
        for _ in range(choose.randrange(5)):
            await asyncio.sleep(0)
        async with registered(own, [configuration()], field_manager="shops-webhooks", shared=True):
            for _ in range(choose.randrange(8)):
                await asyncio.sleep(0)
                if not await url(cluster):
                    problems.append(f"process {number} has no configuration")

    await asyncio.gather(*map(process, range(3)))
    assert problems == []
    assert not await url(cluster)
