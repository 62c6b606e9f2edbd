"""Hashes of the content of ConfigMaps and Secrets.

A pod reads a changed configuration only when it is replaced, and it is replaced when its pod template changes. So the
hash of the content is stored in an annotation of the template. It is computed from the rendered object, or from a live
object of another owner, in the same reconcile that changes the content.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Never, Self, overload

from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, write_model
from ocf.objects.manifest import PREFIX
from ocf.primitives.builder import StaticBuilder
from ocf.primitives.generated_entries import GeneratedEntries, Source, Sources, password
from ocf.primitives.kind import ModelT, MutatorT
from ocf.primitives.resource import Definition, StaticResource

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

    def __init__(self, definition: Definition[ModelT, MutatorT, Never], generated: GeneratedEntries) -> None:
        super().__init__(definition)
        self._generated = generated.by_path()

    @property
    def generated(self) -> Mapping[tuple[str, ...], Callable[[], Mapping[tuple[str, ...], str]]]:
        """The entries that are generated once, and the function that returns a new value of each, as it is sent.

        Entries with the same function are generated together; it returns their values by field.
        """
        return self._generated

    def desired_hash(self) -> str:
        """Return the `data_hash` of the desired object, without generated values; this does not need a cluster.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.
        """
        return data_hash(self.render())


class DataBuilder(StaticBuilder[ModelT, MutatorT]):
    """Builds a static resource with configuration for other resources."""

    _generated = GeneratedEntries()

    @overload
    def with_generated(self, key: str, source: Source = password) -> Self: ...
    @overload
    def with_generated(self, key: tuple[str, ...], source: Sources) -> Self: ...
    def with_generated(self, key: str | tuple[str, ...], source: Source | Sources = password) -> Self:
        """Generate the value of an entry of `data` once: when the object does not have the entry.

        Afterwards the value in the object counts, also if another client has set it: it is never replaced, and
        generated again only after the entry or the object was deleted. `extract_into` gets it, `render` does not have
        it. While the baseline or a mutation declares the entry, that value is applied instead.

        Args:
            key: Key of the entry; or the keys of several whose values belong together, such as a certificate and its
                key. These are all generated anew when the object does not have one of them, and none while one is
                declared.
            source: Returns a new value, not empty, such as `lambda: secrets.token_urlsafe(48)`; by default 32 random
                letters and digits. For several keys it returns as many values, in their order. It is called only for
                values that are sent.

        Example:
            >>> from ocf.primitives import secret
            >>> base = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web", "namespace": "shop"}}
            >>> pair = secret.Builder(base).with_generated(("user", "password"), lambda: ("admin", "test")).build()
            >>> [".".join(field) for field in pair.generated]
            ['data.user', 'data.password']
        """
        keys = key if isinstance(key, tuple) else (key,)
        self._generated = self._generated.having(keys, source)
        return self

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        yield from self._generated.problems(self._kind)

    def build(self) -> DataResource[ModelT, MutatorT]:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        return self._build(partial(DataResource, generated=self._generated))
