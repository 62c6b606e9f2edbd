"""Simulated provisioner: binds each claim to a new volume at once.

Static volumes, storage classes and `volumeBindingMode` are not considered, and nothing is deleted with the claim.
"""

from typing import Final

from ocf.objects import Manifest
from ocf_server.controllers.actions import Action, Outcome, Write, create, update
from ocf_server.controllers.ownership import is_deleted
from ocf_server.controllers.view import ClusterView

__all__ = ["reconcile_claim"]

_BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


def reconcile_claim(view: ClusterView, claim: Manifest) -> Outcome:
    """Create a volume for a claim, and bind both."""
    metadata, spec = claim["metadata"], claim["spec"]
    if is_deleted(claim) or claim["status"].get("phase") == "Bound":
        return Outcome()
    name = spec.get("volumeName") or f"pvc-{metadata['uid']}"
    volume = view.get("PersistentVolume", "", name)
    capacity = (spec.get("resources") or {}).get("requests") or {}
    if volume is None:
        if spec.get("volumeName"):
            return Outcome()  # the user has asked for a volume that does not exist yet
        return Outcome((create(_volume(claim, name, capacity)),))
    # One write in each reconcile: the next one is computed from its result.
    if volume["status"].get("phase") != "Bound":
        return Outcome((Action(Write.STATUS, {**volume, "status": {**volume["status"], "phase": "Bound"}}),))
    annotations = {**(metadata.get("annotations") or {}), **_BOUND}
    if spec.get("volumeName") != name or annotations != metadata.get("annotations"):
        bound = {**claim, "metadata": {**metadata, "annotations": annotations}}
        return Outcome((update({**bound, "spec": {**spec, "volumeName": name}}),))
    status = {"phase": "Bound", "accessModes": spec.get("accessModes") or [], "capacity": volume["spec"]["capacity"]}
    return Outcome((Action(Write.STATUS, {**claim, "status": {**claim["status"], **status}}),))


def _volume(claim: Manifest, name: str, capacity: Manifest) -> Manifest:
    metadata, spec = claim["metadata"], claim["spec"]
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    reference |= {key: metadata[key] for key in ("namespace", "name", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": "ocf"}},
        "spec": {
            "capacity": capacity,
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "claimRef": reference,
            "persistentVolumeReclaimPolicy": "Delete",
            **({"storageClassName": spec["storageClassName"]} if spec.get("storageClassName") else {}),
            "hostPath": {"path": f"/simulated/{name}"},
        },
    }
