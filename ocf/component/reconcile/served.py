"""Resources of kinds that the API server may not serve, such as those of another operator that is not installed.

They are left out before anything else looks at them. So no guard of theirs blocks another resource, no replica count is
left to an autoscaler that does not exist, and nothing waits for their suspension.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ocf.cluster.server_errors import is_definition_ending
from ocf.component.model.resource_options import Lifecycle
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts import ApplyOperation
from ocf.concepts.recorder import Why
from ocf.errors import NoKindMatchError, OcfError, ReconcileError

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.component.model.registration import Registration
    from ocf.component.reconcile.run import ReconcileRun
    from ocf.component.status.conditions import Condition

__all__ = ["left_out", "left_out_by", "naming_left_out"]


async def left_out(entries: Sequence[Registration], run: ReconcileRun) -> dict[str, ResourceOutcome]:
    """Return the outcomes of the resources that are left out, because their kinds are not served, by identity.

    They are asked for by a read of their objects, which starts the watch that finds the kind once it is served.
    """
    context = run.context
    found: dict[str, ResourceOutcome] = {}
    for entry in entries:
        if entry.options.only_if_served and not await _is_served(entry, run.cluster):
            found[entry.identity] = _outcome(entry)
            # Its object went with its kind, and not because another client reverts what was applied.
            run.cluster.apply_cache.forget_write(entry.key, context.owned_by.field_manager(run.component))
            if entry.options.lifecycle is Lifecycle.MANAGED:
                run.reporter.attempted(entry, ApplyOperation.NONE, Why.NOT_SERVED)
    return found


def left_out_by(error: ReconcileError, entry: Registration) -> ResourceOutcome | None:
    """Return the outcome of a resource whose kind goes or has gone since it was asked for; None for another error."""
    cause = error.__cause__
    is_gone = isinstance(cause, NoKindMatchError) or is_definition_ending(cause)
    return _outcome(entry) if entry.options.only_if_served and is_gone else None


def naming_left_out(condition: Condition, outcomes: Iterable[ResourceOutcome]) -> Condition:
    """Name in a condition the resources that are left out."""
    names = [outcome.resource for outcome in outcomes if outcome.why is Why.NOT_SERVED]
    if not names:
        return condition
    message = condition.message if condition.message.endswith(".") else f"{condition.message}."
    why = "Left out, because the API server does not serve the kind"
    return replace(condition, message=f"{message} {why}: {', '.join(names)}")


def _outcome(entry: Registration) -> ResourceOutcome:
    key = entry.key
    detail = f"the API server does not serve {key.api_version} {key.kind}"
    return ResourceOutcome(resource=entry.identity, action=Action.ABSENT, detail=detail, why=Why.NOT_SERVED)


async def _is_served(entry: Registration, cluster: Cluster) -> bool:
    try:
        await cluster.get(entry.key)
    except NoKindMatchError:
        return False
    except OcfError:
        # The object does not exist, or the step that needs it reports the same error.
        return True
    return True
