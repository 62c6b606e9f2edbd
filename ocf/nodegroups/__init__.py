"""Node groups: which nodes to add for pods that do not fit, and which nodes to remove."""

from ocf.nodegroups.instance_types import InstanceType, Offering
from ocf.nodegroups.provider import Machine, MachineRequest, MachineState, Provider

__all__ = ["InstanceType", "Machine", "MachineRequest", "MachineState", "Offering", "Provider"]
