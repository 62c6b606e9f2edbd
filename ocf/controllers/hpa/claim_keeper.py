"""`ClaimKeeper`: claim autoscalers of autoscaling/v2 before they are run, and keep off those of another controller.

`take_over` decides; this module reads the time, writes the claims, and reports what is not run.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from ocf.autoscaling.algorithm import HpaEvent, Status
from ocf.autoscaling.algorithm.status_builder import StatusBuilder
from ocf.cluster import Cluster
from ocf.concepts import Clock
from ocf.controllers.hpa.plan import AutoscalerPhase
from ocf.controllers.hpa.reporter import HpaReporter
from ocf.controllers.hpa.state import AutoscalerState
from ocf.controllers.hpa.status_writer import write_status
from ocf.controllers.hpa.take_over import (
    CLAIM_REASON,
    RIVAL_LEASE,
    AutoscalerClaim,
    Evidence,
    LeaseTerm,
    Policy,
    Rival,
    Step,
    follow_lease,
    next_step,
)
from ocf.errors import ApiError, NotFoundError
from ocf.objects import Manifest
from ocf.objects.durations import format_duration

__all__ = ["ClaimKeeper"]

# All autoscalers that are not run ask in each of their periods.
_LOOK: Final = timedelta(seconds=5)
_LEFT_ALONE: Final = "LeftAlone"


class ClaimKeeper:
    """Decides in each reconcile whether an autoscaler may be run, and writes its claim.

    Args:
        leases: Reads the Lease of the built-in controller, without a watch.
        reporter: Reports what is not run.
    """

    def __init__(
        self,
        cluster: Cluster,
        reporter: HpaReporter,
        *,
        leases: Cluster,
        policy: Policy,
        clock: Clock,
        release: Callable[[AutoscalerState], None],
    ) -> None:
        self._cluster = cluster
        self._reporter = reporter
        self._policy = policy
        self._clock = clock
        self._release = release
        self._leases = leases
        self._rival = Rival()
        self._term: LeaseTerm | None = None
        self._looked: timedelta | None = None

    async def hold(self, manifest: Manifest, state: AutoscalerState) -> timedelta | None:
        """Return for how long an autoscaler must not be run; None if it may be run now.

        Returns:
            The delay until the next look at it, at most its sync period; None to run it.
        """
        version = manifest["metadata"].get("resourceVersion")
        if version is not None and version == state.run_version:
            return None
        state.run_version = None
        status = Status.of(manifest.get("status"))
        evidence, now, before = Evidence.of(manifest, status), self._clock.elapsed(), state.claim
        if evidence.foreign not in {None, state.foreign_write}:
            state.foreign_write, self._rival = evidence.foreign, self._rival._replace(wrote=now)
        if before.lost is not None:
            await self._look(now)
        step, claim = next_step(evidence, before, self._policy, self._rival, now=now)
        self._learn(step, evidence, before)
        if step is Step.CLAIM:
            await self._look(now)
        period = state.parsed.settings.sync_period
        # A claim that was not stored proves nothing when it grows old, so nothing is remembered of it.
        if step is Step.CLAIM and not await self._write_claim(manifest, status, state):
            return period
        state.claim = claim
        if step is Step.RUN:
            if not evidence.is_claimed:
                state.run_version = version  # the same answer until it changes
            return None
        if step is Step.LEAVE:
            self._leave(state, evidence)
            return period
        self._reporter.set_phase(state, AutoscalerPhase.TAKING_OVER)
        # At the instant at which the claim is old enough, if that is before the next sync.
        return min(period, self._policy.delay - (now - (claim.since or now)))

    def _learn(self, step: Step, evidence: Evidence, before: AutoscalerClaim) -> None:
        """Keep whether another controller can be running: a claim that grew old proves that none is."""
        if before.since is not None and step in {Step.RUN, Step.LEAVE}:
            self._policy = self._policy._replace(proven=step is Step.RUN)
        elif evidence.foreign is not None and before.ran:
            self._policy = self._policy._replace(proven=False)

    async def _look(self, now: timedelta) -> None:
        """Look at the Lease of the built-in controller; one that cannot be read shows nothing."""
        if self._looked is not None and now - self._looked < _LOOK:
            return
        self._looked = now
        try:
            lease = await self._leases.get(RIVAL_LEASE)
        except NotFoundError:
            lease = None
        except ApiError:
            return
        self._term, ended = follow_lease(self._term, lease, now=now)
        if ended:
            self._rival = self._rival._replace(ended=now)

    async def _write_claim(self, manifest: Manifest, status: Status, state: AutoscalerState) -> bool:
        """Write the claim of an autoscaler; return whether the API server accepted it."""
        message = (
            f"the HPA controller of ocf runs this autoscaler in {format_duration(self._policy.delay)},"
            " unless another controller writes this condition until then"
        )
        builder = StatusBuilder(status.conditions, self._clock.now())
        builder.set("AbleToScale", "Unknown", CLAIM_REASON, message)
        try:
            await write_status(self._cluster, manifest, status._replace(conditions=builder.conditions))
        except ApiError as error:
            self._reporter.log_problem(state, f"it could not be claimed: {error.message}")
            return False
        self._reporter.note(state, AutoscalerPhase.TAKING_OVER, HpaEvent("Normal", CLAIM_REASON, message))
        return True

    def _leave(self, state: AutoscalerState, evidence: Evidence) -> None:
        manager = "another controller" if evidence.foreign is None else evidence.foreign.manager
        if state.claim.lost is None:
            message = f"{manager} wrote its status last; if that controller is switched off, run it with --take-over"
        else:
            message = (
                f"{manager} wrote its status while it was taken over, so that controller still runs it;"
                " it is claimed again when that controller is silent, or when its Lease ends"
            )
        self._release(state)  # where it is run again, it starts without history
        self._reporter.note(state, AutoscalerPhase.LEFT_ALONE, HpaEvent("Warning", _LEFT_ALONE, message))
