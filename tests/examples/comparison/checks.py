"""Checks of an operator of sites over HTTP: the same table for each way of writing it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, WatchOptions
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey

__all__ = ["CHECKS", "Site"]

_LONGEST: Final = 600  # seconds, on a busy machine
_NAME: Final = "sample"
_PATCHED: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="another-user")

Holds: TypeAlias = Callable[[Manifest | None], bool]


@dataclass(frozen=True, slots=True)
class Site:
    """A site, and what its operator has made of it.

    Args:
        cluster: The cluster that the operator works on.
        group: The group of the operator's kind.
        namespace: An empty namespace.
    """

    cluster: Cluster
    group: str
    namespace: str

    def key(self, kind: str) -> ObjectKey:
        versions = {
            "Site": f"{self.group}/v1",
            "ConfigMap": "v1",
            "Service": "v1",
            "Deployment": "apps/v1",
            "HorizontalPodAutoscaler": "autoscaling/v2",
        }
        return ObjectKey(versions[kind], kind, _NAME, self.namespace)

    async def get(self, kind: str) -> Manifest:
        return await self.cluster.get(self.key(kind))

    async def create(self) -> None:
        key = self.key("Site")
        metadata = {"name": key.name, "namespace": key.namespace}
        site = {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, "spec": {}}
        await self.cluster.create(site, field_manager="user")

    async def change(self, **spec: Any) -> None:
        """Change the desired state."""
        await self.edit("Site", {"spec": spec})

    async def edit(self, kind: str, change: Manifest) -> None:
        """Change an object as another user does."""
        await self.cluster.patch(self.key(kind), change, _PATCHED)

    async def delete(self, kind: str) -> None:
        await self.cluster.delete(self.key(kind))

    async def until(self, kind: str, holds: Holds) -> None:
        """Wait until something holds for an object; it is None while there is none."""
        key = self.key(kind)
        namespaced = ListOptions(namespace=self.namespace)
        async with asyncio.timeout(_LONGEST):
            found = await self.cluster.list(key.api_version, kind, namespaced)
            if holds(next((each for each in found.items if each["metadata"]["name"] == _NAME), None)):
                return
            options = WatchOptions(namespace=self.namespace, resource_version=found.resource_version)
            async for event in self.cluster.watch(key.api_version, kind, options):
                ours = event.object["metadata"]["name"] == _NAME
                if ours and holds(None if event.type == "DELETED" else event.object):
                    return

    async def until_reason(self, reason: str) -> None:
        """Wait until the condition has a reason, for the current desired state."""

        def holds(site: Manifest | None) -> bool:
            conditions = ((site or {}).get("status") or {}).get("conditions") or []
            ready: Manifest = next((found for found in conditions if found["type"] == "Ready"), {})
            current = site and ready.get("observedGeneration") == site["metadata"]["generation"]
            return bool(current and (ready["status"], ready["reason"]) == ("True", reason))

        await self.until("Site", holds)

    async def until_replicas(self, count: int) -> None:
        await self.until("Deployment", lambda found: found is not None and found["spec"]["replicas"] == count)


async def ready(site: Site) -> None:
    await site.create()
    await site.until_reason("Healthy")
    assert (await site.get("ConfigMap"))["data"] == {"index.html": "Hello, world!\n"}
    assert (await site.get("Deployment"))["spec"]["replicas"] == 2
    assert [port["port"] for port in (await site.get("Service"))["spec"]["ports"]] == [80]


async def resized(site: Site) -> None:
    await site.change(replicas=3, greeting="Hello!")
    await site.until_replicas(3)
    await site.until_reason("Healthy")
    assert (await site.get("ConfigMap"))["data"] == {"index.html": "Hello!\n"}


def shutdown(deployment: Manifest | None) -> tuple[int, bool]:
    """Return the grace period of the pods, and whether there is a hook before they stop."""
    assert deployment is not None
    pod = deployment["spec"]["template"]["spec"]
    return pod["terminationGracePeriodSeconds"], "lifecycle" in pod["containers"][0]


async def gated(site: Site) -> None:
    assert shutdown(await site.get("Deployment")) == (45, True)
    await site.change(version="1.0.9")
    await site.until("Deployment", lambda found: shutdown(found) == (30, False))
    await site.change(version="1.1.0")
    await site.until("Deployment", lambda found: shutdown(found) == (45, True))
    await site.until_reason("Healthy")


async def reverted(site: Site) -> None:
    await site.edit("Deployment", {"spec": {"replicas": 7}})
    await site.until_replicas(3)


async def recreated(site: Site) -> None:
    before = (await site.get("Service"))["metadata"]["uid"]
    await site.delete("Service")
    await site.until("Service", lambda found: found is not None and found["metadata"]["uid"] != before)


async def scaled(site: Site) -> None:
    await site.change(maxReplicas=5)
    await site.until("HorizontalPodAutoscaler", lambda found: found is not None)
    await site.until_reason("Healthy")
    spec = (await site.get("HorizontalPodAutoscaler"))["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (3, 5)
    await site.edit("Deployment", {"spec": {"replicas": 4}})
    await site.change(greeting="Hello again!")
    await site.until("ConfigMap", lambda found: bool(found and found["data"] == {"index.html": "Hello again!\n"}))
    await site.until_reason("Healthy")
    assert (await site.get("Deployment"))["spec"]["replicas"] == 4


async def suspended(site: Site) -> None:
    await site.change(suspended=True)
    await site.until_replicas(0)
    await site.until("HorizontalPodAutoscaler", lambda found: found is None)
    await site.until_reason("Suspended")


async def resumed(site: Site) -> None:
    await site.change(suspended=False)
    # As many as before, or the lowest number again: the autoscaler corrects either.
    await site.until("Deployment", lambda found: found is not None and found["spec"]["replicas"] in {3, 4})
    await site.until("HorizontalPodAutoscaler", lambda found: found is not None)
    await site.until_reason("Healthy")


async def handed_back(site: Site) -> None:
    await site.edit("Deployment", {"spec": {"replicas": 4}})
    await site.change(maxReplicas=None)
    await site.until("HorizontalPodAutoscaler", lambda found: found is None)
    await site.until_replicas(3)
    await site.until_reason("Healthy")


async def deleted(site: Site) -> None:
    await site.delete("Site")
    for kind in ("Site", "ConfigMap", "Deployment", "Service"):
        await site.until(kind, lambda found: found is None)
    try:
        await site.get("Site")
    except NotFoundError:
        return
    raise AssertionError("the site still exists")


CHECKS: Final[dict[str, Callable[[Site], Awaitable[None]]]] = {
    "a new site becomes ready with all its objects": ready,
    "a change of size and text arrives, and the site becomes ready again": resized,
    "the version decides about the graceful shutdown": gated,
    "a change by another user is reverted": reverted,
    "a deleted object is created again": recreated,
    "an autoscaler owns the count while there is one": scaled,
    "suspending scales to zero, and removes the autoscaler": suspended,
    "resuming restores both": resumed,
    "without an autoscaler, the count is the site's again": handed_back,
    "the objects of a deleted site are deleted": deleted,
}
