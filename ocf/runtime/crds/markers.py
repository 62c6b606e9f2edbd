"""Markers for fields of a custom resource: list types, validation rules, preserved fields and quantities.

Markers are part of `Annotated`. Where the API server would reject a value because of a marker, the model rejects it
too; only CEL rules are checked by the API server alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from ocf.errors import ConfigError

__all__ = [
    "DECIMAL_PATTERN",
    "DURATION_PATTERN",
    "QUANTITY_PATTERN",
    "UNSUPPORTED",
    "ListMap",
    "ListSet",
    "Preserve",
    "QuantityText",
    "RuleReason",
    "ValidationRule",
    "rules",
    "rules_of",
]

ModelT = TypeVar("ModelT", bound=type[BaseModel])

_RULES: Final = "__ocf_rules__"

UNSUPPORTED: Final = "x-unsupported"
"""Keyword of intermediate schemas that marks a type which no structural schema can express; its value is the reason."""

QUANTITY_PATTERN: Final = (
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$"
)
"""Pattern of a quantity, after the API reference."""

DECIMAL_PATTERN: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
"""Pattern of a decimal number that Python's Decimal reads."""

# pydantic reads at most 2^32 seconds after the T.
_SECONDS: Final = r"[0-9]{1,8}(\.[0-9]{1,6})?S"
_TIME: Final = rf"([0-9]{{1,5}}H([0-9]{{1,6}}M)?({_SECONDS})?|[0-9]{{1,6}}M({_SECONDS})?|{_SECONDS})"
DURATION_PATTERN: Final = (
    rf"^[+-]?P([0-9]{{1,4}}Y([0-9]{{1,3}}D)?(T{_TIME})?|[0-9]{{1,6}}D(T{_TIME})?|[0-9]{{1,5}}W|T{_TIME})$"
)
"""Pattern of an ISO 8601 duration without months, up to some thousand years: all that pydantic writes is read again.

A year has 365 days, as in pydantic, which writes 400 days as `P1Y35D`.
"""

_is_quantity: Final = re.compile(QUANTITY_PATTERN.removeprefix("^").removesuffix("$")).fullmatch


class RuleReason(StrEnum):
    """Reason of a rule's violation in the API server's response."""

    INVALID = "FieldValueInvalid"
    FORBIDDEN = "FieldValueForbidden"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"


@dataclass(frozen=True, slots=True)
class ValidationRule:
    """A CEL rule that the API server checks for a value (`x-kubernetes-validations`).

    Add it to one field with `Annotated`, or to a model with `rules`. The API server compiles the rule when the
    definition is applied, and rejects it if it is invalid or too expensive: limit the size of its lists and strings.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules.

    Args:
        rule: The expression; `self` is the value, `oldSelf` the stored value.
        message: The error message; empty for the API server's default.
        reason: Reason of the error.
        field_path: Path of the field in the error, relative to the value: `.minReplicas`.
        message_expression: A CEL expression that returns the message.
        optional_old_self: Whether a rule with `oldSelf` is also checked on creation.

    Example:
        >>> ValidationRule("self >= oldSelf", message="may only grow").manifest()
        {'rule': 'self >= oldSelf', 'message': 'may only grow'}
    """

    rule: str
    message: str = ""
    reason: RuleReason | None = None
    field_path: str = ""
    message_expression: str = ""
    optional_old_self: bool = False

    def manifest(self) -> dict[str, Any]:
        """Return the rule as an entry of `x-kubernetes-validations`."""
        said = {
            "rule": self.rule,
            "message": self.message,
            "reason": str(self.reason or ""),
            "fieldPath": self.field_path,
            "messageExpression": self.message_expression,
            "optionalOldSelf": self.optional_old_self,
        }
        return {key: value for key, value in said.items() if value}

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        found = handler(schema)
        return found | {"x-kubernetes-validations": [*found.get("x-kubernetes-validations", ()), self.manifest()]}


def rules(*given: ValidationRule) -> Callable[[ModelT], ModelT]:
    """Add rules to a model, for every field of its type.

    Args:
        given: The rules, in addition to those of base classes.

    Returns:
        A decorator of the class.

    Example:
        >>> @rules(ValidationRule("self.low <= self.high", message="low must not be above high", field_path=".low"))
        ... class Range(BaseModel):
        ...     low: int
        ...     high: int
    """

    def decorate(model: ModelT) -> ModelT:
        setattr(model, _RULES, (*rules_of(model), *given))
        return model

    return decorate


def rules_of(model: type[BaseModel]) -> tuple[ValidationRule, ...]:
    """Return the rules of a model."""
    found: tuple[ValidationRule, ...] = getattr(model, _RULES, ())
    return found


@dataclass(frozen=True, slots=True, init=False)
class ListMap:
    """A list with merge keys (`x-kubernetes-list-type: map`): server-side apply merges it by key, and keys are unique.

    Args:
        keys: The key fields, in API spelling; each must be required or have a default.

    Raises:
        ConfigError: If there is no key.
    """

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        if not keys:
            raise ConfigError("a list that merges by key needs a key: ListMap('name')")
        object.__setattr__(self, "keys", keys)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema) | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(self.keys)}

    def _checked(self, items: Sequence[Any]) -> Sequence[Any]:
        return _without_doubles(items, lambda item: tuple(_value(item, key) for key in self.keys))


@dataclass(frozen=True, slots=True)
class ListSet:
    """A list of unique scalars (`x-kubernetes-list-type: set`): server-side apply merges it as a set."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema) | {"x-kubernetes-list-type": "set"}

    def _checked(self, items: Sequence[Any]) -> Sequence[Any]:
        return _without_doubles(items, lambda item: item)


@dataclass(frozen=True, slots=True)
class Preserve:
    """A value that the API server stores without a schema (`x-kubernetes-preserve-unknown-fields`).

    Args:
        kind: `object` for objects only; empty for any JSON value.
    """

    kind: str = "object"

    def __get_pydantic_json_schema__(
        self, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        kind = {"type": self.kind} if self.kind else {}
        return {**kind, "x-kubernetes-preserve-unknown-fields": True}


def _quantity_text(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and not _is_quantity(value):
        raise ValueError(f"{value!r} is not a quantity: expected digits and a suffix, such as 500m or 1.5Gi")
    return value


QuantityText: TypeAlias = Annotated[
    str,
    BeforeValidator(_quantity_text),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN}),
]
"""A quantity such as `500m`; an integer is accepted too, and converted to a string."""


def _value(item: Any, key: str) -> Hashable:
    if isinstance(item, BaseModel):
        fields = type(item).model_fields
        name = next((name for name, info in fields.items() if key in (info.serialization_alias, info.alias)), key)
        found: Hashable = getattr(item, name, None)
        return found
    return item.get(key) if isinstance(item, dict) else None


def _without_doubles(items: Sequence[Any], identify: Callable[[Any], Hashable]) -> Sequence[Any]:
    seen: set[Hashable] = set()
    for item in items:
        identity = identify(item)
        if identity in seen:
            raise ValueError(f"{identity!r} is a duplicate")
        seen.add(identity)
    return items
