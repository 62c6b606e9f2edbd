"""Situations on a real API server: it validates the objects, and completes them with its defaults."""

from __future__ import annotations

import asyncio
import re
from copy import deepcopy
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cli.explain.owner_snapshot import WantedOwners, read_owners
from ocf.cli.explain.served_kinds import resolve_kind, served_kinds
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.objects import Manifest, ObjectKey
from ocf.objects.timestamps import format_time, parse_time
from ocf.ownership import explain_owner
from tests.ownership.situations import Situation
from tests.ownership.test_situations import SITUATIONS
from tests.ownership.world import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest

GROUP: Final = "situations.example.com"
READ: Final = frozenset({"", GROUP, "apps", "autoscaling", "batch", "events.k8s.io"})
WRITTEN: Final = frozenset({"DaemonSet", "Deployment", "Event", "Pod", "ReplicaSet", "Service", "Shop", "StatefulSet"})
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
DURATION: Final = re.compile(r" for \d+ (second|minute|hour|day)s?\b")
METADATA: Final = frozenset({"annotations", "labels", "name", "ownerReferences"})


def definition() -> Manifest:
    """Return the definition of a kind with any spec and status."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"shops.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": "Shop", "plural": "shops", "singular": "shop"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def is_plain(situation: Situation) -> bool:
    """Return whether nothing in a situation is set by the API server alone, or is shared by all namespaces."""
    metadata = (one["metadata"] for one in situation.objects)
    is_old = any({"deletionTimestamp", "finalizers", "managedFields"} & one.keys() for one in metadata)
    return not is_old and {one["kind"] for one in situation.objects} <= WRITTEN


# Every other one, since each takes half a second.
PLAIN: Final = [one for one in SITUATIONS if is_plain(one)][::2]


def moved(value: Any, delta: timedelta) -> Any:
    """Return a value with all its times moved."""
    if isinstance(value, dict):
        return {name: moved(one, delta) for name, one in value.items()}
    if isinstance(value, list):
        return [moved(one, delta) for one in value]
    if isinstance(value, str) and TIME.fullmatch(value):
        return format_time(parse_time(value) + delta)
    return value


def requests(situation: Situation, namespace: str, now: datetime) -> Iterator[Manifest]:
    for given in situation.objects:
        live = moved(deepcopy(given), now - NOW)
        live["metadata"] = {name: value for name, value in live["metadata"].items() if name in METADATA}
        live["metadata"]["namespace"] = namespace
        if live["kind"] == "Shop":
            live["apiVersion"] = f"{GROUP}/v1"
        if live["kind"] == "Event":
            live["involvedObject"]["namespace"] = namespace
        yield live


async def store(situation: Situation, cluster: ApiServerCluster, namespace: str) -> None:
    """Create the objects, with the uids of their owners, and write their statuses as their controllers do."""
    uids: dict[str, str] = {}
    now = cluster.server_time or NOW
    for given, live in zip(situation.objects, requests(situation, namespace, now), strict=True):
        for reference in live["metadata"].get("ownerReferences", ()):
            reference["uid"] = uids[reference["uid"]]
            if reference["kind"] == "Shop":
                reference["apiVersion"] = f"{GROUP}/v1"
        if live["kind"] == "Event":
            live["involvedObject"]["uid"] = uids[live["involvedObject"]["uid"]]
        status = live.pop("status", None)
        made = await cluster.create(live, field_manager="user")
        uids[given["metadata"].get("uid", "")] = made["metadata"]["uid"]
        if status:
            options = PatchOptions(
                patch_type=PatchType.MERGE, field_manager="controller", subresource=Subresource.STATUS
            )
            await cluster.patch(ObjectKey.of(made), {"status": status}, options)


@pytest.mark.parametrize("situation", [pytest.param(each, id=each.name) for each in PLAIN])
async def test_the_first_sentence_names_the_cause(
    situation: Situation, envtest: Envtest, envtest_cluster: ApiServerCluster
) -> None:
    await asyncio.to_thread(envtest.plane.install_crds, definition())
    served = [one for one in await served_kinds(envtest_cluster) if one.group in READ]
    await store(situation, envtest_cluster, envtest.namespace)
    wanted = WantedOwners(resolve_kind(f"shop.{GROUP}", served), envtest.namespace, "corner")
    reading = await read_owners(envtest_cluster, wanted, served, envtest_cluster.server_time or NOW)
    sentence = DURATION.sub("", explain_owner(reading.snapshot, reading.owners[0]).sentence)
    rest = sentence
    for part in (DURATION.sub("", one) for one in situation.expected):
        assert part in rest, f"{part!r} is not in {sentence!r}"
        rest = rest.partition(part)[2]


def test_a_third_of_all_situations_is_on_a_real_server() -> None:
    assert 3 * len(PLAIN) >= len(SITUATIONS)
