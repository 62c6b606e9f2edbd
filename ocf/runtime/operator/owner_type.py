"""The kind of an operator's owners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from ocf.errors import FieldProblem, ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, ObjectKey
from ocf.objects.model_errors import describe_invalid
from ocf.objects.models import quantities_as_text, validate_live
from ocf.runtime.crds.versioned_resource import VersionedResource
from ocf.runtime.crds.versions import resource_of, resource_version

__all__ = ["OwnerType"]

O = TypeVar("O")  # noqa: E741 (the owner)
M = TypeVar("M", bound="BaseModel")


@dataclass(frozen=True)
class OwnerType(Generic[O]):
    """The kind of an operator's owners, and the model that they are read with.

    Without a model, owners are passed to the operator's functions as manifests. `of` builds it from a model.

    Args:
        api_version: Group and version in which owners are read.
        model: The model of the whole object; None for manifests.
        definition: The CustomResourceDefinition, or a function that returns it; None for a kind that is built in or
            defined elsewhere. A running operator does not need it, so the function saves generating the schema at each
            start: it is called where the definition is created in a cluster or read for RBAC rules.
        versions: The resource with all its versions, between which the process converts objects; None if it has one
            version, or another process converts them.

    Example:
        >>> OwnerType("v1", "Namespace").read({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "town"}})
        {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'town'}}
    """

    api_version: str
    kind: str
    model: type[O] | None = None
    definition: Manifest | Callable[[], Manifest] | None = None
    versions: VersionedResource | None = None

    @staticmethod
    def of(
        model: type[M], definition: Manifest | VersionedResource | None = None, *, version: str = ""
    ) -> OwnerType[M]:
        """Build it from the model of a custom resource.

        Args:
            model: The whole object: a `CustomResource`, or the model of one version of the definition.
            definition: The CustomResourceDefinition, or the resource with its versions, whose objects the process then
                converts; None for that of the `CustomResource`.
            version: The version of the model; empty for the storage version of a definition, or for the version of a
                resource that has the model.

        Raises:
            BuildError: If there is no such version, it has another model, or the model has no definition.

        Example:
            >>> from ocf.runtime.crds import CamelModel, CustomResource
            >>> class QuotaSpec(CamelModel):
            ...     limit: int = 1
            >>> class Quota(CustomResource[QuotaSpec], group="example.com", version="v1"):
            ...     '''A limit.'''
            >>> OwnerType.of(Quota).api_version
            'example.com/v1'
        """
        given = resource_of(model) if definition is None else definition
        found = resource_version(given, model, version)
        api_version = f"{found.group}/{found.version}"
        if not isinstance(given, VersionedResource):
            return OwnerType(api_version, found.kind, model, given)
        return OwnerType(api_version, found.kind, model, given.definition, given)

    def read(self, manifest: Manifest) -> O:
        """Read an owner as its models are configured: `extra` says of each what becomes of unknown fields.

        Args:
            manifest: The live object; not changed.

        Returns:
            The model instance; the manifest itself if the owner type has no model.

        Raises:
            ManifestError: If the object does not match the model.
        """
        if self.model is None:
            return cast("O", manifest)
        from pydantic import ValidationError

        try:
            return cast("O", validate_live(manifest, cast("type[BaseModel]", self.model)))
        except ValidationError as error:
            fixed = quantities_as_text(error.errors(), manifest, cast("type[BaseModel]", self.model))
            if fixed is not manifest:
                return self.read(fixed)
            problem = FieldProblem("", describe_invalid(error))
            raise ManifestError(str(ObjectKey.of(manifest)), [problem]) from None
