"""What the path of a request names.

The layout is that of https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris. A path says group,
version and resource; whether these are served is for the catalog to know. An empty namespace in a path of an object
means one that lives in no namespace.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

__all__ = ["GroupPath", "ResourcePath", "VersionPath", "parse_path", "resource_path"]


@dataclass(frozen=True, slots=True)
class GroupPath:
    """The versions of a group.

    Args:
        group: The group; empty for `/api`, None for the list of all others.
    """

    group: str | None


@dataclass(frozen=True, slots=True)
class VersionPath:
    """The resources of a version.

    Args:
        group: The group; empty for the core group.
        version: The version.
    """

    group: str
    version: str


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """A collection, an object, or a part of one.

    Args:
        group: The group; empty for the core group.
        version: The version.
        plural: Resource name.
        namespace: The namespace; empty for all, or for objects that live in none.
        name: Name of the object; empty for a collection.
        subresource: Its part; empty for the object itself.
    """

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_path(path: str) -> GroupPath | VersionPath | ResourcePath | None:
    """Take the path of a request apart.

    Args:
        path: The path as sent, escapes included.

    Returns:
        What it names, or None if it names nothing of an API.

    Example:
        >>> parse_path("/apis/apps/v1/namespaces/shop/deployments")
        ResourcePath(group='apps', version='v1', plural='deployments', namespace='shop', name='', subresource='')
        >>> parse_path("/api/v1/namespaces/shop")
        ResourcePath(group='', version='v1', plural='namespaces', namespace='', name='shop', subresource='')
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
    namespace = ""
    # The parts of a namespace itself look like a collection in it.
    if rest[0] == "namespaces" and len(rest) > _OF_NAMESPACE and rest[2:] not in _NAMESPACE_PARTS:
        namespace, rest = rest[1], rest[2:]
    if not all(rest) or len(rest) > _LONGEST:
        return None
    return ResourcePath(group, version, rest[0], namespace, *rest[1:])


_OF_NAMESPACE: Final = 2
_NAMESPACE_PARTS: Final = (["status"], ["finalize"])
_LONGEST: Final = 3


def resource_path(group: str, version: str) -> str:
    """Return the path under which the resources of a version are.

    Args:
        group: The group; empty for the core group.
        version: The version.

    Example:
        >>> resource_path("apps", "v1"), resource_path("", "v1")
        ('/apis/apps/v1', '/api/v1')
    """
    return f"/apis/{group}/{version}" if group else f"/api/{version}"
