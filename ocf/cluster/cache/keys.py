"""Where an object is among those of its kind, and which of a kind's objects are meant."""

import sys
from typing import NamedTuple, TypeAlias

from ocf.objects import Manifest

__all__ = ["NamespacedName", "WatchScope", "namespaced_name"]

NamespacedName: TypeAlias = tuple[str, str]
"""Namespace (empty for a cluster-scoped object) and name."""


class WatchScope(NamedTuple):
    """A kind, in one namespace or in all.

    Args:
        api_version: Group and version.
        kind: Kind.
        namespace: Namespace; empty for all.
    """

    api_version: str
    kind: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}" + (f" in {self.namespace}" if self.namespace else "")

    def covers(self, namespace: str) -> bool:
        """Tell whether an object in a namespace belongs to it."""
        return not self.namespace or self.namespace == namespace


def namespaced_name(manifest: Manifest) -> NamespacedName:
    """Return where an object is."""
    metadata = manifest["metadata"]
    # Few namespaces hold many objects.
    return sys.intern(str(metadata.get("namespace") or "")), str(metadata["name"])
