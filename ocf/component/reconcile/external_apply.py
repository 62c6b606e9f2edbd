"""Reconcile of one external resource at one target: observe, record, apply, delete.

Each step decides from the record in the owner's status, from what was observed, and from the desired state. A call that
does not answer soon, or fails, ends the steps without an error: the outcome says so, and the resources after it, and
those at other targets, go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.component.external.calls import ExternalCalls, Failure, Flight, Held, Known, Verb, failure_of
from ocf.component.external.records import (
    Record,
    digest_of,
    idempotency_key,
    records_of,
    stage_record,
    store_record,
)
from ocf.component.model.ownership import finalizers_of
from ocf.component.model.resource_options import Adoption, Lifecycle
from ocf.component.reconcile.run import failing
from ocf.component.status.results import Action, Drift, ResourceOutcome
from ocf.concepts import AliveStatus, ApplyOperation, GuardStatus, StatusReport
from ocf.concepts.external import ExternalResource, Identity, form_of
from ocf.concepts.recorder import Why
from ocf.errors import HandlerError, ReconcileError
from ocf.objects.conditions import time_problem
from ocf.objects.timestamps import format_time, parse_time

if TYPE_CHECKING:
    from ocf.component.model.registration import Registration
    from ocf.component.reconcile.run import ReconcileRun

__all__ = ["POLL", "ExternalApplier"]

_PATIENCE: Final = timedelta(milliseconds=200)  # how long a reconcile waits for an answer: longer than most calls take
POLL: Final = timedelta(seconds=5)
"""When a resource that is not ready, or is being deleted, is read again."""
_STEPS: Final = 4
_UNOPENED: Final = "a dry run opens no lifespan: let the client open a session of its own if it gets none"
_SECOND: Final = timedelta(seconds=1)  # the time of a call is recorded in whole seconds
_ACTIONS: Final = {ApplyOperation.CREATED: Action.CREATED, ApplyOperation.UPDATED: Action.UPDATED}


class _Observed(NamedTuple):
    """A resource as it was read; None if it does not exist."""

    value: Any


class ExternalApplier:
    """Reads and applies an external resource at one target, in one reconcile."""

    def __init__(self, entry: Registration, run: ReconcileRun) -> None:
        resource = entry.external
        if resource is None:
            raise AssertionError(f"{entry.identity} is an object of the cluster")
        self._entry = entry
        self._run = run
        self._context = run.context
        self._resource: ExternalResource[Any, Any] = resource
        self._client = resource.client
        self._mark = run.context.owned_by.mark
        self._calls = run.context.cluster.apply_cache.shared(ExternalCalls)
        self._known: Known = self._calls.known(self._mark, entry.identity)
        self._key = idempotency_key(run.context.owned_by.uid, resource)
        self._new: Final = Record(
            operator=run.context.owned_by.operator,
            component=run.component,
            kind=self._client.kind,
            name=resource.name,
            target=resource.target,
            key=self._key,
        )
        self._place = self._new.identity
        self._operation = ApplyOperation.NONE
        self._reasons: tuple[Drift, ...] = ()
        self._is_fresh = False

    @property
    def record(self) -> Record | None:
        """The record of the resource in the status, or in memory if it was removed there; None if nothing was made."""
        known = self._known.record
        return self._stored or (known if isinstance(known, Record) else None)

    @property
    def _stored(self) -> Record | None:
        return records_of(self._context.status, self._context.owned_by.operator).get(self._place)

    @property
    def _other_operator(self) -> str:
        """Another operator of the owner that manages the resource; empty if none does."""
        found = records_of(self._context.status).get(self._place)
        return found.operator if found is not None and self._stored is None else ""

    @property
    def _identity(self) -> Identity:
        record = self.record
        key, named = (record.key, record.id) if record is not None else (self._key, "")
        if not named and self._known.observed is not None:
            named = self._id_in(self._known.observed)
        return Identity(self._resource.name, key, self._resource.target, named)

    async def apply(self, *, suspended: bool = False) -> ResourceOutcome:
        """Bring the resource into its desired state, suspended or running."""
        state = partial(self._resource.desired_state, suspended=suspended)
        desired = await self._run.ask("render", self._entry, state)
        digest = digest_of(self._key, desired)
        self._require_finalizer()
        if self._other_operator:
            return self._blocked(f'the operator "{self._other_operator}" manages it for the same owner')
        held = await self._landed() or self._backing_off(digest)
        for _ in range(_STEPS):
            step = held or await self._step(desired, digest)
            if isinstance(step, ResourceOutcome):
                return step
            if step is not None:
                return await self._waiting(step, digest)
        return await self._waiting(Held("it changes all the time", POLL, failing=True), digest)

    async def _step(self, desired: Any, digest: str) -> ResourceOutcome | Held | None:
        """Observe the resource, and apply it if it is not in sync; return the outcome if it is."""
        seen = await self._observe()
        if isinstance(seen, Held):
            return seen
        foreign = self._foreign(seen.value)
        if foreign:
            return self._blocked(foreign)
        changed = self._differences(desired, seen.value)
        record = self.record
        is_applied = record is not None and record.applied == digest
        if seen.value is not None and is_applied and not changed:
            await self._claim()
            return await self._ready(seen.value)
        if self._operation is not ApplyOperation.NONE and is_applied and changed:
            return self._fail(Failure(f"the system does not keep {', '.join(changed)} as it was set"), digest)
        why = Why.ABSENT if seen.value is None else Why.CHANGED
        self._reasons = tuple(Drift(path, why) for path in changed or ("",))
        if self._context.dry_run:
            return self._planned(desired, seen.value)
        return await self._send(desired, digest, seen.value)

    def _differences(self, desired: Any, observed: Any) -> tuple[str, ...]:
        if observed is None:
            return ()
        with self._failing("compare", "differences"):
            return tuple(self._client.differences(desired, observed))

    async def _claim(self) -> None:
        """Restore a record that was removed, and take one over from another component of the owner."""
        record = self.record
        if record is not None and not self._context.dry_run:
            ours = replace(record, component=self._run.component)
            if ours != self._stored:
                await stage_record(self._context, self._place, ours)
            self._known.record = ours

    async def read_only(self) -> ResourceOutcome | None:
        """Read the resource; return None if it does not exist."""
        held = await self._landed() or self._backing_off(None)
        seen = held or await self._observe()
        if isinstance(seen, Held):
            return await self._waiting(seen, "")
        return None if seen.value is None else await self._ready(seen.value)

    async def _send(self, desired: Any, digest: str, observed: Any) -> Held | None:
        """Record what is about to be done, and do it."""
        creates = observed is None
        if creates and (held := await self._invisible()) is not None:
            return held
        self._context.require_running()
        record = self.record
        if record is None or (creates and self._client.visible_after):
            before = record or replace(self._new, id="" if creates else self._id_in(observed))
            sent = format_time(self._context.now) if creates and self._client.visible_after else ""
            await self._store(replace(before, sent=sent))
            if record is None and not creates and not self._key_in(observed):
                self._run.reporter.external(self._entry, "Adopt", "adopted: it existed before")
        identity = self._identity
        return await self._answer(Verb.APPLY, lambda: self._client.apply(identity, desired, observed), digest)

    async def _observe(self) -> _Observed | Held:
        """Return the resource as it is known, or as it is read now."""
        known = self._known
        # What was read for a call that waits for its turn is not read again: that would take the turn.
        period = self._client.resync if known.has_turn else self._period
        is_known = known.read_at is not None and (self._is_fresh or self._context.elapsed - known.read_at < period)
        if not is_known:
            identity = self._identity
            held = await self._answer(Verb.READ, lambda: self._client.read(identity))
            if held is not None:
                return held
        return _Observed(known.observed)

    @property
    def _period(self) -> timedelta:
        """How long an observation is used: not one of a resource that is missing, is deleted, or is not ready."""
        known = self._known
        if known.observed is None or known.is_deleting:
            return POLL if self._entry.options.lifecycle is Lifecycle.READ_ONLY else timedelta(0)
        try:
            healthy = self._client.status(known.observed).status is AliveStatus.HEALTHY
        except Exception:  # noqa: BLE001 (the status is asked for again, where its error is shown)
            healthy = False
        return self._client.resync if healthy else POLL

    async def _answer(self, verb: Verb, call: Callable[[], Awaitable[Any]], digest: str = "") -> Held | None:
        """Call the target, and wait for the answer for a short time; return why there is none, or that it failed."""
        client, context = self._client, self._context
        target = self._resource.target or client.kind
        held = self._calls.refusal(
            target,
            (self._mark, self._entry.identity),
            context.elapsed,
            most=client.max_calls,
            limit=client.time_limit,
            wake=context.wake,
            follows=verb is not Verb.READ,
        )
        self._known.has_turn = held is not None and verb is not Verb.READ
        if held is not None:
            return held
        limit, clock, name = client.time_limit, context.clock, f"{self._method(verb)} of {self._entry.identity}"
        flight = self._calls.start(self._known, target, verb, call, limit=limit, clock=clock, name=name)
        flight.digest = digest
        # Without an operator that reconciles the owner again once the answer is there, it is waited for.
        patience = None if context.wake is None else _PATIENCE.total_seconds()
        await asyncio.wait({flight.task}, timeout=patience)
        if not flight.task.done():
            flight.wake = context.wake
        return await self._landed()

    async def _landed(self) -> Held | None:
        """Take the answer of the call that was sent last; return why it is not there, or that the call failed."""
        flight = self._known.flight
        if flight is None:
            return None
        limit = self._client.time_limit
        if flight.is_overdue(limit, self._context.elapsed):
            text = f"{self._method(flight.verb)} goes on after its time limit of {limit.total_seconds():g} s"
            return Held(f"{text}: the client must not catch CancelledError", limit, failing=True)
        if not flight.task.done():
            return Held(f"waiting for the answer to {flight.verb}", limit)
        self._known.flight = None
        try:
            answer = flight.task.result()
        except Exception as error:  # noqa: BLE001 (each error of a client is a failure of its call)
            failure = failure_of(error, limit, self._context.now, self._method(flight.verb))
            if self._context.dry_run and isinstance(error, AttributeError | TypeError):
                failure = replace(failure, text=f"{failure.text} ({_UNOPENED})")
            return self._fail(failure, flight.digest or None)
        await self._take(flight, answer)
        return None

    def _method(self, name: str) -> str:
        return f"{type(self._client).__name__}.{name}"

    @contextmanager
    def _failing(self, what: str, method: str) -> Iterator[None]:
        """Name the resource, the step and the method of the client in an error of the block."""
        with failing(self._run.component, what, self._entry), _calling(self._method(method)):
            yield

    async def _take(self, flight: Flight, answer: Any) -> None:
        known = self._known
        if flight.verb is Verb.DELETE:
            known.read_at, known.is_deleting = None, True
            return
        created = flight.verb is Verb.APPLY and known.observed is None
        known.observed, known.read_at = answer, self._context.elapsed
        # With many owners, it may take a while until one of them is reconciled again.
        self._is_fresh = self._context.elapsed - flight.ended < self._client.resync
        if flight.verb is Verb.READ:
            return
        known.is_deleting = False
        if answer is None:
            known.read_at = None
        await self._applied(flight.digest, answer)
        self._operation = ApplyOperation.CREATED if created else ApplyOperation.UPDATED
        self._run.reporter.external(self._entry, "Create" if created else "Update", "")

    async def _applied(self, digest: str, answer: Any) -> None:
        """Record the desired state that was applied; what the system has named the resource is stored at once."""
        record = self.record or self._new
        named = record.id if answer is None else self._id_in(answer)
        after = replace(record, id=named, applied=digest, component=self._run.component)
        if named != record.id:
            await self._store(after)
        else:
            await stage_record(self._context, self._place, after)
            self._known.record = after

    async def _store(self, record: Record) -> None:
        with failing(self._run.component, "record", self._entry):
            await store_record(self._context, record)
        self._known.record = record

    def _fail(self, failure: Failure, digest: str | None) -> Held:
        known, before = self._known, self._known.problem
        delay = known.fail(failure, self._context.elapsed, digest)
        if failure.text != before and not self._context.dry_run:
            self._run.reporter.external(self._entry, "Call", failure.text, warning=True)
        return Held(failure.text, delay, failing=True)

    def _backing_off(self, digest: str | None) -> Held | None:
        """Return that a failed resource waits for its next try; another desired state is tried at once."""
        known = self._known
        rest = known.not_before - self._context.elapsed
        if rest <= timedelta(0) or not known.problem:
            return None
        if known.failed_digest is not None and known.failed_digest != digest:
            return None
        return Held(known.problem, rest, failing=True)

    async def _invisible(self) -> Held | None:
        """Return that a resource was created so recently that it need not be shown yet; None otherwise."""
        record = self.record
        if record is None or not record.sent or not self._client.visible_after:
            return None
        longest = self._client.visible_after + _SECOND
        rest = longest if time_problem(record.sent) else parse_time(record.sent) + longest - self._context.now
        if rest <= timedelta(0):
            return None
        if rest > longest:
            # The clock was set back, or is behind that of another process: how long ago it was is not known.
            rest = longest
            if not self._context.dry_run:
                await stage_record(self._context, self._place, replace(record, sent=format_time(self._context.now)))
        self._known.read_at = None
        return Held("it was created a short time ago, and the system does not show it yet", min(rest, POLL))

    def _foreign(self, observed: Any) -> str:
        """Return why a resource that exists is not this owner's; empty if it is."""
        if observed is None:
            return ""
        key, record = self._key_in(observed), self.record
        if key and key not in {self._key, record.key if record is not None else self._key}:
            return "it exists, and was made for another owner: give one of them another name"
        if record is not None or key or self._entry.options.adopt is Adoption.ALWAYS:
            return ""
        if self._entry.options.lifecycle is Lifecycle.READ_ONLY:
            return ""
        return 'it exists, and nothing shows that it was made for this owner: adopt="always" adopts it'

    def _id_in(self, observed: Any) -> str:
        with self._failing("read the id of", "id_of"):
            named: object = self._client.id_of(observed)
        # The record holds texts; a system may count its resources, from zero on.
        return "" if named is None else str(named)

    def _key_in(self, observed: Any) -> str:
        with self._failing("read the key of", "key_of"):
            return str(self._client.key_of(observed) or "")

    def _require_finalizer(self) -> None:
        context = self._context
        if context.dry_run or context.finalizers.cleanup in finalizers_of(context.owner):
            return
        raise ReconcileError(
            self._run.component,
            f"{self._entry.identity} is not created, because the owner has no finalizer that waits for its deletion: "
            "call `finalize` with all components before they are reconciled",
            resource=self._entry.identity,
        )

    async def _ready(self, observed: Any) -> ResourceOutcome:
        self._known.succeed()
        report: Any = await self._run.ask("determine status of", self._entry, self._status, observed)
        if self._resource.extractions:
            await self._run.extract(self._entry, observed)
        self._run.reporter.attempted(self._entry, self._operation, self._why)
        outcome = self._outcome(_ACTIONS.get(self._operation, Action.UNCHANGED), report=report)
        at = self._known.read_at
        rest = self._period if at is None else at + self._period - self._context.elapsed
        return replace(outcome, retry_after=min(max(rest, timedelta(0)), self._period), why=self._why)

    @property
    def _why(self) -> Why:
        if self._operation is ApplyOperation.NONE:
            return Why.EQUAL
        return Why.ABSENT if self._operation is ApplyOperation.CREATED else Why.CHANGED

    def _status(self, observed: Any) -> StatusReport[AliveStatus]:
        with _calling(self._method("status")):
            report: object = self._client.status(observed)
        if not isinstance(report, StatusReport) or report.status not in tuple(AliveStatus):
            raise HandlerError(f"status must return a StatusReport of an AliveStatus, got {report!r:.60}")
        return report

    async def _waiting(self, held: Held, digest: str) -> ResourceOutcome:
        """Return the outcome while there is no answer; what was observed before still counts for other resources."""
        record = self.record
        was_read = self._entry.options.lifecycle is Lifecycle.READ_ONLY and self._known.observed is not None
        if self._resource.extractions and self._known.observed is not None and (was_read or record is not None):
            await self._run.extract(self._entry, self._known.observed)
        if not held.failing and self._known.problem:
            # A resource that has failed is failing until a call succeeds.
            held = held._replace(text=self._known.problem, failing=True)
        if held.failing:
            status = AliveStatus.FAILING
            self._run.reporter.attempted(self._entry, None, Why.FAILED)
        elif was_read or (record is not None and record.applied == digest):
            # It was in sync when it was observed last; that it is read again changes nothing.
            status = AliveStatus.HEALTHY
        else:
            status = AliveStatus.CREATING if record is None or not record.applied else AliveStatus.UPDATING
        report = StatusReport(status, f"{self._entry.identity}: {held.text}")
        outcome = self._outcome(_ACTIONS.get(self._operation, Action.UNCHANGED), report=report)
        return replace(outcome, retry_after=held.retry_after, why=Why.FAILED if held.failing else outcome.why)

    def _blocked(self, why: str) -> ResourceOutcome:
        report = StatusReport(GuardStatus.BLOCKED, f"{self._entry.identity}: {why}")
        self._known.read_at = None
        return self._outcome(Action.BLOCKED, report=report)

    def _planned(self, desired: Any, observed: Any) -> ResourceOutcome:
        """Return what a reconcile would do, for a diff."""
        self._known.planned = form_of(self._entry.identity, desired)
        action = Action.CREATED if observed is None else Action.UPDATED
        return self._outcome(action, report=StatusReport(AliveStatus.HEALTHY))

    def _outcome(self, action: Action, *, report: StatusReport[Any] | None = None, detail: str = "") -> ResourceOutcome:
        return ResourceOutcome(
            resource=self._entry.identity,
            action=action,
            report=report,
            writes=0 if self._operation is ApplyOperation.NONE else 1,
            reasons=self._reasons,
            detail=detail,
            why=self._why if action in _ACTIONS.values() else None,
        )


@contextmanager
def _calling(method: str) -> Iterator[None]:
    """Let an error of an author's method be one that names the method, without the text of an unknown error."""
    try:
        yield
    except Exception as error:
        raise HandlerError(f"{method}: {type(error).__name__}") from error
