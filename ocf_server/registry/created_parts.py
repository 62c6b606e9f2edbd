"""Subresources that are only created: `eviction` and `binding` of pods, and `token` of service accounts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ocf.cluster.protocol import Subresource
from ocf.errors import ManifestError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.builtin import ApiResource
from ocf_server.api.status_errors import bad_request, method_not_allowed
from ocf_server.api.write_options import WriteOptions
from ocf_server.registry.bindings import bind
from ocf_server.registry.evictions import evict
from ocf_server.registry.pending_write import PendingWrite, Phase, Review, WriteOperation
from ocf_server.registry.registry import Registry
from ocf_server.registry.request_checks import require_subresource
from ocf_server.registry.service_account_tokens import issue

__all__ = ["TYPES", "create"]

Action: TypeAlias = Callable[[Registry, ApiResource, ObjectKey, Manifest, WriteOptions], PendingWrite[Manifest | None]]

TYPES: Final[Mapping[Subresource, tuple[str, str]]] = {
    Subresource.EVICTION: ("policy/v1", "Eviction"),
    Subresource.BINDING: ("v1", "Binding"),
    Subresource.TOKEN: ("authentication.k8s.io/v1", "TokenRequest"),
}
"""apiVersion and kind of what is created."""

_POD: Final = ("", "Pod")
_ACTIONS: Final[Mapping[tuple[tuple[str, str], Subresource], Action]] = {
    (_POD, Subresource.EVICTION): evict,
    (_POD, Subresource.BINDING): bind,
    (("", "ServiceAccount"), Subresource.TOKEN): issue,
}


def create(registry: Registry, manifest: Manifest, options: WriteOptions) -> PendingWrite[Manifest]:
    """Evict a pod, bind it to a node, or issue a token for a service account.

    Args:
        manifest: The Eviction, Binding or TokenRequest, under the apiVersion, kind and name of the object; it is not
            changed.
        options: Options of the request, with the subresource.

    Returns:
        A Status, or the TokenRequest with the token.
    """
    resource = registry.resource(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    try:
        key = ObjectKey.of(manifest)
    except ManifestError as error:
        raise bad_request(str(error)) from error
    action = _ACTIONS.get(((resource.group, resource.kind), options.subresource)) if options.subresource else None
    if action is None:
        require_subresource(resource, key.name, options.subresource)
        raise method_not_allowed()
    sent = yield from _admitted(resource, key, manifest, options)
    created = yield from action(registry, resource, key, sent, options)
    return _success() if created is None else created


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
