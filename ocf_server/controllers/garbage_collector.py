"""Garbage collector, and deletion of the contents of namespaces and custom kinds.

A real cluster runs these controllers in the background. Here one call runs until nothing is left to do, so that the
caller chooses the time and the result is deterministic.

* A dependent is deleted when each of its owners is either deleted from this cluster (compared by uid), or in foreground
  deletion and blocked by the dependent.
* An owner with the finalizer `foregroundDeletion` stays until no dependent blocks it. In a circle of owners, one of
  them stops blocking its owners.
* An owner with the finalizer `orphan` stays until no dependent refers to it.
* The deletion of a CustomResourceDefinition deletes all objects of its kind.
* The deletion of a namespace deletes all objects in it; the namespace is removed when it is empty and has none of
  these finalizers.

Only objects that a change may affect are looked at: the object itself, its dependents, which are indexed by the uid of
their owners, its owners, and its namespace. The cost of a write therefore does not grow with the number of objects.

An owner that never existed in this cluster does not count as deleted, so a test may refer to an owner that it does not
create.
"""

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ocf.cluster.protocol import Propagation, Subresource
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf.schema.builtin import ApiResource
from ocf_server.api.write_options import WriteOptions
from ocf_server.apiextensions import defined_kind
from ocf_server.apiextensions.crd_status import CLEANUP, cleaned_up, cleaning_up
from ocf_server.registry import generic_store, verbs
from ocf_server.registry.pending_write import run_without_admission
from ocf_server.registry.registry import DEFINITION, Registry
from ocf_server.registry.storage import Change, Kind, Place

__all__ = ["GarbageCollector"]

_Key: TypeAlias = tuple[Kind, Place]

_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
_NAMESPACE: Final[Kind] = ("", "Namespace")
_NAMESPACE_FINALIZER: Final = "kubernetes"
_READ: Final = ("deletionTimestamp", "finalizers", "ownerReferences")


@dataclass(slots=True)
class GarbageCollector:
    """Deletes objects whose owners are all deleted."""

    registry: Registry
    _gone: set[str] = field(default_factory=set, init=False, repr=False)
    _seen: int = field(default=0, init=False, repr=False)

    def clone(self, registry: Registry) -> "GarbageCollector":
        """Return the collector of a clone of the registry."""
        clone = GarbageCollector(registry)
        clone._gone, clone._seen = self._gone.copy(), self._seen
        return clone

    def run(self) -> None:
        """Collect garbage until nothing is left to do."""
        while due := self._due():
            for kind, place in sorted(due):
                manifest = self.registry.store.get(kind, place)
                if manifest is not None:
                    self._process(kind, place, manifest)

    def finish_definitions(self) -> None:
        """Delete the objects of deleted definitions, which a real API server does without any other controller."""
        definitions = self.registry.store.objects(DEFINITION) if self.registry.store.has(DEFINITION) else ()
        for place, manifest in list(definitions):
            if (
                CLEANUP in (manifest["metadata"].get("finalizers") or ())
                and "deletionTimestamp" in manifest["metadata"]
            ):
                self._finish_definition(place, manifest)

    def _due(self) -> set[_Key]:
        """Record the uids deleted since the last run; return the objects that the changes may affect."""
        store = self.registry.store
        # Changes that dropped out of the history are unknown, so they may affect any object.
        everything = store.everything() if self._seen < store.forgotten else ()
        due = {(kind, place) for kind, place, _ in everything}
        for change in store.since(self._seen):
            if change.after is None and change.before is not None:
                self._gone.add(change.before["metadata"]["uid"])
                due |= self._containers(change.place[0])
            if change.after is None or _may_matter(change.after["metadata"], change.before):
                due |= self._related(change)
        self._seen = store.version
        return due

    def _related(self, change: Change) -> set[_Key]:
        """Return a changed object, its dependents, and its owners, which may wait for it."""
        due = {(change.kind, change.place)}
        for manifest in filter(None, (change.before, change.after)):
            metadata = manifest["metadata"]
            due.update(self.registry.store.dependents(metadata["uid"]))
            due.update(
                ((split_api_version(owner["apiVersion"])[0], owner["kind"]), (home, owner["name"]))
                for owner in metadata.get("ownerReferences") or ()
                for home in (change.place[0], "")
            )
        return due

    def _containers(self, namespace: str) -> set[_Key]:
        """Return the namespace of a deleted object and the definitions of kinds whose own deletion may wait for it."""
        definitions = self.registry.store.objects(DEFINITION) if self.registry.store.has(DEFINITION) else ()
        deleted = {(DEFINITION, place) for place, found in definitions if "deletionTimestamp" in found["metadata"]}
        return deleted | {(_NAMESPACE, ("", namespace))}

    def _process(self, kind: Kind, place: Place, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        finalizers = metadata.get("finalizers") or ()
        if "deletionTimestamp" in metadata:
            if _ORPHAN in finalizers:
                self._orphan(kind, place, manifest)
            elif _FOREGROUND in finalizers:
                self._finish_foreground(kind, place, manifest)
            # In a real cluster other controllers delete what is inside, whatever happens to the dependents.
            left = self.registry.store.get(kind, place) if kind in (_NAMESPACE, DEFINITION) else None
            if left is not None and kind == _NAMESPACE:
                self._finish_namespace(place, left)
            elif left is not None and CLEANUP in (left["metadata"].get("finalizers") or ()):
                self._finish_definition(place, left)
        elif metadata.get("ownerReferences"):
            self._check_owners(kind, place, manifest)

    def _check_owners(self, kind: Kind, place: Place, manifest: Manifest) -> None:
        """Delete a dependent without remaining owners; otherwise remove its references to deleted owners."""
        owners = manifest["metadata"]["ownerReferences"]
        solid = [
            owner for owner in owners if not self._is_gone(owner) and not self._waits_for_dependents(owner, place[0])
        ]
        if len(solid) == len(owners):
            return
        resource = self._resource(kind, manifest)
        if solid:
            self._put(kind, place, manifest, ownerReferences=solid)
            return
        waiting = any(self._waits_for_dependents(owner, place[0]) for owner in owners)
        dependents = self.registry.store.dependents(manifest["metadata"]["uid"])
        if not waiting or not dependents:
            self._delete(resource, manifest, Propagation.BACKGROUND)
            return
        if any(self._is_in_foreground(dependent) for dependent in dependents):
            # The owners may be dependents of this object too; in a circle, each would wait for the next one.
            unblocked = [_unblocked(owner) for owner in owners]
            manifest = self._put(kind, place, manifest, ownerReferences=unblocked)
        self._delete(resource, manifest, Propagation.FOREGROUND)

    def _is_gone(self, owner: dict[str, Any]) -> bool:
        return owner["uid"] in self._gone

    def _waits_for_dependents(self, owner: dict[str, Any], namespace: str) -> bool:
        """Return whether the owner is in foreground deletion and this reference blocks it."""
        if not owner.get("blockOwnerDeletion"):
            return False
        found = self._owner(owner, namespace)
        return found is not None and _deletes_dependents(found["metadata"])

    def _is_in_foreground(self, key: _Key) -> bool:
        found = self.registry.store.get(*key)
        return found is not None and _deletes_dependents(found["metadata"])

    def _owner(self, owner: dict[str, Any], namespace: str) -> Manifest | None:
        group, _ = split_api_version(owner["apiVersion"])
        for home in (namespace, ""):
            found = self.registry.store.get((group, owner["kind"]), (home, owner["name"]))
            if found is not None and found["metadata"]["uid"] == owner["uid"]:
                return found
        return None

    def _finish_foreground(self, kind: Kind, place: Place, manifest: Manifest) -> None:
        uid = manifest["metadata"]["uid"]
        if not any(self._blocks(uid, *dependent) for dependent in self.registry.store.dependents(uid)):
            self._drop_finalizer(kind, place, manifest, _FOREGROUND)

    def _blocks(self, uid: str, kind: Kind, place: Place) -> bool:
        dependent = self.registry.store.get(kind, place)
        owners = dependent["metadata"].get("ownerReferences") or () if dependent else ()
        return any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in owners)

    def _orphan(self, kind: Kind, place: Place, manifest: Manifest) -> None:
        uid = manifest["metadata"]["uid"]
        for where in self.registry.store.dependents(uid):
            dependent = self.registry.store.get(*where)
            if dependent is not None:
                owners = [owner for owner in dependent["metadata"]["ownerReferences"] if owner["uid"] != uid]
                self._put(*where, dependent, ownerReferences=owners)
        self._drop_finalizer(kind, place, manifest, _ORPHAN)

    def _finish_namespace(self, place: Place, manifest: Manifest) -> None:
        name = place[1]
        for kind, _, inside in list(self.registry.store.everything(name)):
            if "deletionTimestamp" not in inside["metadata"]:
                resource = self._resource(kind, inside)
                self._delete(resource, inside, Propagation.BACKGROUND)
        if next(self.registry.store.everything(name), None) is not None:
            return
        spec = dict(manifest["spec"])
        finalizers = spec.pop("finalizers", None) or []
        others = [finalizer for finalizer in finalizers if finalizer != _NAMESPACE_FINALIZER]
        if others:
            spec["finalizers"] = others
        if others != finalizers:
            self._store(_NAMESPACE, place, {**_with_metadata(manifest), "spec": spec})

    def _finish_definition(self, place: Place, manifest: Manifest) -> None:
        """Delete all objects of a kind whose definition is being deleted; then drop the cleanup finalizer."""
        kind = defined_kind(manifest)
        self._update_definition(cleaning_up(manifest, self.registry.timestamp()))
        for _, inside in list(self.registry.store.objects(kind)):
            if "deletionTimestamp" not in inside["metadata"]:
                resource = self._resource(kind, inside)
                self._delete(resource, inside, Propagation.BACKGROUND)
        left = self.registry.store.get(DEFINITION, place)
        if left is not None and not self.registry.store.objects(kind):
            self._update_definition(cleaned_up(left, self.registry.timestamp()))

    def _update_definition(self, definition: Manifest) -> None:
        options = WriteOptions(field_manager="kube-apiserver", subresource=Subresource.STATUS)
        run_without_admission(verbs.update(self.registry, definition, options))

    def _delete(self, resource: ApiResource, manifest: Manifest, propagation: Propagation) -> None:
        # These deletes do not come from a request of a client, so no admission webhook is called for them.
        run_without_admission(
            generic_store.delete(self.registry, resource, manifest, WriteOptions(), propagation=propagation)
        )

    def _drop_finalizer(self, kind: Kind, place: Place, manifest: Manifest, name: str) -> None:
        left = [finalizer for finalizer in manifest["metadata"]["finalizers"] if finalizer != name]
        self._store(kind, place, _with_metadata(manifest, finalizers=left))

    def _put(self, kind: Kind, place: Place, manifest: Manifest, **values: list[Any]) -> Manifest:
        return self.registry.store.put(kind, place, _with_metadata(manifest, **values))

    def _store(self, kind: Kind, place: Place, manifest: Manifest) -> None:
        """Store an object that is being deleted, or remove it if nothing blocks that."""
        if generic_store.is_removable(manifest):
            self.registry.store.remove(kind, place)
        else:
            self.registry.store.put(kind, place, manifest)

    def _resource(self, kind: Kind, manifest: Manifest) -> ApiResource:
        return self.registry.stored_as(manifest["apiVersion"], kind[1])


def _with_metadata(manifest: Manifest, **values: list[Any]) -> Manifest:
    """Return an object with other lists in its metadata; an empty one is removed."""
    metadata = {**manifest["metadata"], **values}
    return {**manifest, "metadata": {key: value for key, value in metadata.items() if key not in values or value}}


def _unblocked(owner: dict[str, Any]) -> dict[str, Any]:
    return {**owner, "blockOwnerDeletion": False} if owner.get("blockOwnerDeletion") else owner


def _deletes_dependents(metadata: Manifest) -> bool:
    return "deletionTimestamp" in metadata and _FOREGROUND in (metadata.get("finalizers") or ())


def _may_matter(metadata: Manifest, before: Manifest | None) -> bool:
    """Return whether a write may lead to a deletion: most writes change nothing that the garbage collector reads."""
    if before is None:
        return "deletionTimestamp" in metadata or "ownerReferences" in metadata
    earlier = before["metadata"]
    return any(metadata.get(name) != earlier.get(name) for name in _READ)
