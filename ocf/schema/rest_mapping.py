"""REST mapping: group, plural name, scope and status of the resource that serves a kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf.schema.builtin import builtin_resource

__all__ = ["RESTMapping", "StatusPlace", "guessed_mapping", "has_status", "rest_mapping"]


class StatusPlace(StrEnum):
    """Where the status of an object is written."""

    SUBRESOURCE = "subresource"
    """At the subresource `status`."""
    OBJECT = "object"
    """In the object itself: its definition does not enable the subresource."""
    NONE = "none"
    """Nowhere: the kind is built in, and has no status."""


@dataclass(frozen=True, slots=True)
class RESTMapping:
    """The resource that serves a kind.

    Args:
        group: Its group; empty for the core group.
        status: Where the status of its objects is written.
    """

    group: str
    plural: str
    namespaced: bool
    status: StatusPlace = StatusPlace.SUBRESOURCE


def rest_mapping(api_version: str, kind: str, definitions: Iterable[Manifest]) -> RESTMapping:
    """Return the resource of a kind.

    Args:
        definitions: The CustomResourceDefinitions of the kinds that are not built in.

    Raises:
        ConfigError: If the kind is neither built in nor defined.
    """
    group, version = split_api_version(api_version)
    for definition in definitions:
        spec = definition["spec"]
        if (spec["group"], spec["names"]["kind"]) == (group, kind):
            versions = [one for one in spec.get("versions") or () if one["name"] == version]
            enabled = all((one.get("subresources") or {}).get("status") is not None for one in versions)
            place = StatusPlace.SUBRESOURCE if enabled else StatusPlace.OBJECT
            return RESTMapping(group, spec["names"]["plural"], spec.get("scope") != "Cluster", place)
    found = builtin_resource(group, version, kind)
    if found is None:
        raise ConfigError(f"{api_version} {kind} is not built in: give its CustomResourceDefinition in `definitions`")
    place = StatusPlace.SUBRESOURCE if "status" in found.subresources else StatusPlace.NONE
    return RESTMapping(group, found.plural, found.namespaced, place)


def guessed_mapping(api_version: str, kind: str) -> RESTMapping:
    """Return the resource of a kind whose definition is not known: its plural as clients guess it, and a namespace.

    Source: `meta.UnsafeGuessKindToResource` of apimachinery.

    Example:
        >>> [guessed_mapping("example.com/v1", kind).plural for kind in ("Shop", "Policy", "Ingress")]
        ['shops', 'policies', 'ingresses']
    """
    group, _ = split_api_version(api_version)
    singular = kind.lower()
    endings = {"s": f"{singular}es", "y": f"{singular[:-1]}ies"}
    return RESTMapping(group, endings.get(singular[-1:], f"{singular}s"), namespaced=True)


def has_status(api_version: str, kind: str) -> bool:
    """Return whether objects of a kind can have a status: all but those of some built-in kinds.

    Example:
        >>> has_status("v1", "Secret"), has_status("apps/v1", "Deployment"), has_status("example.com/v1", "Shop")
        (False, True, True)
    """
    found = builtin_resource(*split_api_version(api_version), kind)
    return found is None or "status" in found.subresources
