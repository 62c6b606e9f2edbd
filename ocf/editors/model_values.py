"""What an editor stores: checked, and its own.

The models check what is assigned to a field, not what is put into a list or a map they already hold; and they keep the
very object they are given. So whatever an editor puts into an object passes here first: a value of another type is
refused where it is handed over, and a model is copied, so that the caller may use it again and no later edit shows in
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

from ocf.errors import ConfigError
from ocf.objects import copy_model

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["api_name", "field_type", "own", "own_or_none", "require"]

ValueT = TypeVar("ValueT")
ModelT = TypeVar("ModelT", bound="BaseModel")
ItemT = TypeVar("ItemT", bound="BaseModel | str")

_PLAIN_NAMES: Final[Mapping[type, str]] = {str: "text", int: "whole number"}


@cache
def field_type(model: type[BaseModel], field: str) -> type[Any]:
    """Return what a field of a model holds; of a list, what its items are.

    Args:
        model: A model of the client, or any other pydantic model.
        field: Attribute name.

    Returns:
        The class, with `Optional`, `List` and `Annotated` taken off.
    """
    found: Any = model.model_fields[field].annotation
    while args := get_args(found):
        found = next(arg for arg in args if arg is not NoneType)
    kind: type[Any] = found
    return kind


def api_name(owner: BaseModel, field: str) -> str:
    """Return a field's name as manifests spell it, for messages."""
    return _alias(type(owner), field)


@cache
def _alias(model: type[BaseModel], field: str) -> str:
    return model.model_fields[field].serialization_alias or field


def own(owner: BaseModel, field: str, value: ItemT) -> ItemT:
    """Check a value for a field and make it the owner's own.

    Args:
        owner: The model that will hold it.
        field: Attribute name of the field, or of the list.
        value: A text or a model.

    Returns:
        A copy that shares nothing with `value`; a text itself.

    Raises:
        ConfigError: If the field holds something of another type.
        ManifestError: If the model holds something it should not.
    """
    kind = field_type(type(owner), field)
    if not isinstance(value, kind):
        raise _wrong_type(api_name(owner, field), value, kind)
    return value if isinstance(value, str) else copy_model(value)


def own_or_none(owner: BaseModel, field: str, value: ModelT | None) -> ModelT | None:
    """Like `own`, for a field that None clears."""
    return None if value is None else own(owner, field, value)


def require(where: str, value: object, kind: type[ValueT]) -> ValueT:
    """Refuse what is not of a type.

    Args:
        where: The field, for the message.
        value: What the caller gave.
        kind: A model's class, `str` or `int`.

    Returns:
        The value itself.

    Raises:
        ConfigError: If it is of another type.
    """
    if isinstance(value, kind):
        return value
    raise _wrong_type(where, value, kind)


def _wrong_type(where: str, value: object, kind: type) -> ConfigError:
    # Of a value of the wrong type only a number is shown: anything else may be, or hold, a secret.
    seen = repr(value) if isinstance(value, int | float) else f"of type {_class_name(type(value))}"
    return ConfigError(f"{where}: must be a {_class_name(kind)}, not {seen}")


def _class_name(kind: type) -> str:
    """Name a class with its package: `kubernetes.client` and `kubernetes.aio` have classes of the same names."""
    if kind.__module__ == "builtins":
        return _PLAIN_NAMES.get(kind, kind.__name__)
    return f"{kind.__module__.split('.models.')[0]}.{kind.__name__}"
