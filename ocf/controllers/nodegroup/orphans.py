"""Machines that belong to no object: left behind when finalizers were removed by force, or created twice."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from ocf.cluster import Cluster
from ocf.controllers.nodegroup.carry_out import member_manifest
from ocf.controllers.nodegroup.node_model import VPSieNodeSpec
from ocf.controllers.nodegroup.objects import (
    MEMBER_LABEL,
    GroupObject,
    NodeObject,
    name_prefix,
    read_node,
    twin_name,
)
from ocf.controllers.nodegroup.observation import ClusterView
from ocf.controllers.nodegroup.reporter import Reporter
from ocf.controllers.nodegroup.texts import is_same_problem
from ocf.controllers.nodegroup.writes import FIELD_MANAGER, store_node_status
from ocf.errors import AlreadyExistsError, ApiError, ProviderError
from ocf.nodegroups import Machine, MachineState, Provider
from ocf.nodegroups.snapshot import RejectedObject
from ocf.objects import Manifest
from ocf.objects.model_errors import problems_of

__all__ = ["Orphans"]

_NAMED: Final = re.compile(r"(.+)-[0-9a-f]{10}")


class Orphans:
    """Deletes or adopts machines that belong to no object.

    Such a machine has a name that this controller gives to machines of a group that exists, or existed since the start
    of the process, or its Node has the label of a group; and no object had that name in two reconciles. If pods other
    than those of DaemonSets are bound to its Node, they may still be needed: its group gets an object for it, so that
    it counts, and is removed by the rules of scale-down. Otherwise it is deleted. The same holds for a twin: a second
    machine with the name of an object that has another one. It needs a provider that keeps names.
    """

    def __init__(self, cluster: Cluster, provider: Provider, reporter: Reporter) -> None:
        self._cluster = cluster
        self._provider = provider
        self._reporter = reporter
        self._suspects: frozenset[str] = frozenset()
        self._foreign: frozenset[str] = frozenset()
        self._groups: set[str] = set()
        self._reported: dict[str, str] = {}

    async def check(self, view: ClusterView, machines: Sequence[Machine], now: datetime) -> None:
        """Look for machines without object."""
        if not self._provider.keeps_names:
            return
        self._groups |= {name_prefix(each.key.name) for each in view.groups.values()}
        self._groups |= {
            name_prefix(each.spec.node_group_name) for each in view.nodes.values() if each.spec is not None
        }
        known = {node.name for node in view.nodes.values()}
        named = {each.name: each for each in machines if _is_named(each) and each.name not in known}
        ours = {name: each for name, each in named.items() if self._is_ours(view, each)}
        found: dict[str, Machine] = {**ours, **_twins(view, machines)}
        # In the second reconcile: the cache may not have the object yet that another leader created.
        for name in sorted(self._suspects & found.keys()):
            await self._settle(view, found[name], now)
        for name in sorted(found.keys() - self._suspects):
            note = f"machine {_text(found[name])} belongs to no VPSieNode"
            self._reporter.event(_group_of(view, found[name].name), "OrphanedMachine", note)
        for name in sorted(named.keys() - found.keys() - self._foreign):
            note = f"machine {name} is left alone: it belongs to no VPSieNode, and to no NodeGroup that is known"
            self._reporter.event(None, "OrphanedMachine", note)
        self._suspects, self._foreign = frozenset(found), frozenset(named.keys() - found.keys())
        keys = {each.id or each.name for each in found.values()}
        self._reported = {key: error for key, error in self._reported.items() if key in keys}

    def _is_ours(self, view: ClusterView, machine: Machine) -> bool:
        """Return whether more than the form of its name says that this controller created a machine."""
        # A user's backup may be called backup-2026010112, and what another cluster created has a group there.
        if machine.may_be_foreign:
            return False
        node = view.index.by_name.get(machine.node_name or machine.name)
        return _prefix(machine.name) in self._groups or (node is not None and MEMBER_LABEL in _labels(node))

    async def _settle(self, view: ClusterView, machine: Machine, now: datetime) -> None:
        group = _group_of(view, machine.name)
        owner = _owners(view).get(machine.name)
        # The Node with the name of a twin is that of the other machine.
        joined = {machine.node_name, machine.name if owner is None else ""}
        if owner is not None:
            group = view.groups.get(owner.group)
            joined.add(view.index.find(owner, machine, keeps_names=False))
        try:
            if not joined & set(_nodes_in_use(view)):
                await self._provider.delete(machine)
            elif group is not None and not group.ending and machine.instance_type:
                name = machine.name if owner is None else twin_name(group, machine.id)
                await self._adopt(group, machine, name, now)
        except (ProviderError, ApiError) as error:
            self._fail(group, machine, str(error))

    def _fail(self, group: GroupObject | None, machine: Machine, problem: str) -> None:
        """Report a failure, once for as long as it is the same."""
        if not is_same_problem(self._reported.get(machine.id or machine.name, ""), problem):
            self._reporter.event(group, "OrphanedMachine", f"machine {_text(machine)}: {problem}")
        self._reported[machine.id or machine.name] = problem

    async def _adopt(self, group: GroupObject, machine: Machine, name: str, now: datetime) -> None:
        """Create the object of a machine, as if it had just booted."""
        zone = machine.zone or (group.spec.datacenter_id if group.spec is not None else "")
        names = {"nodeGroupName": group.key.name, "instanceType": machine.instance_type, "datacenterID": zone}
        try:
            spec = VPSieNodeSpec.model_validate(names)
        except ValidationError as error:
            # A machine of a type or in a zone that no group could name.
            found = problems_of(error.errors(), names, VPSieNodeSpec)
            problems = "; ".join(f"spec.{each}" for each in found)
            self._fail(group, machine, f"pods run on its node, but no VPSieNode can be created for it: {problems}")
            return
        manifest = member_manifest(group, spec, name)
        try:
            node = read_node(await self._cluster.create(manifest, field_manager=FIELD_MANAGER))
        except AlreadyExistsError:
            return
        times = dict.fromkeys(("requested_at", "accepted_at", "running_at"), now)
        known = {"phase": "Joining", "machine_id": machine.id, "node_name": machine.node_name, **times}
        await store_node_status(self._cluster, node, node.status.model_copy(update=known))
        note = f"machine {_text(machine)} belongs to the group again, as pods run on its node"
        self._reporter.event(group, "OrphanedMachine", note, node=node)


def _owners(view: ClusterView) -> Mapping[str, NodeObject]:
    return {node.name: node for node in view.nodes.values()}


def _twins(view: ClusterView, machines: Sequence[Machine]) -> Mapping[str, Machine]:
    """Return the machines with the name of an object that has another machine of this name, by their id."""
    owners, named = _owners(view), {(each.name, each.id) for each in machines}
    taken = {node.status.machine_id for node in owners.values()}
    return {
        each.id: each
        for each in machines
        if (owner := owners.get(each.name)) is not None
        and (owner.name, owner.status.machine_id) in named
        and each.id not in taken
        and _is_named(each)
        and not each.may_be_foreign
    }


def _text(machine: Machine) -> str:
    return machine.name if machine.id in ("", machine.name) else f"{machine.name} (id {machine.id})"


def _nodes_in_use(view: ClusterView) -> Iterator[str]:
    """Yield the names of Nodes with pods that do not belong to their node, as those of DaemonSets do."""
    for pod in view.core.pods:
        controller = None if isinstance(pod, RejectedObject) else pod.controller
        if pod.node_name and (controller is None or controller.kind not in ("DaemonSet", "Node")):
            yield pod.node_name


def _group_of(view: ClusterView, name: str) -> GroupObject | None:
    """Return the group whose name a machine has; None if it is not clear which."""
    found = [each for each in view.groups.values() if name_prefix(each.key.name) == _prefix(name)]
    return found[0] if len(found) == 1 else None


def _is_named(machine: Machine) -> bool:
    """Return whether a machine has a name of the form that this controller gives, and is not being deleted."""
    return machine.state is not MachineState.DELETING and bool(_prefix(machine.name))


def _prefix(name: str) -> str:
    """Return what the name of a machine begins with, as `name_prefix`; empty if it is not a name of this controller."""
    named = _NAMED.fullmatch(name)
    return named.group(1) if named is not None else ""


def _labels(node: Manifest) -> Mapping[str, object]:
    return node["metadata"].get("labels") or {}
