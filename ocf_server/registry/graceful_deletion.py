"""Graceful deletion of pods: a pod on a node is kept until its kubelet deletes it with a grace period of 0.

Source: `BeforeDelete` in k8s.io/apiserver/pkg/registry/rest/delete.go, and the strategy of pods. All other kinds are
deleted at once.
"""

from datetime import timedelta

from ocf.objects import Manifest
from ocf.objects.timestamps import format_time, parse_time

__all__ = ["deletion_time", "grace_period", "seconds_left", "shortens"]


def grace_period(live: Manifest, requested: int | None) -> int:
    """Return the grace period of a delete in seconds.

    Args:
        requested: The grace period of the request; None for that of the pod.

    Example:
        >>> pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 30}}
        >>> grace_period(pod, None), grace_period(pod, 5), grace_period({**pod, "spec": {}}, None)
        (30, 5, 0)
    """
    if not _is_pod(live) or ("deletionTimestamp" in live.get("metadata", {}) and not seconds_left(live)):
        return 0
    spec = live.get("spec", {})
    if not spec.get("nodeName") or live.get("status", {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    seconds: int = spec.get("terminationGracePeriodSeconds", 0) if requested is None else requested
    # A negative period counts as one second (BeforeDelete).
    return seconds if seconds >= 0 else 1


def seconds_left(manifest: Manifest) -> int:
    """Return the grace period of an object that is being deleted; 0 if it is not, or if only finalizers block that."""
    metadata = manifest["metadata"]
    seconds: int = metadata.get("deletionGracePeriodSeconds") or 0
    return seconds if "deletionTimestamp" in metadata else 0


def shortens(live: Manifest, requested: int | None) -> bool:
    """Return whether a delete changes a deletion with a grace period; True if there is none."""
    left = seconds_left(live)
    return not left or (requested is not None and requested < left)


def deletion_time(metadata: Manifest, seconds: int) -> str:
    """Return the deletionTimestamp after the grace period was shortened.

    Args:
        metadata: The metadata of an object that is being deleted.
    """
    # The new end counts from the first delete, not from now.
    begun = parse_time(metadata["deletionTimestamp"]) - timedelta(seconds=metadata["deletionGracePeriodSeconds"])
    return format_time(begun + timedelta(seconds=seconds))


def _is_pod(manifest: Manifest) -> bool:
    return (manifest["apiVersion"], manifest["kind"]) == ("v1", "Pod")
