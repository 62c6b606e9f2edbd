"""REST mapping: group, plural name and scope of the resource that serves a kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf.schema.builtin import builtin_resource

__all__ = ["RESTMapping", "rest_mapping"]


@dataclass(frozen=True, slots=True)
class RESTMapping:
    """The resource that serves a kind.

    Args:
        group: Its group; empty for the core group.
    """

    group: str
    plural: str
    namespaced: bool


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
            return RESTMapping(group, spec["names"]["plural"], spec.get("scope") != "Cluster")
    found = builtin_resource(group, version, kind)
    if found is None:
        raise ConfigError(f"{api_version} {kind} is not built in: give its CustomResourceDefinition in `definitions`")
    return RESTMapping(group, found.plural, found.namespaced)
