"""Keys of the cache: an object of a kind, and the scope of an informer."""

import sys
from typing import NamedTuple, TypeAlias

from ocf.errors import ManifestError
from ocf.objects import Manifest, ObjectKey

__all__ = ["NamespacedName", "WatchScope", "namespaced_name", "sent_key"]

NamespacedName: TypeAlias = tuple[str, str]
"""Namespace (empty for a cluster-scoped object) and name."""


class WatchScope(NamedTuple):
    """A kind, in one namespace or in all.

    Args:
        namespace: Namespace; empty for all.
    """

    api_version: str
    kind: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}" + (f" in {self.namespace}" if self.namespace else "")

    def covers(self, namespace: str) -> bool:
        """Return whether the scope includes the objects of a namespace."""
        return not self.namespace or self.namespace == namespace


def namespaced_name(manifest: Manifest) -> NamespacedName:
    """Return namespace and name of an object."""
    metadata = manifest["metadata"]
    # Many objects share a namespace, so its text is kept once.
    return sys.intern(str(metadata.get("namespace") or "")), str(metadata["name"])


def sent_key(manifest: Manifest) -> ObjectKey | None:
    """Return the key of a manifest, with an empty name if the cluster generates it; None if the manifest is invalid."""
    try:
        if (manifest.get("metadata") or {}).get("generateName") and not manifest["metadata"].get("name"):
            unnamed = {**manifest, "metadata": {**manifest["metadata"], "name": "-"}}
            key = ObjectKey.of(unnamed)
            return ObjectKey(key.api_version, key.kind, "", key.namespace)
        return ObjectKey.of(manifest)
    except ManifestError:
        return None
