"""CustomResourceDefinitions of NodeGroup and VPSieNode."""

from typing import Final

from ocf.controllers.nodegroup.model import GROUP, NodeGroup
from ocf.controllers.nodegroup.node_model import VPSieNode
from ocf.objects import Manifest
from ocf.runtime.crds import CRDVersion, PrinterColumn, crd
from ocf.runtime.crds.crd import AGE

__all__ = ["VERSION", "node_definition", "node_group_definition"]

VERSION: Final = "v1alpha1"
"""The version of both kinds."""

_GROUP_COLUMNS: Final = (
    PrinterColumn("Min", ".spec.minNodes"),
    PrinterColumn("Max", ".spec.maxNodes"),
    PrinterColumn("Desired", ".status.desiredNodes"),
    PrinterColumn("Current", ".status.currentNodes"),
    PrinterColumn("Ready", ".status.readyNodes"),
    AGE,
    PrinterColumn("Decision", ".status.lastDecision", priority=1),
)
_NODE_COLUMNS: Final = (
    PrinterColumn("Group", ".spec.nodeGroupName"),
    PrinterColumn("Type", ".spec.instanceType"),
    PrinterColumn("Phase", ".status.phase"),
    PrinterColumn("Node", ".status.nodeName"),
    AGE,
    PrinterColumn("Error", ".status.lastError", priority=1),
)


def node_group_definition() -> Manifest:
    """Return the definition of NodeGroup.

    Example:
        >>> node_group_definition()["metadata"]["name"]
        'nodegroups.autoscaling.ocf.dev'
    """
    return crd(
        GROUP,
        CRDVersion(VERSION, NodeGroup, columns=_GROUP_COLUMNS),
        short_names=["ng", "ngs"],
        categories=["autoscaling"],
    )


def node_definition() -> Manifest:
    """Return the definition of VPSieNode.

    Example:
        >>> node_definition()["spec"]["names"]["plural"]
        'vpsienodes'
    """
    return crd(
        GROUP,
        CRDVersion(VERSION, VPSieNode, columns=_NODE_COLUMNS, selectable=(".spec.nodeGroupName",)),
        short_names=["vn", "vns"],
        categories=["autoscaling"],
    )
