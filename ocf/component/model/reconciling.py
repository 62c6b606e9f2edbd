"""`reconciling`: one reconcile of an owner as a block.

Leaving the block writes the owner's status once, if it changed; also after an error, but not after a cancellation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ocf.cluster import Cluster
from ocf.component.model.context import ReconcileContext
from ocf.component.model.ownership import DEFAULT_OPERATOR
from ocf.concepts import Clock, Recorder, SystemClock
from ocf.concepts.tracing import SpanStart, object_attributes, spanning
from ocf.errors import ApiError, ConfigError, ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, write_model
from ocf.objects.name_validation import dns_label

__all__ = ["reconciling"]

_log: Final = logging.getLogger("ocf.component")


@asynccontextmanager
async def reconciling(
    owner: Manifest | BaseModel,
    cluster: Cluster,
    *,
    operator: str = DEFAULT_OPERATOR,
    clock: Clock | None = None,
    recorder: Recorder | None = None,
) -> AsyncIterator[ReconcileContext]:
    """Reconcile the components of one owner, and write its status once.

    Args:
        owner: The owner as read from the cluster: its manifest, or a model of it that keeps every field.
        cluster: The cluster of the objects.
        operator: Name of the operator, a DNS label. It is part of the field managers, the finalizers and the condition
            of the clean-up: of programs that reconcile owners of the same kind, each needs a name of its own.
        clock: Clock for the time of the reconcile; the system clock by default.
        recorder: Receives attempts, events and conditions; by default they are discarded.

    Yields:
        The context for `Component.reconcile`. Set further fields of the owner's status in its `status`.

    Raises:
        ConfigError: If owner or cluster is something else, such as None, or the operator's name is not a DNS label.
        ManifestError: If the owner has no name or no uid, or if its new status contains what cannot be written, such
            as a value that JSON does not have, or an entry of `conditions` that is not a condition. The rest of the
            status is written; those fields keep their stored values.
        ApiError: If the status cannot be written. After an error inside the block, that error is raised with a note.
    """
    _require_arguments(owner, cluster, operator)
    manifest = owner if isinstance(owner, dict) else write_model(owner)
    context = ReconcileContext(manifest, cluster, clock or SystemClock(), recorder, operator)
    with spanning(_span, context):
        try:
            yield context
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            try:
                await context.write_status()
            except (ApiError, ManifestError) as unwritten:
                key = context.owned_by.key
                _log.warning("%s: the status could not be written: %s", key, unwritten, extra={"owner": str(key)})
                error.add_note(f"the status of {key} could not be written either: {unwritten}")
            raise
        else:
            await context.write_status()
            context.release_conditions()
        finally:
            context.end()


def _span(context: ReconcileContext) -> SpanStart:
    owner = context.owned_by
    return SpanStart(
        name=f"reconcile {owner.key.kind}",
        attributes={
            **object_attributes("ocf.owner", owner.key),
            "ocf.owner.uid": owner.uid,
            "ocf.owner.generation": owner.generation,
        },
    )


def _require_arguments(owner: object, cluster: object, operator: str) -> None:
    problems: list[str] = []
    if not isinstance(owner, dict):
        from pydantic import BaseModel

        if not isinstance(owner, BaseModel):
            found = "None" if owner is None else f"an object of type {type(owner).__name__}"
            problems.append(f"owner must be the manifest or a model of an object read from the cluster, got {found}")
    if not callable(getattr(cluster, "apply", None)):
        found = "None" if cluster is None else f"an object of type {type(cluster).__name__}"
        problems.append(f"cluster must be a Cluster, got {found}")
    problems += [f'operator "{operator}": {problem}' for problem in dns_label(operator)]
    if problems:
        raise ConfigError(f"reconciling: {'; '.join(problems)}")
