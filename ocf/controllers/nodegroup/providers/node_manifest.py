"""Node objects of providers whose machines have no kubelet that registers them."""

from ocf.nodegroups import InstanceType, MachineRequest
from ocf.objects import Manifest

__all__ = ["node_manifest"]


def node_manifest(request: MachineRequest, instance_type: InstanceType, *, provider: str) -> Manifest:
    """Return the Node that the kubelet of a machine would register, without conditions.

    Args:
        request: The request of the machine; its name is the name of the node.
        provider: Scheme of the provider id, for example `kwok`.

    Example:
        >>> from ocf.objects import Quantity
        >>> small = InstanceType("small", {"cpu": Quantity.parse(2)})
        >>> node = node_manifest(MachineRequest("pool-1", "pool", "small", "fra"), small, provider="kwok")
        >>> node["spec"]["providerID"], node["metadata"]["labels"]["topology.kubernetes.io/zone"]
        ('kwok://pool-1', 'fra')
    """
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": request.name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": request.instance_type,
        **({"topology.kubernetes.io/zone": request.zone} if request.zone else {}),
        **instance_type.labels,
        **request.labels,
    }
    taints = [dict(taint) for taint in request.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": request.name, "labels": labels},
        "spec": {"providerID": f"{provider}://{request.name}", **({"taints": taints} if taints else {})},
        "status": {
            "capacity": {name: str(amount) for name, amount in instance_type.capacity.items()},
            "allocatable": {name: str(amount) for name, amount in instance_type.allocatable.items()},
        },
    }
