"""Machines of nodes: carry out the steps of `lifecycle.advance` at the provider and in the cluster."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from ocf.cluster import Cluster
from ocf.controllers.nodegroup.groups import to_group_status
from ocf.controllers.nodegroup.lifecycle import Action, Observation, accepted, advance, failed
from ocf.controllers.nodegroup.node_model import VPSieNodeStatus
from ocf.controllers.nodegroup.objects import FINALIZER, MEMBER_LABEL, NodeObject, member_value
from ocf.controllers.nodegroup.observation import ClusterView
from ocf.controllers.nodegroup.reconcile_context import NodeGroupContext
from ocf.controllers.nodegroup.repair import boot_timeout
from ocf.controllers.nodegroup.reporter import Reporter
from ocf.controllers.nodegroup.texts import is_same_problem, shortened
from ocf.controllers.nodegroup.writes import (
    add_finalizer,
    delete_object,
    patch_node,
    remove_finalizer,
    store_node_status,
)
from ocf.errors import (
    ApiError,
    CapacityExhaustedError,
    MachineNotFoundError,
    ProviderError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from ocf.nodegroups import Machine, MachineRequest, MachineState, Provider
from ocf.objects import Manifest

__all__ = ["MachineSteps"]

_log: Final = logging.getLogger(__name__)
# As many requests at once as the cluster autoscaler has deletions in flight; providers limit the rate of their clients.
_PARALLEL: Final = 10
# How long after a request its machine is created at the latest; clocks differ.
_SENT: Final = timedelta(minutes=15)


class MachineSteps:
    """Takes one step in the life of each node."""

    def __init__(self, cluster: Cluster, provider: Provider, reporter: Reporter) -> None:
        self._cluster = cluster
        self._provider = provider
        self._reporter = reporter

    async def advance_all(self, current: NodeGroupContext, nodes: Sequence[NodeObject]) -> None:
        """Take one step in the life of nodes. An error of one node keeps no other from its step."""
        if not self._provider.keeps_names:
            # A machine without a name belongs to the request that finds it: one request at a time, and those that were
            # given up last, so that a machine that is listed late serves a request that needs it.
            for node in sorted(nodes, key=lambda node: node.leaving):
                await self._advance_safely(current, node)
            return
        limit = asyncio.Semaphore(_PARALLEL)

        async def one(node: NodeObject) -> None:
            async with limit:
                await self._advance_safely(current, node)

        async with asyncio.TaskGroup() as tasks:
            for node in nodes:
                tasks.create_task(one(node))

    async def _advance_safely(self, current: NodeGroupContext, node: NodeObject) -> None:
        try:
            await (self._reject if node.claimed else self._advance)(current, node)
        except ApiError as error:
            current.failures.append(f"VPSieNode {node.key.namespace}/{node.name}: {error}")
            _log.warning("VPSieNode %s/%s: %s", node.key.namespace, node.name, error)
        except ProviderError as error:
            current.problems.setdefault(node.group, str(error))
            _log.warning("VPSieNode %s/%s: the provider failed: %s", node.key.namespace, node.name, error)
        except Exception as error:  # noqa: BLE001 (logged; the other nodes go on)
            current.unexpected(f"VPSieNode {node.key.namespace}/{node.name}", error, group=node.group)
            _log.exception("VPSieNode %s/%s failed; the others go on", node.key.namespace, node.name)

    async def _advance(self, current: NodeGroupContext, node: NodeObject) -> None:
        if node.spec is None or node.problems:
            return
        machine = current.machine_of(node, keeps_names=self._provider.keeps_names)
        if machine is None and node.spec.instance_type in current.unknown:
            current.problems.setdefault(node.group, current.unknown[node.spec.instance_type])
            return
        if not node.ending and FINALIZER not in (node.manifest["metadata"].get("finalizers") or ()):
            node.manifest = await add_finalizer(self._cluster, node.manifest)
        if node.status.phase == "Pending" and not node.ending:
            # Requested before its type was refused to another node: the next decision takes another type.
            if self._is_backed_off(current, node):
                await delete_object(self._cluster, node.manifest)
                node.manifest = _ending(node.manifest, current.now)
                return
            # Two unnamed requests at once could not distinguish their machines.
            if not self._provider.keeps_names and self._another_is_unknown(current, node):
                return
        name = self._node_of(current, node, machine)
        before = node.status
        observed = Observation(
            machine=machine,
            node=current.view.index.state(name),
            node_name=name,
            ending=node.ending,
            machines=current.ids,
            keeps_names=self._provider.keeps_names,
            repair=node.uid not in current.held,
        )
        group = current.view.groups.get(node.group)
        step = advance(before, observed, current.now, boot_timeout=boot_timeout(group))
        # The one action before its status: stored first, a crash would leave the Node without its taints for good.
        if step.action is Action.CONFIGURE:
            await self._configure(current, node, name)
        await self._store(current, node, step.status)
        self._report(current, node, before)
        try:
            await self._act(current, node, step.action, machine, retried=before.requested_at is not None)
        except ProviderError as error:
            # A machine that is not found is an answer, not a failure.
            known = is_same_problem(step.status.last_error, str(error))
            if not known and not isinstance(error, MachineNotFoundError):
                await store_node_status(self._cluster, node, node.status.model_copy(update={"last_error": str(error)}))
            raise

    def _report(self, current: NodeGroupContext, node: NodeObject, before: VPSieNodeStatus) -> None:
        """Report what a step has changed: each change once."""
        status, group = node.status, current.view.groups.get(node.group)
        if before.ready_at is None and status.ready_at is not None and before.requested_at is not None:
            seconds = (current.now - before.requested_at).total_seconds()
            self._reporter.monitor.observe("node_provisioning_duration_seconds", node.group, seconds=seconds)
        if status.phase == "Failed" and before.phase != "Failed" and status.ready_at is not None:
            self._reporter.monitor.count("scale_down", node.group)
            note = f"remove node {status.node_name}: {status.last_error}"
            self._reporter.event(group, "ScalingDown", note, node=node)
        held = current.held.get(node.uid)
        if held and status.last_error != before.last_error:
            self._reporter.monitor.count("scale_down_blocked", node.group, "repair")
            self._reporter.event(group, "ScaleDownBlocked", f"node {status.node_name}: {status.last_error}", node=node)
        if status.unlisted_since is not None and status.unlisted_since < current.now and not node.leaving:
            note = f"the provider does not list the machine of node {node.node_name}"
            current.problems.setdefault(node.group, note)

    async def _reject(self, current: NodeGroupContext, node: NodeObject) -> None:
        """Show once on an object that its Node belongs to another one, and let it go without that Node."""
        if node.ending:
            await remove_finalizer(self._cluster, node.manifest)
            return
        text = "; ".join(map(str, node.problems))
        if node.status.last_error != text:
            await store_node_status(self._cluster, node, node.status.model_copy(update={"last_error": text}))
            self._reporter.event(current.view.groups.get(node.group), "ValidationFailed", text, node=node)

    async def _store(self, current: NodeGroupContext, node: NodeObject, status: VPSieNodeStatus) -> None:
        before = node.status
        if held := current.held.get(node.uid):
            status = status.model_copy(update={"last_error": shortened(f"the node is not ready, and stays: {held}")})
        await store_node_status(self._cluster, node, status)
        if status.node_name != before.node_name:
            current.claim(node, before.node_name or node.name)

    async def _act(
        self, current: NodeGroupContext, node: NodeObject, action: Action, machine: Machine | None, *, retried: bool
    ) -> None:
        match action:
            case Action.CREATE:
                await self._create(current, node, retried=retried)
            case Action.FIND:
                await self._find(current, node)
            case Action.DELETE_MACHINE:
                await self._provider.delete(machine or self._known(node))
            case Action.REMOVE:
                # Once more: the provider may have failed to delete it while its list lacked the machine.
                if node.status.machine_id or (self._provider.keeps_names and node.status.requested_at is not None):
                    await self._provider.delete(self._known(node))
                await self._remove(current, node)
            case _:
                return

    def _known(self, node: NodeObject) -> Machine:
        """Return what is known of a machine that is not listed."""
        name = node.name if self._provider.keeps_names else ""
        return Machine(node.status.machine_id, MachineState.DELETING, name=name)

    async def _find(self, current: NodeGroupContext, node: NodeObject) -> None:
        try:
            found = await self._provider.get(self._request(current, node, retried=True))
        except MachineNotFoundError:
            return
        # A request is sent once, so that a machine that was created much later is a user's.
        sent, created = node.status.requested_at, found.created_at
        if sent is None or created is None or created < sent + _SENT:
            await store_node_status(self._cluster, node, accepted(node.status, found, current.now))

    async def _create(self, current: NodeGroupContext, node: NodeObject, *, retried: bool) -> None:
        try:
            machine = await self._provider.create(self._request(current, node, retried=retried))
        except ProviderUnavailableError as error:
            self._report_failure(current, node, error)
            if not self._provider.keeps_names and error.had_no_effect:
                # No machine can come of it: the request is sent anew.
                back = {"phase": "Pending", "requested_at": None, "excluded_machines": None}
                await store_node_status(self._cluster, node, node.status.model_copy(update=back))
            raise
        except (CapacityExhaustedError, ProviderRefusedError) as error:
            status = failed(node.status, str(error), current.now)
            if not retried:
                # No machine can come of the only request: there is nothing to wait for.
                status = status.model_copy(update={"requested_at": None})
            await store_node_status(self._cluster, node, status)
            return
        await store_node_status(self._cluster, node, accepted(node.status, machine, current.now))

    def _report_failure(self, current: NodeGroupContext, node: NodeObject, error: ProviderError) -> None:
        """Report the first of the failures to create machines of a group; afterwards its condition has it."""
        group = current.view.groups.get(node.group)
        known = [each for each in (group.status.conditions or () if group else ()) if each.type == "Error"]
        if node.spec is None or node.group in current.problems or any(each.status == "True" for each in known):
            return
        self._reporter.event(group, "ScaleUpFailed", f"{node.spec.instance_type}: {error}", node=node)

    async def _remove(self, current: NodeGroupContext, node: NodeObject) -> None:
        """Delete the Node of a machine that is gone, then let the object go."""
        name = node.status.node_name or (node.name if self._provider.keeps_names else "")
        manifest = current.view.index.by_name.get(name)
        # The name of a Node may belong to another object meanwhile, whose machine lives.
        if manifest is not None and current.owner_of(name) is node and _has_joined(node, manifest):
            await delete_object(self._cluster, {**manifest, "apiVersion": "v1", "kind": "Node"})
        await remove_finalizer(self._cluster, node.manifest)

    async def _configure(self, current: NodeGroupContext, node: NodeObject, name: str) -> None:
        """Set labels and taints of the group on a Node, unless it has them."""
        manifest = current.view.index.by_name[name]
        labels, taints = _wanted(current.view, node)
        known = manifest["metadata"].get("labels") or {}
        patch: Manifest = {}
        if not labels.items() <= known.items():
            patch["metadata"] = {"labels": labels}
        present = (manifest.get("spec") or {}).get("taints") or []
        identities = {(each.get("key"), each.get("effect")) for each in present}
        missing = [each for each in taints if (each["key"], each["effect"]) not in identities]
        if missing:
            # A merge patch replaces the list: the version keeps taints that others set meanwhile.
            patch["spec"] = {"taints": [*present, *missing]}
            patch.setdefault("metadata", {})["resourceVersion"] = manifest["metadata"]["resourceVersion"]
        if patch:
            await patch_node(self._cluster, name, patch)

    def _request(self, current: NodeGroupContext, node: NodeObject, *, retried: bool) -> MachineRequest:
        assert node.spec is not None  # noqa: S101 (checked before each step)
        labels, taints = _wanted(current.view, node)
        others = {each.status.machine_id for each in current.view.nodes.values() if each is not node}
        return MachineRequest(
            name=node.name,
            group=node.spec.node_group_name,
            instance_type=node.spec.instance_type,
            zone=node.spec.datacenter_id,
            labels=labels,
            taints=taints,
            machine_id=node.status.machine_id,
            retried=retried,
            excluded=frozenset(others | set(node.status.excluded_machines or ())) - {""},
        )

    def _node_of(self, current: NodeGroupContext, node: NodeObject, machine: Machine | None) -> str:
        """Return the name of the Node of a machine, unless it is that of another one."""
        name = current.view.index.find(node, machine, keeps_names=self._provider.keeps_names)
        owner = current.owner_of(name)
        return name if owner is None or owner is node else ""

    def _is_backed_off(self, current: NodeGroupContext, node: NodeObject) -> bool:
        """Return whether the type of a node that was not requested yet was refused meanwhile."""
        group = current.view.groups.get(node.group)
        if group is None or group.spec is None or node.spec is None:
            return False
        refused = to_group_status(group, group.spec).backed_off(current.now)
        return (node.spec.instance_type, node.spec.datacenter_id) in refused

    @staticmethod
    def _another_is_unknown(current: NodeGroupContext, node: NodeObject) -> bool:
        """Return whether another request was sent whose machine is not known yet."""
        return any(
            each is not node and each.status.phase == "Provisioning" and not each.status.machine_id
            for each in current.view.nodes.values()
        )


def _has_joined(node: NodeObject, joined: Manifest) -> bool:
    """Return whether a Node was found to be that of an object, or at least does not say that it is another one's."""
    if node.status.joined_at is not None or MEMBER_LABEL in (joined["metadata"].get("labels") or {}):
        return True
    return not (joined.get("spec") or {}).get("providerID")


def _wanted(view: ClusterView, node: NodeObject) -> tuple[dict[str, str], list[Mapping[str, str]]]:
    """Return labels and taints of the Node of a machine."""
    assert node.spec is not None  # noqa: S101 (checked before each step)
    # Also without the group: the label says what the node belonged to.
    labels = {MEMBER_LABEL: member_value(node.key.namespace, node.spec.node_group_name)}
    group = view.groups.get(node.group)
    if group is None or group.spec is None:
        return labels, []
    taints: list[Mapping[str, str]] = [
        {"key": each.key, **({"value": each.value} if each.value else {}), "effect": each.effect}
        for each in group.spec.taints or ()
    ]
    return {**(group.spec.labels or {}), **labels}, taints


def _ending(manifest: Manifest, now: datetime) -> Manifest:
    """Return an object that was deleted in this reconcile as it will be read next."""
    return {**manifest, "metadata": {**manifest["metadata"], "deletionTimestamp": now.isoformat()}}
