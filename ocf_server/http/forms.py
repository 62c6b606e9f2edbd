"""Forms that cannot be had: a list as metadata of one object, and one object as metadata of a list."""

from typing import Final

from ocf.errors import api_error
from ocf_server.http.content_negotiation import Form, Media, Offer
from ocf_server.http.paths import ResourcePath
from ocf_server.http.resource_catalog import ServedResource
from ocf_server.http.status import not_acceptable_form

__all__ = ["offer_of", "require_form"]

_WITHOUT_TABLE: Final = frozenset({"binding", "eviction", "token"})
_PACKAGES: Final = {"events.k8s.io": "core", "rbac.authorization.k8s.io": "rbac"}
"""Packages of the internal types of a real API server, which its messages name, where they differ from the group."""


def offer_of(kind: ServedResource, path: ResourcePath, *, watch: bool) -> Offer:
    """Return what can be written in response to a request for a resource.

    Args:
        kind: The resource.
        path: The path of the request.
        watch: Whether the request is a watch.
    """
    tables = kind.is_stored and path.subresource not in _WITHOUT_TABLE
    # The scale of an object has a built-in kind.
    protobuf = path.subresource == "scale" or not kind.custom
    return Offer(watch=watch, streams=not path.name, tables=tables, protobuf=protobuf, routed=not kind.custom)


def require_form(media: Media, kind: ServedResource, *, listed: bool) -> None:
    """Check that a response has the form that the client asks for.

    Args:
        media: What the client asks for.
        kind: The resource.
        listed: Whether the response is a list.

    Raises:
        ApiError: If it asks for the metadata of a list and gets an object, or the reverse.
    """
    if media.form is not (Form.METADATA if listed else Form.METADATA_LIST):
        return
    if kind.custom and not listed:
        raise api_error("content is not a list", code=500)
    raise not_acceptable_form(media.form.value, _type_of(kind, listed=listed), listed=listed)


def _type_of(kind: ServedResource, *, listed: bool) -> str:
    """Return the name of the type in Go."""
    if kind.custom:
        return "*unstructured.UnstructuredList" if listed else "*unstructured.Unstructured"
    package = _PACKAGES.get(kind.group) or kind.group.partition(".")[0] or "core"
    return f"*{package}.{kind.list_kind if listed else kind.kind}"
