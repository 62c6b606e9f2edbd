"""Simulated nodes: the Node objects that kubelets would register."""

from collections.abc import Iterator
from typing import Final

from ocf.objects import Manifest
from ocf_server.controllers.settings import ControllerSettings

__all__ = ["node_manifests"]

_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_INFO: Final = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "ocf",
    "kernelVersion": "ocf",
    "kubeProxyVersion": "ocf",
    "kubeletVersion": "ocf",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "simulated",
    "systemUUID": "",
}


def node_manifests(settings: ControllerSettings, timestamp: str) -> Iterator[Manifest]:
    """Yield the nodes to create.

    Args:
        settings: The settings, with number and capacity of the nodes.
        timestamp: The present time, in the format of object timestamps.

    Example:
        >>> [node["metadata"]["name"] for node in node_manifests(ControllerSettings(nodes=2), "2026-01-01T00:00:00Z")]
        ['ocf-node-1', 'ocf-node-2']
    """
    for number in range(1, settings.nodes + 1):
        name = f"ocf-node-{number}"
        labels = {
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
        }
        conditions = [
            {"type": kind, "status": status, "reason": reason, "message": message}
            | {"lastHeartbeatTime": timestamp, "lastTransitionTime": timestamp}
            for kind, status, reason, message in _CONDITIONS
        ]
        addresses = [
            {"type": "InternalIP", "address": f"10.32.{number >> 8 & 255}.{number & 255}"},
            {"type": "Hostname", "address": name},
        ]
        capacity = dict(settings.capacity)
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {
                "capacity": capacity,
                "allocatable": capacity,
                "conditions": conditions,
                "addresses": addresses,
                "nodeInfo": dict(_INFO),
            },
        }
