"""How an object is kept: as bytes, with the little that finding it needs beside them.

A manifest as a tree of dicts takes many times the memory of its bytes, and has to be copied for every reader. Bytes
are small, shared by nobody, and reading them is the copy.
"""

import json
import marshal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.objects import Manifest

__all__ = ["CacheEntry", "pack", "unpack"]

# The last format without references: one dict in two places of a manifest comes back as two dicts.
_FORMAT: Final = 2


@dataclass(slots=True, eq=False)
class CacheEntry:
    """One object of the cache.

    Args:
        packed: The object.
        packed_labels: Its labels, so that selecting needs no unpacking of what is not selected; empty for none.
        uid: Its uid; empty where the cluster gives none.
        version: Its resource version.
    """

    packed: bytes
    packed_labels: bytes
    uid: str
    version: str

    @property
    def labels(self) -> Mapping[str, str]:
        """A copy of its labels."""
        return marshal.loads(self.packed_labels) if self.packed_labels else {}  # noqa: S302 (bytes we made ourselves)


def pack(manifest: Manifest) -> CacheEntry:
    """Put an object into its small form.

    Args:
        manifest: The object as a cluster returned it; left as it is.

    Returns:
        An entry that shares nothing with it.

    Example:
        >>> entry = pack({"kind": "Pod", "metadata": {"name": "web", "uid": "1", "resourceVersion": "7"}})
        >>> entry.version, unpack(entry)["metadata"]["name"]
        ('7', 'web')
    """
    metadata = manifest["metadata"]
    labels = metadata.get("labels")
    return CacheEntry(
        packed=_bytes_of(manifest),
        packed_labels=_bytes_of(labels) if labels else b"",
        uid=str(metadata.get("uid") or ""),
        version=str(metadata.get("resourceVersion") or ""),
    )


def unpack(entry: CacheEntry) -> Manifest:
    """Return the object of an entry; it is the caller's."""
    manifest: Manifest = marshal.loads(entry.packed)  # noqa: S302 (bytes we made ourselves)
    return manifest


def _bytes_of(value: Any) -> bytes:
    try:
        return marshal.dumps(value, _FORMAT)
    except ValueError:
        # What only looks like JSON, an enum for example, becomes JSON first.
        return marshal.dumps(json.loads(json.dumps(value)), _FORMAT)
