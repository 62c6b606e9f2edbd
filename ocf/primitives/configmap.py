"""The ConfigMap (`v1`): static, ready as soon as it exists.

Pods read parts of their configuration only when they start. `roll_on_change` of a kind with a pod template uses
`desired_hash` to replace the pods when the ConfigMap changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ocf import feature
from ocf.editors import ConfigMapDataEditor, ObjectMetaEditor
from ocf.lazy_types.kubernetes import V1ConfigMap
from ocf.objects import Manifest
from ocf.objects.data_validation import base64_errors, config_map_errors
from ocf.objects.field_errors import FieldError
from ocf.primitives.content_hash import DataBuilder, DataResource
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]


class Mutator(BaseMutator):
    """Records edits of a ConfigMap: first its metadata, then its entries."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_data = Edits(ConfigMapDataEditor, "")

    def ensure_entry(self, key: str, value: str) -> None:
        """Record an entry; an existing value is overwritten."""
        self.edit_data(lambda data: data.ensure_entry(key, value))

    def remove_entry(self, key: str) -> None:
        """Record the removal of an entry."""
        self.edit_data(lambda data: data.remove_entry(key))

    def merge_yaml(self, key: str, patch: str) -> None:
        """Record a YAML document that is merged into an entry."""
        self.edit_data(lambda data: data.merge_yaml(key, patch))


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a ConfigMap."""

Resource: TypeAlias = DataResource["V1ConfigMap", Mutator]
"""A ConfigMap as a resource of a component."""


def _errors(manifest: Manifest) -> Iterator[FieldError]:
    unreadable = list(base64_errors(manifest, "binaryData"))
    yield from unreadable or config_map_errors(manifest)


class Builder(DataBuilder[V1ConfigMap, Mutator]):
    """Builds a ConfigMap.

    Args:
        base: The desired baseline: a `V1ConfigMap`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "settings", "namespace": "shop"}
        >>> settings = Builder({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"mode": "a"}})
        >>> fast = Mutation("fast", lambda m: m.ensure_entry("mode", "fast"))
        >>> settings.with_mutation(fast).build().render()["data"]
        {'mode': 'fast'}
    """

    kind = Kind("v1", "ConfigMap", "V1ConfigMap", Mutator, validate=_errors)
