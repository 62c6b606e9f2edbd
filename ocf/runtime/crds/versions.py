"""Versions of a CustomResourceDefinition."""

from __future__ import annotations

from ocf.errors import BuildError
from ocf.objects import Manifest

__all__ = ["version_of"]


def version_of(definition: Manifest, version: str) -> str:
    """Return the name of a version of a definition.

    Args:
        definition: The CustomResourceDefinition.
        version: The version; empty for the storage version.

    Raises:
        BuildError: If the definition has no such version.

    Example:
        >>> versions = [{"name": "v1beta1"}, {"name": "v1", "storage": True}]
        >>> version_of({"metadata": {"name": "shops.example.com"}, "spec": {"versions": versions}}, "")
        'v1'
    """
    versions = definition["spec"]["versions"]
    names = [one["name"] for one in versions if (one["name"] == version if version else one.get("storage"))]
    if not names:
        there = ", ".join(one["name"] for one in versions)
        wanted = f'version "{version}"' if version else "storage version"
        raise BuildError([f"{definition['metadata']['name']} has no {wanted}, only {there}"])
    return str(names[0])
