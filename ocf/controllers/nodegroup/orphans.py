"""Machines that belong to no object: left behind when finalizers were removed by force."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ocf.controllers.nodegroup.objects import GroupObject
from ocf.controllers.nodegroup.observation import ClusterView
from ocf.controllers.nodegroup.reporter import Reporter
from ocf.errors import ProviderError
from ocf.nodegroups import Machine, MachineState, Provider
from ocf.nodegroups.snapshot import RejectedObject

__all__ = ["Orphans"]

_NAMED: Final = re.compile(r"(.+)-[0-9a-f]{10}")


class Orphans:
    """Reports and deletes machines that belong to no object.

    A machine is deleted if it has a name that this controller gives, if no object had that name in two reconciles, and
    if no pod but those of DaemonSets is bound to its Node: with others, only the user can know whether they are still
    needed. It needs a provider that keeps names.
    """

    def __init__(self, provider: Provider, reporter: Reporter) -> None:
        self._provider = provider
        self._reporter = reporter
        self._suspects: frozenset[str] = frozenset()

    async def check(self, view: ClusterView, machines: Sequence[Machine]) -> None:
        """Look for machines without object."""
        if not self._provider.keeps_names:
            return
        known = {node.name for node in view.nodes.values()}
        found = {each.name: each for each in machines if self._is_orphan(each, known)}
        # In the second reconcile: the cache may not have the object yet that another leader created.
        for name in sorted(self._suspects & found.keys()):
            await self._delete(view, found[name])
        for name in sorted(found.keys() - self._suspects):
            note = f"machine {name} belongs to no VPSieNode"
            self._reporter.event(_group_of(view, name), "OrphanedMachine", note)
        self._suspects = frozenset(found)

    @staticmethod
    def _is_orphan(machine: Machine, known: set[str]) -> bool:
        return (
            machine.state is not MachineState.DELETING
            and machine.name not in known
            and _NAMED.fullmatch(machine.name) is not None
        )

    async def _delete(self, view: ClusterView, machine: Machine) -> None:
        if {machine.name, machine.node_name} & set(_nodes_in_use(view)):
            return
        try:
            await self._provider.delete(machine)
        except ProviderError as error:
            self._reporter.event(_group_of(view, machine.name), "OrphanedMachine", f"machine {machine.name}: {error}")


def _nodes_in_use(view: ClusterView) -> Iterator[str]:
    """Yield the names of Nodes with pods that do not belong to their node, as those of DaemonSets do."""
    for pod in view.core.pods:
        controller = None if isinstance(pod, RejectedObject) else pod.controller
        if pod.node_name and (controller is None or controller.kind not in ("DaemonSet", "Node")):
            yield pod.node_name


def _group_of(view: ClusterView, name: str) -> GroupObject | None:
    """Return the group whose name a machine has; None if it is not clear which."""
    named = _NAMED.fullmatch(name)
    found = [each for each in view.groups.values() if named is not None and each.key.name == named.group(1)]
    return found[0] if len(found) == 1 else None
