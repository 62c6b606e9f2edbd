"""Hashes of the content of ConfigMaps and Secrets.

A pod reads a changed configuration only when it is replaced, and it is replaced when its pod template changes. So the
hash of the content is stored in an annotation of the template. It is computed from the rendered object, or from a live
object of another owner, in the same reconcile that changes the content.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, write_model
from ocf.objects.manifest import PREFIX
from ocf.primitives.builder import StaticBuilder
from ocf.primitives.kind import ModelT, MutatorT
from ocf.primitives.resource import StaticResource

__all__ = ["DATA_HASH", "DataBuilder", "DataResource", "combined_hash", "data_hash", "encoded_texts"]

DATA_HASH: Final = f"{PREFIX}/data-hash"
"""Annotation of a pod template with the hash of the configuration of its pods."""


def data_hash(content: BaseModel | Manifest) -> str:
    """Return a hash of the entries of a ConfigMap or a Secret.

    Other fields and the order of the entries do not affect the hash. A Secret with `stringData` has the same hash as
    the stored object.

    Args:
        content: The object, desired or live, as a model or a manifest.

    Returns:
        A SHA-256 hash in hexadecimal digits.

    Example:
        >>> texts, stored = {"stringData": {"user": "shop"}}, {"data": {"user": "c2hvcA=="}}
        >>> data_hash(texts) == data_hash(stored)
        True
    """
    manifest = content if isinstance(content, Mapping) else write_model(content)
    data = {**(manifest.get("data") or {}), **encoded_texts(manifest.get("stringData") or {})}
    return _digest({"binaryData": manifest.get("binaryData") or {}, "data": data})


def combined_hash(*hashes: str) -> str:
    """Return one hash of several hashes in their order; a single hash is returned unchanged."""
    return hashes[0] if len(hashes) == 1 else _digest(hashes)


def encoded_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return entries of `stringData` as entries of `data`, in base64."""
    return {key: b64encode(text.encode()).decode() for key, text in texts.items()}


def _digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


class DataResource(StaticResource[ModelT, MutatorT]):
    """A static resource with configuration for other resources."""

    def desired_hash(self) -> str:
        """Return the `data_hash` of the desired object; this does not need a cluster.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.
        """
        return data_hash(self.render())


class DataBuilder(StaticBuilder[ModelT, MutatorT]):
    """Builds a static resource with configuration for other resources."""

    def build(self) -> DataResource[ModelT, MutatorT]:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        return self._build(DataResource)
