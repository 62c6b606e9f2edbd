"""Owners as models: the author writes the model of the spec, and the rest of the custom resource follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, Generic, Unpack

from kubernetes.client import V1Condition
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import TypeVar

from ocf.errors import BuildError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import condition_type_problem
from ocf.objects.manifest import copy_json
from ocf.runtime.crds.crd import AGE, CRDVersion, PrinterColumn, ScaleSubresource, Scope
from ocf.runtime.crds.markers import ListMap
from ocf.runtime.crds.versioned_resource import VersionedResource

__all__ = ["CamelModel", "CustomResource", "OwnerMetadata", "OwnerStatus"]


class CamelModel(BaseModel):
    """Immutable model whose fields have the names of the API: `max_replicas` is `maxReplicas` there.

    Example:
        >>> class Limits(CamelModel):
        ...     max_replicas: int = 1
        >>> Limits.model_validate({"maxReplicas": 3})
        Limits(max_replicas=3)
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class OwnerMetadata(CamelModel):
    """Metadata of an owner, as the API server has it.

    The name is empty where the API server has not generated it yet: in webhooks, for an object with a `generateName`.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: list[str] = Field(default_factory=list)
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class OwnerStatus(CamelModel):
    """Observed state."""

    conditions: Annotated[list[V1Condition], ListMap("type")] | None = None


SpecT = TypeVar("SpecT", bound=BaseModel | None)
StatusT = TypeVar("StatusT", bound=OwnerStatus, default=OwnerStatus)


class CustomResource(CamelModel, Generic[SpecT, StatusT]):
    """A kind of custom resource: a model of its spec, with metadata, status and definition.

    The class is the kind, its docstring the description. The arguments of the class are what `definition` has beside
    the schema: `group` and `version`; `kind`, `plural`, `scope`, `short_names`, `categories`, `scale` and `selectable`
    as of `crd` and `CRDVersion`; `condition`, the type of the condition that `kubectl get` shows (`Ready`, empty for
    none); and `columns`, further columns. A class without `group` is a base class.

    A kind whose spec may be absent gives it a default: `spec: ShopSpec = ShopSpec()`. A kind that has none, because its
    data are at the top of the object, is a `CustomResource[None]` with fields of its own.

    Source: https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/custom-resources/.

    Args:
        metadata: Metadata of the object.
        spec: The desired state; None for a kind without a spec.
        status: The observed state; None if no reconcile has written it yet.

    Raises:
        BuildError: By the class statement, if the group or the version is missing, or the API server would reject one
            of the names or the type of the condition.

    Example:
        >>> class ShopSpec(CamelModel):
        ...     max_replicas: int = 1
        >>> class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
        ...     '''A shop.'''
        >>> corner = Shop.model_validate({"metadata": {"name": "corner"}, "spec": {"maxReplicas": 3}})
        >>> corner.spec.max_replicas
        3
        >>> Shop.definition()["metadata"]["name"]
        'shops.example.com'
        >>> [column["name"] for column in Shop.definition()["spec"]["versions"][0]["additionalPrinterColumns"]]
        ['Ready', 'Reason', 'Age']
    """

    api_version: ClassVar[str] = ""
    """Group and version; empty for a base class."""
    kind: ClassVar[str] = ""
    """The kind; empty for a base class."""
    resource: ClassVar[VersionedResource | None] = None
    """The resource with its names and its version; None for a base class."""

    metadata: OwnerMetadata = Field(default_factory=OwnerMetadata)
    spec: SpecT
    status: StatusT | None = None

    def __init_subclass__(  # noqa: PLR0913 (each is an option of the definition)
        cls,
        *,
        group: str = "",
        version: str = "",
        kind: str = "",
        plural: str = "",
        scope: Scope = Scope.NAMESPACED,
        short_names: Sequence[str] = (),
        categories: Sequence[str] = (),
        condition: str = "Ready",
        columns: Sequence[PrinterColumn] = (),
        scale: ScaleSubresource | None = None,
        selectable: Sequence[str] = (),
        **config: Unpack[ConfigDict],
    ) -> None:
        super().__init_subclass__(**config)
        if not (group or version):
            return
        problems = [f"{name}: required value" for name, text in (("group", group), ("version", version)) if not text]
        if condition and (problem := condition_type_problem(condition)):
            problems.append(f"condition: {problem}")
        if problems:
            raise BuildError([f"custom resource {cls.__name__}: {problem}" for problem in problems])
        shown = _columns(condition, columns)
        cls.resource = VersionedResource(
            group,
            [CRDVersion(version, cls, columns=shown, scale=scale, selectable=selectable)],
            kind=kind,
            plural=plural,
            short_names=short_names,
            categories=categories,
            scope=scope,
        )
        cls.api_version, cls.kind = f"{group}/{version}", cls.resource.kind

    @model_validator(mode="before")
    @classmethod
    def _without_spec(cls, given: Any) -> Any:
        """Return the content of a kind without a spec with the only value of that field."""
        return {**given, "spec": None} if isinstance(given, dict) and not cls._has_spec() else given

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        made = handler(schema)
        if not cls._has_spec():
            found = handler.resolve_ref_schema(made)
            found["properties"].pop("spec", None)
            found["required"] = [name for name in found.get("required", ()) if name != "spec"]
        return made

    @classmethod
    def _has_spec(cls) -> bool:
        return cls.model_fields["spec"].annotation is not NoneType

    @classmethod
    def definition(cls) -> Manifest:
        """Return the CustomResourceDefinition, a copy for each caller.

        Raises:
            BuildError: If the class has no group and version.
            ManifestError: If a structural schema cannot express a model; it lists every such field.
        """
        copied: Manifest = copy_json(_definition(cls))
        return copied

    @property
    def key(self) -> ObjectKey:
        """The key of the object: group and version, kind, name and namespace."""
        return ObjectKey(self.api_version, self.kind, self.metadata.name, self.metadata.namespace)

    @property
    def conditions(self) -> list[V1Condition]:
        """The conditions of the status; empty before the first reconcile."""
        return (self.status.conditions if self.status is not None else None) or []


@cache
def _definition(model: type[CustomResource[Any, Any]]) -> Manifest:
    """Return the definition of a kind, generated once, because that takes a while."""
    if model.resource is None:
        raise BuildError([f"custom resource {model.__name__}: group: required value, it is a base class"])
    return model.resource.definition()


def _columns(condition: str, more: Sequence[PrinterColumn]) -> Sequence[PrinterColumn]:
    """Return the columns of the condition, those of the author, and the age; the author's replace others of a name."""
    path = f".status.conditions[?(@.type=='{condition}')]"
    shown = [PrinterColumn(condition, f"{path}.status"), PrinterColumn("Reason", f"{path}.reason")] if condition else []
    named = {column.name for column in more}
    return [*(one for one in shown if one.name not in named), *more, *([] if AGE.name in named else [AGE])]
