"""Crash matrix: disturb each write of an operator in turn and compare the result with an undisturbed run.

A process can be killed between any two writes, and any write can fail, or succeed while its response is lost. An
operator must reach the same final state in all these cases, and must not create or delete additional objects on the
way. `crash_at_each_write` checks this for any operator. It first records the writes of an undisturbed run. It then
repeats the run once per write and disturbance, each time on a new cluster, lets the operator continue (after a crash as
a new process with empty memory), and compares the final states.

A crash differs from an error: after it no request of the process reaches the cluster, not even from its `except` and
`finally` blocks. The cluster is therefore left as a killed process leaves it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

from ocf.cluster import Cluster, Request
from ocf.cluster.interceptor import describe
from ocf.concepts.external import GROUP
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.runtime.operator import Operator
from ocf.testing.clock import VirtualClock
from ocf.testing.idempotency import Reconcile, delay_in
from ocf.testing.operator_cluster import operator_cluster
from ocf.testing.owner_env import reconcile_if_selected
from ocf.testing.simulated_process import Disturbance, SimulatedCluster, SimulatedCrash, SimulatedProcess
from ocf.testing.snapshots import differences, snapshot
from ocf_server import EmbeddedCluster

__all__ = ["DisturbanceReport", "DisturbedWrite", "crash_at_each_write"]

_USUAL: Final = (
    Disturbance.CRASH_BEFORE,
    Disturbance.CRASH_AFTER,
    Disturbance.LOST_REPLY,
    Disturbance.REJECTED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbedWrite:
    """Result of one disturbance of one write.

    Args:
        number: Number of the write in the undisturbed run, from 1.
        problems: The differences from the undisturbed run; empty if the final states are equal.
    """

    disturbance: Disturbance
    number: int
    write: Request
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        verdict = "differs" if self.problems else "same"
        return f"{self.disturbance} write {self.number}, {describe(self.write)}: {verdict}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbanceReport:
    """Results of all disturbances.

    Args:
        writes: The writes of the undisturbed run, in order.
        rows: One row per write and disturbance, in order of the writes.
    """

    writes: tuple[Request, ...]
    rows: tuple[DisturbedWrite, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.rows))

    @property
    def different(self) -> tuple[DisturbedWrite, ...]:
        """The rows whose final state differs from the undisturbed run."""
        return tuple(row for row in self.rows if row.problems)

    def assert_same(self) -> None:
        """Check that every disturbed run reached the final state of the undisturbed run.

        Raises:
            AssertionError: If one did not; names each such write and the differences.
        """
        __tracebackhide__ = True
        if self.different:
            title = (
                f"{len(self.different)} of {len(self.rows)} disturbed runs ended differently from the undisturbed one:"
            )
            rows = ["\n".join([str(row), *row.problems]) for row in self.different]
            raise AssertionError("\n\n".join([title, *rows]))


async def crash_at_each_write(  # noqa: PLR0913 (settings, each with a default)
    make_cluster: Callable[[], Awaitable[Cluster]],
    reconcile: Reconcile | Operator[Any],
    *,
    others: Reconcile | None = None,
    clock: VirtualClock | None = None,
    external: Callable[[Cluster], object] | None = None,
    disturbances: Collection[Disturbance] = _USUAL,
    masks: Collection[str] = (),
    roles: Sequence[Manifest] | None = None,
    max_reconciles: int = 20,
) -> DisturbanceReport:
    """Disturb each write of an operator in turn, and compare the final state with that of an undisturbed run.

    A run repeats the reconcile until one sends no write and returns no delay. One that always returns a delay, because
    it polls, is repeated `max_reconciles` times, the last of which must send no write. The comparison covers all
    objects of the written kinds (uids, resource versions and times are masked), and how often the operator created and
    deleted each object.

    Args:
        make_cluster: Creates a new cluster in the operator's initial state, identical for each call.
        reconcile: One reconcile of the operator. It must use the cluster that it is given. If it raises an error, the
            next reconcile follows, as in an operator. Or the operator itself, which reconciles each of its owners in
            the cluster then; without a lifespan.
        others: Actions of other actors after each reconcile: controllers that write a status, an autoscaler, a clock
            that advances. They must become idle, too. Their requests are neither counted nor disturbed.
        clock: The clock of the operator, if it waits: after a reconcile that sends no write it is advanced by the delay
            that this returned.
        external: Returns what is outside of the cluster, called with the cluster at the end of each run; it is
            compared, too, so `make_cluster` has to begin with an empty system. Pass the client of external resources
            through `disturbed_client`, so that its calls count as writes.
        disturbances: The disturbances to apply to each write; by default crashes before and after it, a lost reply and
            a rejection. A conflict and a cancellation of the reconcile are others.
        masks: Fields that may differ in the final state, beside uids, resource versions and times: `status.attempts`.
        roles: Roles and bindings with whose rights the operator reconciles, as for `operator_cluster`; None for all
            rights. `make_cluster` has to return an `EmbeddedCluster(authorization=True)` then.
        max_reconciles: Number of reconciles after which a run that still writes is aborted.

    Returns:
        The report; call `report.assert_same()` on it.

    Raises:
        ConfigError: If the undisturbed run sends no write, or still writes after `max_reconciles`, or an operator with
            a lifespan is passed as it is, or the cluster cannot evaluate the roles.

    Example:
        >>> import asyncio
        >>> from ocf_server import EmbeddedCluster
        >>> from ocf.errors import NotFoundError
        >>> from ocf.objects import ObjectKey
        >>> settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
        >>> async def new_cluster() -> Cluster:
        ...     return EmbeddedCluster()
        >>> async def create_once(cluster: Cluster) -> None:
        ...     try:
        ...         await cluster.get(ObjectKey.of(settings))
        ...     except NotFoundError:
        ...         await cluster.create(settings, field_manager="demo")
        >>> report = asyncio.run(crash_at_each_write(new_cluster, create_once))
        >>> print(report)
        crash before write 1, create v1/ConfigMap/default/a by demo: same
        crash after write 1, create v1/ConfigMap/default/a by demo: same
        lost reply of write 1, create v1/ConfigMap/default/a by demo: same
        rejected write 1, create v1/ConfigMap/default/a by demo: same
        >>> report.assert_same()
    """
    if isinstance(reconcile, Operator):
        _require_no_lifespan(reconcile)
        clock = clock or VirtualClock()
        reconcile = partial(_reconcile_owners, reconcile, clock)
    operator = _Operator(reconcile, others, clock, max_reconciles)
    undisturbed = await _simulated(await make_cluster(), roles)
    unrest = await operator.run(undisturbed)
    if unrest:
        raise ConfigError(f"the undisturbed run is {unrest}")
    if not undisturbed.writes:
        raise ConfigError("the undisturbed run sent no write, so there is nothing to disturb")
    # What is outside may be one system, which the other runs change: a copy, before they begin.
    wanted = deepcopy(external(undisturbed.cluster)) if external is not None else None
    rows = []
    for number, write in enumerate(undisturbed.writes, 1):
        for disturbance in disturbances:
            simulation = await _simulated(await make_cluster(), roles)
            unrest = await operator.run(simulation, disturbance, number)
            problems = (
                [unrest]
                if unrest
                else [problem async for problem in _differences(undisturbed, simulation, number, masks)]
            )
            if external is not None and not unrest:
                problems += _outside(wanted, external(simulation.cluster))
            rows.append(DisturbedWrite(disturbance=disturbance, number=number, write=write, problems=tuple(problems)))
    return DisturbanceReport(writes=tuple(undisturbed.writes), rows=tuple(rows))


async def _simulated(cluster: Cluster, roles: Sequence[Manifest] | None) -> SimulatedCluster:
    if roles is None:
        return SimulatedCluster(cluster)
    if not isinstance(cluster, EmbeddedCluster):
        raise ConfigError(
            f"roles: make_cluster returned a {type(cluster).__name__}, which cannot evaluate them; "
            "return an EmbeddedCluster(authorization=True)"
        )
    return SimulatedCluster(cluster, operator_cluster=await operator_cluster(cluster, roles))


@dataclass(frozen=True, slots=True)
class _Operator:
    """The operator under test and the other actors."""

    reconcile: Reconcile
    others: Reconcile | None
    clock: VirtualClock | None
    max_reconciles: int

    async def run(self, simulation: SimulatedCluster, disturbance: Disturbance | None = None, number: int = 0) -> str:
        """Reconcile until a reconcile after a turn of the other actors sends no write and returns no delay.

        Returns:
            Why the run did not end; empty if it did.
        """
        process = SimulatedProcess(simulation, disturbance, number)
        last = ""
        for completed in range(self.max_reconciles):
            before = len(simulation.writes)
            failure, delay = await self._reconcile_once(process, survives=disturbance is not None)
            writes = simulation.writes[before:]
            if process.dead:
                process = SimulatedProcess(simulation)
            elif not failure and not writes and (self.others is None or completed):
                if delay is None or completed == self.max_reconciles - 1:
                    return ""
                if self.clock is not None:
                    self.clock.advance(max(delay, timedelta(0)))
            last = failure or f"wrote {', '.join(map(describe, writes))}"
            if self.others is not None:
                await self.others(simulation.cluster)
        return f"still not in sync after {self.max_reconciles} reconciles, the last of which {last}"

    async def _reconcile_once(self, process: SimulatedProcess, *, survives: bool) -> tuple[str, timedelta | None]:
        """Reconcile once; return the error, empty if there was none, and the delay."""
        try:
            return "", delay_in(await self.reconcile(process))
        except (Exception, SimulatedCrash, asyncio.CancelledError, BaseExceptionGroup) as error:
            if not survives or (isinstance(error, asyncio.CancelledError) and not process.cancelled):
                raise
            return f"failed with {type(error).__name__}: {error}", None


def _require_no_lifespan(operator: Operator[Any]) -> None:
    if operator.lifespan is not None or operator.leader_lifespan is not None:
        raise ConfigError(
            f"{operator.name}: the lifespan of an operator is not entered here: pass a function that reconciles with "
            "an OwnerEnv, whose `values` hold what the lifespan opens"
        )


async def _reconcile_owners(operator: Operator[Any], clock: VirtualClock, cluster: Cluster) -> timedelta | None:
    """Reconcile each owner of an operator; return the earliest delay, or raise the first error after the last one."""
    delays: list[timedelta] = []
    errors: list[Exception] = []
    for owner in (await cluster.list(*operator.owner_kind)).items:
        try:
            delay = await reconcile_if_selected(operator, owner, cluster, clock=clock)
        except Exception as error:  # noqa: BLE001 (as a running operator, which goes on with the others)
            errors.append(error)
        else:
            delays += [delay] if delay is not None else []
    if errors:
        raise errors[0]
    return min(delays, default=None)


async def _differences(
    undisturbed: SimulatedCluster, simulation: SimulatedCluster, number: int, masks: Collection[str]
) -> AsyncIterator[str]:
    """Yield the differences between a disturbed run and the undisturbed run."""
    wanted, seen = undisturbed.writes[number - 1], simulation.writes[number - 1 : number]
    if not seen or _identity(seen[0]) != _identity(wanted):
        other = describe(seen[0]) if seen else "never sent"
        yield f"write {number} was {other}: runs can only be compared if the operator writes the same in each"
    written = (*undisturbed.writes, *simulation.writes)
    kinds = {(write.api_version, write.kind) for write in written if write.api_version != GROUP}
    before, after = [await snapshot(each.cluster, kinds, masks=masks) for each in (undisturbed, simulation)]
    different = differences(before, after, before_name="undisturbed", after_name="disturbed")
    if different:
        yield different
    for what, ours, theirs in (
        ("created", simulation.creates, undisturbed.creates),
        ("deleted", simulation.deletes, undisturbed.deletes),
    ):
        for identity in sorted(ours | theirs):
            if ours[identity] != theirs[identity]:
                yield f"{identity} was {what} {ours[identity]} times, undisturbed {theirs[identity]} times"


def _outside(wanted: object, seen: object) -> list[str]:
    return [] if wanted == seen else [f"outside of the cluster: undisturbed {wanted}, disturbed {seen}"]


def _identity(request: Request) -> tuple[object, ...]:
    # Without the field manager: its name may contain the uid of an owner, which differs between runs.
    return request.verb, request.api_version, request.kind, request.namespace, request.name, request.subresource
