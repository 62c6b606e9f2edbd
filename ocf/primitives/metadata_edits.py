"""Edits of the metadata of an object that is held as a manifest, not as a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ocf.editors import ObjectMetaEditor
from ocf.objects import client_model, write_model
from ocf.primitives.mutator import Edits, call_edit

__all__ = ["MetadataEdits"]


class MetadataEdits(Edits[ObjectMetaEditor]):
    """A category of edits of the metadata, which has the same model in all kinds.

    The object that is edited has its manifest as `root`.
    """

    def __init__(self) -> None:
        super().__init__(ObjectMetaEditor, "metadata")

    def apply(self, target: Any, records: list[Callable[[ObjectMetaEditor], object]]) -> None:
        """Apply the edits, in order, to a model of the metadata, and store the result."""
        metadata: Any = client_model("V1ObjectMeta").model_validate(target.root.get("metadata") or {})
        editor = ObjectMetaEditor(metadata)
        for edit in records:
            call_edit(edit, editor)
        target.root["metadata"] = write_model(metadata)
