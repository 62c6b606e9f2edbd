"""Every write of an operator, disturbed in turn, against an undisturbed run: does it end the same?

Between any two writes a process may die, and every write may fail, or be done without the writer learning of it. What
an operator must promise is that it ends where it would have ended anyway, and that it creates and deletes nothing more
on the way. Here that is one call on *your* operator: an undisturbed run shows which writes there are, then each of
them is disturbed in a world of its own, the operator goes on (after a crash: a new one starts, with nothing in its
memory), and the two worlds are compared.

A crash is more than an error. From that moment no request of the dead process arrives, whatever its `except` and
`finally` blocks try, so what is left behind is what a killed process leaves behind.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass

from ocf.cluster import Cluster, Request
from ocf.cluster.interceptor import describe
from ocf.errors import ConfigError
from ocf.testing.idempotency import Reconcile
from ocf.testing.simulated_process import Disturbance, SimulatedCluster, SimulatedCrash, SimulatedProcess
from ocf.testing.snapshots import differences, snapshot

__all__ = ["DisturbanceReport", "DisturbedWrite", "crash_at_each_write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbedWrite:
    """What came of one disturbance of one write.

    Args:
        disturbance: What happened.
        number: To which write of the undisturbed run, from 1.
        write: The write.
        problems: How the run ended differently from the undisturbed one; none if it did not.
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
    """What came of all disturbances.

    Args:
        writes: The writes of the undisturbed run, in order.
        rows: One per disturbance and write, in order of the writes.
    """

    writes: tuple[Request, ...]
    rows: tuple[DisturbedWrite, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.rows))

    @property
    def different(self) -> tuple[DisturbedWrite, ...]:
        """The rows that ended differently."""
        return tuple(row for row in self.rows if row.problems)

    def assert_same(self) -> None:
        """Demand that every disturbed run ended as the undisturbed one.

        Raises:
            AssertionError: Naming each write that was disturbed and how the end differs.
        """
        __tracebackhide__ = True
        if self.different:
            title = f"{len(self.different)} of {len(self.rows)} disturbed runs did not end as the undisturbed one:"
            rows = ["\n".join([str(row), *row.problems]) for row in self.different]
            raise AssertionError("\n\n".join([title, *rows]))


async def crash_at_each_write(
    make_cluster: Callable[[], Awaitable[Cluster]],
    reconcile: Reconcile,
    *,
    others: Reconcile | None = None,
    disturbances: Collection[Disturbance] = tuple(Disturbance),
    passes: int = 20,
) -> DisturbanceReport:
    """Disturb each write of an operator in turn, and compare where it ends with an undisturbed run.

    A run is passes of the operator until one sends no write. Compared are all objects of the kinds that were written
    (uids, resource versions and times masked), and how often each object was created and deleted by the operator.

    Args:
        make_cluster: Makes a new cluster, the same each time, in the state from which the operator starts.
        reconcile: One pass of the operator. It must use the cluster that it is given. An error it raises ends the
            pass, and the next one follows, as in an operator.
        others: What everybody else does after each pass: controllers that report a status, an autoscaler, a clock that
            advances. It must come to rest, too. Its requests are neither counted nor disturbed.
        disturbances: What is done to each write.
        passes: After how many passes a run that is not at rest is given up.

    Returns:
        The report; `report.assert_same()` is the test.

    Raises:
        ConfigError: If the undisturbed run sends no write, or does not come to rest.

    Example:
        >>> import asyncio
        >>> from ocf.embedded import EmbeddedCluster
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
        refused write 1, create v1/ConfigMap/default/a by demo: same
        >>> report.assert_same()
    """
    operator = _Operator(reconcile, others, passes)
    twin = SimulatedCluster(await make_cluster())
    unrest = await operator.run(twin)
    if unrest:
        raise ConfigError(f"the undisturbed run is {unrest}")
    if not twin.writes:
        raise ConfigError("the undisturbed run sent no write, so there is none to disturb")
    rows = []
    for number, write in enumerate(twin.writes, 1):
        for disturbance in disturbances:
            world = SimulatedCluster(await make_cluster())
            unrest = await operator.run(world, disturbance, number)
            problems = [unrest] if unrest else [problem async for problem in _compared(twin, world, number)]
            rows.append(DisturbedWrite(disturbance=disturbance, number=number, write=write, problems=tuple(problems)))
    return DisturbanceReport(writes=tuple(twin.writes), rows=tuple(rows))


@dataclass(frozen=True, slots=True)
class _Operator:
    """The operator under test, and whoever else is at work."""

    reconcile: Reconcile
    others: Reconcile | None
    passes: int

    async def run(self, world: SimulatedCluster, disturbance: Disturbance | None = None, number: int = 0) -> str:
        """Make passes until one that follows on a round of the others sends no write.

        Returns:
            Why that did not happen; empty if it did.
        """
        process = SimulatedProcess(world, disturbance, number)
        last = ""
        for made in range(self.passes):
            before = len(world.writes)
            failure = await self._pass(process, survives=disturbance is not None)
            writes = world.writes[before:]
            if process.dead:
                process = SimulatedProcess(world)
            elif not failure and not writes and (self.others is None or made):
                return ""
            last = failure or f"wrote {', '.join(map(describe, writes))}"
            if self.others is not None:
                await self.others(world.cluster)
        return f"not at rest after {self.passes} passes, the last of which {last}"

    async def _pass(self, process: SimulatedProcess, *, survives: bool) -> str:
        """Make one pass.

        Returns:
            What it failed with; empty if it did not.
        """
        try:
            await self.reconcile(process)
        except (Exception, SimulatedCrash, BaseExceptionGroup) as error:
            if not survives:
                raise
            return f"failed with {type(error).__name__}: {error}"
        return ""


async def _compared(twin: SimulatedCluster, world: SimulatedCluster, number: int) -> AsyncIterator[str]:
    """Tell how a disturbed world ended differently from its undisturbed twin."""
    wanted, seen = twin.writes[number - 1], world.writes[number - 1 : number]
    if not seen or _asked(seen[0]) != _asked(wanted):
        other = describe(seen[0]) if seen else "never sent"
        yield f"write {number} was {other}: an operator can only be compared if it does the same in every run"
    kinds = {(write.api_version, write.kind) for write in (*twin.writes, *world.writes)}
    before, after = [await snapshot(each.cluster, kinds) for each in (twin, world)]
    different = differences(before, after, before_name="undisturbed", after_name="disturbed")
    if different:
        yield different
    for what, ours, theirs in (("created", world.creates, twin.creates), ("deleted", world.deletes, twin.deletes)):
        for identity in sorted(ours | theirs):
            if ours[identity] != theirs[identity]:
                yield f"{identity} was {what} {ours[identity]} times, undisturbed {theirs[identity]} times"


def _asked(request: Request) -> tuple[object, ...]:
    # Without the field manager: its name may hold the uid of an owner, which is another one in every world.
    return request.verb, request.api_version, request.kind, request.namespace, request.name, request.subresource
