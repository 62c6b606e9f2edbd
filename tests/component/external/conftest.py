"""A system outside of the cluster, its client, and owners with resources in it."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, SecretStr

from ocf import component
from ocf.component import Component, Result, finalize, reconciling
from ocf.component.external.calls import ExternalCalls
from ocf.objects import ObjectKey
from ocf.primitives import external
from ocf.testing import VirtualClock
from ocf_server import CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.cluster import Cluster
    from ocf.component import FinalizationResult
    from ocf.concepts import Recorder
    from ocf.objects import Manifest

OWNER: Final = ObjectKey("example.com/v1", "Shop", "corner", "town")


class Bucket(BaseModel):
    size: int = 1
    labels: dict[str, str] | None = None
    password: SecretStr | None = None


class Live(BaseModel):
    """What the system shows of a bucket: it adds a region, and no password."""

    id: str
    key: str
    size: int
    labels: dict[str, str]
    region: str = "eu"
    files: int = 0


@dataclass
class System:
    """Buckets by target and id, with every call that was made.

    Attributes:
        faults: Called before each call with its verb and target; raises an error, or waits.
        lost: Verbs of which the next answer is lost after they were carried out.
    """

    buckets: dict[tuple[str, str], Live] = field(default_factory=dict)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    created: Counter[str] = field(default_factory=Counter)
    passwords: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    faults: dict[tuple[str, str], BaseException | float] = field(default_factory=dict)
    number: int = 0

    async def call(self, verb: str, target: str) -> None:
        self.calls.append(f"{verb}@{target}" if target else verb)
        fault = self.faults.get((verb, target), self.faults.get(("*", target)))
        if isinstance(fault, BaseException):
            raise fault
        if fault is not None:
            await asyncio.sleep(fault)

    def answered(self, verb: str) -> None:
        if verb in self.lost:
            self.lost.remove(verb)
            raise TimeoutError

    @property
    def writes(self) -> list[str]:
        return [one for one in self.calls if not one.startswith("read")]


class Buckets(external.Client[Bucket, Live]):
    """The client of the system, which gives each bucket an id of its own."""

    kind = "Bucket"

    def __init__(self, system: System) -> None:
        self.system = system

    async def read(self, identity: external.Identity) -> Live | None:
        await self.system.call("read", identity.target)
        if identity.id:
            return self.system.buckets.get((identity.target, identity.id))
        found = self.system.names.get((identity.target, identity.name), "")
        return self.system.buckets.get((identity.target, found))

    async def apply(self, identity: external.Identity, desired: Bucket, observed: Live | None) -> Live:
        await self.system.call("apply", identity.target)
        system = self.system
        if observed is None:
            system.number += 1
            made = Live(id=f"b-{system.number}", key=identity.key, size=desired.size, labels=desired.labels or {})
            system.created[f"{identity.name}@{identity.target}"] += 1
        else:
            labels = observed.labels if desired.labels is None else desired.labels
            made = observed.model_copy(update={"size": desired.size, "labels": labels})
        if desired.password is not None:
            system.passwords[made.id] = desired.password.get_secret_value()
        system.buckets[identity.target, made.id] = made
        system.names[identity.target, identity.name] = made.id
        system.answered("apply")
        return made

    async def delete(self, identity: external.Identity) -> None:
        await self.system.call("delete", identity.target)
        found = identity.id or self.system.names.get((identity.target, identity.name), "")
        live = self.system.buckets.get((identity.target, found))
        if live is not None and live.files > 0:
            self.system.buckets[identity.target, found] = live.model_copy(update={"files": live.files - 1})
        elif live is not None:
            del self.system.buckets[identity.target, found]
        self.system.answered("delete")

    def id_of(self, observed: Live) -> str:
        return observed.id

    def key_of(self, observed: Live) -> str:
        return observed.key


class Shop:
    """An owner that is reconciled without an operator: each call is waited for."""

    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock, system: System) -> None:
        self.cluster = cluster
        self.clock = clock
        self.system = system
        self.client = Buckets(system)
        self.declare: Callable[[], Component] = lambda: self.component()  # noqa: PLW0108 (its desired state is the default)
        self.recorder: Recorder | None = None

    @staticmethod
    async def new(system: System | None = None, clock: VirtualClock | None = None) -> Shop:
        clock = clock or VirtualClock()
        cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"], now=clock.now)
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "town"}}
        shop["spec"] = {"size": 1}
        await cluster.create(shop, field_manager="user")
        return Shop(cluster, clock, system or System())

    def builder(self, desired: Bucket | None = None, name: str = "town-corner") -> external.Builder[Bucket, Live]:
        return external.Builder(self.client, name=name, desired=desired or Bucket())

    def component(self, desired: Bucket | None = None, **options: Any) -> Component:
        return component.Builder("web", owner=OWNER).with_resource(self.builder(desired), **options).build()

    async def reconcile(self, cluster: Cluster | None = None) -> Result | FinalizationResult:
        through = cluster or self.cluster
        made = self.declare()
        async with reconciling(await through.get(OWNER), through, clock=self.clock, recorder=self.recorder) as context:
            finalization = await finalize(context, made)
            return finalization if finalization is not None else await made.reconcile(context)

    async def result(self) -> Result:
        found = await self.reconcile()
        assert isinstance(found, Result)
        return found

    async def status(self) -> Manifest:
        found: Manifest = (await self.cluster.get(OWNER)).get("status") or {}
        return found

    async def records(self) -> dict[str, Any]:
        return dict((await self.status()).get("external") or {})

    async def ready(self) -> tuple[str, str]:
        (found,) = [one for one in (await self.status())["conditions"] if one["type"] == "Ready"]
        return found["reason"], found["message"]

    def restart(self) -> None:
        """Forget what a process keeps in memory."""
        self.cluster.apply_cache._shared.pop(ExternalCalls, None)

    def wait(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))
