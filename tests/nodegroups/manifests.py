"""Manifests of nodes and pods in one line, for tests of node groups."""

from typing import Any

__all__ = ["budget", "node", "pod"]


def node(name: str = "n1", *, cpu: str = "4", memory: str = "8Gi", pods: str = "110", **parts: Any) -> dict[str, Any]:
    """Return a ready node; `labels`, `taints`, `allocatable`, `unschedulable`, `ready` and `created` may be given."""
    labels = {"kubernetes.io/hostname": name, **parts.get("labels", {})}
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, **parts.get("allocatable", {})}
    metadata = {"name": name, "labels": labels, "annotations": parts.get("annotations", {})}
    if "created" in parts:
        metadata["creationTimestamp"] = parts["created"]
    return {
        "metadata": metadata,
        "spec": {"taints": parts.get("taints", []), "unschedulable": parts.get("unschedulable", False)},
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True" if parts.get("ready", True) else "False"}],
        },
    }


def pod(name: str = "p", *, cpu: str = "1", memory: str = "1Gi", on: str = "", **parts: Any) -> dict[str, Any]:
    """Return a pod of a ReplicaSet, on a node or pending; `namespace`, `labels` and fields of the spec may be given."""
    namespace, labels = parts.pop("namespace", "default"), parts.pop("labels", {"app": "web"})
    annotations, owner = parts.pop("annotations", {}), parts.pop("owner", "ReplicaSet")
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": owner, "name": f"{name}-owner", "uid": "1", "controller": True}
        ]
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}], **parts}
    status: dict[str, Any] = {"phase": "Running" if on else "Pending"}
    if on:
        spec["nodeName"] = on
    else:
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    return {"metadata": metadata, "spec": spec, "status": status}


def budget(name: str = "b", *, allowed: int, selector: Any = None, namespace: str = "default") -> dict[str, Any]:
    """Return a PodDisruptionBudget."""
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": "web"}} if selector is None else selector},
        "status": {"disruptionsAllowed": allowed},
    }
