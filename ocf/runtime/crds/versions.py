"""Versions of a CustomResourceDefinition."""

from __future__ import annotations

from typing import NamedTuple

from ocf.errors import BuildError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.objects.model_fields import is_client_model
from ocf.runtime.crds.versioned_resource import VersionedResource
from ocf.schema.builtin import builtin_model

__all__ = ["ResourceVersion", "resource_of", "resource_version", "served_by_model", "version_of"]


class ResourceVersion(NamedTuple):
    """A version of a custom resource."""

    group: str
    version: str
    kind: str
    plural: str


def resource_of(model: type[BaseModel]) -> VersionedResource:
    """Return the resource that a model declares as a `CustomResource`."""
    declared = getattr(model, "resource", None)
    if not isinstance(declared, VersionedResource):
        what_to_do = 'make it a CustomResource[...] with group="example.com" and version="v1", or pass its definition'
        raise BuildError([f"{model.__name__} declares no group and version: {what_to_do}"])
    return declared


def served_by_model(model: type[BaseModel], version: str = "") -> ResourceVersion:
    """Return the resource whose objects a model reads: a `CustomResource`, or a model of the Kubernetes client.

    A class derived from a model of the client reads the objects of that one.

    Args:
        version: See `resource_version`; ignored for a model of the client.

    Raises:
        BuildError: If the model is neither.

    Example:
        >>> from kubernetes.client import V2HorizontalPodAutoscaler
        >>> served_by_model(V2HorizontalPodAutoscaler).plural
        'horizontalpodautoscalers'
    """
    for base in model.__mro__:
        if is_client_model(base):
            return _builtin_version(base)
    return resource_version(resource_of(model), model, version)


def _builtin_version(model: type) -> ResourceVersion:
    found = builtin_model(model.__name__)
    if found is None:
        problem = "is not the model of a built-in kind, such as V1Pod: pass its group, version, kind and plural"
        raise BuildError([f"{model.__name__} {problem}"])
    return ResourceVersion(found.group, found.version, found.kind, found.plural)


def resource_version(
    definition: Manifest | VersionedResource, model: type[BaseModel], version: str = ""
) -> ResourceVersion:
    """Return the version of a custom resource that is read with a model.

    Args:
        version: Name of the version; empty for the storage version of a definition, or for the version of a resource
            that has the model (the storage version if several have it).
    """
    if not isinstance(definition, VersionedResource):
        spec = definition["spec"]
        name = version_of(definition, version)
        return ResourceVersion(spec["group"], name, spec["names"]["kind"], spec["names"]["plural"])
    order = sorted(definition.versions, key=lambda one: one is not definition.stored)
    found = [one.name for one in order if one.model is model and one.name == (version or one.name)]
    if not found:
        known = ", ".join(f"{one.name} ({one.model.__name__})" for one in definition.versions)
        wanted = f"version {version} with the model" if version else "version with the model"
        raise BuildError([f"{definition.name} has no {wanted} {model.__name__}, expected one of {known}"])
    return ResourceVersion(definition.group, found[0], definition.kind, definition.plural)


def version_of(definition: Manifest, version: str) -> str:
    """Return the name of a version of a definition.

    Args:
        version: The version; empty for the storage version.

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
