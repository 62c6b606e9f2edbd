"""Nodes of a cluster, by what is known of their machines."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ocf.controllers.nodegroup.lifecycle import NodeState
from ocf.controllers.nodegroup.objects import NodeObject
from ocf.nodegroups import Machine, Node
from ocf.nodegroups.snapshot import RejectedObject
from ocf.nodegroups.snapshot.fields import Fields
from ocf.nodegroups.snapshot.rejected import read_or_reject
from ocf.objects import Manifest

__all__ = ["JoinedNode", "NodeIndex"]


@dataclass(frozen=True, slots=True)
class JoinedNode:
    """A Node of the cluster.

    Args:
        manifest: What writes and the search for its machine need of it: lists of images and heartbeats are left out.
        parsed: The node for the algorithm, or why it cannot be parsed.
    """

    manifest: Manifest
    parsed: Node | RejectedObject

    @classmethod
    def of(cls, manifest: Manifest) -> "JoinedNode":
        """Parse a Node."""
        status = Fields(manifest, "", []).child("status").value
        kept = {key: status[key] for key in ("addresses", "conditions") if key in status}
        parsed = read_or_reject(Node.of, manifest)
        return cls({**manifest, "status": kept}, parsed)

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.manifest["metadata"]["name"])


class NodeIndex:
    """The Nodes of a cluster, to find that of a machine."""

    def __init__(self, nodes: Iterable[JoinedNode]) -> None:
        known = tuple(nodes)
        self.by_name: Final[Mapping[str, Manifest]] = {each.name: each.manifest for each in known}
        self._parsed = {each.name: each.parsed for each in known}
        self._by_provider_id: dict[str, str] = {}
        self._by_address: dict[str, str] = {}
        for name, manifest in self.by_name.items():
            fields = Fields(manifest, "", [])
            if identifier := fields.child("spec").text("providerID"):
                self._by_provider_id[identifier] = name
            for address in fields.child("status").items("addresses"):
                if address.text("type") in ("InternalIP", "ExternalIP"):
                    self._by_address.setdefault(address.text("address"), name)

    def find(self, node: NodeObject, machine: Machine | None, *, keeps_names: bool) -> str:
        """Return the name of the Node of a machine; empty if it has not joined.

        Args:
            machine: The machine; None if the provider does not list it.
            keeps_names: Whether the Node may be found by the name of the object.
        """
        # In the order of certainty: what was found before, what the cloud controller wrote, what the provider says;
        # addresses may be used again.
        known = node.status.machine_id
        replaced = machine is not None and known and machine.id != known
        names = [] if replaced else [node.status.node_name]
        if machine is not None:
            names += [self._by_provider_id.get(machine.provider_id, ""), machine.node_name]
            names += [self._by_address.get(address, "") for address in machine.addresses]
        if keeps_names:
            names.append(node.name)
        return next((name for name in names if name in self.by_name and not self._is_of_another(name, machine)), "")

    def _is_of_another(self, name: str, machine: Machine | None) -> bool:
        """Return whether a Node says that it runs on another machine: names and addresses are used again."""
        if machine is None or not machine.provider_id:
            return False
        found = Fields(self.by_name[name], "", []).child("spec").text("providerID")
        return found not in ("", machine.provider_id)

    def state(self, name: str) -> NodeState:
        """Return the state of a Node.

        Args:
            name: Its name; empty for one that has not joined.
        """
        found = self._parsed.get(name)
        if found is None:
            return NodeState.ABSENT
        # A Node that cannot be parsed is not replaced because of that.
        ready = isinstance(found, RejectedObject) or found.ready
        return NodeState.READY if ready else NodeState.NOT_READY
