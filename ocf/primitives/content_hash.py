"""What ConfigMaps and Secrets have in common: their content has a hash.

A pod sees a change of its configuration only when it is replaced, and it is replaced when the template it is made from
changes. So the hash of the content goes into an annotation of the template. It is found from the rendered object, or
from a live one that somebody else keeps, in the same pass in which the content changes.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ocf.objects import PREFIX, write_model
from ocf.primitives.builder import StaticBuilder
from ocf.primitives.kind import ModelT, MutatorT
from ocf.primitives.resource import StaticResource

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ocf.objects import Manifest

__all__ = ["DATA_HASH", "DataBuilder", "DataResource", "combined_hash", "data_hash", "encoded_texts"]

DATA_HASH: Final = f"{PREFIX}/data-hash"
"""The annotation of a pod template that changes with the configuration of its pods."""


def data_hash(content: BaseModel | Manifest) -> str:
    """Return a hash of what a ConfigMap or a Secret holds.

    Nothing else of the object counts, nor does the order of entries. A Secret with `stringData` has the hash that it
    has once it is stored.

    Args:
        content: The object, desired or live, as a model or a manifest.

    Returns:
        A SHA-256, in hexadecimal digits.

    Example:
        >>> texts, stored = {"stringData": {"user": "shop"}}, {"data": {"user": "c2hvcA=="}}
        >>> data_hash(texts) == data_hash(stored)
        True
    """
    manifest = content if isinstance(content, Mapping) else write_model(content)
    data = {**(manifest.get("data") or {}), **encoded_texts(manifest.get("stringData") or {})}
    return _digest({"binaryData": manifest.get("binaryData") or {}, "data": data})


def combined_hash(*hashes: str) -> str:
    """Return one hash for several; one alone stands for itself.

    Args:
        hashes: Hashes, in an order that never changes.
    """
    return hashes[0] if len(hashes) == 1 else _digest(hashes)


def encoded_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of `stringData` as `data` holds them, in base64."""
    return {key: b64encode(text.encode()).decode() for key, text in texts.items()}


def _digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


class DataResource(StaticResource[ModelT, MutatorT]):
    """A static resource that others are configured by."""

    def desired_hash(self) -> str:
        """Return the hash of what it is to hold, as `data_hash` finds it; no cluster is needed.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.
        """
        return data_hash(self.render())


class DataBuilder(StaticBuilder[ModelT, MutatorT]):
    """Builds a static resource that others are configured by."""

    def build(self) -> DataResource[ModelT, MutatorT]:
        """Return the resource.

        Raises:
            BuildError: With every problem found.
        """
        return self._build(DataResource)
