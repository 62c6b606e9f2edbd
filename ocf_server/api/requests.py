"""Requests to a cluster, as its log has them and as they are authorized."""

from typing import Any, Final

from ocf.cluster.protocol import Subresource
from ocf.cluster.request_log import Request, Verb
from ocf.errors import ManifestError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.json_values import to_json
from ocf.schema.builtin import ApiResource
from ocf_server.api.attributes import Attributes
from ocf_server.api.status_errors import bad_request
from ocf_server.api.write_options import WriteOptions

__all__ = ["attributes_of", "received", "request_for_key", "request_for_manifest", "selected_name"]

_NAME: Final = "metadata.name="


def received(body: Any, sent_to: ObjectKey | Manifest) -> Any:
    """Return the body of a write as a real API server receives it; raise ApiError if it cannot be sent there."""
    try:
        return to_json(body, "")
    except ManifestError as error:
        named = sent_to if isinstance(sent_to, ObjectKey) else _named(sent_to)
        raise bad_request(f"{named}: cannot be sent: {'; '.join(map(str, error.problems))}") from None


def _named(manifest: Manifest) -> str:
    request = request_for_manifest(Verb.UPDATE, manifest, WriteOptions())
    return str(ObjectKey(request.api_version, request.kind, request.name, request.namespace))


def request_for_key(verb: Verb, key: ObjectKey, subresource: Subresource | None) -> Request:
    """Return the request for an object."""
    return Request(verb, key.api_version, key.kind, key.namespace, key.name, subresource)


def request_for_manifest(verb: Verb, manifest: Manifest, options: WriteOptions) -> Request:
    """Return the request that sends an object."""
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return Request(
        verb,
        str(manifest.get("apiVersion") or ""),
        str(manifest.get("kind") or ""),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or metadata.get("generateName") or ""),
        options.subresource,
        options.field_manager,
        options.dry_run,
    )


def selected_name(selector: str) -> str:
    """Return the name that a field selector demands; empty if it selects objects of several names.

    Example:
        >>> selected_name("status.phase=Running,metadata.name=web"), selected_name("metadata.name!=web")
        ('web', '')
    """
    for term in selector.split(","):
        if (found := term.strip().replace("==", "=")).startswith(_NAME):
            return found.removeprefix(_NAME)
    return ""


def attributes_of(request: Request, resource: ApiResource, selector: str = "") -> Attributes:
    """Return what a request is authorized by.

    Args:
        selector: The field selector of a list or a watch.
    """
    verb = "patch" if request.verb is Verb.APPLY else str(request.verb)
    # The path of a create has no name, unless it is of a subresource.
    name = "" if request.verb is Verb.CREATE and request.subresource is None else request.name
    is_namespace = (resource.group, resource.kind) == ("", "Namespace")
    return Attributes(
        verb,
        resource.group,
        resource.plural,
        str(request.subresource or ""),
        name if is_namespace else request.namespace if resource.namespaced else "",
        name or selected_name(selector),
    )
