"""Reaching a part of a model, making it for as long as it is needed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Part"]


class Part:
    """A place inside a model.

    Args:
        path: Attribute names joined by dots, `spec.template.metadata`; what leads to the last one is never absent.
            Empty for the object itself.
    """

    __slots__ = ("_name", "_parents", "path")

    def __init__(self, path: str) -> None:
        self.path: Final = path
        *self._parents, self._name = path.split(".")

    @contextmanager
    def of(self, target: Any) -> Iterator[Any]:
        """Give the model at this place, made if absent, and take a made one away again if nothing was set in it."""
        if not self._name:
            yield target
            return
        for name in self._parents:
            target = getattr(target, name)
        model = getattr(target, self._name)
        if model is not None:
            yield model
            return
        made = _type_of(target, self._name)()
        yield made
        if made.model_fields_set:
            setattr(target, self._name, made)


def _type_of(parent: Any, name: str) -> Any:
    """Return the model class of an optional field."""
    return next(arm for arm in get_args(type(parent).model_fields[name].annotation) if arm is not type(None))
