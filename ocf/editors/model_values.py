"""Type checks and copies of the values that editors store.

The models check values that are assigned to a field, but not values that are added to an existing list or map, and they
store the given object itself. Editors therefore check every value when the caller passes it, and copy models, so that
the caller can use them again and later edits do not change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType
from typing import Any, Final, TypeVar, get_args

from ocf.errors import ConfigError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects.model_fields import api_names
from ocf.objects.models import copy_model

__all__ = ["api_name", "field_type", "own", "own_or_none", "require", "whole_or_none"]

ValueT = TypeVar("ValueT")
ModelT = TypeVar("ModelT", bound="BaseModel")
ItemT = TypeVar("ItemT", bound="BaseModel | str")

_PLAIN_NAMES: Final[Mapping[type, str]] = {str: "text", int: "whole number"}


@cache
def field_type(model: type[BaseModel], field: str) -> type[Any]:
    """Return the type of a field of a model; for a list, the type of its items.

    Args:
        model: A model of the client, or any other pydantic model.
        field: Attribute name.

    Returns:
        The class, without `Optional`, `List` and `Annotated`.
    """
    found: Any = model.model_fields[field].annotation
    while args := get_args(found):
        found = next(arg for arg in args if arg is not NoneType)
    kind: type[Any] = found
    return kind


def api_name(owner: BaseModel, field: str) -> str:
    """Return the name of a field in manifests, for messages."""
    return api_names(type(owner))[field]


def own(owner: BaseModel, field: str, value: ItemT) -> ItemT:
    """Return a copy of a value that is valid for a field.

    Args:
        owner: The model that will store the value.
        field: Attribute name of the field, or of the list.
        value: A string or a model.

    Returns:
        A deep copy of a model; a string itself.

    Raises:
        ConfigError: If the value does not have the type of the field.
        ManifestError: If the model contains an invalid value.
    """
    kind = field_type(type(owner), field)
    if not isinstance(value, kind):
        raise _wrong_type(api_name(owner, field), value, kind)
    return value if isinstance(value, str) else copy_model(value)


def own_or_none(owner: BaseModel, field: str, value: ModelT | None) -> ModelT | None:
    """Return a copy as `own` does; None, which unsets the field, is returned unchanged."""
    return None if value is None else own(owner, field, value)


def whole_or_none(owner: BaseModel, field: str, value: ModelT | None) -> ModelT | None:
    """Return a copy as `own_or_none` does, of which every field that is not given counts as set to None.

    So the value replaces that of the live object as a whole, if `Editor.parts` names the field. An empty model is a
    value of its own.
    """
    copied = own_or_none(owner, field, value)
    if copied is not None:
        _set_rest(copied)
    return copied


def _set_rest(model: BaseModel) -> None:
    fields = api_names(type(model))
    given = {name: value for name in fields if (value := getattr(model, name)) is not None}
    if given:
        model.model_fields_set.update(fields)
    for value in given.values():
        if hasattr(value, "model_fields_set"):
            _set_rest(value)


def require(where: str, value: object, kind: type[ValueT]) -> ValueT:
    """Return a value of the given type.

    Args:
        where: The field, for the message.
        value: The value from the caller.
        kind: Class of a model, `str` or `int`.

    Raises:
        ConfigError: If the value has another type.
    """
    if isinstance(value, kind):
        return value
    raise _wrong_type(where, value, kind)


def _wrong_type(where: str, value: object, kind: type) -> ConfigError:
    # The message contains the value only if it is a number: any other value may contain a secret.
    seen = repr(value) if isinstance(value, int | float) else f"of type {_class_name(type(value))}"
    return ConfigError(f"{where}: must be a {_class_name(kind)}, not {seen}")


def _class_name(kind: type) -> str:
    """Return the name of a class with its package: `kubernetes.client` and `kubernetes.aio` share class names."""
    if kind.__module__ == "builtins":
        return _PLAIN_NAMES.get(kind, kind.__name__)
    return f"{kind.__module__.split('.models.')[0]}.{kind.__name__}"
