"""Base classes and types of models of custom resources: known fields have types, unknown fields are kept."""

from typing import Annotated, Any, ClassVar, TypeAlias

from kubernetes.client import V1ObjectMeta
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    StrictFloat,
    StrictInt,
    model_serializer,
)
from pydantic.alias_generators import to_camel

from ocf.objects.quantity import Quantity
from ocf.objects.timestamps import parse_rfc3339

__all__ = [
    "ApiModel",
    "ApiObject",
    "Condition",
    "DateTime",
    "IntOrString",
    "NullableFields",
    "Number",
    "QuantityValue",
]


def _date_time(text: str) -> str:
    parse_rfc3339(text, lower_case=True)
    return text


def _quantity(text: str) -> str:
    Quantity.parse(text)
    return text


DateTime: TypeAlias = Annotated[str, AfterValidator(_date_time)]
"""A time of RFC 3339 that keeps its text, `2026-01-31T12:00:00Z`."""

IntOrString: TypeAlias = StrictInt | str
"""A field with `x-kubernetes-int-or-string`, such as a port or a percentage."""

Number: TypeAlias = StrictInt | StrictFloat
"""A number; an integer stays one."""

QuantityValue: TypeAlias = StrictInt | Annotated[str, AfterValidator(_quantity)]
"""A quantity of a custom resource, which is kept as it was written: `2`, `500m` or `1.5Gi`."""


class ApiModel(BaseModel):
    """A part of an object, with camelCase keys.

    A newer version of the definition may have fields that the model does not know: they are sent and read as they are.
    A field inside of a list that has one owner as a whole has the default of the definition, so that it is sent: the
    API server would add it, and the list would then differ from what was applied.
    """

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True, validate_assignment=True)


class NullableFields(ApiModel):
    """A part of an object with fields for which null is a value (`nullable` in the schema).

    In any other field null is the same as an unset field, and is not sent.

    Example:
        >>> class Probe(NullableFields):
        ...     nullable_fields = frozenset({"timeout"})
        ...     timeout: StrictInt | None = None
        ...     period: StrictInt | None = None
        >>> Probe(timeout=None, period=None).model_dump(by_alias=True, exclude_none=True)
        {'timeout': None}
    """

    nullable_fields: ClassVar[frozenset[str]] = frozenset()
    """Names of the fields in Python."""

    @model_serializer(mode="wrap")
    def _with_nulls(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = serialize(self)
        fields = type(self).model_fields
        for name in self.nullable_fields & self.model_fields_set:
            if getattr(self, name) is None:
                written[fields[name].serialization_alias or name] = None
        return written


class ApiObject(ApiModel):
    """An object; subclasses add `spec` and `status`."""

    api_version: str | None = None
    kind: str | None = None
    metadata: V1ObjectMeta | None = None


class Condition(ApiModel):
    """A condition of a status."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    observed_generation: int | None = None
    last_transition_time: str | None = None
