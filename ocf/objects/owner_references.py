"""Owner references of an object: `metadata.ownerReferences`."""

from __future__ import annotations

import sys
from typing import NamedTuple

from ocf.objects.manifest import Manifest, ObjectKey, split_api_version
from ocf.objects.paths import get_field

__all__ = ["ControllerReference", "controller_of", "owner_uids"]


class ControllerReference(NamedTuple):
    """The owner reference with `controller: true`; the API server allows one in each object.

    Args:
        api_version: API version of the controller, for example `apps/v1`.
        name: Name of the controller; it is in the namespace of the object, or cluster-scoped.
    """

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group(self) -> str:
        """API group of the controller; empty for the core group."""
        return split_api_version(self.api_version)[0]

    def refers_to(self, owner: ObjectKey, uid: str, *, namespace: str) -> bool:
        """Return whether it refers to an owner: by group, kind, name and uid, from the namespace of the object.

        Args:
            uid: The uid of the owner; an earlier owner of the same name had another one.
            namespace: The namespace of the object that has the reference; empty for a cluster-scoped object.

        Example:
            >>> found = ControllerReference("apps/v1", "ReplicaSet", "web", "1")
            >>> web = ObjectKey("apps/v1", "ReplicaSet", "web", "shop")
            >>> found.refers_to(web, "1", namespace="shop"), found.refers_to(web, "2", namespace="shop")
            (True, False)
        """
        same = (self.group, self.kind, self.name, self.uid) == (*owner.group_kind, owner.name, uid)
        return same and owner.namespace in {"", namespace}

    def __str__(self) -> str:
        """Return kind and name, for messages."""
        return f"{self.kind} {self.name}"


def controller_of(live: Manifest) -> ControllerReference | None:
    """Return the controller of an object, also of one that a user wrote; None if it does not have one.

    Source: `metav1.GetControllerOf` of apimachinery.

    Example:
        >>> owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
        >>> found = controller_of({"metadata": {"ownerReferences": [owner]}})
        >>> str(found), found.group
        ('ReplicaSet web', 'apps')
    """
    listed = get_field(live, ("metadata", "ownerReferences"))
    for reference in listed if isinstance(listed, list) else ():
        if isinstance(reference, dict) and reference.get("controller"):
            # Thousands of objects have controllers of one kind, whose texts are kept once.
            return ControllerReference(
                sys.intern(str(reference.get("apiVersion", ""))),
                sys.intern(str(reference.get("kind", ""))),
                str(reference.get("name", "")),
                str(reference.get("uid", "")),
            )
    return None


def owner_uids(live: Manifest) -> tuple[str, ...]:
    """Return the uids of all owner references of an object."""
    listed = get_field(live, ("metadata", "ownerReferences"))
    references = listed if isinstance(listed, list) else ()
    return tuple(str(one.get("uid", "")) for one in references if isinstance(one, dict))
