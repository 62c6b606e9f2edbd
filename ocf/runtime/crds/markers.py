"""What a type alone does not say about a field of a custom resource: how its list merges, which rules hold.

Marks stand in `Annotated`. Where the server would refuse a value because of a mark, the model refuses it too; only
rules in CEL are the server's alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, WithJsonSchema
from pydantic_core import core_schema

from ocf.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

__all__ = [
    "QUANTITY_PATTERN",
    "UNSAID",
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

UNSAID: Final = "x-unsaid"
"""The keyword that marks, on the way to a structural schema, what no schema can say; its value is the reason."""

QUANTITY_PATTERN: Final = (
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$"
)
"""What a quantity looks like, in the words of the API reference."""

_is_quantity: Final = re.compile(QUANTITY_PATTERN.removeprefix("^").removesuffix("$")).fullmatch


class RuleReason(StrEnum):
    """What a broken rule is called in the server's answer."""

    INVALID = "FieldValueInvalid"
    FORBIDDEN = "FieldValueForbidden"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"


@dataclass(frozen=True, slots=True)
class ValidationRule:
    """A rule in CEL that the server holds a value to (`x-kubernetes-validations`).

    It stands in `Annotated` for one field; `rules` gives it to a model. The server reads the rule when the definition
    is applied, and refuses one that it cannot read, or that costs too much: give lists and texts in it a maximum.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules.

    Args:
        rule: The expression; `self` is the value, `oldSelf` what was stored before.
        message: What a user is told; empty leaves that to the server.
        reason: What the problem is called.
        field_path: The field that is to blame, from the value on: `.minReplicas`.
        message_expression: An expression that makes the message.
        optional_old_self: Whether a rule with `oldSelf` is asked on creation too.

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
        """Return the rule as the API writes it."""
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
    """Give rules to a model: they hold wherever the model is a field.

    Args:
        given: The rules; those of a base class hold as well.

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
    """Return the rules of a model.

    Args:
        model: The model.
    """
    found: tuple[ValidationRule, ...] = getattr(model, _RULES, ())
    return found


@dataclass(frozen=True, slots=True, init=False)
class ListMap:
    """A list of objects with keys: server-side apply merges it object by object, and no two may have the same keys.

    Args:
        keys: The fields that tell objects apart, in API spelling; each required, or with a default.

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
    """A list of scalars of which no two are equal: server-side apply merges it as a set."""

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
    """Whatever is there is stored as it is: the server looks at nothing inside.

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
        raise ValueError(f"{value!r} is no quantity: write digits and a suffix, such as 500m or 1.5Gi")
    return value


QuantityText: TypeAlias = Annotated[
    str,
    BeforeValidator(_quantity_text),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN}),
]
"""A quantity, `500m`; a whole number is taken too, and becomes a text."""


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
            raise ValueError(f"{identity!r} is there twice")
        seen.add(identity)
    return items
