"""Entries of the cache: objects as bytes, with the metadata that lookups need.

A manifest as a tree of dicts takes many times the memory of its bytes, and has to be copied for every reader. Bytes
are small and immutable, and unpacking them makes the copy.
"""

import json
import marshal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.owner_references import ControllerReference, controller_of, owner_uids

__all__ = ["CacheEntry", "orphans_dependents", "pack", "unpack"]

# The last format without references: one dict in two places of a manifest comes back as two dicts.
_FORMAT: Final = 2
# Set by a delete with that propagation, and removed once no dependent refers to the object.
_ORPHAN: Final = "orphan"


@dataclass(slots=True, eq=False)
class CacheEntry:
    """One object of the cache.

    Args:
        packed_labels: Its labels, so that a selector does not unpack objects that it does not select; empty for none.
        uid: Its uid; empty if the cluster does not assign one.
        controller: Its controller, so that finding the owner of a changed object does not unpack it; None for none.
        owners: The uids of all its owner references.
        orphans: Whether its deletion may orphan its dependents: it was requested, or the watch has not shown the whole
            deletion. The garbage collector removes their owner references then.
        orphaning: Whether it was seen that this was requested.
        metadata_only: Whether it has nothing but the metadata of the object.
    """

    packed: bytes
    packed_labels: bytes
    uid: str
    version: str
    controller: ControllerReference | None
    owners: tuple[str, ...] = ()
    orphans: bool = False
    orphaning: bool = False
    metadata_only: bool = False

    @property
    def labels(self) -> Mapping[str, str]:
        """A copy of its labels."""
        return marshal.loads(self.packed_labels) if self.packed_labels else {}  # noqa: S302 (bytes we made ourselves)

    def unpack(self) -> Manifest:
        """Return the object, as a copy for the caller."""
        return unpack(self)


def pack(manifest: Manifest) -> CacheEntry:
    """Serialize an object.

    Args:
        manifest: The object as a cluster returned it; it is not changed.

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
        controller=controller_of(manifest),
        owners=owner_uids(manifest),
        orphans=orphans_dependents(manifest),
        orphaning=orphans_dependents(manifest),
    )


def orphans_dependents(manifest: Manifest) -> bool:
    """Return whether the garbage collector orphans the dependents of an object when it is deleted."""
    return _ORPHAN in (manifest["metadata"].get("finalizers") or ())


def unpack(entry: CacheEntry) -> Manifest:
    """Return the object of an entry, as a copy for the caller."""
    manifest: Manifest = marshal.loads(entry.packed)  # noqa: S302 (bytes we made ourselves)
    return manifest


def _bytes_of(value: Any) -> bytes:
    try:
        return marshal.dumps(value, _FORMAT)
    except ValueError:
        # Values that json.dumps accepts and marshal does not, an enum for example, are converted to JSON types first.
        return marshal.dumps(json.loads(json.dumps(value)), _FORMAT)
