"""Ownership of autoscalers in mode replace: run, claim, wait, or leave alone, as a pure function.

Only `managedFields` and the conditions show that another controller runs an autoscaler of autoscaling/v2, and a
controller that finds nothing to change writes nothing. So an autoscaler is claimed before it is run: one write sets its
condition `AbleToScale` to a reason that only this controller uses. Every HPA controller sets that condition in every
sync, so one that still runs replaces the reason within its sync period. Until that period is over, nothing is scaled
down, and only what this process has run before is scaled up. The entry of a controller that was switched off stays in
`managedFields`, so the entry alone proves nothing.

A claim that was removed is written again when the other controller may have been switched off: when its Lease has ended
or changed hands, when no other client writes a status any more, or when the claim of another autoscaler has lasted.
"""

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Status
from ocf.controllers.hpa.status_writer import FIELD_MANAGER
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.paths import get_field

__all__ = [
    "CLAIM_REASON",
    "RETRY",
    "RIVAL_LEASE",
    "AutoscalerClaim",
    "Evidence",
    "LeaseTerm",
    "Policy",
    "Rival",
    "StatusWrite",
    "Step",
    "follow_lease",
    "last_foreign_write",
    "next_step",
]

CLAIM_REASON: Final = "TakingOver"
"""The reason of the condition `AbleToScale` of an autoscaler that is claimed."""
RIVAL_LEASE: Final = ObjectKey("coordination.k8s.io/v1", "Lease", "kube-controller-manager", "kube-system")
"""The Lease of the program that contains the built-in controller."""
RETRY: Final = timedelta(minutes=10)
"""The longest time until an autoscaler whose claim another controller removed is claimed again, if that is silent."""
_DOUBLINGS: Final = 20  # more than it takes to reach the longest time
# Every HPA controller sets this field in every sync; the last one that changed its value owns it.
_SET_BY_EACH_SYNC: Final = ("f:status", "f:conditions", 'k:{"type":"AbleToScale"}', "f:reason")


class StatusWrite(NamedTuple):
    """The last write of a field manager to a status.

    Args:
        at: The time, as the API writes it; whole seconds.
        manager: The field manager.
    """

    at: str
    manager: str


class Step(StrEnum):
    """What to do with an autoscaler in one reconcile."""

    RUN = "run"
    CLAIM = "claim"
    """Write the condition with the reason `CLAIM_REASON`, and scale nothing."""
    WAIT = "wait"
    """Scale and write nothing: the claim is not old enough."""
    LEAVE = "leave"
    """Scale and write nothing: another controller runs it, or may run it."""


class Evidence(NamedTuple):
    """What the status of an autoscaler shows.

    Args:
        foreign: The last write of another field manager; None if our own is later, or there is none.
        is_claimed: Whether `AbleToScale` has the reason `CLAIM_REASON`.
    """

    foreign: StatusWrite | None = None
    has_ours: bool = False
    is_written: bool = False
    is_claimed: bool = False

    @classmethod
    def of(cls, autoscaler: Manifest, status: Status) -> "Evidence":
        """Return what an autoscaler shows.

        Args:
            autoscaler: Its manifest, with its `managedFields`.
        """
        writers = _status_writers(autoscaler)
        return cls(
            last_foreign_write(autoscaler, FIELD_MANAGER),
            FIELD_MANAGER in writers,
            bool(writers),
            any(each.type == "AbleToScale" and each.reason == CLAIM_REASON for each in status.conditions),
        )


class AutoscalerClaim(NamedTuple):
    """What is remembered of an autoscaler; durations are times of a monotonic clock.

    Args:
        since: When its claim was written or first seen; None if it is not claimed.
        lost: When another controller removed the claim; None if none did.
        ran: Whether this process has run the autoscaler.
        removed: How many claims in a row another controller has removed.
    """

    since: timedelta | None = None
    lost: timedelta | None = None
    ran: bool = False
    removed: int = 0

    @property
    def scales_up(self) -> bool:
        """Whether the autoscaler may be scaled up while its claim grows old.

        This process ran it until another client wrote its status, which may have been a user.
        """
        return self.since is not None and self.ran and not self.removed


class Rival(NamedTuple):
    """What is known of another HPA controller; times are of a monotonic clock.

    Args:
        wrote: When another client was last seen to have written the status of any autoscaler; None if never.
        ended: When its Lease was last seen to have ended or changed hands; None if never, or if it cannot be read.
    """

    wrote: timedelta | None = None
    ended: timedelta | None = None


class LeaseTerm(NamedTuple):
    """The term of a leader, as its Lease shows it.

    Args:
        holder: The identity of the leader.
        acquired: When it became the leader, as the Lease says.
        renewed: When it last renewed the Lease, as the Lease says.
        lasts: How long the Lease lasts without being renewed.
        seen: When this renewal was first seen, as a time of a monotonic clock.
        is_over: Whether it was not renewed for that long.
    """

    holder: str
    acquired: str
    renewed: str
    lasts: timedelta
    seen: timedelta
    is_over: bool = False


def follow_lease(before: LeaseTerm | None, lease: Manifest | None, *, now: timedelta) -> tuple[LeaseTerm | None, bool]:
    """Return the term that a Lease shows, and whether the one before has ended since it was last looked at.

    Args:
        before: The term when it was last looked at; None if it never was, or there was no Lease.
        lease: The Lease; None if there is none.
        now: The time of a monotonic clock.

    Example:
        >>> spec = {"holderIdentity": "a", "acquireTime": "x", "renewTime": "1", "leaseDurationSeconds": 15}
        >>> term, _ = follow_lease(None, {"spec": spec}, now=timedelta(0))
        >>> [follow_lease(term, {"spec": spec}, now=timedelta(seconds=later))[1] for later in (14, 15)]
        [False, True]
        >>> follow_lease(term, {"spec": spec | {"holderIdentity": "b"}}, now=timedelta(seconds=1))[1]
        True
    """
    if lease is None:
        return None, before is not None
    spec = lease.get("spec") or {}
    holder, acquired, renewed = (str(spec.get(name) or "") for name in ("holderIdentity", "acquireTime", "renewTime"))
    term = LeaseTerm(holder, acquired, renewed, timedelta(seconds=spec.get("leaseDurationSeconds") or 0), now)
    if before is None:
        return term, False
    if before[:2] != term[:2]:
        return term, True
    if before.renewed != renewed:
        return term, False
    is_over = now - before.seen >= term.lasts
    return before._replace(is_over=is_over), is_over and not before.is_over


class Policy(NamedTuple):
    """The rules of claims.

    Args:
        take_over: Whether autoscalers that only another controller ran are claimed.
        delay: The age that a claim must reach; more than the sync period of any controller that may still run.
        proven: Whether another claim has reached that age, so no other controller runs.
    """

    take_over: bool
    delay: timedelta
    proven: bool = False


_UNKNOWN: Final = Rival()


def next_step(
    evidence: Evidence, claim: AutoscalerClaim, policy: Policy, rival: Rival = _UNKNOWN, *, now: timedelta
) -> tuple[Step, AutoscalerClaim]:
    """Return what to do with an autoscaler, and what to remember of it.

    A new autoscaler without a status is run at once if no other controller can be running. An autoscaler whose status
    another client wrote after us (another controller, or a user with kubectl) is claimed again.

    `now` is the time of a monotonic clock. The claim of `Step.CLAIM` only applies once the condition is written.

    Example:
        >>> theirs = Evidence(StatusWrite("2026-01-31T12:00:00Z", "kube-controller-manager"), is_written=True)
        >>> careful, willing = Policy(False, timedelta(seconds=30)), Policy(True, timedelta(seconds=30))
        >>> next_step(theirs, AutoscalerClaim(), careful, now=timedelta())[0], next_step(theirs, AutoscalerClaim(), willing, now=timedelta())[0]
        (<Step.LEAVE: 'leave'>, <Step.CLAIM: 'claim'>)
        >>> claimed = Evidence(has_ours=True, is_written=True, is_claimed=True)
        >>> waiting, claim = next_step(claimed, AutoscalerClaim(), willing, now=timedelta(seconds=60))
        >>> waiting, next_step(claimed, claim, willing, now=timedelta(seconds=90))[0]
        (<Step.WAIT: 'wait'>, <Step.RUN: 'run'>)
    """  # noqa: E501 (an example on one line)
    if evidence.is_claimed:
        # After a restart the age of a claim is not known, and its time in the status is another machine's clock.
        since = now if claim.since is None else claim.since
        over = now - since >= policy.delay
        return (Step.RUN, AutoscalerClaim(ran=True)) if over else (Step.WAIT, claim._replace(since=since, lost=None))
    # It was claimed, and another controller has replaced the reason since.
    if claim.since is not None:
        return Step.LEAVE, AutoscalerClaim(lost=now, ran=claim.ran, removed=claim.removed + 1)
    if claim.lost is not None and not _is_due(claim, claim.lost, policy, rival, now):
        return Step.LEAVE, claim
    if evidence.foreign is None and claim.lost is None and (evidence.has_ours or policy.proven):
        return Step.RUN, AutoscalerClaim(ran=True)
    # Also without `take_over`, where ours ran it before: another client may only have edited its status.
    if policy.take_over or evidence.foreign is None or evidence.has_ours or claim.ran:
        return Step.CLAIM, claim._replace(since=now, lost=None)
    return Step.LEAVE, claim


def _is_due(claim: AutoscalerClaim, lost: timedelta, policy: Policy, rival: Rival, now: timedelta) -> bool:
    """Return whether to claim an autoscaler again whose claim was removed."""
    if policy.proven or (rival.ended is not None and rival.ended > lost):
        return True
    silent = now - max(rival.wrote or lost, lost)
    # A controller that has nothing to write is silent, too; each claim that it removes shows that it runs.
    pause = min(policy.delay * 2 ** min(claim.removed - 1, _DOUBLINGS), RETRY)
    return silent >= policy.delay and now - lost >= pause


def last_foreign_write(autoscaler: Manifest, ours: str) -> StatusWrite | None:
    """Return the last status write of another field manager, if it is later than our own.

    Args:
        autoscaler: The manifest of an autoscaler, with its `managedFields`.
        ours: Our field manager.

    Returns:
        The last write of another field manager; None if there is none, or our own is later. Of writes in the same
        second the one that owns the reason of `AbleToScale` is the later one.

    Example:
        >>> def entry(manager: str, time: str) -> Manifest:
        ...     return {"manager": manager, "subresource": "status", "time": time}
        >>> theirs, ours = entry("kube-controller-manager", "2026-01-31T12:00:00Z"), entry("us", "2026-01-31T12:01:00Z")
        >>> last_foreign_write({"metadata": {"managedFields": [theirs]}}, "us").manager
        'kube-controller-manager'
        >>> last_foreign_write({"metadata": {"managedFields": [theirs, ours]}}, "us") is None
        True
    """
    writes = list(_writes(autoscaler))
    foreign = max((write for write in writes if write.manager != ours), default=None)
    own = max((write for write in writes if write.manager == ours), default=_NO_WRITE)
    if foreign is None or foreign[:2] <= own[:2]:
        return None
    return StatusWrite(foreign.at, foreign.manager)


def _status_writers(autoscaler: Manifest) -> frozenset[str]:
    """Return the field managers that own a field of the status of an autoscaler.

    Args:
        autoscaler: Its manifest, with its `managedFields`.
    """
    return frozenset(write.manager for write in _writes(autoscaler))


class _Write(NamedTuple):
    at: str
    owns_reason: bool
    manager: str


_NO_WRITE: Final = _Write("", False, "")  # noqa: FBT003 (a named tuple)


def _writes(autoscaler: Manifest) -> Iterator[_Write]:
    for entry in ManagedFields.of(autoscaler).entries:
        if entry.manager.subresource == "status":
            owns = get_field(entry.fields, _SET_BY_EACH_SYNC) is not None
            yield _Write(entry.time, owns, entry.manager.name)
