"""The Secret (`v1`): static, ready as soon as it exists; errors and explanations never contain its content.

The rendered object does not have `stringData`: the API server moves its entries to `data` and does not store it, so a
change could not be detected from the stored object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from ocf import feature
from ocf.editors import ObjectMetaEditor, SecretDataEditor
from ocf.lazy_types.kubernetes import V1Secret
from ocf.objects import Manifest
from ocf.objects.data_validation import base64_errors, secret_errors
from ocf.objects.field_errors import FieldError
from ocf.primitives.content_hash import DataBuilder, DataResource, encoded_texts
from ocf.primitives.generated_entries import GeneratedEntries
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]


class _DataEdits(Edits[SecretDataEditor]):
    """Edits of the entries; afterwards all entries are in `data`."""

    def apply(self, target: Any, records: list[Callable[[SecretDataEditor], object]]) -> None:
        """Apply the edits, in order, and move the entries of `stringData` to `data`."""
        super().apply(target, records)
        texts = target.string_data or {}
        # A value that is not a string is not moved: writing the object reports it.
        if texts and all(isinstance(text, str) for text in texts.values()):
            target.data = {**(target.data or {}), **encoded_texts(texts)}
            target.string_data = None


class Mutator(BaseMutator):
    """Records edits of a Secret: first its metadata, then its entries."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_data = _DataEdits(SecretDataEditor, "")

    def ensure_entry(self, key: str, value: str | bytes) -> None:
        """Record an entry, not encoded; existing content is overwritten."""
        self.edit_data(lambda data: data.ensure_entry(key, value))

    def remove_entry(self, key: str) -> None:
        """Record the removal of an entry."""
        self.edit_data(lambda data: data.remove_entry(key))


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a Secret."""

Resource: TypeAlias = DataResource["V1Secret", Mutator]
"""A Secret as a resource of a component."""


def _errors(manifest: Manifest) -> Iterator[FieldError]:
    unreadable = list(base64_errors(manifest, "data"))
    yield from unreadable or secret_errors(_with_encoded_texts(manifest))


def _with_encoded_texts(manifest: Manifest) -> Manifest:
    texts = manifest.get("stringData")
    if not texts:
        return manifest
    others = {key: value for key, value in manifest.items() if key != "stringData"}
    return {**others, "data": {**(manifest.get("data") or {}), **encoded_texts(texts)}}


class Builder(DataBuilder[V1Secret, Mutator]):
    """Builds a Secret.

    Args:
        base: The desired baseline: a `V1Secret`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "login", "namespace": "shop"}
        >>> base = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"user": "shop"}}
        >>> Builder(base).build().render()["data"]
        {'user': 'c2hvcA=='}
        >>> [".".join(field) for field in Builder(base).with_generated("password").build().generated]
        ['data.password']
    """

    _generated = GeneratedEntries(encoded=True)

    kind = Kind("v1", "Secret", "V1Secret", Mutator, validate=_errors)

    def _read_base(self, problems: list[str]) -> Manifest:
        return _with_encoded_texts(super()._read_base(problems))
