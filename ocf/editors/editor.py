"""What every editor is: a thin wrapper around a live part of an object.

An editor writes through, so there is no moment at which its result has to be collected, and it holds no state of its
own. It gives short names to the edits that go wrong when written by hand (upserts by identity, maps that are not there
yet); `raw` is there for everything else. Numbers are not judged: what is too large or too small is the API server's to
say, and the models check the types: a value of another type is pydantic's `ValidationError`, as in any assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Editor"]

ModelT = TypeVar("ModelT", bound="BaseModel")


class Editor(Generic[ModelT]):
    """Base of the editors; derive from it to edit a part that has none yet.

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

    def __init__(self, raw: ModelT) -> None:
        self._raw = raw

    @property
    def raw(self) -> ModelT:
        """The live model itself, for what has no method here; what is written to it stays as written."""
        return self._raw
