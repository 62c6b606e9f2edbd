"""Garbage collection of dependents."""

from collections.abc import Callable
from typing import Any

import pytest

from ocf.cluster import DeleteOptions, PatchOptions, PatchType, Propagation
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.controllers.garbage_collector import GarbageCollector
from ocf_server.registry.storage import Kind, Place

Build = Callable[..., Manifest]


def key(name: str) -> ObjectKey:
    return ObjectKey("v1", "ConfigMap", name, "shop")


def owner(manifest: Manifest, **extra: Any) -> dict[str, Any]:
    metadata = manifest["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"], **extra}


async def exists(cluster: EmbeddedCluster, name: str) -> bool:
    try:
        await cluster.get(key(name))
    except NotFoundError:
        return False
    return True


async def create(cluster: EmbeddedCluster, build: Build, name: str, *owners: dict[str, Any], **extra: Any) -> Manifest:
    references = {"ownerReferences": list(owners)} if owners else {}
    return await cluster.create(build(name, **references, **extra), field_manager="test")


async def drop_finalizers(cluster: EmbeddedCluster, name: str) -> None:
    patch = {"metadata": {"finalizers": None}}
    await cluster.patch(key(name), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))


async def test_dependents_are_deleted_transitively(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await create(cluster, config_map, "top")
    middle = await create(cluster, config_map, "middle", owner(top))
    await create(cluster, config_map, "bottom", owner(middle))
    await create(cluster, config_map, "bystander")
    await cluster.delete(key("top"))

    assert [await exists(cluster, name) for name in ("middle", "bottom", "bystander")] == [False, False, True]


@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("propagation", list(Propagation))
async def test_a_circle_of_owners_is_deleted(
    cluster: EmbeddedCluster, config_map: Build, number: int, propagation: Propagation
) -> None:
    names = [f"member-{index}" for index in range(number)]
    members = [await create(cluster, config_map, name) for name in names]
    for index, name in enumerate(names):
        reference = owner(members[index - 1], controller=True, blockOwnerDeletion=True)
        patch = {"metadata": {"ownerReferences": [reference]}}
        await cluster.patch(key(name), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))
    await cluster.delete(key(names[0]), DeleteOptions(propagation=propagation))

    orphaned = propagation is Propagation.ORPHAN
    assert [await exists(cluster, name) for name in names] == [False, *[orphaned] * (number - 1)]


async def test_a_dependent_stays_while_one_owner_exists(cluster: EmbeddedCluster, config_map: Build) -> None:
    first, second = await create(cluster, config_map, "first"), await create(cluster, config_map, "second")
    await create(cluster, config_map, "child", owner(first), owner(second))
    await cluster.delete(key("first"))

    child = await cluster.get(key("child"))
    assert child["metadata"]["ownerReferences"] == [owner(second)], "the reference to the deleted owner is removed"

    await cluster.delete(key("second"))
    assert not await exists(cluster, "child")


async def test_a_new_object_with_the_name_of_an_owner_is_not_the_owner(
    cluster: EmbeddedCluster, config_map: Build
) -> None:
    """Owners are compared by uid, so a new object with the same name does not keep the dependents."""
    cluster = EmbeddedCluster(namespaces=("shop",), collect=False)
    old = await create(cluster, config_map, "top")
    await create(cluster, config_map, "child", owner(old))
    await cluster.delete(key("top"))
    await create(cluster, config_map, "top")
    await cluster.collect_garbage()

    assert [await exists(cluster, name) for name in ("top", "child")] == [True, False]


async def test_orphaned_dependents_lose_the_reference_and_stay(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await create(cluster, config_map, "top")
    await create(cluster, config_map, "child", owner(top))
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.ORPHAN))

    assert not await exists(cluster, "top")
    assert "ownerReferences" not in (await cluster.get(key("child")))["metadata"]


async def test_foreground_deletion_waits_for_blocking_dependents(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await create(cluster, config_map, "top")
    blocking = owner(top, blockOwnerDeletion=True)
    await create(cluster, config_map, "blocked", blocking, finalizers=["example.com/wait"])
    await create(cluster, config_map, "free", blocking)
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.FOREGROUND))

    metadata = (await cluster.get(key("top")))["metadata"]
    assert metadata["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in metadata
    assert "deletionTimestamp" in (await cluster.get(key("blocked")))["metadata"]
    assert not await exists(cluster, "free")

    await drop_finalizers(cluster, "blocked")
    assert [await exists(cluster, name) for name in ("blocked", "top")] == [False, False]


async def test_foreground_deletion_does_not_wait_for_other_dependents(
    cluster: EmbeddedCluster, config_map: Build
) -> None:
    top = await create(cluster, config_map, "top")
    await create(cluster, config_map, "child", owner(top), finalizers=["example.com/wait"])
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.FOREGROUND))

    assert not await exists(cluster, "top")
    assert "deletionTimestamp" in (await cluster.get(key("child")))["metadata"]


async def test_foreground_deletion_deletes_a_tree_from_the_leaves(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await create(cluster, config_map, "top")
    middle = await create(cluster, config_map, "middle", owner(top, blockOwnerDeletion=True))
    bottom = owner(middle, blockOwnerDeletion=True)
    await create(cluster, config_map, "bottom", bottom, finalizers=["example.com/wait"])
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.FOREGROUND))

    assert [await exists(cluster, name) for name in ("top", "middle", "bottom")] == [True, True, True]
    await drop_finalizers(cluster, "bottom")
    assert [await exists(cluster, name) for name in ("top", "middle", "bottom")] == [False, False, False]


async def test_background_deletion_does_not_wait_for_dependents(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await create(cluster, config_map, "top")
    middle = await create(cluster, config_map, "middle", owner(top, blockOwnerDeletion=True))
    bottom = owner(middle, blockOwnerDeletion=True)
    await create(cluster, config_map, "bottom", bottom, finalizers=["example.com/wait"])
    await cluster.delete(key("top"))

    assert [await exists(cluster, name) for name in ("top", "middle", "bottom")] == [False, False, True]


async def test_an_owner_with_a_finalizer_does_not_count_as_deleted(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await create(cluster, config_map, "top", finalizers=["example.com/wait"])
    await create(cluster, config_map, "child", owner(top))
    await cluster.delete(key("top"))
    assert await exists(cluster, "child")

    await drop_finalizers(cluster, "top")
    assert not await exists(cluster, "child")


async def test_an_owner_that_never_existed_does_not_count_as_deleted(
    cluster: EmbeddedCluster, config_map: Build
) -> None:
    stranger = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "s", "uid": "not-from-here"}
    await create(cluster, config_map, "child", stranger)
    await cluster.collect_garbage()

    assert await exists(cluster, "child")


async def test_a_new_dependent_of_a_deleted_owner_is_deleted(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await create(cluster, config_map, "top")
    await cluster.delete(key("top"))
    await create(cluster, config_map, "child", owner(top))

    assert not await exists(cluster, "child")


async def test_without_automatic_collection_dependents_stay_until_collect_garbage(config_map: Build) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",), collect=False)
    top = await create(cluster, config_map, "top")
    await create(cluster, config_map, "child", owner(top))
    await cluster.delete(key("top"))
    assert await exists(cluster, "child")

    await cluster.collect_garbage()
    assert not await exists(cluster, "child")


async def test_a_cluster_scoped_owner_can_own_namespaced_objects(cluster: EmbeddedCluster, config_map: Build) -> None:
    gadget = await cluster.create(
        {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}, field_manager="test"
    )
    reference = {"apiVersion": "example.com/v1", "kind": "Gadget", "name": "g", "uid": gadget["metadata"]["uid"]}
    await create(cluster, config_map, "child", {**reference, "blockOwnerDeletion": True})
    await cluster.delete(ObjectKey("example.com/v1", "Gadget", "g"), DeleteOptions(propagation=Propagation.FOREGROUND))

    assert not await exists(cluster, "child")


async def test_garbage_collection_is_not_logged_as_a_request(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await create(cluster, config_map, "top")
    await create(cluster, config_map, "child", owner(top))
    cluster.requests.clear()
    await cluster.delete(key("top"))

    assert cluster.requests.writes == 1


@pytest.mark.parametrize(
    ("propagation", "finalizers"),
    [
        pytest.param(Propagation.BACKGROUND, ["example.com/wait"], id="background adds none"),
        pytest.param(Propagation.FOREGROUND, ["example.com/wait", "foregroundDeletion"], id="foreground"),
        pytest.param(Propagation.ORPHAN, ["example.com/wait", "orphan"], id="orphan"),
        pytest.param(None, ["example.com/wait"], id="default"),
    ],
)
async def test_a_delete_sets_the_finalizers_of_its_propagation(
    config_map: Build, propagation: Propagation | None, finalizers: list[str]
) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",), collect=False)
    await create(cluster, config_map, "top", finalizers=["example.com/wait"])
    await cluster.delete(key("top"), DeleteOptions(propagation=propagation))

    assert (await cluster.get(key("top")))["metadata"]["finalizers"] == finalizers


async def test_a_delete_that_adds_no_finalizer_keeps_their_order(config_map: Build) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",), collect=False)
    known = ["foregroundDeletion", "example.com/wait"]
    await create(cluster, config_map, "top", finalizers=known)
    await cluster.delete(key("top"))

    assert (await cluster.get(key("top")))["metadata"]["finalizers"] == known


async def test_a_later_delete_can_change_the_propagation(config_map: Build) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",), collect=False)
    await create(cluster, config_map, "top")
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.FOREGROUND))
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.ORPHAN))

    assert (await cluster.get(key("top")))["metadata"]["finalizers"] == ["orphan"]


async def test_an_owner_in_foreground_deletion_ends_when_a_dependent_drops_its_references(
    cluster: EmbeddedCluster, config_map: Build
) -> None:
    top = await create(cluster, config_map, "top")
    await create(cluster, config_map, "child", owner(top, blockOwnerDeletion=True), finalizers=["example.com/hold"])
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.FOREGROUND))
    assert await exists(cluster, "top")

    patch = {"metadata": {"ownerReferences": None}}
    await cluster.patch(key("child"), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))
    assert not await exists(cluster, "top")


async def test_the_cost_of_an_owned_object_does_not_grow_with_the_number_of_objects(
    config_map: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",))
    top = await create(cluster, config_map, "top")
    for number in range(50):
        await create(cluster, config_map, f"other-{number}")
    processed: list[str] = []
    process = GarbageCollector._process

    def counted(self: GarbageCollector, kind: Kind, place: Place, manifest: Manifest) -> None:
        processed.append(place[1])
        process(self, kind, place, manifest)

    monkeypatch.setattr(GarbageCollector, "_process", counted)
    await create(cluster, config_map, "child", owner(top))
    assert sorted(processed) == ["child", "top"]
