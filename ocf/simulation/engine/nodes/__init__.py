"""Nodes of a simulation: groups, machines, scheduler and the controller of node groups."""

from ocf.simulation.engine.nodes.cluster import NodeCluster
from ocf.simulation.engine.nodes.fleet import NodeFleet

__all__ = ["NodeCluster", "NodeFleet"]
