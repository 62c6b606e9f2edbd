"""Problems in the declaration of a component: its name, its condition type, and what is registered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ocf.component.model.resource_options import Lifecycle
from ocf.objects.conditions import condition_type_problem

if TYPE_CHECKING:
    from ocf.component.model.registration import Registration

__all__ = ["name_problems", "option_text", "resource_problem", "type_problems"]


def name_problems(name: object) -> Iterator[str]:
    """Yield why a name cannot be a part of the component's field manager."""
    if name is None or name == "":
        yield "component name cannot be empty"
    elif not isinstance(name, str):
        yield f"component name must be a text, got {name!r:.60}"
    elif not name.isprintable():
        position, character = next((at, one) for at, one in enumerate(name) if not one.isprintable())
        yield (
            f"component name {name!r:.60} must be printable, because it is a part of the field manager: the API server "
            f"rejects the character U+{ord(character):04X} at position {position}"
        )


def type_problems(condition_type: object) -> Iterator[str]:
    """Yield why a text cannot be the type of a condition."""
    if condition_type is None or condition_type == "":
        yield "condition type cannot be empty"
    elif not isinstance(condition_type, str):
        yield f"condition type must be a text, got {condition_type!r:.60}"
    elif problem := condition_type_problem(condition_type):
        yield problem


def option_text(entry: Registration) -> str:
    """Return the options of a registration as text, for an error about two registrations of one object."""
    deleted, read = (
        str(entry.lifecycle is lifecycle).lower() for lifecycle in (Lifecycle.DELETED, Lifecycle.READ_ONLY)
    )
    return f" (delete={deleted}, readOnly={read}, mode={entry.options.participation})"


def resource_problem(component: str, given: object) -> str:
    """Return why a registered value is not a resource."""
    if given is None:
        return f'None registered as a resource in component "{component}"'
    return f'not a resource but {type(given).__name__} registered in component "{component}"'
