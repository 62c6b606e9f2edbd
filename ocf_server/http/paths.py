"""Paths of requests.

The layout is described in https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris. Parsing does not
check whether the group, version and resource are served; the catalog does. The path of a cluster-scoped object has an
empty namespace.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

__all__ = ["GroupPath", "ResourcePath", "VersionPath", "parse_path", "resource_path"]


@dataclass(frozen=True, slots=True)
class GroupPath:
    """Path of the versions of a group.

    Args:
        group: The group; empty for `/api`, None for the list of all other groups.
    """

    group: str | None


@dataclass(frozen=True, slots=True)
class VersionPath:
    """Path of the resources of a version.

    Args:
        group: The group; empty for the core group.
        version: The version.
    """

    group: str
    version: str


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """Path of a collection, an object, or a subresource.

    Args:
        group: The group; empty for the core group.
        version: The version.
        plural: Resource name.
        namespace: The namespace; empty for all namespaces, or for cluster-scoped objects.
        name: Name of the object; empty for a collection.
        subresource: The subresource; empty for the object itself.
        watch: Whether it is a deprecated path of a watch, `/api/v1/watch/pods`.
    """

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False


def parse_path(path: str) -> GroupPath | VersionPath | ResourcePath | None:
    """Parse the path of a request.

    Args:
        path: The path as sent, with percent-encoding.

    Returns:
        The parsed path, or None if it is not a path of an API.

    Example:
        >>> path = parse_path("/apis/apps/v1/namespaces/shop/deployments")
        >>> path == ResourcePath("apps", "v1", "deployments", namespace="shop")
        True
        >>> parse_path("/api/v1/watch/namespaces/shop")
        ResourcePath(group='', version='v1', plural='namespaces', namespace='', name='shop', subresource='', watch=True)
    """
    parts = [unquote(part) for part in path.strip("/").split("/")]
    match parts:
        case ["api"]:
            return GroupPath("")
        case ["api", version, *rest]:
            return _in_version("", version, rest)
        case ["apis"]:
            return GroupPath(None)
        case ["apis", group]:
            return GroupPath(group)
        case ["apis", group, version, *rest]:
            return _in_version(group, version, rest)
        case _:
            return None


def _in_version(group: str, version: str, rest: list[str]) -> VersionPath | ResourcePath | None:
    if not rest:
        return VersionPath(group, version)
    watch = rest[0] == _WATCH and len(rest) > 1
    rest = rest[1:] if watch else rest
    namespace = ""
    # The subresources of a namespace look like collections in the namespace.
    if rest[0] == "namespaces" and len(rest) > _OF_NAMESPACE and rest[2:] not in _NAMESPACE_PARTS:
        namespace, rest = rest[1], rest[2:]
    if not all(rest) or len(rest) > _MAX_PARTS:
        return None
    plural, name, part = (*rest, "", "")[:_MAX_PARTS]
    return ResourcePath(group, version, plural, namespace, name, part, watch)


_WATCH: Final = "watch"
_OF_NAMESPACE: Final = 2
_NAMESPACE_PARTS: Final = (["status"], ["finalize"])
_MAX_PARTS: Final = 3


def resource_path(group: str, version: str) -> str:
    """Return the path of the resources of a version.

    Args:
        group: The group; empty for the core group.
        version: The version.

    Example:
        >>> resource_path("apps", "v1"), resource_path("", "v1")
        ('/apis/apps/v1', '/api/v1')
    """
    return f"/apis/{group}/{version}" if group else f"/api/{version}"
