"""What belongs to what: by owner references, by the field managers and labels of ocf, and by the names in specs."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import PREFIX
from ocf.ownership import values
from ocf.ownership.snapshot import SnapshotIndex

__all__ = ["DEEPEST", "Relations", "component_of", "operators_of", "other_writers"]

# No operator makes longer chains of owner references.
DEEPEST: Final = 50
_CLAIM: Final = ("", "PersistentVolumeClaim")
# The last parts of the names of a component's other field managers: `<operator>/<kind>/<component>/<uid>/left`.
_PARTS: Final = 4
_FINALIZER: Final = re.compile(rf"(?P<operator>[a-z0-9.-]+?)\.{re.escape(PREFIX)}/")


class Relations:
    """The tree below an owner."""

    def __init__(self, owner: Manifest, index: SnapshotIndex) -> None:
        self.owner = owner
        self.index = index
        self._uid = values.uid(owner)
        self.is_cut = False
        """Whether objects lie deeper below the owner than are looked for; known when its children are."""

    @cached_property
    def parents(self) -> dict[ObjectKey, Manifest]:
        """The parent of each object below the owner, in order of the tree."""
        found: dict[ObjectKey, Manifest] = {}
        root, queue = ObjectKey.of(self.owner), deque([(self.owner, 0)])
        while queue:
            parent, depth = queue.popleft()
            for child in self._children(parent):
                key = ObjectKey.of(child)
                if key != root and key not in found and depth < DEEPEST:
                    found[key] = parent
                    queue.append((child, depth + 1))
                self.is_cut = self.is_cut or depth >= DEEPEST
        return found

    def children(self, live: Manifest) -> list[Manifest]:
        """Return the objects whose parent is an object."""
        return self._by_parent.get(ObjectKey.of(live), [])

    def path(self, live: Manifest) -> Iterator[Manifest]:
        """Yield the objects above one, from it up to the owner: a claim is below the pods that wait for it."""
        seen = {ObjectKey.of(live)}
        parent: Manifest | None = self._user_of(live) or self.parents.get(ObjectKey.of(live))
        while parent is not None and (key := ObjectKey.of(parent)) not in seen:
            seen.add(key)
            yield parent
            parent = self.parents.get(key)

    @cached_property
    def _by_parent(self) -> dict[ObjectKey, list[Manifest]]:
        found: dict[ObjectKey, list[Manifest]] = {}
        for key, parent in self.parents.items():
            child = self.index.find_key(key)
            if child is not None:
                found.setdefault(ObjectKey.of(parent), []).append(child)
        return found

    def _children(self, parent: Manifest) -> Iterator[Manifest]:
        uid = values.uid(parent)
        if uid:
            yield from self.index.owned.get(uid, [])
        if parent is self.owner and uid:
            yield from self.index.made_for.get(uid, [])
        yield from self._composite(parent)
        if values.group_kind(parent) == ("apps", "StatefulSet"):
            yield from self._claims_of_templates(parent)
        if values.group_kind(parent) == ("", "Pod"):
            yield from self._claims_of_pod(parent)

    def _composite(self, claim: Manifest) -> Iterator[Manifest]:
        """Yield the composite resource of a claim of Crossplane: each of the two names the other."""
        reference = values.mapping(claim, "spec", "resourceRef")
        group = values.text(reference, "apiVersion").rpartition("/")[0]
        found = self.index.find(group, values.text(reference, "kind"), "", values.text(reference, "name"))
        named = [values.text(found, "spec", "claimRef", one) for one in ("kind", "namespace", "name")]
        key = ObjectKey.of(claim)
        if found is not None and named == [key.kind, key.namespace, key.name]:
            yield found

    def _claims_of_templates(self, parent: Manifest) -> Iterator[Manifest]:
        namespace, name = (values.text(parent, "metadata", one) for one in ("namespace", "name"))
        templates = [
            values.text(one, "metadata", "name") for one in values.members(parent, "spec", "volumeClaimTemplates")
        ]
        for claim in self.index.of_kind(*_CLAIM, namespace):
            start, _, ordinal = values.text(claim, "metadata", "name").rpartition("-")
            if ordinal.isdigit() and any(start == f"{template}-{name}" for template in templates):
                yield claim

    def _claims_of_pod(self, pod: Manifest) -> Iterator[Manifest]:
        namespace = values.text(pod, "metadata", "namespace")
        for volume in values.members(pod, "spec", "volumes"):
            claim = self.index.find(*_CLAIM, namespace, values.text(volume, "persistentVolumeClaim", "claimName"))
            if claim is not None:
                yield claim

    def _user_of(self, live: Manifest) -> Manifest | None:
        """Return the first pod below the owner that uses a claim."""
        if values.group_kind(live) != _CLAIM:
            return None
        pods = (one for key in self.parents if key.group_kind == ("", "Pod") and (one := self.index.find_key(key)))
        return next((pod for pod in pods if any(one is live for one in self._claims_of_pod(pod))), None)


def component_of(live: Manifest, uid: str) -> str:
    """Return the component of an owner whose field manager has applied an object; empty if there is none."""
    for entry in values.members(live, "metadata", "managedFields"):
        parts = values.text(entry, "manager").split("/")
        if len(parts) >= _PARTS and uid and uid in parts[3:]:
            return "/".join(parts[2 : parts.index(uid, 3)])
    return ""


def operators_of(owner: Manifest, objects: Iterable[Manifest]) -> list[str]:
    """Return the names of the operators of ocf that have written for an owner, or hold it."""
    uid = values.uid(owner)
    found: dict[str, None] = {}
    finalizers = values.field(owner, "metadata", "finalizers")
    for name in finalizers if isinstance(finalizers, list) else ():
        match = _FINALIZER.match(str(name))
        if match is not None:
            found[match["operator"]] = None
    for live in objects:
        for entry in values.members(live, "metadata", "managedFields"):
            parts = values.text(entry, "manager").split("/")
            if uid and len(parts) >= _PARTS and uid in parts[3:]:
                found[parts[0]] = None
    return list(found)


def other_writers(live: Manifest, uid: str) -> Iterator[str]:
    """Yield the field managers that have written an object outside of its status, except for those of its component."""
    for entry in values.members(live, "metadata", "managedFields"):
        manager = values.text(entry, "manager")
        if manager and not values.text(entry, "subresource") and not (uid and uid in manager.split("/")):
            yield values.one_line(manager)
