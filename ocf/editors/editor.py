"""Base class of the editors: a thin wrapper around a live part of an object.

An editor changes the model directly and holds no other state. It has methods for edits that are easy to get wrong by
hand (upserts by identity, maps that do not exist yet); `raw` gives access to everything else. Editors do not check the
range of numbers, which the API server does. The models check types: a value of the wrong type raises pydantic's
`ValidationError`, as in any assignment.
"""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from ocf.lazy_types.pydantic import BaseModel

__all__ = ["Editor"]

ModelT = TypeVar("ModelT", bound="BaseModel")


class Editor(Generic[ModelT]):
    """Base class of the editors; subclass it to edit a part that does not have one yet.

    Args:
        raw: The live model; every edit changes it.

    Example:
        >>> from kubernetes.client import V1ServiceSpec
        >>> class ServiceSpecEditor(Editor[V1ServiceSpec]):
        ...     def set_type(self, value: str) -> None:
        ...         self.raw.type = value
        >>> spec = V1ServiceSpec()
        >>> ServiceSpecEditor(spec).set_type("ClusterIP")
        >>> spec.type
        'ClusterIP'
    """

    __slots__ = ("_raw",)

    parts: ClassVar[tuple[str, ...]] = ()
    """Attributes of the models below `raw` of which a method sets single fields, also to None."""

    def __init__(self, raw: ModelT) -> None:
        self._raw = raw

    @property
    def raw(self) -> ModelT:
        """The live model, for edits without a method; values written to it are kept unchanged."""
        return self._raw
