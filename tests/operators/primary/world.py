"""Servers of databases without databases, and an operator in virtual time beside the controllers of Kubernetes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Generic

from typing_extensions import TypeVar

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Subresource
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import ManagerOptions, running
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import ControllerSettings, EmbeddedCluster
from tests.operators.primary.model import Database
from tests.operators.primary.operator import databases

__all__ = ["MERGE", "SETTINGS", "FakeServers", "World", "in_virtual_time"]

T = TypeVar("T")
C = TypeVar("C", bound=Cluster, default=EmbeddedCluster)

SETTINGS: Final = ControllerSettings(
    names=("statefulset-controller", "persistentvolume-binder-controller"),
    ready_after=timedelta(seconds=3),
    stop_after=timedelta(seconds=1),
)
MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
_HELD: Final = "example.com/held"
_UNREADY: Final = {"metadata": {"annotations": {"ocf.dev/ready-after": "never"}}}


@dataclass
class FakeServers:
    """The servers, with a log of what they were asked to change.

    Args:
        running: Returns the members whose pods exist.
        primaries: The members that accept writes.
        unreachable: The members that cannot be reached.
        lost_answers: The members whose next change of role is done, and not answered.
        busy: Why members must not be restarted now.
        backups_left: How often a backup is not complete yet.
    """

    running: Callable[[], Awaitable[set[str]]]
    primaries: set[str] = field(default_factory=lambda: {"main-0"})
    unreachable: set[str] = field(default_factory=set)
    lost_answers: set[str] = field(default_factory=set)
    busy: dict[str, str] = field(default_factory=dict)
    backups_left: int = 0
    promoted: list[str] = field(default_factory=list)
    demoted: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    backups: list[tuple[str, str]] = field(default_factory=list)
    most_primaries: int = 1

    async def most_advanced(self, names: Sequence[str]) -> str | None:
        return next((one for one in reversed(names) if one not in self.unreachable), None)

    async def least_useful(self, names: Sequence[str]) -> str:
        # Each question has another answer, as the lag of replicas has.
        self._reach(*names)
        self.left.append(names[len(self.left) % len(names)])
        return self.left[-1]

    async def is_primary(self, name: str) -> bool:
        self._reach(name)
        return name in self.primaries

    async def promote(self, name: str) -> None:
        self._reach(name)
        self.promoted.append(name)
        self.primaries.add(name)
        self.most_primaries = max(self.most_primaries, len(self.primaries & await self.running()))
        self._answer(name)

    async def demote(self, name: str) -> None:
        self._reach(name)
        self.demoted.append(name)
        self.primaries.discard(name)
        self._answer(name)

    async def why_not_restart(self, name: str) -> str | None:
        self._reach(name)
        self.restarts.append(name)
        return self.busy.get(name)

    async def back_up(self, name: str, backup: str) -> bool:
        self._reach(name)
        if (name, backup) not in self.backups:
            self.backups.append((name, backup))
        self.backups_left -= 1
        return self.backups_left < 0

    def _reach(self, *names: str) -> None:
        if self.unreachable & {*names}:
            raise ConnectionError(*names)

    def _answer(self, name: str) -> None:
        if name in self.lost_answers:
            self.lost_answers.discard(name)
            raise ConnectionError(name)


@dataclass
class World(Generic[C]):
    """A cluster with the operator, and what users and failures do.

    Args:
        namespace: The namespace of the database `main`.
        seen: The reasons of its condition Ready, one after another.
    """

    cluster: C
    namespace: str = "town"
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.servers = FakeServers(self.running)
        self.main = ObjectKey(Database.api_version, Database.kind, "main", self.namespace)

    async def running(self) -> set[str]:
        return {name.removesuffix("-0") for name in await self.names("v1", "Pod")}

    async def create(self, name: str = "main", **spec: Any) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        manifest: Manifest = {"apiVersion": self.main.api_version, "kind": self.main.kind, "metadata": metadata}
        await self.cluster.create(manifest | {"spec": {"image": "db:1", **spec}}, field_manager="user")

    async def change(self, **spec: Any) -> None:
        await self.cluster.patch(self.main, {"spec": spec}, MERGE)

    async def database(self) -> Manifest:
        return await self.cluster.get(self.main)

    async def status(self) -> Manifest:
        found: Manifest = (await self.database()).get("status") or {}
        return found

    async def conditions(self) -> dict[str, Manifest]:
        return {one["type"]: one for one in (await self.status()).get("conditions") or ()}

    async def names(self, api_version: str = "apps/v1", kind: str = "StatefulSet") -> list[str]:
        namespace = "" if kind == "Node" else self.namespace
        found = await self.cluster.list(api_version, kind, ListOptions(namespace=namespace))
        return [one["metadata"]["name"] for one in found.items]

    async def check(self, members: list[str]) -> None:
        """Check that these members run, and that nothing of others is left but their claims."""
        assert await self.names() == members
        assert await self.names("v1", "Pod") == [f"{name}-0" for name in members]
        assert await self.names("v1", "ConfigMap") == members
        (primary,) = await self.endpoints("main-rw")
        assert (await self.get("ConfigMap", primary))["data"]["role"] == "primary"
        assert await self.endpoints("main-ro") == [name for name in members if name != primary]

    async def get(self, kind: str, name: str) -> Manifest:
        return await self.cluster.get(self.key(kind, name))

    def key(self, kind: str, name: str) -> ObjectKey:
        return ObjectKey("apps/v1" if kind == "StatefulSet" else "v1", kind, name, self.namespace)

    async def make_unready(self, member: str) -> None:
        await self.cluster.patch(self.key("Pod", f"{member}-0"), _UNREADY, MERGE)

    def node(self, name: str) -> ObjectKey:
        return ObjectKey("v1", "Node", name)

    async def hold(self, member: str) -> None:
        """Let a finalizer hold the pod of a member, as a node does that cannot be reached."""
        await self.cluster.patch(self.key("Pod", f"{member}-0"), {"metadata": {"finalizers": [_HELD]}}, MERGE)

    async def release(self, member: str) -> None:
        await self.cluster.patch(self.key("Pod", f"{member}-0"), {"metadata": {"finalizers": None}}, MERGE)

    async def annotate(self, name: str, value: str | None) -> None:
        await self.cluster.patch(self.main, {"metadata": {"annotations": {name: value}}}, MERGE)

    async def endpoints(self, service: str) -> list[str]:
        """Return the members to which a Service leads."""
        selector: Manifest = (await self.get("Service", service))["spec"]["selector"]
        labels = ",".join(f"{key}={value}" for key, value in selector.items())
        pods = await self.cluster.list("v1", "Pod", ListOptions(namespace=self.namespace, label_selector=labels))
        return [one["metadata"]["name"].removesuffix("-0") for one in pods.items]

    async def follow(self, seconds: float) -> None:
        """Let time pass, and note each state of the condition Ready."""
        for _ in range(int(seconds * 2)):
            await asyncio.sleep(0.5)
            try:
                ready = (await self.conditions()).get("Ready")
            except NotFoundError:
                return
            if ready is not None and ready["reason"] not in self.seen[-1:]:
                self.seen.append(ready["reason"])

    async def events(self) -> list[Manifest]:
        found = await self.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=self.namespace))
        return list(found.items)

    async def forget_status(self) -> None:
        """Remove the status, as a restore from a backup does."""
        live = await self.database()
        await self.cluster.update({**live, "status": {}}, field_manager="user", subresource=Subresource.STATUS)

    @asynccontextmanager
    async def operating(self) -> AsyncIterator[None]:
        """Run the operator as a process of its own, which starts here and ends with the block."""
        options = ManagerOptions(listen=None, clock=LoopClock(), random=lambda: 0.5)
        async with running(self.cluster, databases(self.servers), options=options):
            yield


async def new_world() -> World:
    made = EmbeddedCluster(namespaces=["town"], now=LoopClock().now)
    await made.apply(Database.definition(), field_manager="user")
    return World(made)


def in_virtual_time(
    scene: Callable[[World], Coroutine[Any, Any, T]],
    *,
    prepare: Callable[[World], Coroutine[Any, Any, None]] | None = None,
    **spec: Any,
) -> T:
    """Play a scene with a database that runs.

    Args:
        prepare: Prepares the cluster before there is an operator.
        spec: Fields of the spec of the database.
    """

    async def play() -> T:
        world = await new_world()
        if prepare is not None:
            await prepare(world)
        async with world.cluster.controllers(SETTINGS).running(), world.operating():
            await world.create(**spec)
            await world.follow(20)
            return await scene(world)

    return run_in_virtual_time(play())
