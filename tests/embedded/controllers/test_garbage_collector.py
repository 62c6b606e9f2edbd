"""Owner garbage collection."""

from collections.abc import Callable
from typing import Any

import pytest

from ocf.cluster import DeleteOptions, PatchOptions, PatchType, Propagation
from ocf.embedded import EmbeddedCluster
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey

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


async def made(cluster: EmbeddedCluster, build: Build, name: str, *owners: dict[str, Any], **extra: Any) -> Manifest:
    references = {"ownerReferences": list(owners)} if owners else {}
    return await cluster.create(build(name, **references, **extra), field_manager="test")


async def release(cluster: EmbeddedCluster, name: str) -> None:
    patch = {"metadata": {"finalizers": None}}
    await cluster.patch(key(name), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))


async def test_dependents_go_with_their_owner_down_to_the_last(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await made(cluster, config_map, "top")
    middle = await made(cluster, config_map, "middle", owner(top))
    await made(cluster, config_map, "bottom", owner(middle))
    await made(cluster, config_map, "bystander")
    await cluster.delete(key("top"))

    assert [await exists(cluster, name) for name in ("middle", "bottom", "bystander")] == [False, False, True]


async def test_a_dependent_stays_while_one_owner_lives(cluster: EmbeddedCluster, config_map: Build) -> None:
    first, second = await made(cluster, config_map, "first"), await made(cluster, config_map, "second")
    await made(cluster, config_map, "child", owner(first), owner(second))
    await cluster.delete(key("first"))

    child = await cluster.get(key("child"))
    assert child["metadata"]["ownerReferences"] == [owner(second)], "the gone owner is taken off the list"

    await cluster.delete(key("second"))
    assert not await exists(cluster, "child")


async def test_an_owner_of_the_same_name_is_another_owner(cluster: EmbeddedCluster, config_map: Build) -> None:
    """The uid decides: a new object of an old name does not keep the dependents of the old one."""
    cluster = EmbeddedCluster(namespaces=("shop",), collect=False)
    old = await made(cluster, config_map, "top")
    await made(cluster, config_map, "child", owner(old))
    await cluster.delete(key("top"))
    await made(cluster, config_map, "top")
    await cluster.collect_garbage()

    assert [await exists(cluster, name) for name in ("top", "child")] == [True, False]


async def test_orphaned_dependents_lose_the_reference_and_stay(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await made(cluster, config_map, "top")
    await made(cluster, config_map, "child", owner(top))
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.ORPHAN))

    assert not await exists(cluster, "top")
    assert "ownerReferences" not in (await cluster.get(key("child")))["metadata"]


async def test_in_the_foreground_the_owner_waits_for_those_that_block_it(
    cluster: EmbeddedCluster, config_map: Build
) -> None:
    top = await made(cluster, config_map, "top")
    blocking = owner(top, blockOwnerDeletion=True)
    await made(cluster, config_map, "held", blocking, finalizers=["example.com/wait"])
    await made(cluster, config_map, "free", blocking)
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.FOREGROUND))

    metadata = (await cluster.get(key("top")))["metadata"]
    assert metadata["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in metadata
    assert "deletionTimestamp" in (await cluster.get(key("held")))["metadata"]
    assert not await exists(cluster, "free")

    await release(cluster, "held")
    assert [await exists(cluster, name) for name in ("held", "top")] == [False, False]


async def test_in_the_foreground_it_does_not_wait_for_others(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await made(cluster, config_map, "top")
    await made(cluster, config_map, "child", owner(top), finalizers=["example.com/wait"])
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.FOREGROUND))

    assert not await exists(cluster, "top")
    assert "deletionTimestamp" in (await cluster.get(key("child")))["metadata"]


async def test_in_the_foreground_the_whole_tree_goes_from_the_leaves(
    cluster: EmbeddedCluster, config_map: Build
) -> None:
    top = await made(cluster, config_map, "top")
    middle = await made(cluster, config_map, "middle", owner(top, blockOwnerDeletion=True))
    bottom = owner(middle, blockOwnerDeletion=True)
    await made(cluster, config_map, "bottom", bottom, finalizers=["example.com/wait"])
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.FOREGROUND))

    assert [await exists(cluster, name) for name in ("top", "middle", "bottom")] == [True, True, True]
    await release(cluster, "bottom")
    assert [await exists(cluster, name) for name in ("top", "middle", "bottom")] == [False, False, False]


async def test_in_the_background_nobody_waits(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await made(cluster, config_map, "top")
    middle = await made(cluster, config_map, "middle", owner(top, blockOwnerDeletion=True))
    bottom = owner(middle, blockOwnerDeletion=True)
    await made(cluster, config_map, "bottom", bottom, finalizers=["example.com/wait"])
    await cluster.delete(key("top"))

    assert [await exists(cluster, name) for name in ("top", "middle", "bottom")] == [False, False, True]


async def test_an_owner_held_by_a_finalizer_is_not_gone(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await made(cluster, config_map, "top", finalizers=["example.com/wait"])
    await made(cluster, config_map, "child", owner(top))
    await cluster.delete(key("top"))
    assert await exists(cluster, "child")

    await release(cluster, "top")
    assert not await exists(cluster, "child")


async def test_an_owner_that_was_never_there_is_not_gone(cluster: EmbeddedCluster, config_map: Build) -> None:
    stranger = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "s", "uid": "not-from-here"}
    await made(cluster, config_map, "child", stranger)
    await cluster.collect_garbage()

    assert await exists(cluster, "child")


async def test_a_dependent_of_an_owner_that_is_already_gone_goes(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await made(cluster, config_map, "top")
    await cluster.delete(key("top"))
    await made(cluster, config_map, "child", owner(top))

    assert not await exists(cluster, "child")


async def test_without_collecting_nothing_goes_until_it_settles(config_map: Build) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",), collect=False)
    top = await made(cluster, config_map, "top")
    await made(cluster, config_map, "child", owner(top))
    await cluster.delete(key("top"))
    assert await exists(cluster, "child")

    await cluster.collect_garbage()
    assert not await exists(cluster, "child")


async def test_a_cluster_scoped_owner_owns_in_every_namespace(cluster: EmbeddedCluster, config_map: Build) -> None:
    gadget = await cluster.create(
        {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}, field_manager="test"
    )
    reference = {"apiVersion": "example.com/v1", "kind": "Gadget", "name": "g", "uid": gadget["metadata"]["uid"]}
    await made(cluster, config_map, "child", {**reference, "blockOwnerDeletion": True})
    await cluster.delete(ObjectKey("example.com/v1", "Gadget", "g"), DeleteOptions(propagation=Propagation.FOREGROUND))

    assert not await exists(cluster, "child")


async def test_collecting_is_no_request(cluster: EmbeddedCluster, config_map: Build) -> None:
    top = await made(cluster, config_map, "top")
    await made(cluster, config_map, "child", owner(top))
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
async def test_the_finalizers_a_delete_sets(
    config_map: Build, propagation: Propagation | None, finalizers: list[str]
) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",), collect=False)
    await made(cluster, config_map, "top", finalizers=["example.com/wait"])
    await cluster.delete(key("top"), DeleteOptions(propagation=propagation))

    assert (await cluster.get(key("top")))["metadata"]["finalizers"] == finalizers


async def test_a_delete_that_adds_nothing_leaves_the_order_of_finalizers(config_map: Build) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",), collect=False)
    known = ["foregroundDeletion", "example.com/wait"]
    await made(cluster, config_map, "top", finalizers=known)
    await cluster.delete(key("top"))

    assert (await cluster.get(key("top")))["metadata"]["finalizers"] == known


async def test_a_later_delete_changes_its_mind(config_map: Build) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",), collect=False)
    await made(cluster, config_map, "top")
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.FOREGROUND))
    await cluster.delete(key("top"), DeleteOptions(propagation=Propagation.ORPHAN))

    assert (await cluster.get(key("top")))["metadata"]["finalizers"] == ["orphan"]
