"""The kind of an operator's owners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, get_args

from ocf.errors import FieldProblem, ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import split_api_version
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

    def may_store(self, field: str) -> bool:
        """Return whether the API server may store a field of the status; False only if the definition shows that not.

        Args:
            field: The field as the API server spells it.
        """
        if self.versions is not None and self.model is not None:
            return _has_field(cast("type[BaseModel]", self.model), "status", field)
        if self.definition is None or callable(self.definition):
            return True
        version = split_api_version(self.api_version)[1]
        found = [one.get("schema") for one in self.definition["spec"]["versions"] if one["name"] == version]
        schemas = [one["openAPIV3Schema"] for one in found if one and "openAPIV3Schema" in one]
        return all(_has_property(one, "status", field) for one in schemas)

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
            problem = FieldProblem("", describe_invalid(error, cast("type[BaseModel]", self.model)))
            raise ManifestError(str(ObjectKey.of(manifest)), [problem]) from None


def _has_field(model: type[BaseModel], name: str, *below: str) -> bool:
    """Return whether a model has a field, or keeps those that it does not know."""
    from pydantic import BaseModel

    found = [
        field for key, field in model.model_fields.items() if name in {key, field.alias, field.serialization_alias}
    ]
    if not found:
        return model.model_config.get("extra") == "allow"
    if not below:
        return True
    kinds = [one for one in (get_args(found[0].annotation) or (found[0].annotation,)) if one is not type(None)]
    # What is no model, such as a dict, has no fields of its own.
    return any(not (isinstance(one, type) and issubclass(one, BaseModel)) or _has_field(one, *below) for one in kinds)


def _has_property(schema: Mapping[str, Any], name: str, *below: str) -> bool:
    """Return whether a schema has a property, or keeps those that it does not know."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties"):
        return True
    found = (schema.get("properties") or {}).get(name)
    return found is not None and (not below or _has_property(found, *below))
