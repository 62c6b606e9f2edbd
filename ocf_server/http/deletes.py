"""Handlers of deletes of an object and of a collection."""

from typing import Final

from ocf.cluster.protocol import DeleteOptions
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf_server.http.backend import Backend
from ocf_server.http.delete_options import DeleteQuery
from ocf_server.http.media import Media
from ocf_server.http.reads import list_body, list_options
from ocf_server.http.request import ListQuery, RequestContext, object_response
from ocf_server.http.request_body import read_options
from ocf_server.http.responses import Response

__all__ = ["handle_delete", "handle_delete_collection"]

# Those whose store in `pkg/registry` of Kubernetes 1.36 sets ReturnDeletedObject.
_RETURNED: Final = frozenset(
    {
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
        ("", "Pod"),
        ("", "PodTemplate"),
        ("", "ResourceQuota"),
        ("", "Service"),
        ("", "ServiceAccount"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "ResourceClaim"),
        ("resource.k8s.io", "ResourceClaimTemplate"),
        ("resource.k8s.io", "ResourceSlice"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storage.k8s.io", "VolumeAttributesClass"),
    }
)
"""Kinds whose delete responds with the object; the delete of all other kinds responds with a Status."""


async def handle_delete(backend: Backend, context: RequestContext) -> Response:
    """Return the response to a delete: the object, if its kind is returned or it is not gone yet, or a `Status`."""
    options = _options(context)
    before, version = backend.stored(context.kind, context.path.namespace, context.path.name), backend.version
    await backend.wrapped.delete(context.key, options)
    after = backend.deleted(context.kind, context.path.namespace, context.path.name, version)
    if before is not None and (
        (after is not None and not options.dry_run) or (context.kind.group, context.kind.kind) in _RETURNED
    ):
        return object_response(context, after or _ended(before, backend.registry.timestamp()))
    uid = (before or {"metadata": {}})["metadata"].get("uid", "")
    details = {"name": context.path.name, "group": context.kind.group, "kind": context.kind.plural, "uid": uid}
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    named = {key: value for key, value in details.items() if value}
    return Response({**body, "details": named}, media=Media(context.media.encoding))


def _ended(removed: Manifest, now: str) -> Manifest:
    """Return an object as the response to the delete that removed it: that of a pod had a grace period of 0."""
    if (removed["apiVersion"], removed["kind"]) != ("v1", "Pod"):
        return removed
    metadata = {**removed["metadata"], "deletionGracePeriodSeconds": 0}
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = now
        metadata["generation"] = metadata.get("generation", 0) + 1
    return {**removed, "metadata": metadata}


def _options(context: RequestContext) -> DeleteOptions:
    options = DeleteQuery.read(context.query, read_options(context.body, context.content_type))
    return DeleteOptions(
        preconditions=options.preconditions,
        propagation=options.propagation,
        grace_period_seconds=options.grace_period_seconds,
        dry_run=options.dry_run,
    )


async def handle_delete_collection(backend: Backend, context: RequestContext) -> Response:
    """Delete the objects of a list one by one, and return the list."""
    options = _options(context)
    query = list_options(backend, context, ListQuery.read(context.query))
    found = await backend.wrapped.list(context.kind.api_version, context.kind.kind, query)
    for item in found.items:
        try:
            await backend.wrapped.delete(ObjectKey.of(item), options)
        except NotFoundError:
            # Another client, or the garbage collector, was faster.
            continue
    return Response(list_body(context, found.items, {"resourceVersion": str(backend.version)}), media=context.media)
