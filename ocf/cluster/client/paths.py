"""Paths of the API, protected against path traversal.

A name becomes a segment of a path. An empty name would turn the deletion of an object into the deletion of all objects,
`..` would address the namespace, and a slash a subresource; the server decodes escapes before it routes. Such names are
rejected here, as the server rejects them
(https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#path-segment-names).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from ocf.cluster.protocol import Subresource
from ocf.errors import BadRequestError, ManifestError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import split_api_version

__all__ = [
    "DiscoveredResource",
    "bad_request",
    "collection_path",
    "group_path",
    "home_path",
    "key_of",
    "object_path",
    "type_of",
]

_BAD_REQUEST = 400
_DOTS: Final = frozenset({".", ".."})
# Nearly all names are like this, and need no escapes (RFC 3986, section 2.3).
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9._~-]+").fullmatch


@dataclass(frozen=True, slots=True)
class DiscoveredResource:
    """The resource of a kind, as discovered.

    Args:
        plural: The name in paths, `deployments`.
    """

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    subresources: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@lru_cache(maxsize=256)
def group_path(api_version: str) -> str:
    """Return the path of a group version, which also lists its resources.

    Example:
        >>> group_path("v1"), group_path("apps/v1")
        ('/api/v1', '/apis/apps/v1')
    """
    group, version = split_api_version(api_version)
    parts = [group, version] if "/" in api_version else [version]
    segments = [_segment(part, "apiVersion", repr(api_version)) for part in parts]
    return "/".join(["/apis" if "/" in api_version else "/api", *segments])


def collection_path(resource: DiscoveredResource, namespace: str = "") -> str:
    """Return the path that lists the objects of a kind.

    Args:
        namespace: The namespace; empty for all namespaces.
    """
    if namespace and not resource.namespaced:
        raise bad_request(f"{resource.kind} is cluster-scoped, it has no objects in namespace {namespace!r}")
    if not namespace:
        return f"{group_path(resource.api_version)}/{resource.plural}"
    return _namespaced_path(resource, _segment(namespace, "namespace", resource.kind))


def object_path(resource: DiscoveredResource, key: ObjectKey, subresource: Subresource | None = None) -> str:
    """Return the path of an object."""
    path = f"{home_path(resource, key.namespace, key)}/{_segment(key.name, 'metadata.name', key)}"
    return f"{path}/{subresource}" if subresource else path


def home_path(resource: DiscoveredResource, namespace: str, subject: object) -> str:
    """Return the path of the collection that contains an object, where it is created.

    Args:
        namespace: Its namespace; empty for a cluster-scoped kind.
    """
    if resource.namespaced:
        return _namespaced_path(resource, _segment(namespace, "metadata.namespace", subject))
    return collection_path(resource, namespace)


def type_of(manifest: Manifest, subresource: Subresource | None = None) -> tuple[str, str]:
    """Return apiVersion and kind of a manifest to send."""
    api_version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if not (isinstance(api_version, str) and isinstance(kind, str) and api_version and kind):
        raise bad_request(f"a manifest needs apiVersion and kind, got {api_version!r} and {kind!r}")
    if subresource is Subresource.SCALE and kind == "Scale":
        raise bad_request(
            "a Scale does not identify the scaled object: set apiVersion and kind of that object, or patch by key"
        )
    return api_version, kind


def key_of(resource: DiscoveredResource, manifest: Manifest) -> ObjectKey:
    """Return the key of a manifest to send.

    Args:
        resource: Its kind; if that is cluster-scoped, a namespace is ignored, as by the server.
    """
    try:
        key = ObjectKey.of(manifest)
    except ManifestError as error:
        raise bad_request(str(error)) from error
    return key if resource.namespaced else key._replace(namespace="")


def bad_request(message: str) -> BadRequestError:
    """Build the error of a request that is not sent because it is invalid."""
    return BadRequestError(message, code=_BAD_REQUEST, reason="BadRequest")


def _namespaced_path(resource: DiscoveredResource, namespace: str) -> str:
    return f"{group_path(resource.api_version)}/namespaces/{namespace}/{resource.plural}"


def _segment(value: str, what: str, subject: object) -> str:
    if _UNRESERVED(value) and value not in _DOTS:
        return value
    if not value:
        raise bad_request(f"{subject}: {what}: required value")
    if value in _DOTS or "/" in value or "%" in value:
        raise bad_request(f"{subject}: {what}: {value!r} may not be '.' or '..' and may not contain '/' or '%'")
    return quote(value, safe="")
