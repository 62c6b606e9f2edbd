"""Media types: content negotiation of responses, and the forms that a resource has.

A client lists the media types it can read in order of preference, and may ask for a table or for metadata only
(https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources). Tables and whole
objects of custom kinds are not written in protobuf; a client that prefers it gets the next media type in its list.

Errors have the texts of a real API server, which rejects a request at one of two places: its router, if it writes none
of the media types, or the negotiation of the form. The router does not know custom kinds and groups.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ocf.errors import ApiError, api_error
from ocf_server.http.openapi_protobuf import CONTENT_TYPE as OPENAPI_PROTOBUF
from ocf_server.http.resource_catalog import ServedResource
from ocf_server.http.status import not_acceptable, not_acceptable_form, unknown_media

__all__ = [
    "Encoding",
    "Form",
    "Media",
    "Offer",
    "media_of_errors",
    "media_type",
    "negotiate",
    "offer_of",
    "reads_json",
    "require_form",
    "wants_aggregated",
    "wants_openapi_protobuf",
]

_JSON: Final = "application/json"
_YAML: Final = "application/yaml"
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_WRITTEN: Final = (_JSON, _YAML, _PROTOBUF)
_STREAMS: Final = (f"{_JSON};stream=watch", f"{_PROTOBUF};stream=watch")
_WILD: Final = ("*/*", "application/*")
_META: Final = "meta.k8s.io"
_META_VERSIONS: Final = ("v1", "v1beta1")


class Encoding(Enum):
    """Encoding of a response; the value is its media type."""

    JSON = _JSON
    YAML = _YAML
    PROTOBUF = _PROTOBUF


class Form(Enum):
    """Representation of an object in a response."""

    WHOLE = "whole"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


@dataclass(frozen=True, slots=True)
class Media:
    """Media type of a response.

    Args:
        version: Version of `meta.k8s.io` of that representation.
    """

    encoding: Encoding = Encoding.JSON
    form: Form = Form.WHOLE
    version: str = "v1"

    @property
    def content_type(self) -> str:
        """The value of the header `Content-Type`."""
        return self.encoding.value

    @property
    def meta_version(self) -> str:
        """The `apiVersion` of tables and of metadata."""
        return f"{_META}/{self.version}"


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be written in response to a request.

    Args:
        watch: Whether the response is a watch, which is never written as YAML.
        streams: Whether the path can also be watched.
        tables: Whether the response may be a table.
        protobuf: Whether whole objects are written in protobuf.
        forms: Whether the response has other forms than the whole object.
        routed: Whether the router of a real API server checks the media types.
    """

    watch: bool = False
    streams: bool = False
    tables: bool = True
    protobuf: bool = True
    forms: bool = True
    routed: bool = True


@dataclass(frozen=True, slots=True)
class _Wanted:
    type: str
    parameters: dict[str, str]


def _read(accept: str) -> Iterator[_Wanted]:
    """Parse an `Accept` header; return the media types in the client's order of preference."""
    found: list[tuple[float, _Wanted]] = []
    for item in accept.split(","):
        name, *rest = (part.strip() for part in item.split(";"))
        parameters = {part.partition("=")[0]: part.partition("=")[2] for part in rest if "=" in part}
        weight = _number(parameters.pop("q", "1"))
        if name:
            found.append((weight, _Wanted(name.lower(), parameters)))
    # A weight of 0 excludes nothing, as at the API server.
    return (wanted for _, wanted in _sorted(found))


def _sorted(found: Iterable[tuple[float, _Wanted]]) -> list[tuple[float, _Wanted]]:
    """Return media types in the order in which goautoneg, the library of the API server, sorts them."""
    ordered: list[tuple[float, _Wanted]] = []
    for each in found:
        at = len(ordered)
        # An insertion sort, as Go sorts up to twelve items: the comparison is no order, so the result depends on it.
        while at and _is_preferred(each, ordered[at - 1]):
            at -= 1
        ordered.insert(at, each)
    return ordered


def _is_preferred(one: tuple[float, _Wanted], other: tuple[float, _Wanted]) -> bool:
    (weight, wanted), (other_weight, unwanted) = one, other
    parts = zip(wanted.type.partition("/")[::2], unwanted.type.partition("/")[::2], strict=True)
    # A specific type comes before a wildcard of a higher weight, too.
    return weight > other_weight or any(mine != "*" and theirs == "*" for mine, theirs in parts)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


_ANY: Final = Offer()


def negotiate(accept: str, offer: Offer = _ANY) -> Media:
    """Return the media type of a response.

    Args:
        accept: The `Accept` header; empty accepts everything.

    Returns:
        The client's most preferred media type that the server can write.

    Raises:
        ApiError: If the server cannot write any of them (406).

    Example:
        >>> negotiate("application/vnd.kubernetes.protobuf,application/json").content_type
        'application/vnd.kubernetes.protobuf'
        >>> negotiate("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").form
        <Form.TABLE: 'Table'>
    """
    if not accept.strip():
        return Media()
    wanted = list(_read(accept))
    found = [media for one in wanted if (media := _media(one, offer)) is not None]
    for media in found:
        if not (offer.watch and media.encoding is Encoding.YAML):
            return media
    if found:
        raise not_acceptable(_STREAMS)
    raise _rejected({one.type for one in wanted}, offer)


def _rejected(types: set[str], offer: Offer) -> ApiError:
    if offer.routed and not types & {*_WRITTEN, *_WILD}:
        return unknown_media((*_WRITTEN, *(_STREAMS if offer.streams else ())))
    return not_acceptable(_WRITTEN)


def _media(wanted: _Wanted, offer: Offer) -> Media | None:
    if wanted.type not in (*_WRITTEN, *_WILD):
        return None
    encoding = _encoding(wanted.type)
    kind, group, version = (wanted.parameters.get(name, "") for name in _TRANSFORM)
    if not (kind or group or version):
        return Media(encoding) if offer.protobuf or encoding is not Encoding.PROTOBUF else None
    if not offer.forms or group != _META or version not in _META_VERSIONS or kind not in _FORMS:
        return None
    form = Form(kind)
    if form is Form.TABLE and (encoding is Encoding.PROTOBUF or not offer.tables):
        return None
    return Media(encoding, form, version)


def _encoding(name: str) -> Encoding:
    return Encoding.JSON if name in _WILD else Encoding(name)


_TRANSFORM: Final = ("as", "g", "v")
_FORMS: Final = (Form.TABLE.value, Form.METADATA.value, Form.METADATA_LIST.value)


_OPENAPI: Final = ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", OPENAPI_PROTOBUF)


def wants_openapi_protobuf(accept: str) -> bool:
    """Return whether a client prefers OpenAPI 2.0 as protobuf to JSON.

    Args:
        accept: The `Accept` header.
    """
    known = (wanted.type for wanted in _read(accept) if wanted.type in (*_OPENAPI, _JSON, *_WILD))
    return next(known, _JSON) in _OPENAPI


def reads_json(accept: str) -> bool:
    """Return whether a client reads JSON, in any form.

    Args:
        accept: The `Accept` header; empty accepts everything.
    """
    return not accept.strip() or any(wanted.type in (_JSON, *_WILD) for wanted in _read(accept))


def media_of_errors(accept: str) -> Media:
    """Return the media type of an error: the first one in the `Accept` header that asks for no other form."""
    for wanted in _read(accept):
        if wanted.type in (*_WRITTEN, *_WILD) and not any(wanted.parameters.get(name) for name in _TRANSFORM):
            return Media(_encoding(wanted.type))
    return Media()


def wants_aggregated(accept: str) -> bool:
    """Return whether a client asks for aggregated discovery.

    Args:
        accept: The `Accept` header.
    """
    for wanted in _read(accept):
        if wanted.type in (_JSON, *_WILD):
            return wanted.parameters.get("as") == "APIGroupDiscoveryList" and wanted.parameters.get("v") == "v2"
    return False


def media_type(content_type: str) -> str:
    """Return the media type of a body, without parameters.

    Args:
        content_type: The `Content-Type` header.

    Example:
        >>> media_type("application/json; charset=utf-8")
        'application/json'
    """
    return content_type.partition(";")[0].strip().lower()


_WITHOUT_TABLE: Final = frozenset({"binding", "eviction", "token"})
_PACKAGES: Final = {"events.k8s.io": "core", "rbac.authorization.k8s.io": "rbac"}
"""Packages of the internal types of a real API server, which its messages name, where they differ from the group."""


def offer_of(kind: ServedResource, *, name: str, subresource: str, watch: bool) -> Offer:
    """Return what can be written in response to a request for a resource."""
    tables = "get" in kind.verbs and subresource not in _WITHOUT_TABLE
    # The scale of an object has a built-in kind.
    protobuf = subresource == "scale" or not kind.custom
    return Offer(watch=watch, streams=not name, tables=tables, protobuf=protobuf, routed=not kind.custom)


def require_form(media: Media, kind: ServedResource, *, listed: bool) -> None:
    """Check that a response has the form that the client asks for.

    Args:
        listed: Whether the response is a list.

    Raises:
        ApiError: If it asks for the metadata of a list and gets an object, or the reverse.
    """
    if media.form is not (Form.METADATA if listed else Form.METADATA_LIST):
        return
    # The converter of unstructured objects fails before the negotiation can reject the form.
    if kind.custom and not listed:
        raise api_error("content is not a list", code=500)
    raise not_acceptable_form(media.form.value, _type_of(kind, listed=listed), listed=listed)


def _type_of(kind: ServedResource, *, listed: bool) -> str:
    """Return the name of the type in Go."""
    if kind.custom:
        return "*unstructured.UnstructuredList" if listed else "*unstructured.Unstructured"
    package = _PACKAGES.get(kind.group) or kind.group.partition(".")[0] or "core"
    return f"*{package}.{kind.list_kind if listed else kind.kind}"
