"""`ClusterAPIProvider`: machines of MachineDeployments of Cluster API.

A MachineDeployment is an instance type: its name is the name of the type, its annotations have the capacity, as the
cluster autoscaler reads them, and our own annotation has the price. A machine is added by one patch that raises
`spec.replicas` and records the name of the request in an annotation, so that a repeated request changes nothing. It is
removed by marking its Machine and lowering `spec.replicas`, again together with the record.

Cluster API replaces Machines: in a rollout, or when a MachineHealthCheck or a user deletes one. A replacement belongs
to the request of the Machine that it replaces. A MachineSet counts a Machine that is being deleted, so the replacement
comes after it, but in a rollout, which may exceed `spec.replicas` for a while (`maxSurge`).

Source: https://cluster-api.sigs.k8s.io/tasks/automated-machine-management/autoscaling, the reference of the annotations
`cluster.x-k8s.io/delete-machine` and `cluster.x-k8s.io/paused`, and the controllers of MachineDeployments and
MachineSets of Cluster API 1.13.6.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final, TypeAlias

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType
from ocf.cluster.retry import MOST_TRIES, retry_on_conflict
from ocf.controllers.nodegroup.providers.cluster_api_record import (
    DELETE,
    RECORD,
    Record,
    by_age,
    created_of,
    is_deleting,
    is_marked,
    name_of,
)
from ocf.errors import (
    ApiError,
    CapacityExhaustedError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    MachineNotFoundError,
    NotFoundError,
    ProviderError,
    ProviderRefusedError,
    ProviderUnavailableError,
    QuantityError,
)
from ocf.nodegroups import IncompleteListError, InstanceType, Machine, MachineRequest, MachineState, Offering
from ocf.objects import Manifest, ObjectKey, Quantity, parse_time
from ocf.objects.manifest import PREFIX

__all__ = ["ClusterAPIProvider"]

_CAPACITY: Final = "capacity.cluster-autoscaler.kubernetes.io"
_DEPLOYMENT: Final = "cluster.x-k8s.io/deployment-name"
_PAUSED: Final = "cluster.x-k8s.io/paused"
_TEMPLATE: Final = "machine-template-hash"
_PRICE: Final = f"autoscaling.{PREFIX}/price-per-hour"
_FIELD_MANAGER: Final = "ocf-nodegroup-controller"
# Provisioned counts as running: the infrastructure is up, and whether the node is ready shows its Node.
_STATES: Final = {
    "Running": MachineState.RUNNING,
    "Provisioned": MachineState.RUNNING,
    "Deleting": MachineState.DELETING,
    "Deleted": MachineState.DELETING,
    "Failed": MachineState.FAILED,
}


_Change: TypeAlias = Callable[[Record, int], tuple[Record, int]]
"""Takes the record and `spec.replicas` of a MachineDeployment, and returns the new ones."""


class ClusterAPIProvider:
    """A `Provider` that scales MachineDeployments.

    Args:
        selector: Label selector of the MachineDeployments; empty for all of the namespace.
        workload: The cluster that the machines join; None if that is `cluster`. Records of requests name it, so that
            several clusters can have their machines in one namespace.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        *,
        selector: str = "",
        api_version: str = "cluster.x-k8s.io/v1beta2",
        workload: Cluster | None = None,
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._selector = selector
        self._api_version = api_version
        self._workload = workload or cluster
        self._uid = ""

    @property
    def keeps_names(self) -> bool:
        """True: the record has the name of a request from the moment on in which it raises `spec.replicas`."""
        return True

    async def instance_types(self) -> Sequence[InstanceType]:
        """Return one instance type for each MachineDeployment, sorted by name; as `Provider`."""
        own = await self._identity()
        found = [_instance_type(each, await self._machines(name_of(each)), own) for each in await self._deployments()]
        return sorted(found, key=lambda each: each.name)

    async def create(self, request: MachineRequest) -> Machine:
        """Raise `spec.replicas` by one and record the request, unless it is recorded; as `Provider`."""

        def add(record: Record, replicas: int) -> tuple[Record, int]:
            # Repeated after a lost answer; the record says that `replicas` was raised.
            if request.name in record.requests:
                return record, replicas
            return replace(record, requests={**record.requests, request.name: ""}, cluster=own), replicas + 1

        own = await self._identity()
        deployment = await self._deployment(request.instance_type)
        reason = _pause(deployment)
        if reason and request.name not in Record.read(deployment, ()).requests:
            raise CapacityExhaustedError(f"{request.name} cannot be created: {reason}")
        await self._change(request.instance_type, add)
        return await self.get(request)

    async def get(self, request: MachineRequest) -> Machine:
        """Return the machine of a request; as `Provider`."""
        machines, failed = await self._read()
        found = next((each for each in machines if each.name == request.name), None)
        if found is None and request.instance_type in failed:
            raise ProviderUnavailableError(failed[request.instance_type])
        if found is None:
            raise MachineNotFoundError(f"no MachineDeployment has a machine for {request.name}")
        return found

    async def list(self) -> Sequence[Machine]:
        """Return all machines of the MachineDeployments, and the requests that have no machine yet.

        Which Machine a request has is stored the first time it is seen, so that it never changes afterwards.

        Raises:
            IncompleteListError: If the machines of some MachineDeployments cannot be read.
        """
        machines, failed = await self._read()
        if failed:
            raise IncompleteListError(machines, failed)
        return machines

    async def _read(self) -> tuple[Sequence[Machine], Mapping[str, str]]:
        """Return all machines, and why those of a MachineDeployment cannot be read, by its name."""
        found: list[Machine] = []
        failed: dict[str, str] = {}
        own = await self._identity()
        for deployment in await self._deployments():
            try:
                # What another cluster has requested is not listed: it belongs to no object here, and would be deleted.
                if not _foreign(Record.read(deployment, ()), own):
                    found += await self._read_one(deployment)
            except ProviderError as error:
                failed[name_of(deployment)] = str(error)
        return found, failed

    async def _read_one(self, deployment: Manifest) -> Sequence[Machine]:
        machines = await self._machines(name_of(deployment))
        record = Record.read(deployment, machines)
        if record.with_machines(machines, _replicas(deployment)) != record:
            record = await self._change(name_of(deployment), lambda record, replicas: (record, replicas))
        names = {machine: name for name, machine in record.requests.items() if machine}
        waiting = sorted(name for name, machine in record.requests.items() if not machine)
        if len(machines) >= _replicas(deployment) and not _pause(deployment):
            await self._release(machines, {*names, *record.others}, len(waiting))
        return [
            *(
                replace(_machine(each, deployment, names.get(name_of(each), "")), may_be_foreign=not record.cluster)
                for each in machines
            ),
            *(replace(_waiting(name, deployment), may_be_foreign=not record.cluster) for name in waiting),
        ]

    async def _release(self, machines: Sequence[Manifest], taken: set[str], number: int) -> None:
        """Delete marked Machines that count as those of requests: `spec.replicas` was lowered and raised at once."""
        free = [name for name in by_age(machines) if name not in taken and is_marked(machines, name)]
        for name in free[:number]:
            with _provider_errors(f"Machine {name}"), suppress(NotFoundError):
                await self._cluster.delete(self._key("Machine", name))

    async def delete(self, machine: Machine) -> None:
        """Mark a Machine and lower `spec.replicas` by one; as `Provider`.

        A request whose Machine does not exist yet cannot be deleted: lowering `spec.replicas` could remove another one.
        """
        machines, failed = await self._read()
        same_id = (each for each in machines if machine.id and each.id == machine.id)
        same_name = (each for each in machines if machine.name and not machine.id and each.name == machine.name)
        known = next(same_id, None) or next(same_name, None)
        if known is None and failed:
            raise ProviderUnavailableError("; ".join(failed.values()))
        if known is None:
            return
        own = await self._identity()
        deployment = await self._deployment(known.instance_type)
        # Lowering `replicas` lets Cluster API choose which Machine to delete, unless one is marked; between several
        # MachineSets it chooses also then.
        if reason := _undeletable(deployment, await self._machines(known.instance_type)):
            raise ProviderUnavailableError(f"{known.name or known.id} cannot be deleted now: {reason}")
        if known.id and known.state is not MachineState.DELETING:
            # First, so that a crash in between leaves a mark and one machine more, not a machine less of its choice.
            await self._mark(known.id)

        def remove(record: Record, replicas: int) -> tuple[Record, int]:
            if not known.id:
                # A user has lowered `replicas`, so that no Machine comes.
                if replicas >= len(record.requests) + len(record.others):
                    text = f"the Machine of {known.name} does not exist yet, it cannot be deleted"
                    raise ProviderUnavailableError(text)
                return replace(record, requests=_without(record.requests, known.name)), replicas
            # Removed from the record already: a repetition after a lost answer must not lower `replicas` twice.
            if known.id not in {*record.requests.values(), *record.others}:
                return record, replicas
            left = {name: machine for name, machine in record.requests.items() if machine != known.id}
            return replace(record, requests=left, others=record.others - {known.id}, cluster=own), max(0, replicas - 1)

        await self._change(known.instance_type, remove)

    async def _change(self, name: str, change: _Change) -> Record:
        """Change the record and `spec.replicas` of a MachineDeployment in one write; return the new record."""

        async def read() -> Manifest:
            return await self._deployment(name)

        own = await self._identity()

        async def write(deployment: Manifest) -> Record:
            machines = await self._machines(name)
            stored, replicas = Record.read(deployment, machines), _replicas(deployment)
            if problem := _foreign(stored, own):
                raise ProviderRefusedError(f"MachineDeployment {name} {problem}")
            record, wanted = change(stored.with_machines(machines, replicas), replicas)
            if (record, wanted) != (stored, replicas):
                await self._patch("MachineDeployment", name, _patch_of(deployment, record, wanted))
            return record

        with _provider_errors(f"MachineDeployment {name}"):
            try:
                return await retry_on_conflict(read, write)
            except ConflictError as error:
                problem = f"MachineDeployment {name}: {MOST_TRIES} conflicts with other writers in a row"
                raise ProviderUnavailableError(problem) from error

    async def _identity(self) -> str:
        """Return the uid of the Namespace kube-system, which every cluster has, and no other one the same."""
        if not self._uid:
            # Listed, as the controller lists namespaces anyway, and may not get one.
            options = ListOptions(field_selector="metadata.name=kube-system")
            with _provider_errors("Namespaces"):
                found = (await self._workload.list("v1", "Namespace", options)).items
            if not found:
                raise ProviderUnavailableError(
                    "the cluster has no Namespace kube-system, whose uid names it in records"
                )
            self._uid = str(found[0]["metadata"]["uid"])
        return self._uid

    async def _mark(self, name: str) -> None:
        with _provider_errors(f"Machine {name}"):
            try:
                await self._patch("Machine", name, {"metadata": {"annotations": {DELETE: "true"}}})
            except NotFoundError:
                return

    async def _patch(self, kind: str, name: str, patch: Manifest) -> None:
        options = PatchOptions(field_manager=_FIELD_MANAGER, patch_type=PatchType.MERGE)
        await self._cluster.patch(self._key(kind, name), patch, options)

    async def _deployment(self, name: str) -> Manifest:
        with _provider_errors(f"MachineDeployment {name}"):
            return await self._cluster.get(self._key("MachineDeployment", name))

    async def _deployments(self) -> Sequence[Manifest]:
        options = ListOptions(namespace=self._namespace, label_selector=self._selector)
        with _provider_errors("MachineDeployments"):
            return (await self._cluster.list(self._api_version, "MachineDeployment", options)).items

    async def _machines(self, deployment: str) -> Sequence[Manifest]:
        options = ListOptions(namespace=self._namespace, label_selector=f"{_DEPLOYMENT}={deployment}")
        with _provider_errors("Machines"):
            return (await self._cluster.list(self._api_version, "Machine", options)).items

    def _key(self, kind: str, name: str) -> ObjectKey:
        return ObjectKey(self._api_version, kind, name, self._namespace)


def _patch_of(deployment: Manifest, record: Record, replicas: int) -> Manifest:
    """Return a patch that is only applied to the very version that was read."""
    metadata = {
        "resourceVersion": deployment["metadata"]["resourceVersion"],
        "annotations": {RECORD: record.text()},
    }
    return {"metadata": metadata, "spec": {"replicas": replicas}}


def _replicas(deployment: Manifest) -> int:
    return int(deployment["spec"].get("replicas", 1))


def _template(machine: Manifest) -> str:
    return str((machine["metadata"].get("labels") or {}).get(_TEMPLATE, ""))


def _without(requests: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {each: machine for each, machine in requests.items() if each != name}


def _pause(deployment: Manifest) -> str:
    """Return why Cluster API does not scale a MachineDeployment; empty if it does."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    if "deletionTimestamp" in metadata:
        return f"MachineDeployment {name_of(deployment)} is being deleted"
    conditions = (deployment.get("status") or {}).get("conditions") or ()
    # The condition also says that of a Cluster that is paused.
    paused = any(each.get("type") == "Paused" and each.get("status") == "True" for each in conditions)
    if paused or spec.get("paused") or _PAUSED in (metadata.get("annotations") or {}):
        return f"MachineDeployment {name_of(deployment)} is paused"
    return ""


def _undeletable(deployment: Manifest, machines: Sequence[Manifest]) -> str:
    """Return why no chosen Machine of a MachineDeployment can be deleted; empty if it can."""
    if len({_template(each) for each in machines if not is_deleting(each)}) > 1:
        return f"MachineDeployment {name_of(deployment)} rolls out: Cluster API would choose the Machine"
    # The last old Machine: its pods are to move to its replacement, which looks idle for as long.
    if len({_template(each) for each in machines}) > 1:
        names = ", ".join(sorted(name_of(each) for each in machines if is_deleting(each)))
        return f"MachineDeployment {name_of(deployment)} rolls out: Cluster API still drains {names}"
    return _pause(deployment)


def _zone(deployment: Manifest) -> str:
    return str(deployment["spec"]["template"]["spec"].get("failureDomain") or "")


def _foreign(record: Record, own: str) -> str:
    """Return that another cluster uses a MachineDeployment; empty if none does.

    Args:
        own: What names this cluster in records.
    """
    if record.cluster in ("", own):
        return ""
    return (
        f"is used by the cluster whose Namespace kube-system has the uid {record.cluster}, this one has {own}:"
        " leave it out with a label selector"
    )


def _instance_type(deployment: Manifest, machines: Sequence[Manifest], own: str) -> InstanceType:
    try:
        known = _read_type(deployment)
        problem = _foreign(Record.read(deployment, machines), own) or _pause(deployment)
        return replace(known, problem=problem, undeletable=_undeletable(deployment, machines))
    except ProviderRefusedError as error:
        # One MachineDeployment without capacities keeps no other from being scaled.
        return InstanceType(name_of(deployment), {}, problem=str(error))


def _read_type(deployment: Manifest) -> InstanceType:
    annotations = deployment["metadata"].get("annotations") or {}
    where = f"MachineDeployment {name_of(deployment)}: metadata.annotations"
    names = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "ephemeral-disk", "pods": "maxPods"}
    written = {resource: annotations.get(f"{_CAPACITY}/{name}") for resource, name in names.items()}
    # A kubelet's default, as the cluster autoscaler assumes it.
    written["pods"] = written["pods"] or "110"
    if annotations.get(f"{_CAPACITY}/gpu-count"):
        written[annotations.get(f"{_CAPACITY}/gpu-type") or "nvidia.com/gpu"] = annotations[f"{_CAPACITY}/gpu-count"]
    try:
        capacity = {resource: Quantity.parse(text) for resource, text in written.items() if text}
        price = float(annotations.get(_PRICE, 0))
    except QuantityError as error:
        raise ProviderRefusedError(f"{where}: {error}") from error
    except ValueError as error:
        raise ProviderRefusedError(f'{where}: {_PRICE} must be a number, got "{annotations[_PRICE]}"') from error
    # NaN is neither above nor below any price, and a negative one would be preferred to all.
    if not 0 <= price < math.inf:
        raise ProviderRefusedError(f'{where}: {_PRICE} must be a finite number from 0 on, got "{annotations[_PRICE]}"')
    if missing := sorted({"cpu", "memory"} - capacity.keys()):
        raise ProviderRefusedError(f"{where}: {_CAPACITY}/{missing[0]} is missing")
    pairs = [each.partition("=") for each in annotations.get(f"{_CAPACITY}/labels", "").split(",") if each]
    labels = {key.strip(): value.strip() for key, _, value in pairs}
    return InstanceType(name_of(deployment), capacity, offerings=(Offering(_zone(deployment), price),), labels=labels)


def _machine(machine: Manifest, deployment: Manifest, request: str) -> Machine:
    status = machine.get("status") or {}
    phase = str(status.get("phase", ""))
    state = _STATES.get(phase, MachineState.PENDING)
    if is_deleting(machine):
        replaced = request and not is_deleting(deployment)
        state = MachineState.REPLACING if replaced else MachineState.DELETING
    created = created_of(machine)
    return Machine(
        id=name_of(machine),
        state=state,
        name=request,
        node_name=str((status.get("nodeRef") or {}).get("name", "")),
        provider_id=str(machine["spec"].get("providerID") or ""),
        addresses=tuple(str(each["address"]) for each in status.get("addresses") or ()),
        instance_type=name_of(deployment),
        zone=str(machine["spec"].get("failureDomain") or _zone(deployment)),
        created_at=parse_time(created) if created else None,
        problem="Cluster API reports the phase Failed" if state is MachineState.FAILED else "",
    )


def _waiting(request: str, deployment: Manifest) -> Machine:
    """Return the machine of a request that has no Machine yet."""
    return Machine(
        id="",
        state=MachineState.PENDING,
        name=request,
        instance_type=name_of(deployment),
        zone=_zone(deployment),
    )


@contextmanager
def _provider_errors(what: str) -> Iterator[None]:
    """Convert errors of the API server to those of a provider."""
    try:
        yield
    except (ForbiddenError, InvalidError, NotFoundError) as error:
        raise ProviderRefusedError(f"{what}: {error}") from error
    except ApiError as error:
        raise ProviderUnavailableError(f"{what}: {error}", retry_after=error.retry_after) from error
