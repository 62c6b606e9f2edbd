"""Subresources of pods that are only created: `eviction` and `binding`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ocf.cluster.protocol import Subresource
from ocf.embedded.api.status_errors import bad_request, method_not_allowed
from ocf.embedded.api.write_options import WriteOptions
from ocf.embedded.registry.bindings import bind
from ocf.embedded.registry.evictions import evict
from ocf.embedded.registry.pending_write import PendingWrite, Phase, Review, WriteOperation
from ocf.embedded.registry.registry import Registry
from ocf.embedded.registry.request_checks import require_subresource
from ocf.errors import ManifestError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.builtin import ApiResource

__all__ = ["TYPES", "create"]

Action: TypeAlias = Callable[[Registry, ApiResource, ObjectKey, Manifest, WriteOptions], PendingWrite[None]]

TYPES: Final[Mapping[Subresource, tuple[str, str]]] = {
    Subresource.EVICTION: ("policy/v1", "Eviction"),
    Subresource.BINDING: ("v1", "Binding"),
}
"""apiVersion and kind of what is created."""

_ACTIONS: Final[Mapping[Subresource, Action]] = {Subresource.EVICTION: evict, Subresource.BINDING: bind}
_POD: Final = ("", "Pod")


def create(registry: Registry, manifest: Manifest, options: WriteOptions) -> PendingWrite[Manifest]:
    """Evict a pod, or bind it to a node.

    Args:
        registry: The registry of the server.
        manifest: The Eviction or the Binding, under the apiVersion, kind and name of the pod; it is not changed.
        options: Options of the request, with the subresource.

    Returns:
        A Status.

    Raises:
        ApiError: If the API server rejects the request.
    """
    resource = registry.resource(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    try:
        key = ObjectKey.of(manifest)
    except ManifestError as error:
        raise bad_request(str(error)) from error
    action = _ACTIONS.get(options.subresource) if options.subresource else None
    if action is None or (resource.group, resource.kind) != _POD:
        require_subresource(resource, key.name, options.subresource)
        raise method_not_allowed()
    sent = yield from _admitted(resource, key, manifest, options)
    yield from action(registry, resource, key, sent, options)
    return _success()


def _admitted(
    resource: ApiResource, key: ObjectKey, manifest: Manifest, options: WriteOptions
) -> PendingWrite[Manifest]:
    assert options.subresource is not None  # noqa: S101 (checked by the caller)
    api_version, kind = TYPES[options.subresource]
    sent = {**manifest, "apiVersion": api_version, "kind": kind}
    review = Review(Phase.MUTATING, WriteOperation.CREATE, resource, key.namespace, key.name, sent, None, options)
    admitted: Manifest = (yield review) or sent
    yield replace(review, phase=Phase.VALIDATING, object=admitted)
    return admitted


def _success() -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
