"""Model and mutator of objects of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from pydantic import RootModel, field_validator

from ocf import feature
from ocf.editors import UnstructuredContentEditor
from ocf.objects import copy_json
from ocf.primitives.kind import Kind
from ocf.primitives.metadata_edits import MetadataEdits
from ocf.primitives.mutator import BaseMutator, Edits

__all__ = ["Mutation", "Mutator", "Unstructured", "UnstructuredKind"]


class Unstructured(RootModel[dict[str, Any]]):
    """An object of any kind; `root` is its manifest.

    Example:
        >>> Unstructured({"kind": "Shop", "spec": {"size": 3}}).root["spec"]
        {'size': 3}
    """

    @field_validator("root", mode="before")
    @classmethod
    def _copied(cls, root: Any) -> Any:
        """Return a deep copy of the input: pydantic does not copy nested maps."""
        return copy_json(root)


class Mutator(BaseMutator):
    """Records edits of an object of any kind: first its metadata, then its content."""

    edit_object_metadata = MetadataEdits()
    edit_content = Edits(lambda model: UnstructuredContentEditor(model.root), "")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of an object of any kind."""


@dataclass(frozen=True)
class UnstructuredKind(Kind[Unstructured, Mutator]):
    """A kind without a model."""

    @cached_property
    def model(self) -> type[Unstructured]:
        """The model of all such kinds."""
        return Unstructured
