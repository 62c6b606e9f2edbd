"""What the steps of one pass over a component share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ocf.component.apply.applier import Applier, ApplyResult
from ocf.component.model.registration import Registration, ScaleTargets, ignored_fields
from ocf.component.model.timeouts import call_with_timeout
from ocf.component.reconcile.reporter import Reporter
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts import ApplyOperation, StatusReport
from ocf.errors import OcfError, ReconcileError

if TYPE_CHECKING:
    from ocf.component.model.context import ReconcileContext
    from ocf.objects import Manifest

__all__ = ["ReconcileRun", "failing", "outcome_of", "raise_all"]

P = ParamSpec("P")
T = TypeVar("T")

_ACTIONS = {
    ApplyOperation.CREATED: Action.CREATED,
    ApplyOperation.UPDATED: Action.UPDATED,
    ApplyOperation.NONE: Action.UNCHANGED,
}


@dataclass(frozen=True, slots=True)
class ReconcileRun:
    """One pass over one component.

    Args:
        component: Name of the component.
        context: The pass over its owner.
        scaling: What the component's scalers scale.
        limit: How long a handler may take; None for ever.
        journal: Is told what the pass does.
    """

    component: str
    context: ReconcileContext
    scaling: ScaleTargets
    limit: timedelta | None
    reporter: Reporter

    def object_of(self, entry: Registration) -> Applier:
        """Return the object of a resource."""
        ignore_fields = ignored_fields(entry, self.scaling.targets)
        rendered = self.scaling.rendered.get(entry.identity)
        return Applier(entry, self.component, self.context, ignore_fields, rendered=rendered, limit=self.limit)

    async def ask(
        self, what: str, entry: Registration, handler: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a handler of a resource, and name the resource and the step in whatever is raised.

        Args:
            what: The step, as it follows "failed to".
            entry: The resource.
            handler: A plain function.
            args: What it takes.
            kwargs: What it takes by name.

        Raises:
            ReconcileError: If it fails, or takes longer than the limit.
        """
        try:
            # Most handlers have no limit, and are asked many times a second.
            return (
                handler(*args, **kwargs)
                if self.limit is None
                else await call_with_timeout(self.limit, handler, *args, **kwargs)
            )
        except OcfError as error:
            raise _named(self.component, what, entry, error) from error

    async def extract(self, entry: Registration, live: Manifest) -> None:
        """Fill the data cells that a resource produces.

        Args:
            entry: The resource.
            live: Its live object.
        """
        if entry.producer is not None:
            await self.ask("extract data from", entry, entry.producer.extract_data, live)


@contextmanager
def failing(component: str, what: str, entry: Registration) -> Iterator[None]:
    """Name the component, the resource and the step in whatever is raised.

    Args:
        component: Name of the component.
        what: The step, as it follows "failed to".
        entry: The resource.

    Raises:
        ReconcileError: In place of any error of ours.
    """
    try:
        yield
    except OcfError as error:
        raise _named(component, what, entry, error) from error


def _named(component: str, what: str, entry: Registration, error: OcfError) -> ReconcileError:
    detail = str(error).removeprefix(f"{entry.identity}: ")
    problem = f"failed to {what} resource {entry.identity}: {detail}"
    return ReconcileError(component, problem, resource=entry.identity)


def outcome_of(entry: Registration, applied: ApplyResult, report: StatusReport[Any] | None) -> ResourceOutcome:
    """Say what applying a resource did."""
    held_back = applied.retry_after is not None
    return ResourceOutcome(
        resource=entry.identity,
        action=Action.HELD_BACK if held_back else _ACTIONS[applied.operation],
        report=report,
        writes=applied.writes,
        reasons=applied.reasons,
        why=applied.why,
        retry_after=applied.retry_after,
    )


def raise_all(component: str, errors: Sequence[ReconcileError]) -> None:
    """Raise what was gathered: one error as it is, several as one.

    Args:
        component: Name of the component.
        errors: The errors; none raises nothing.
    """
    if len(errors) == 1:
        raise errors[0]
    if errors:
        problem = "; ".join(error.problem for error in errors)
        raise ReconcileError(component, problem) from ExceptionGroup(f'component "{component}"', errors)
