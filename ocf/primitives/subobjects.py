"""Reaching a part of a model, making it for as long as it is needed."""

from __future__ import annotations

from typing import Any, Final, get_args

__all__ = ["SubObject"]


class SubObject:
    """A place inside a model.

    Args:
        path: Attribute names joined by dots, `spec.template.metadata`; what leads to the last one is never absent.
            Empty for the object itself.
    """

    __slots__ = ("_name", "_parents", "path")

    def __init__(self, path: str) -> None:
        self.path: Final = path
        *self._parents, self._name = path.split(".")

    def of(self, target: Any) -> Any:
        """Return the model at this place; one that is absent is made, and has to be kept afterwards."""
        if not self._name:
            return target
        parent = self._parent(target)
        model = getattr(parent, self._name)
        return _type_of(parent, self._name)() if model is None else model

    def keep(self, target: Any, model: Any) -> None:
        """Put a model that was made into its place, unless nothing was set in it."""
        if not self._name or not model.model_fields_set:
            return
        parent = self._parent(target)
        if getattr(parent, self._name) is None:
            setattr(parent, self._name, model)

    def _parent(self, target: Any) -> Any:
        for name in self._parents:
            target = getattr(target, name)
        return target


def _type_of(parent: Any, name: str) -> Any:
    """Return the model class of an optional field."""
    return next(arm for arm in get_args(type(parent).model_fields[name].annotation) if arm is not type(None))
