"""Fields of the client's models: their model, their type, and whether they are quantities."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

from typing_extensions import TypeAliasType

from ocf.lazy_types.pydantic import BaseModel

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = [
    "Place",
    "api_names",
    "client_model",
    "field_types",
    "holds_quantity",
    "is_client_model",
    "is_secret",
    "place_of",
    "unknown_fields",
]

# Quantity fields by model; in the models themselves their type is only `str`.
_QUANTITY_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "V1CSIStorageCapacity": frozenset({"capacity", "maximumVolumeSize"}),
    "V1ContainerStatus": frozenset({"allocatedResources"}),
    "V1EmptyDirVolumeSource": frozenset({"sizeLimit"}),
    "V1LimitRangeItem": frozenset({"default", "defaultRequest", "max", "maxLimitRequestRatio", "min"}),
    "V1NodeStatus": frozenset({"allocatable", "capacity"}),
    "V1Overhead": frozenset({"podFixed"}),
    "V1PersistentVolumeClaimStatus": frozenset({"allocatedResources", "capacity"}),
    "V1PersistentVolumeSpec": frozenset({"capacity"}),
    "V1PodSpec": frozenset({"overhead"}),
    "V1PodStatus": frozenset({"allocatedResources"}),
    "V1ResourceFieldSelector": frozenset({"divisor"}),
    "V1ResourceQuotaSpec": frozenset({"hard"}),
    "V1ResourceQuotaStatus": frozenset({"hard", "used"}),
    "V1ResourceRequirements": frozenset({"limits", "requests"}),
    "V1VolumeResourceRequirements": frozenset({"limits", "requests"}),
    "V2HPAScalingRules": frozenset({"tolerance"}),
    "V2MetricTarget": frozenset({"averageValue", "value"}),
    "V2MetricValueStatus": frozenset({"averageValue", "value"}),
}


@cache
def client_model(name: str) -> type[BaseModel]:
    """Return a model of the Kubernetes client, loading it on first use.

    Args:
        name: Class name, `V2HorizontalPodAutoscaler`.

    Returns:
        The class.
    """
    found: type[BaseModel] = getattr(importlib.import_module("kubernetes.client"), name)
    return found


def is_client_model(kind: object) -> bool:
    """Return whether a type is a model of the Kubernetes client."""
    return isinstance(kind, type) and kind.__module__.split(".")[0] == "kubernetes"


def unknown_fields(model: BaseModel) -> Mapping[str, Any]:
    """Return the fields of a later release that a model of the client holds; its own dump leaves them out."""
    kind = type(model)
    unknown = model.model_fields_set - api_names(kind).keys()
    return {name: getattr(model, name) for name in sorted(unknown)} if unknown and is_client_model(kind) else {}


@cache
def api_names(model: type) -> Mapping[str, str]:
    """Return the API spelling of each attribute of a model that is a field; empty for any other type."""
    fields: Mapping[str, FieldInfo] = getattr(model, "model_fields", {})
    return {attribute: info.serialization_alias or attribute for attribute, info in fields.items()}


def holds_quantity(model: type[BaseModel], path: Sequence[str | int]) -> bool:
    """Return whether a field of a model is a quantity; the path starts at that model."""
    place = place_of(model, path)
    return place.owner is not None and place.field in _QUANTITY_FIELDS.get(place.owner.__name__, ())


class Place(NamedTuple):
    """Target of a path: the innermost model on the path, its field on the path, and the type at the end."""

    owner: type[BaseModel] | None
    field: str
    annotation: Any


def place_of(model: type[BaseModel], path: Sequence[str | int]) -> Place:
    """Return the target of a path, in API spelling, in the types of a model; its type is None if it does not exist."""
    place = Place(None, "", model)
    for part in path:
        if isinstance(place.annotation, type):
            place = Place(place.annotation, str(part), field_types(place.annotation).get(str(part)))
        else:
            inner = get_args(place.annotation)
            place = place._replace(annotation=_plain(inner[-1]) if inner else None)
    return place


@cache
def field_types(model: type[BaseModel]) -> Mapping[str, Any]:
    """Return the types of the fields of a model by API spelling, without `Optional` and `Annotated`."""
    fields: Mapping[str, FieldInfo] = getattr(model, "model_fields", {})
    return {info.serialization_alias or name: _plain(info.annotation) for name, info in fields.items()}


def is_secret(model: type[BaseModel], path: Sequence[str | int]) -> bool:
    """Return whether the value at a path may be secret: a `SecretStr`, or a field with the format `password`.

    Args:
        path: A path in API spelling, or the location of an error of pydantic, which also names the arms of unions.
    """
    return not is_client_model(model) and _is_secret(model, tuple(path))


def _is_secret(annotation: Any, path: tuple[str | int, ...]) -> bool:
    from pydantic import BaseModel, Secret, SecretBytes, SecretStr

    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in {Annotated, Union, UnionType}:
        arms, marks = (inner[:1], inner[1:]) if origin is Annotated else (inner, ())
        return any(map(_hides, marks)) or any(_is_secret(arm, path) for arm in arms)
    if isinstance(annotation, TypeAliasType):
        return _is_secret(annotation.__value__, path)
    kind = origin or annotation
    if isinstance(kind, type) and issubclass(kind, (Secret, SecretBytes, SecretStr)):
        return True
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return any(_is_secret(one, path[1:]) for one in inner)
    if not path:
        return False
    fields = [info for name, info in kind.model_fields.items() if path[0] in _names(name, info)]
    # Another part is the arm of a union.
    return _is_secret(kind, path[1:]) if not fields else any(_hides(one) or _in_field(one, path[1:]) for one in fields)


def _names(name: str, info: FieldInfo) -> Iterator[object]:
    """Yield all names that an error may have for a field, as the first part of its location."""
    yield from (name, info.alias, info.serialization_alias)
    from pydantic import AliasChoices, AliasPath

    alias = info.validation_alias
    for one in alias.choices if isinstance(alias, AliasChoices) else (alias,):
        yield one.path[0] if isinstance(one, AliasPath) else one


def _in_field(info: FieldInfo, path: tuple[str | int, ...]) -> bool:
    return any(map(_hides, info.metadata)) or _is_secret(info.annotation, path)


def _hides(mark: object) -> bool:
    """Return whether a field, or what its type is annotated with, has the format `password` or is write-only."""
    schema = getattr(mark, "json_schema_extra", None) or getattr(mark, "json_schema", None)
    return isinstance(schema, dict) and (schema.get("format") == "password" or schema.get("writeOnly") is True)


def _plain(annotation: Any) -> Any:
    while (origin := get_origin(annotation)) in {Annotated, Union, UnionType}:
        arms = get_args(annotation)
        annotation = arms[0] if origin is Annotated else next(arm for arm in arms if arm is not type(None))
    return annotation
