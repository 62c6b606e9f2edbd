"""Model and mutator of objects of any kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from pydantic import RootModel, field_validator

from ocf import feature
from ocf.editors import ObjectMetaEditor, UnstructuredContentEditor
from ocf.objects import client_model, copy_json, write_model
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits, call_edit

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


class _MetadataEdits(Edits[ObjectMetaEditor]):
    """Edits of the metadata, which has the same model in all kinds."""

    def apply(self, target: Unstructured, records: list[Callable[[ObjectMetaEditor], object]]) -> None:
        """Apply the edits, in order, to a model of the metadata, and store the result."""
        metadata: Any = client_model("V1ObjectMeta").model_validate(target.root.get("metadata") or {})
        editor = ObjectMetaEditor(metadata)
        for edit in records:
            call_edit(edit, editor)
        target.root["metadata"] = write_model(metadata)


class Mutator(BaseMutator):
    """Records edits of an object of any kind: first its metadata, then its content."""

    edit_object_metadata = _MetadataEdits(ObjectMetaEditor, "metadata")
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
