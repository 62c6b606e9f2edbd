"""What one reconcile knows about machines and their Nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ocf.controllers.nodegroup.objects import NodeObject
from ocf.controllers.nodegroup.observation import ClusterView
from ocf.errors import failure_text
from ocf.nodegroups import Machine

__all__ = ["NodeGroupContext"]


@dataclass(slots=True, kw_only=True)
class NodeGroupContext:
    """What one reconcile knows about machines.

    Args:
        unknown: Why the machines of an instance type could not be read, by its name: such a machine is not missing.
        held: Why nodes stay that have not been ready for too long, by the uid of their object.
        problems: The errors of the provider, by the name of the group; filled by the steps.
        errors: The unexpected errors, by the name of the group; filled by the steps.
        failures: The nodes that could not be handled because of the API server; filled by the steps.
    """

    view: ClusterView
    machines: Sequence[Machine]
    now: datetime
    unknown: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    ids: frozenset[str] = field(init=False)
    _by_name: dict[str, Machine] = field(init=False)
    _by_id: dict[str, Machine] = field(init=False)
    _owners: dict[str, NodeObject] = field(init=False)

    def __post_init__(self) -> None:
        # A large cluster is looked at once, and not once for each of its nodes.
        # Reversed, so that of two machines with one name the first counts, as it does for the provider.
        self._by_name = {each.name: each for each in reversed(self.machines) if each.name}
        self._by_id = {each.id: each for each in reversed(self.machines) if each.id}
        self.ids = frozenset(self._by_id)
        self._owners = self.view.node_names

    def machine_of(self, node: NodeObject, *, keeps_names: bool) -> Machine | None:
        """Return the machine of a node; None if the provider does not list it."""
        known = self._by_id.get(node.status.machine_id)
        if not keeps_names:
            return known
        # Of two machines with its name, the one that it has; that of a twin has the name of another object.
        if known is not None and known.name == node.name:
            return known
        return self._by_name.get(node.name) or (known if known is not None and known.name else None)

    def unexpected(self, name: str, error: Exception, *, group: str = "") -> None:
        """Record an unexpected error of a step; it ends no other one.

        Args:
            group: The name of the group whose condition shows it; empty for none.
        """
        text = f"{name}: {failure_text(error)}; the log of the controller has more"
        self.failures.append(text)
        if group:
            self.errors.setdefault(group, text)

    def owner_of(self, name: str) -> NodeObject | None:
        """Return the object of a Node; None if none claims it."""
        return self._owners.get(name)

    def find_node(self, node: NodeObject, *, keeps_names: bool) -> None:
        """Set the name of the Node of an object that runs and whose status lacks it: without it, it has no pods."""
        if node.status.node_name or node.problems or node.status.phase not in ("Ready", "Draining", "Terminating"):
            return
        machine = self.machine_of(node, keeps_names=keeps_names)
        name = self.view.index.find(node, machine, keeps_names=keeps_names)
        owner = self.owner_of(name)
        if name and (owner is None or owner is node):
            before = node.node_name
            node.status = node.status.model_copy(update={"node_name": name})
            self.claim(node, before)

    def claim(self, node: NodeObject, before: str) -> None:
        """Record that the Node of an object became known in this reconcile."""
        name = node.node_name
        if name != before and self._owners.get(before) is node:
            del self._owners[before]
        self._owners[name] = node
