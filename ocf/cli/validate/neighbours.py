"""Other objects of the files that the linter compares an autoscaler with.

A repository often has an object several times: for each environment, or as base and overlay. So an autoscaler without
a namespace is compared only with autoscalers of its own folder, and the nearest object is taken as its target.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ocf.cli.validate.report import KIND

if TYPE_CHECKING:
    from ocf.cli.manifest_files import Document
    from ocf.objects import Manifest

__all__ = ["Neighbours"]


class Neighbours:
    """The objects of all files by namespace.

    Args:
        documents: The documents; those that cannot be read are left out.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self._by_namespace: dict[Any, list[Document]] = {}
        for document in documents:
            if document.manifest is not None:
                self._by_namespace.setdefault(_namespace(document.manifest), []).append(document)

    def of(self, document: Document) -> list[Manifest]:
        """Return the objects that an autoscaler is compared with, the nearest ones first."""
        namespace, folder = _namespace(document.manifest or {}), PurePath(document.file).parent

        def distance(other: Document) -> tuple[bool, int]:
            theirs = PurePath(other.file).parent
            shared = sum(ours == their for ours, their in zip(folder.parts, theirs.parts, strict=False))
            return other.file != document.file, len(folder.parts) + len(theirs.parts) - 2 * shared

        others = [
            each
            for each in self._by_namespace.get(namespace, ())
            if each.manifest is not document.manifest
            and (namespace or PurePath(each.file).parent == folder or (each.manifest or {}).get("kind") != KIND)
        ]
        return [each.manifest for each in sorted(others, key=distance) if each.manifest is not None]


def _namespace(manifest: Manifest) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("namespace") or "") if isinstance(metadata, dict) else ""
