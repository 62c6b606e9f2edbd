"""Simulated provisioner: binds each claim to a new volume.

With `WaitForFirstConsumer` that happens once a pod with the claim has a node, and in the zone of this node. Static
volumes are not considered, and nothing is deleted with the claim.
"""

from collections.abc import Iterator
from typing import Any, Final

from ocf.objects import Manifest
from ocf_server.controllers.actions import Action, Outcome, Write, create, update
from ocf_server.controllers.ownership import is_deleted
from ocf_server.controllers.view import ClusterView

__all__ = ["claims_of", "reconcile_claim"]

_BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
_ZONE: Final = "topology.kubernetes.io/zone"
_DRIVER: Final = "simulated.csi.ocf.dev"
# Their volumes are directories or disks of one node.
_LOCAL: Final = ("kubernetes.io/no-provisioner", "rancher.io/local-path", "openebs.io/local", "docker.io/hostpath")


def claims_of(pod: Manifest) -> Iterator[str]:
    """Yield the names of the claims that a pod uses."""
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}"


def reconcile_claim(view: ClusterView, claim: Manifest) -> Outcome:
    """Create a volume for a claim, and bind both."""
    metadata, spec = claim["metadata"], claim["spec"]
    if is_deleted(claim) or claim["status"].get("phase") == "Bound":
        return Outcome()
    name = spec.get("volumeName") or f"pvc-{metadata['uid']}"
    volume = view.get("PersistentVolume", "", name)
    if volume is None:
        if spec.get("volumeName"):
            return Outcome()  # the user has asked for a volume that does not exist yet
        new = _new_volume(view, claim, name)
        # Otherwise its first pod has no node yet.
        return Outcome((create(new),)) if new is not None else Outcome()
    # One write in each reconcile: the next one is computed from its result.
    if volume["status"].get("phase") != "Bound":
        return Outcome((Action(Write.STATUS, {**volume, "status": {**volume["status"], "phase": "Bound"}}),))
    annotations = {**(metadata.get("annotations") or {}), **_BOUND}
    if spec.get("volumeName") != name or annotations != metadata.get("annotations"):
        bound = {**claim, "metadata": {**metadata, "annotations": annotations}}
        return Outcome((update({**bound, "spec": {**spec, "volumeName": name}}),))
    status = {"phase": "Bound", "accessModes": spec.get("accessModes") or [], "capacity": volume["spec"]["capacity"]}
    return Outcome((Action(Write.STATUS, {**claim, "status": {**claim["status"], **status}}),))


def _new_volume(view: ClusterView, claim: Manifest, name: str) -> Manifest | None:
    """Return the volume for a claim; None if it is not known yet where."""
    found = view.get("StorageClass", "", claim["spec"].get("storageClassName") or "") or {}
    volume = _volume(claim, name, found.get("provisioner", _DRIVER))
    if found.get("volumeBindingMode") != "WaitForFirstConsumer":
        return volume
    node = _node_of(view, claim)
    if node is None:
        return None
    zone = (node["metadata"].get("labels") or {}).get(_ZONE)
    if zone:
        terms = [{"matchExpressions": [{"key": _ZONE, "operator": "In", "values": [zone]}]}]
        volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return volume


def _node_of(view: ClusterView, claim: Manifest) -> Manifest | None:
    """Return the node of the first pod that uses a claim; None if no such pod has one."""
    metadata = claim["metadata"]
    nodes = (
        view.get("Node", "", pod["spec"]["nodeName"])
        for pod in view.objects("Pod", metadata["namespace"])
        if pod["spec"].get("nodeName") and metadata["name"] in claims_of(pod)
    )
    return next(filter(None, nodes), None)


def _volume(claim: Manifest, name: str, provisioner: str) -> dict[str, Any]:
    metadata, spec = claim["metadata"], claim["spec"]
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    reference |= {key: metadata[key] for key in ("namespace", "name", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": "ocf"}},
        "spec": {
            "capacity": (spec.get("resources") or {}).get("requests") or {},
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "claimRef": reference,
            "persistentVolumeReclaimPolicy": "Delete",
            **({"storageClassName": spec["storageClassName"]} if spec.get("storageClassName") else {}),
            **_source(name, provisioner),
        },
    }


def _source(name: str, provisioner: str) -> Manifest:
    if provisioner in _LOCAL:
        return {"hostPath": {"path": f"/simulated/{name}"}}
    return {"csi": {"driver": provisioner, "volumeHandle": name}}
