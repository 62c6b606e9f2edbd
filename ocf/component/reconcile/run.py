"""One reconcile of one component, as its steps share it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from ocf.component.apply.applier import Applier
from ocf.component.apply.apply_result import ApplyResult
from ocf.component.author_code import call_with_timeout
from ocf.component.model.registration import Registration, ScaleTargets
from ocf.component.model.resource_options import Writes
from ocf.component.reconcile.reporter import Reporter
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts import ApplyOperation, StatusReport
from ocf.concepts.data import mark_derived
from ocf.errors import OcfError, ReconcileError

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.component.context import ReconcileContext
    from ocf.objects import Manifest

__all__ = ["ReconcileRun", "failing"]

P = ParamSpec("P")
T = TypeVar("T")

_ACTIONS: Final = {
    ApplyOperation.CREATED: Action.CREATED,
    ApplyOperation.UPDATED: Action.UPDATED,
    ApplyOperation.NONE: Action.UNCHANGED,
}


@dataclass(frozen=True, slots=True)
class ReconcileRun:
    """One reconcile of one component.

    Args:
        component: Name of the component.
        timeout: Timeout of one handler call; None for no limit.
        former_managers: Field managers whose fields the component takes over once, by name or pattern.
    """

    component: str
    context: ReconcileContext
    scaling: ScaleTargets
    timeout: timedelta | None
    reporter: Reporter
    former_managers: tuple[str, ...] = ()

    @property
    def cluster(self) -> Cluster:
        """The cluster by which the component reads and writes its objects."""
        return self.context.cluster_of(self.component)

    def applier(self, entry: Registration) -> Applier:
        """Return what reads and applies the object of a resource."""
        return Applier(
            entry,
            self.component,
            self.context,
            self.scaling.ignored.get(entry.identity, entry.options.ignore_fields),
            former_managers=(*self.former_managers, *self.context.former_managers),
            rendered=self.scaling.rendered.get(entry.identity),
            timeout=self.timeout,
        )

    def blocking_controller(self, entry: Registration, live: Manifest | None) -> str:
        """Return the other controller of an object that blocks its resource; empty if none does.

        The API server accepts one controller of an object, so an apply with our owner reference would be rejected. The
        reference of an earlier owner of the name is taken over.
        """
        owner, options = self.context.owned_by, entry.options
        if live is None:
            return ""
        if options.block_on_foreign_controller:
            return owner.foreign_controller(live)
        # What is only created is used as it is, also if another owner controls it.
        refers = owner.can_own(entry.key) and not options.unowned and options.writes is not Writes.CREATE_ONLY
        return owner.foreign_controller(live, owner.earlier_uids(live)) if refers else ""

    async def ask(
        self, what: str, entry: Registration, handler: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a handler of a resource; an error names the resource and the step, as it follows "failed to"."""
        try:
            # Most components have no timeout, and handlers are called many times a second.
            return (
                handler(*args, **kwargs)
                if self.timeout is None
                else await call_with_timeout(self.timeout, handler, *args, **kwargs)
            )
        except OcfError as error:
            raise _named(self.component, what, entry, error) from error

    async def status(self, entry: Registration, operation: ApplyOperation, live: Manifest) -> StatusReport[Any] | None:
        """Return the status of a resource after an operation; None for a static one."""
        step = "determine converging status of"
        if entry.alive is not None:
            return await self.ask(step, entry, entry.alive.alive_status, operation, live)
        if entry.operational is not None:
            return await self.ask(step, entry, entry.operational.operational_status, operation, live)
        if entry.completable is not None:
            return await self.ask(step, entry, entry.completable.completion_status, operation, live)
        return None

    async def extract(self, entry: Registration, live: Manifest) -> None:
        """Fill the data cells that a resource produces from its live object."""
        if entry.producer is not None:
            await self.ask("extract data from", entry, entry.producer.extract_data, live)
            mark_derived(entry.cells_filled, entry.cells_read)

    def finished(self, entry: Registration, applied: ApplyResult, report: StatusReport[Any] | None) -> ResourceOutcome:
        """Record an attempt that succeeded, and return its outcome."""
        self.reporter.attempted(entry, applied.operation, applied.why)
        return ResourceOutcome(
            resource=entry.identity,
            action=_ACTIONS[applied.operation] if applied.retry_after is None else Action.HELD_BACK,
            report=report,
            writes=applied.writes,
            reasons=applied.reasons,
            why=applied.why,
            retry_after=applied.retry_after,
        )


@contextmanager
def failing(component: str, what: str, entry: Registration) -> Iterator[None]:
    """Name the component, the resource and the step, as it follows "failed to", in an error of the block."""
    try:
        yield
    except OcfError as error:
        raise _named(component, what, entry, error) from error


def _named(component: str, what: str, entry: Registration, error: OcfError) -> ReconcileError:
    detail = str(error).removeprefix(f"{entry.identity}: ")
    problem = f"failed to {what} resource {entry.identity}: {detail}"
    return ReconcileError(component, problem, resource=entry.identity)
