"""Quantities of resources: requests and limits of a container or of a volume claim, capacity of a volume."""

from __future__ import annotations

from typing import Any, Literal

from ocf.editors.keyed_lists import ensure_entry, remove_entry, unset
from ocf.editors.model_values import field_type
from ocf.errors import QuantityError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects.quantity import Quantity

__all__ = ["quantity_text", "set_resource"]


def quantity_text(where: str, quantity: str | float) -> str:
    """Return the text of a quantity, as the caller wrote it.

    Args:
        where: The field, for the message.
        quantity: Quantity as a string (`500m`, `1Gi`) or a number.

    Raises:
        QuantityError: If the quantity is invalid.

    Example:
        >>> quantity_text("capacity[storage]", "1Gi")
        '1Gi'
    """
    try:
        return Quantity.parse(quantity).written
    except QuantityError as error:
        raise QuantityError(f"{where}: {error}") from None


def set_resource(
    owner: BaseModel, field: Literal["limits", "requests"], name: str, quantity: str | float | None
) -> None:
    """Set one limit or request in the `resources` of a model.

    Args:
        owner: The live model, which has a field `resources`.
        field: The map to change.
        name: Name of the resource, `cpu` or `storage`.
        quantity: Quantity as a string or a number. None removes the entry, and with the last one `resources`.

    Raises:
        QuantityError: If the quantity is invalid.
    """
    resources: Any = getattr(owner, "resources")  # noqa: B009 (the models do not have a common class with the field)
    if quantity is None:
        if resources is not None:
            _drop(owner, resources, field, name)
        return
    text = quantity_text(f"resources.{field}[{name}]", quantity)
    resources = resources or field_type(type(owner), "resources")()
    ensure_entry(resources, field, name, text)
    setattr(owner, "resources", resources)  # noqa: B010 (as above)


def _drop(owner: BaseModel, resources: BaseModel, field: str, name: str) -> None:
    before = getattr(resources, field)
    remove_entry(resources, field, name)
    emptied = before is not None and getattr(resources, field) is None
    # Empty requirements would be sent as an empty object.
    if emptied and all(value is None for value in vars(resources).values()):
        unset(owner, "resources")
