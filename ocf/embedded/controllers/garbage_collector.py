"""The garbage collector, and the end of a namespace.

A real cluster does this in the background. Here it is one function that works until nothing is left to do, so that its
moment is the caller's choice and its result is always the same.

* A dependent goes when every owner it names is gone: deleted from this cluster (by uid), or waiting in the foreground
  for it.
* An owner with the finalizer `foregroundDeletion` stays until no dependent that blocks it is left.
* An owner with the finalizer `orphan` stays until no dependent names it.
* A definition of a kind that is being deleted takes all objects of the kind along.
* A namespace that is being deleted takes everything in it along, and goes when it is empty.

An owner that was never in this cluster is not gone: a test may name an owner that it does not create.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from ocf.cluster.protocol import Propagation
from ocf.embedded.api.write_options import WriteOptions
from ocf.embedded.apiextensions.crd_status import CLEANUP
from ocf.embedded.registry import generic_store
from ocf.embedded.registry.pending_write import run_without_admission
from ocf.embedded.registry.registry import DEFINITION, Registry
from ocf.embedded.registry.storage import Kind, Place
from ocf.objects import Manifest, split_api_version
from ocf.schema.builtin import ApiResource

__all__ = ["GarbageCollector"]

_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
_NAMESPACE: Final[Kind] = ("", "Namespace")


@dataclass(slots=True)
class GarbageCollector:
    """Removes what nobody owns any more.

    Args:
        core: The server it works on.
    """

    core: Registry
    _gone: set[str] = field(default_factory=set, init=False, repr=False)
    _seen: int = field(default=0, init=False, repr=False)

    def run(self) -> None:
        """Work until nothing is left to do."""
        while self._touched():
            for kind, place, manifest in list(self.core.store.everything()):
                if self.core.store.get(kind, place) is manifest:
                    self._visit(kind, place, manifest)

    def _touched(self) -> bool:
        """Note who is gone since the last look, and say whether anything could follow from what happened."""
        # What was forgotten before this look may have been anything.
        due = self._seen < self.core.store.forgotten
        for change in self.core.store.since(self._seen):
            after = change.after
            if after is None:
                if change.before is not None:
                    self._gone.add(change.before["metadata"]["uid"])
                due = True
            elif "deletionTimestamp" in after["metadata"] or "ownerReferences" in after["metadata"]:
                due = True
        self._seen = self.core.store.version
        return due

    def _visit(self, kind: Kind, place: Place, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        finalizers = metadata.get("finalizers") or ()
        if "deletionTimestamp" in metadata:
            if kind == _NAMESPACE:
                self._end_namespace(place, manifest)
            elif kind == DEFINITION and CLEANUP in finalizers:
                self._end_definition(place, manifest)
            elif _ORPHAN in finalizers:
                self._orphan(kind, place, manifest)
            elif _FOREGROUND in finalizers:
                self._end_foreground(kind, place, manifest)
        elif metadata.get("ownerReferences"):
            self._judge(kind, place, manifest)

    def _judge(self, kind: Kind, place: Place, manifest: Manifest) -> None:
        """Delete a dependent all of whose owners are gone, or take the gone ones off its list."""
        owners = manifest["metadata"]["ownerReferences"]
        solid = [owner for owner in owners if not self._is_gone(owner) and not self._waits(owner, place[0])]
        if len(solid) == len(owners):
            return
        resource = self._resource(kind, manifest)
        if solid:
            self._put(kind, place, manifest, ownerReferences=solid)
            return
        waiting = any(self._waits(owner, place[0]) for owner in owners)
        foreground = waiting and bool(self.core.store.dependents(manifest["metadata"]["uid"]))
        propagation = Propagation.FOREGROUND if foreground else Propagation.BACKGROUND
        self._delete(resource, manifest, propagation)

    def _is_gone(self, owner: dict[str, Any]) -> bool:
        return owner["uid"] in self._gone

    def _waits(self, owner: dict[str, Any], namespace: str) -> bool:
        """Say whether an owner is being deleted in the foreground and the reference blocks it."""
        if not owner.get("blockOwnerDeletion"):
            return False
        found = self._owner(owner, namespace)
        if found is None:
            return False
        metadata = found["metadata"]
        return "deletionTimestamp" in metadata and _FOREGROUND in (metadata.get("finalizers") or ())

    def _owner(self, owner: dict[str, Any], namespace: str) -> Manifest | None:
        group, _ = split_api_version(owner["apiVersion"])
        for home in (namespace, ""):
            found = self.core.store.get((group, owner["kind"]), (home, owner["name"]))
            if found is not None and found["metadata"]["uid"] == owner["uid"]:
                return found
        return None

    def _end_foreground(self, kind: Kind, place: Place, manifest: Manifest) -> None:
        uid = manifest["metadata"]["uid"]
        if not any(self._blocks(uid, *dependent) for dependent in self.core.store.dependents(uid)):
            self._drop_finalizer(kind, place, manifest, _FOREGROUND)

    def _blocks(self, uid: str, kind: Kind, place: Place) -> bool:
        dependent = self.core.store.get(kind, place)
        owners = dependent["metadata"].get("ownerReferences") or () if dependent else ()
        return any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in owners)

    def _orphan(self, kind: Kind, place: Place, manifest: Manifest) -> None:
        uid = manifest["metadata"]["uid"]
        for where in self.core.store.dependents(uid):
            dependent = self.core.store.get(*where)
            if dependent is not None:
                owners = [owner for owner in dependent["metadata"]["ownerReferences"] if owner["uid"] != uid]
                self._put(*where, dependent, ownerReferences=owners)
        self._drop_finalizer(kind, place, manifest, _ORPHAN)

    def _end_namespace(self, place: Place, manifest: Manifest) -> None:
        name = place[1]
        for kind, _, inside in list(self.core.store.everything(name)):
            if "deletionTimestamp" not in inside["metadata"]:
                resource = self._resource(kind, inside)
                self._delete(resource, inside, Propagation.BACKGROUND)
        emptied = next(self.core.store.everything(name), None) is None
        if emptied and not manifest["metadata"].get("finalizers"):
            self.core.store.remove(_NAMESPACE, place)

    def _end_definition(self, place: Place, manifest: Manifest) -> None:
        """Delete all objects of a kind whose definition goes, then let the definition go."""
        spec = manifest["spec"]
        kind = (spec["group"], spec["names"]["kind"])
        for _, inside in list(self.core.store.objects(kind)):
            if "deletionTimestamp" not in inside["metadata"]:
                resource = self._resource(kind, inside)
                self._delete(resource, inside, Propagation.BACKGROUND)
        if not self.core.store.objects(kind):
            self._drop_finalizer(DEFINITION, place, manifest, CLEANUP)

    def _delete(self, resource: ApiResource, manifest: Manifest, propagation: Propagation) -> None:
        # What the collector does is not asked for by anybody, so no webhook is asked about it.
        run_without_admission(
            generic_store.delete(self.core, resource, manifest, WriteOptions(), propagation=propagation)
        )

    def _drop_finalizer(self, kind: Kind, place: Place, manifest: Manifest, name: str) -> None:
        left = [finalizer for finalizer in manifest["metadata"]["finalizers"] if finalizer != name]
        if left:
            self._put(kind, place, manifest, finalizers=left)
        else:
            self.core.store.remove(kind, place)

    def _put(self, kind: Kind, place: Place, manifest: Manifest, **values: list[Any]) -> None:
        metadata = {**manifest["metadata"], **values}
        kept = {key: value for key, value in metadata.items() if key not in values or value}
        self.core.store.put(kind, place, {**manifest, "metadata": kept})

    def _resource(self, kind: Kind, manifest: Manifest) -> ApiResource:
        return self.core.stored_as(manifest["apiVersion"], kind[1])
