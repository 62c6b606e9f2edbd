"""Writes of the controller to the cluster."""

from typing import Final

from ocf.cluster import Cluster, DeleteOptions, PatchOptions, PatchType, Subresource
from ocf.cluster.protocol import Preconditions
from ocf.controllers.nodegroup.model import NodeGroupStatus
from ocf.controllers.nodegroup.node_model import VPSieNodeStatus
from ocf.controllers.nodegroup.objects import FINALIZER, GroupObject, NodeObject
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey

__all__ = [
    "FIELD_MANAGER",
    "add_finalizer",
    "delete_object",
    "patch_node",
    "remove_finalizer",
    "store_group_status",
    "store_node_status",
]

FIELD_MANAGER: Final = "ocf-nodegroup-controller"
"""The field manager of the controller."""


async def store_node_status(cluster: Cluster, node: NodeObject, status: VPSieNodeStatus) -> None:
    """Store the status of a node, unless it is stored already.

    Args:
        node: The node; it has the new status afterwards.
    """
    if status == node.status:
        return
    written = {**node.manifest, "status": _dump(status)}
    node.manifest = await cluster.update(written, field_manager=FIELD_MANAGER, subresource=Subresource.STATUS)
    node.status = status


async def store_group_status(cluster: Cluster, group: GroupObject, status: NodeGroupStatus) -> bool:
    """Store the status of a group, unless it is stored already."""
    if status == group.status:
        return False
    written = {**group.manifest, "status": _dump(status)}
    await cluster.update(written, field_manager=FIELD_MANAGER, subresource=Subresource.STATUS)
    return True


async def add_finalizer(cluster: Cluster, manifest: Manifest) -> Manifest:
    """Add the finalizer of the controller to an object, unless it has it."""
    known = manifest["metadata"].get("finalizers") or []
    if FINALIZER in known:
        return manifest
    return await _set_finalizers(cluster, manifest, [*known, FINALIZER])


async def remove_finalizer(cluster: Cluster, manifest: Manifest) -> None:
    """Remove the finalizer of the controller from an object; one that is gone is fine."""
    known = manifest["metadata"].get("finalizers") or []
    if FINALIZER not in known:
        return
    try:
        await _set_finalizers(cluster, manifest, [each for each in known if each != FINALIZER])
    except NotFoundError:
        return


async def _set_finalizers(cluster: Cluster, manifest: Manifest, finalizers: list[str]) -> Manifest:
    # The version makes the API server reject a list that another writer has changed meanwhile.
    metadata = {"finalizers": finalizers, "resourceVersion": manifest["metadata"]["resourceVersion"]}
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=FIELD_MANAGER)
    return await cluster.patch(ObjectKey.of(manifest), {"metadata": metadata}, options)


async def delete_object(cluster: Cluster, manifest: Manifest) -> None:
    """Delete an object, but no other one of the same name; one that is gone is fine."""
    options = DeleteOptions(preconditions=Preconditions(uid=manifest["metadata"].get("uid")))
    try:
        await cluster.delete(ObjectKey.of(manifest), options)
    except NotFoundError:
        return


async def patch_node(cluster: Cluster, name: str, patch: Manifest) -> None:
    """Patch a Node with a merge patch; one that is gone is fine."""
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=FIELD_MANAGER)
    try:
        await cluster.patch(ObjectKey("v1", "Node", name), patch, options)
    except NotFoundError:
        return


def _dump(status: VPSieNodeStatus | NodeGroupStatus) -> Manifest:
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)
