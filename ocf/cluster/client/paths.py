"""Paths of the API, built so that no name can lead elsewhere.

A name becomes a segment of a path. An empty one would turn the deletion of an object into the deletion of all, `..`
would reach the namespace, and a slash a subresource; the server decodes escapes before it looks. They are refused
here, as the server refuses them in names
(https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#path-segment-names).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from ocf.cluster.protocol import Subresource
from ocf.errors import BadRequestError, ManifestError
from ocf.objects import Manifest, ObjectKey, split_api_version

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


@dataclass(frozen=True, slots=True)
class DiscoveredResource:
    """What the server calls the objects of a kind.

    Args:
        api_version: Group and version.
        kind: Kind.
        plural: The name in paths, `deployments`.
        namespaced: Whether the objects live in namespaces.
        subresources: Name of each subresource, and apiVersion and kind of what is sent to it.
    """

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    subresources: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def group_path(api_version: str) -> str:
    """Return the path of a group version, which also lists its resources.

    Args:
        api_version: Group and version.

    Returns:
        The path.

    Raises:
        BadRequestError: If it cannot be one.

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
        resource: The kind.
        namespace: Of this namespace; empty for all.

    Returns:
        The path.

    Raises:
        BadRequestError: If the namespace cannot be one, or the kind has none.
    """
    if namespace and not resource.namespaced:
        raise bad_request(f"{resource.kind} is cluster-scoped, it has no objects in namespace {namespace!r}")
    parts = [group_path(resource.api_version)]
    if namespace:
        parts += ["namespaces", _segment(namespace, "namespace", resource.kind)]
    return "/".join([*parts, resource.plural])


def object_path(resource: DiscoveredResource, key: ObjectKey, subresource: Subresource | None = None) -> str:
    """Return the path of an object.

    Args:
        resource: The kind of the object.
        key: The object.
        subresource: The part of the object.

    Returns:
        The path.

    Raises:
        BadRequestError: If the name or the namespace cannot be one, or the namespace is missing or out of place.
    """
    path = f"{home_path(resource, key.namespace, str(key))}/{_segment(key.name, 'metadata.name', str(key))}"
    return f"{path}/{subresource}" if subresource else path


def home_path(resource: DiscoveredResource, namespace: str, subject: str) -> str:
    """Return the path of the collection an object lives in, where it is created.

    Args:
        resource: The kind of the object.
        namespace: Its namespace; empty for a cluster-scoped kind.
        subject: The object, for messages.

    Returns:
        The path.

    Raises:
        BadRequestError: If the namespace cannot be one, or is missing or out of place.
    """
    if resource.namespaced:
        _segment(namespace, "metadata.namespace", subject)
    return collection_path(resource, namespace)


def type_of(manifest: Manifest, subresource: Subresource | None = None) -> tuple[str, str]:
    """Read apiVersion and kind of a manifest that is about to be sent.

    Args:
        manifest: The manifest.
        subresource: Where it is sent.

    Returns:
        Both.

    Raises:
        BadRequestError: If one is missing, or the manifest is a Scale, which does not say whose it is.
    """
    api_version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if not (isinstance(api_version, str) and isinstance(kind, str) and api_version and kind):
        raise bad_request(f"a manifest needs apiVersion and kind, got {api_version!r} and {kind!r}")
    if subresource is Subresource.SCALE and kind == "Scale":
        raise bad_request(
            "a Scale does not say whose it is: give apiVersion and kind of the scaled object, or patch by key"
        )
    return api_version, kind


def key_of(resource: DiscoveredResource, manifest: Manifest) -> ObjectKey:
    """Read the key of a manifest that is about to be sent.

    Args:
        resource: Its kind; if that is cluster-scoped, a namespace is passed over, as the server does in manifests.
        manifest: The manifest.

    Returns:
        Its key.

    Raises:
        BadRequestError: If it has none.
    """
    try:
        key = ObjectKey.of(manifest)
    except ManifestError as error:
        raise bad_request(str(error)) from error
    return key if resource.namespaced else replace(key, namespace="")


def bad_request(message: str) -> BadRequestError:
    """Build the error of a request that is not worth sending.

    Args:
        message: What is wrong.

    Returns:
        The error, as if the server had answered 400.
    """
    return BadRequestError(message, code=_BAD_REQUEST, reason="BadRequest")


def _segment(value: str, what: str, subject: str) -> str:
    if not value:
        raise bad_request(f"{subject}: {what}: required value")
    if value in {".", ".."} or "/" in value or "%" in value:
        raise bad_request(f"{subject}: {what}: {value!r} may not be '.' or '..' and may not contain '/' or '%'")
    return quote(value, safe="")
