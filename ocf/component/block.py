"""One reconcile of an owner as a block: leaving it writes the owner's status once, if it changed.

It does so after an error, too, but not after a cancellation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from ocf.cluster import Cluster
from ocf.component.context import ReconcileContext
from ocf.component.model.arguments import require_arguments
from ocf.component.model.ownership import DEFAULT_OPERATOR
from ocf.component.pause import pause_path
from ocf.concepts import Clock, Recorder, SystemClock
from ocf.concepts.tracing import SpanAttributes, SpanStart, object_attributes, spanning
from ocf.errors import ApiError, ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, write_model

__all__ = ["reconciling"]

_log: Final = logging.getLogger("ocf.component")


@asynccontextmanager
async def reconciling(
    owner: Manifest | BaseModel,
    cluster: Cluster,
    *,
    operator: str = DEFAULT_OPERATOR,
    former_managers: Sequence[str] = (),
    clock: Clock | None = None,
    recorder: Recorder | None = None,
    pause_field: str = "",
) -> AsyncIterator[ReconcileContext]:
    """Reconcile the components of one owner, and write its status once.

    Args:
        owner: The owner as read from the cluster: its manifest, or a model of it that keeps every field.
        cluster: The cluster of the objects.
        operator: Name of the operator, a DNS label. It is part of the field managers, the finalizers and the condition
            of the clean-up: of programs that reconcile owners of the same kind, each needs a name of its own.
        former_managers: Field managers, by name or pattern, whose fields each component takes over once, in addition to
            its own `Builder.with_former_managers`.
        clock: Clock for the time of the reconcile; the system clock by default.
        recorder: Receives attempts, events and conditions; by default they are discarded.
        pause_field: A field of the owner that pauses it while it is true, `spec.paused`, beside the annotation
            `<operator>.ocf.dev/paused`; empty for none.

    Yields:
        The context for `Component.reconcile`. Set further fields of the owner's status in its `status`.

    Raises:
        ConfigError: If owner or cluster is something else, such as None, or the operator's name is not a DNS label.
        ManifestError: If the owner has no name or no uid, or if its new status contains what cannot be written, such
            as a value that JSON does not have, or an entry of `conditions` that is not a condition. The rest of the
            status is written; those fields keep their stored values.
        ApiError: If the status cannot be written. After an error inside the block, that error is raised with a note.
    """
    require_arguments(owner, cluster, operator, former_managers)
    manifest = owner if isinstance(owner, dict) else write_model(owner)
    pausing = pause_path(pause_field)
    context = ReconcileContext(manifest, cluster, clock or SystemClock(), recorder, operator, pause_field=pausing)
    context.former_managers = tuple(former_managers)
    with spanning(_span, context):
        try:
            yield context
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            try:
                await context.write_final_status()
            except (ApiError, ManifestError) as unwritten:
                key = context.owned_by.key
                _log.warning("%s: the status could not be written: %s", key, unwritten, extra={"owner": str(key)})
                error.add_note(f"the status of {key} could not be written either: {unwritten}")
            raise
        else:
            await context.write_final_status()
            if context.pause is None:
                context.release_conditions()
        finally:
            context.end()


def _span(context: ReconcileContext) -> SpanStart:
    owner = context.owned_by
    own: SpanAttributes = {"ocf.owner.uid": owner.uid, "ocf.owner.generation": owner.generation}
    attributes = {**object_attributes("ocf.owner", owner.key), **own}
    return SpanStart(name=f"reconcile {owner.key.kind}", attributes=attributes)
