"""Fields of pods whose feature gate is off by default; the API server drops them before it validates a pod.

Source: `dropDisabledFields` in `pkg/api/pod/util.go` of Kubernetes, with the gates of release 1.36.
"""

from typing import Any, Final

from ocf.objects import Manifest

__all__ = ["LEASE", "drop_disabled_fields", "drop_disabled_status", "drop_election_fields"]

LEASE: Final = ("coordination.k8s.io", "Lease")
_TEMPLATE: Final = ("spec", "template", "spec")
_PLACES: Final = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
    ("batch", "Job"): _TEMPLATE,
}
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_ELECTION: Final = ("strategy", "preferredHolder")
_PROJECTIONS: Final = ("clusterTrustBundle", "podCertificate")


def drop_disabled_fields(manifest: Manifest, kind: tuple[str, str]) -> None:
    """Drop stop signals, scheduling groups, and projections of certificates from the spec of a pod of a new object.

    Args:
        manifest: An object; it is changed if it contains a pod, or is a lease.
    """
    if kind == LEASE:
        drop_election_fields(manifest, {})
    place = _PLACES.get(kind)
    if place is None:
        return
    spec: Any = manifest
    for name in place:
        spec = spec[name]
    spec.pop("schedulingGroup", None)
    for name in _CONTAINERS:
        for container in spec.get(name) or ():
            if "stopSignal" in container.get("lifecycle", {}):
                _drop_signal(container)
    for volume in spec.get("volumes", ()):
        for source in volume.get("projected", {}).get("sources") or ():
            for name in _PROJECTIONS:
                source.pop(name, None)


def drop_disabled_status(status: dict[str, Any]) -> None:
    """Drop the digests of image volumes from the status of a pod.

    Args:
        status: The status; it is changed.
    """
    for name in _CONTAINERS:
        for container in status.get(f"{name.removesuffix('s')}Statuses") or ():
            for mount in container.get("volumeMounts") or ():
                mount.pop("volumeStatus", None)


def drop_election_fields(lease: Manifest, live: Manifest) -> None:
    """Drop the fields of coordinated leader election from the spec of a lease, unless they are stored.

    Args:
        lease: The lease; it is changed.
        live: The stored lease; empty for a new one.
    """
    for name in _ELECTION:
        if name not in live.get("spec", {}):
            lease.get("spec", {}).pop(name, None)


def _drop_signal(container: dict[str, Any]) -> None:
    rest = {name: action for name, action in container["lifecycle"].items() if name != "stopSignal"}
    if rest:
        container["lifecycle"] = rest
    else:
        del container["lifecycle"]
