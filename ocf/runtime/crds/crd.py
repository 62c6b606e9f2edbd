"""CustomResourceDefinition of a kind, generated from the models of its versions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from ocf.errors import FieldProblem, ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.runtime.crds.resource_names import name_problems, resource_names

__all__ = [
    "AGE",
    "CRDVersion",
    "PrinterColumn",
    "ScaleSubresource",
    "Scope",
    "crd",
    "kind_of",
    "version_problems",
]

# Fields that every object has.
_OF_EVERY_OBJECT: Final = ("apiVersion", "kind", "metadata")
_EVERY_OBJECT: Final[dict[str, Any]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "creationTimestamp": {"type": "string", "format": "date-time"}},
    },
}
_PATH: Final = re.compile(r"(\.[A-Za-z_][A-Za-z0-9_-]*)+")
_COLUMN_TYPES: Final = ("boolean", "integer", "number", "string")


class Scope(StrEnum):
    """Scope of a kind."""

    NAMESPACED = "Namespaced"
    CLUSTER = "Cluster"


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get`.

    Args:
        name: Heading of the column.
        path: Its field, such as `.status.readyReplicas`; or a JSONPath with filters.
        type: `integer`, `number`, `string`, `boolean` or `date`; empty for the type of the field.
        description: Description of the column.
        priority: 0 to always show it, a higher number to show it only with `-o wide`.
    """

    name: str
    path: str
    type: str = ""
    description: str = ""
    priority: int = 0


AGE: Final = PrinterColumn("Age", ".metadata.creationTimestamp", "date")
"""The default column, which a kind with printer columns has to declare itself."""


@dataclass(frozen=True, slots=True)
class ScaleSubresource:
    """The scale subresource, which autoscalers read and write.

    Args:
        spec: Path of the desired replicas.
        status: Path of the observed replicas.
        selector: Path of the serialized label selector in the status, which autoscalers need; empty for none.
    """

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str = ""


@dataclass(frozen=True, slots=True)
class CRDVersion:
    """A version of a kind.

    A model with a field `status` has the status subresource.

    Args:
        name: Name of the version, such as `v1alpha1`.
        model: The model of the whole object: its class name is the kind, its fields are `spec`, `status` or others.
            Fields that every object has (`apiVersion`, `kind`, `metadata`) are optional.
        columns: The columns of `kubectl get`; empty for those that a `CustomResource` declares.
        scale: The scale subresource; None for that of a `CustomResource`, if it declares one.
        selectable: Paths of the fields that field selectors may use, such as `.spec.color`; empty for those of a
            `CustomResource`.
        served: Whether clients can use the version.
        stored: Whether it is the storage version; a single version always is.
        deprecated: The warning for clients that use the version; empty if it is not deprecated.
    """

    name: str
    model: type[BaseModel]
    columns: Sequence[PrinterColumn] = ()
    scale: ScaleSubresource | None = None
    selectable: Sequence[str] = ()
    served: bool = True
    stored: bool = False
    deprecated: str = ""


def crd(
    group: str,
    *versions: CRDVersion,
    kind: str = "",
    plural: str = "",
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    scope: Scope = Scope.NAMESPACED,
) -> Manifest:
    """Return the CustomResourceDefinition of a kind.

    Types, bounds, patterns, enums, defaults and descriptions come from the models. The API server cannot run validators
    written in Python: declare a `ValidationRule` for what it is to check.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/.

    Args:
        group: API group, `example.com`.
        versions: The versions, all of one kind; if there are several, exactly one is `stored`.
        kind: The kind; empty for the class name of the models, which then must be the same.
        plural: Plural name of the resource; empty derives it from the kind.
        short_names: Short names for `kubectl`.
        categories: Categories for `kubectl get`, such as `all`.
        scope: Scope of the kind.

    Returns:
        The definition, to be applied.

    Raises:
        ManifestError: If the API server would reject a name, or a structural schema cannot express a model; it lists
            every such field.

    Example:
        >>> from pydantic import BaseModel, Field
        >>> class Quota(BaseModel):
        ...     limit: int = Field(default=1, ge=0, le=64)
        >>> definition = crd("example.com", CRDVersion("v1", Quota))
        >>> definition["metadata"]["name"]
        'quotas.example.com'
        >>> schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        >>> schema["properties"]["limit"] == {"type": "integer", "default": 1, "minimum": 0, "maximum": 64}
        True
    """
    problems = list(version_problems(versions, kind))
    kind = kind_of(versions, kind)
    problems += name_problems(
        group,
        [version.name for version in versions],
        kind=kind,
        plural=plural,
        short_names=short_names,
        categories=categories,
    )
    names = resource_names(kind, plural, short_names, categories)
    written = [_version(version, problems, alone=len(versions) == 1) for version in versions]
    if problems:
        raise ManifestError(f"definition of {kind or 'a kind'} in {group}", problems)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {
            "group": group,
            "names": names,
            "scope": str(scope),
            "versions": written,
        },
    }


def kind_of(versions: Sequence[CRDVersion], kind: str) -> str:
    """Return the kind of a resource.

    Args:
        kind: See `crd`.
    """
    return kind or (versions[0].model.__name__ if versions else "")


def version_problems(versions: Sequence[CRDVersion], kind: str) -> Iterator[FieldProblem]:
    """Yield the problems of the versions of a resource, without those of their schemas.

    Args:
        kind: See `crd`.
    """
    kinds = {version.model.__name__ for version in versions}
    names = [version.name for version in versions]
    stored = [version.name for version in versions if version.stored]
    if not versions:
        yield FieldProblem("versions", "a kind must have at least one version")
    if not kind and len(kinds) > 1:
        yield FieldProblem(
            "versions", f"all models must have the name of the kind, unless `kind` is given, got {_listed(kinds)}"
        )
    if twice := {name for name in names if names.count(name) > 1}:
        yield FieldProblem("versions", f"the names of the versions must differ, got {_listed(twice)} twice")
    if len(versions) > 1 and len(stored) != 1:
        yield FieldProblem("versions", f"exactly one version must be stored, got {', '.join(stored) or 'none'}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _as_declared(version: CRDVersion) -> CRDVersion:
    """Return a version with what its model declares as a `CustomResource`, where the version itself has nothing."""
    for own in getattr(getattr(version.model, "resource", None), "versions", ()):
        if isinstance(own, CRDVersion):
            return replace(
                version,
                columns=version.columns or own.columns,
                scale=version.scale or own.scale,
                selectable=version.selectable or own.selectable,
            )
    return version


def _version(version: CRDVersion, problems: list[FieldProblem], *, alone: bool) -> Manifest:
    version = _as_declared(version)
    schema = _schema(version.model, problems)
    properties = schema.get("properties", {})
    subresources: dict[str, Any] = {"status": {}} if "status" in properties else {}
    if version.scale is not None:
        subresources["scale"] = _scale(version.scale, schema, problems)
    columns = [_column(column, schema, problems) for column in version.columns]
    for path in version.selectable:
        _type_at(schema, path, "selectable", problems)
    optional = {
        "subresources": subresources,
        "additionalPrinterColumns": columns,
        "selectableFields": [{"jsonPath": path} for path in version.selectable],
        "deprecated": bool(version.deprecated),
        "deprecationWarning": version.deprecated,
    }
    return {
        "name": version.name,
        "served": version.served,
        "storage": version.stored or alone,
        "schema": {"openAPIV3Schema": schema},
        **{key: value for key, value in optional.items() if value},
    }


def _schema(model: type[BaseModel], problems: list[FieldProblem]) -> dict[str, Any]:
    # A running operator generates no schema: only programs that install or print the definition need these.
    from ocf.runtime.crds.json_schema import json_schema
    from ocf.runtime.crds.structural_schema import StructuralSchemaConverter

    said = json_schema(model)
    walk = StructuralSchemaConverter(said.pop("$defs", {}))
    own = {name: field for name, field in said.get("properties", {}).items() if name not in _OF_EVERY_OBJECT}
    required = [name for name in said.get("required", ()) if name not in _OF_EVERY_OBJECT]
    schema = walk.of({**said, "properties": own, "required": required}, "")
    problems += walk.problems
    return schema


def _scale(scale: ScaleSubresource, schema: dict[str, Any], problems: list[FieldProblem]) -> dict[str, str]:
    said = {
        "specReplicasPath": scale.spec,
        "statusReplicasPath": scale.status,
        "labelSelectorPath": scale.selector,
    }
    for name, path in said.items():
        wanted = "string" if name == "labelSelectorPath" else "integer"
        if path and (found := _type_at(schema, path, "scale", problems)) not in ("", wanted):
            problems.append(FieldProblem(f"scale{path}", f"must be of type {wanted}, is {found}"))
    return {name: path for name, path in said.items() if path}


def _column(column: PrinterColumn, schema: dict[str, Any], problems: list[FieldProblem]) -> dict[str, Any]:
    kind = column.type
    if not kind and _PATH.fullmatch(column.path):
        kind = _type_at(schema, column.path, f'column "{column.name}"', problems)
        kind = kind if kind in (*_COLUMN_TYPES, "date") else "string"
    said = {"name": column.name, "type": kind or "string", "jsonPath": column.path}
    more = {"description": column.description, "priority": column.priority}
    return said | {key: value for key, value in more.items() if value}


def _type_at(schema: dict[str, Any], path: str, what: str, problems: list[FieldProblem]) -> str:
    """Return the type of the field at a path, `date` for a date-time; add a problem and return "" if it is missing."""
    here: dict[str, Any] = {"properties": {**schema.get("properties", {}), **_EVERY_OBJECT}}
    for name in path.strip(".").split("."):
        inner = here.get("properties", {}).get(name) or here.get("additionalProperties")
        if not isinstance(inner, dict):
            problems.append(FieldProblem(f"{what} {path}", "there is no such field"))
            return ""
        here = inner
    return "date" if here.get("format") == "date-time" else str(here.get("type", ""))
