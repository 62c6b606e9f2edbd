"""The model of objects that nobody has a model of, and how they are edited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import RootModel, field_validator

from ocf.editors import ObjectMetaEditor, UnstructuredContentEditor
from ocf.objects import client_model, copy_json, write_model
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits, call_edit

__all__ = ["Mutator", "Unstructured", "UnstructuredKind"]


class Unstructured(RootModel[dict[str, Any]]):
    """An object of any kind; `root` is its manifest.

    Example:
        >>> Unstructured({"kind": "Shop", "spec": {"size": 3}}).root["spec"]
        {'size': 3}
    """

    @field_validator("root", mode="before")
    @classmethod
    def _copied(cls, root: Any) -> Any:
        """Share nothing with what is read: a map inside another is not copied by itself."""
        return copy_json(root)


class _MetadataEdits(Edits[ObjectMetaEditor]):
    """Edits of the metadata, which has a model in every kind."""

    def apply(self, target: Unstructured, records: list[Callable[[ObjectMetaEditor], object]]) -> None:
        """Run the edits, in order, on a model of the metadata, and keep what they made of it."""
        metadata: Any = client_model("V1ObjectMeta").model_validate(target.root.get("metadata") or {})
        editor = ObjectMetaEditor(metadata)
        for edit in records:
            call_edit(edit, editor)
        target.root["metadata"] = write_model(metadata)


class Mutator(BaseMutator):
    """Records edits of an object of any kind: first its metadata, then its content."""

    edit_object_metadata = _MetadataEdits(ObjectMetaEditor, "metadata")
    edit_content = Edits(lambda model: UnstructuredContentEditor(model.root), "")


@dataclass(frozen=True)
class UnstructuredKind(Kind[Unstructured, Mutator]):
    """A kind that has no model of its own."""

    @cached_property
    def model(self) -> type[Unstructured]:
        """The model of everything."""
        return Unstructured
