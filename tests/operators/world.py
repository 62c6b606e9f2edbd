"""A cluster with objects of built-in kinds, and operators that have no kind of their own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import ApplyCache, Cluster, PatchOptions, PatchType, Request, ServiceAccount, Verb
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import ManagerOptions, Operator, running
from ocf.runtime.rbac import PolicyRule, roles
from ocf.testing import LoopClock, RecordingCluster, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.support import eventually, until_granted

if TYPE_CHECKING:
    from ocf.testing.plugin import Envtest

__all__ = ["Scenario", "World", "in_virtual_time", "with_rights"]

_HOUR: Final = 3600


@dataclass
class World:
    """The cluster as its users see it, and the operators, whose requests are counted.

    Args:
        prefix: What the names of the namespaces begin with, so that tests can share a cluster.
        clock: That of the operators; None for the real time.
        account: The cluster as the operators see it; None for the same.
    """

    cluster: Cluster
    prefix: str = ""
    clock: LoopClock | None = None
    account: Cluster | None = None
    processes: list[RecordingCluster] = field(default_factory=list)

    @asynccontextmanager
    async def operating(self, *operators: Operator[Any]) -> AsyncIterator[None]:
        """Run operators in one process, with nothing in its memory."""
        self.processes.append(process := RecordingCluster(self.account or self.cluster, apply_cache=ApplyCache()))
        options = ManagerOptions(listen=None)
        if self.clock is not None:
            options = replace(options, clock=self.clock)
        async with running(process, *operators, options=options):
            if self.clock is not None:
                await asyncio.sleep(5)
            yield

    @property
    def requests(self) -> list[Request]:
        """The requests of the operators, process by process."""
        return [one for process in self.processes for one in process.requests]

    @property
    def written(self) -> list[Request]:
        """Those that write, without dry runs."""
        return [one for process in self.processes for one in process.writes]

    def writes(self) -> Counter[str]:
        """Return how often the operators have sent each verb of a write, events aside."""
        return Counter(str(one.verb) for one in self.written if one.kind != "Event")

    def forget(self) -> None:
        """Forget the requests so far."""
        for process in self.processes:
            process.requests.clear()

    async def settle(self) -> None:
        """Let an hour pass, in the second half of which nothing is written, events included."""
        assert self.clock is not None, "an hour passes in virtual time only"
        await asyncio.sleep(_HOUR / 2)
        self.forget()
        await asyncio.sleep(_HOUR / 2)
        assert not self.written, [str(one) for one in self.written]

    async def namespace(self, name: str, **labels: str) -> str:
        """Create a namespace."""
        metadata = {"name": f"{self.prefix}{name}", "labels": labels}
        await self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, field_manager="user")
        return f"{self.prefix}{name}"

    async def create(self, key: ObjectKey, annotations: Manifest | None = None, **content: Any) -> Manifest:
        """Create an object, as a user does; `metadata` is added to its own."""
        metadata = {"name": key.name, "namespace": key.namespace, **content.pop("metadata", {})}
        metadata |= {"annotations": annotations} if annotations else {}
        manifest = {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, **content}
        return await self.cluster.create(manifest, field_manager="user")

    async def edit(self, key: ObjectKey, patch: Manifest) -> Manifest:
        """Change an object, as a user does."""
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
        return await self.cluster.patch(key, patch, options)

    async def annotate(self, key: ObjectKey, annotations: Manifest) -> Manifest:
        """Set annotations, or remove them with None."""
        return await self.edit(key, {"metadata": {"annotations": annotations}})

    async def found(self, key: ObjectKey) -> Manifest:
        """Return an object, empty if it does not exist."""
        try:
            return await self.cluster.get(key)
        except NotFoundError:
            return {}

    async def until(self, key: ObjectKey, holds: Callable[[Manifest], Any] = bool) -> Manifest:
        """Wait until something holds of an object, by default that it exists; return it."""
        return await eventually(lambda: self.found(key), holds)

    async def until_data(self, key: ObjectKey, data: Manifest) -> Manifest:
        """Wait until an object has this data."""
        return await self.until(key, lambda live: live and (live.get("data") or {}) == data)

    async def until_gone(self, key: ObjectKey) -> None:
        """Wait until an object does not exist."""
        await self.until(key, lambda live: not live)

    async def events(self, key: ObjectKey) -> list[tuple[str, str]]:
        """Return reason and note of the events about an object."""
        found = (await self.cluster.list("events.k8s.io/v1", "Event")).items
        # On a shared server there are events of other tests, and the API server does not require a name.
        wanted = (key.kind, key.name, key.namespace)
        about = [one for one in found if tuple(map(one["regarding"].get, ("kind", "name", "namespace"))) == wanted]
        return [(one["reason"], one["note"]) for one in about]

    async def until_event(self, key: ObjectKey, reason: str, text: str) -> None:
        """Wait until an event about an object has a reason and a text in its note."""

        def holds(events: list[tuple[str, str]]) -> bool:
            return any(one == reason and text in note for one, note in events)

        await eventually(lambda: self.events(key), holds)

    @property
    def reads(self) -> int:
        """How many reads the operators have sent, without lists and watches of the cache."""
        return sum(one.verb is Verb.GET for one in self.requests)


Scenario = Callable[[World], Awaitable[None]]


@asynccontextmanager
async def with_rights(envtest: Envtest, admin: Cluster, rules: frozenset[PolicyRule]) -> AsyncIterator[World]:
    """Yield a world in which the operators have no other rights than these.

    Args:
        envtest: The namespace of the test, on a real API server.
        admin: The cluster with all rights.
    """
    namespace = envtest.namespace
    for one in roles(rules, name=namespace, account=ServiceAccount("operator", namespace)):
        await admin.create(one, field_manager="admin")
    user = f"system:serviceaccount:{namespace}:operator"
    await until_granted(admin, user, rules)
    kubeconfig = await asyncio.to_thread(envtest.plane.kubeconfig_for, user)
    async with await envtest.plane.cluster(kubeconfig) as account:
        yield World(admin, prefix=f"{namespace}-", account=account)


def in_virtual_time(scenario: Scenario, *namespaces: str) -> None:
    """Run a scenario on an embedded cluster in which time passes only while all wait."""

    async def run() -> None:
        clock = LoopClock()
        await scenario(World(EmbeddedCluster(namespaces=namespaces, now=clock.now), clock=clock))

    run_in_virtual_time(run())
