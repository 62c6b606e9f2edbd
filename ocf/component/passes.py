"""What the steps of one pass over a component share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ocf.component.entries import Entry, Scaling, fields_left
from ocf.component.managing import Applied, ManagedObject
from ocf.component.results import Action, Outcome
from ocf.concepts import Operation, StatusReport
from ocf.errors import OcfError, ReconcileError

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext
    from ocf.objects import Manifest

__all__ = ["Pass", "failing", "outcome_of", "raise_all"]

_ACTIONS = {
    Operation.CREATED: Action.CREATED,
    Operation.UPDATED: Action.UPDATED,
    Operation.NONE: Action.UNCHANGED,
}


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over one component.

    Args:
        component: Name of the component.
        context: The pass over its owner.
        scaling: What the component's scalers scale.
    """

    component: str
    context: ReconcileContext
    scaling: Scaling

    def object_of(self, entry: Entry) -> ManagedObject:
        """Return the object of a resource."""
        leaves = fields_left(entry, self.scaling.targets)
        return ManagedObject(entry, self.component, self.context, leaves, self.scaling.rendered.get(entry.identity))

    def failing(self, what: str, entry: Entry) -> AbstractContextManager[None]:
        """Name the resource and the step in whatever is raised.

        Args:
            what: The step, as it follows "failed to".
            entry: The resource.
        """
        return failing(self.component, what, entry)

    def extract(self, entry: Entry, live: Manifest) -> None:
        """Fill the data cells that a resource produces.

        Args:
            entry: The resource.
            live: Its live object.
        """
        if entry.producer is not None:
            with self.failing("extract data from", entry):
                entry.producer.extract_data(live)


@contextmanager
def failing(component: str, what: str, entry: Entry) -> Iterator[None]:
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
        detail = str(error).removeprefix(f"{entry.identity}: ")
        problem = f"failed to {what} resource {entry.identity}: {detail}"
        raise ReconcileError(component, problem, resource=entry.identity) from error


def outcome_of(entry: Entry, applied: Applied, report: StatusReport[Any] | None) -> Outcome:
    """Say what applying a resource did."""
    return Outcome(
        resource=entry.identity,
        action=_ACTIONS[applied.operation],
        report=report,
        writes=applied.writes,
        reasons=applied.reasons,
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
