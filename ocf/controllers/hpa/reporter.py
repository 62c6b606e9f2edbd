"""Report of a reconcile: metrics, events, and a log line for each change."""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from ocf.autoscaling.algorithm import HpaEvent
from ocf.concepts import Event, Recorder
from ocf.controllers.hpa.metrics import HpaMonitor
from ocf.controllers.hpa.parsed_autoscaler import ParsedAutoscaler
from ocf.controllers.hpa.plan import AutoscalerPhase, Plan
from ocf.controllers.hpa.state import AutoscalerState

__all__ = ["COMPONENT", "HpaReporter"]

COMPONENT: Final = "horizontal-pod-autoscaler"
"""The reporting component of events, the same as of the built-in controller, so that existing queries find them."""

_log: Final = logging.getLogger(__name__)
_ACTION: Final = "Scale"


class HpaReporter:
    """Reports the outcome of reconciles.

    Args:
        events: The event recorder; None records no events.
        dry_run: Whether decisions are not carried out.
    """

    def __init__(self, monitor: HpaMonitor, events: Recorder | None, *, dry_run: bool = False) -> None:
        self._monitor = monitor
        self._events = events
        self._dry_run = dry_run

    def report(self, state: AutoscalerState, planned: Plan, problem: str, *, seconds: float) -> None:
        """Report a finished reconcile.

        Args:
            problem: What failed; empty if nothing did.
        """
        parsed = state.parsed
        self._count(parsed, planned, seconds)
        self._post(parsed, planned.events)
        self._log_changes(state, planned, problem)

    def scaled(self, state: AutoscalerState, planned: Plan) -> None:
        """Report a scale-up of an autoscaler whose claim is not old enough for its status to be written."""
        self._post(state.parsed, planned.events)
        self._log_changes(state, planned._replace(phase=AutoscalerPhase.TAKING_OVER), planned.problem)

    def note(self, state: AutoscalerState, phase: AutoscalerPhase, event: HpaEvent) -> None:
        """Report why an autoscaler is not run; a warning is posted and logged once."""
        self.set_phase(state, phase)
        # It is reported again in each period, and neither changes nor is new.
        if event.type == "Warning" and event.message == state.problem:
            return
        self._post(state.parsed, (event,))
        if event.type == "Warning":
            self.log_problem(state, event.message)
        else:
            key = state.parsed.key
            _log.info("%s/%s: %s", key.namespace, key.name, event.message, extra=self._facts(state, phase))

    def set_phase(self, state: AutoscalerState, phase: AutoscalerPhase) -> None:
        """Set the gauge of an autoscaler that is not run."""
        self._monitor.set_state(state.parsed.key.namespace, state.parsed.key.name, phase)

    def _count(self, parsed: ParsedAutoscaler, planned: Plan, seconds: float) -> None:
        namespace, name = parsed.key.namespace, parsed.key.name
        self._monitor.set_state(namespace, name, planned.phase)
        decision = planned.decision
        if decision is None:
            self._monitor.observe_reconcile("none", "spec", seconds)
            return
        self._monitor.observe_reconcile(
            decision.action, "none" if decision.error is None else decision.error.kind, seconds
        )
        combination = decision.trace.combination
        for outcome in combination.outcomes if combination is not None else ():
            # All metrics are read in parallel, so each is given the duration of the whole reconcile.
            action = outcome.action(planned.before.current_replicas)
            self._monitor.observe_metric(action, outcome.error_kind, outcome.metric.type, seconds)
        # As in the controller, which returns before it sets the gauge when no number was computed
        # (reconcileAutoscaler).
        if not decision.trace.problem:
            self._monitor.set_desired_replicas(namespace, name, planned.status.desired_replicas)

    def _post(self, parsed: ParsedAutoscaler, events: Iterable[HpaEvent]) -> None:
        if self._events is None:
            return
        for event in events:
            self._events.happened(
                Event(
                    owner=parsed.key,
                    owner_uid=parsed.uid,
                    resource=parsed.target,
                    reason=event.reason,
                    action=_ACTION,
                    note=event.message,
                    type=event.type,
                )
            )

    def _log_changes(self, state: AutoscalerState, planned: Plan, problem: str) -> None:
        key, decision = state.parsed.key, planned.decision
        facts = self._facts(state, planned.phase)
        if decision is not None and decision.rescale and not self._dry_run:
            change = f"from {decision.trace.current} to {decision.desired}"
            _log.info("%s/%s: scaled %s", key.namespace, key.name, change, extra=facts)
        self.log_problem(state, problem, facts)

    @staticmethod
    def _facts(state: AutoscalerState, phase: AutoscalerPhase) -> dict[str, str]:
        key = state.parsed.key
        return {"autoscaler": f"{key.namespace}/{key.name}", "state": str(phase)}

    @staticmethod
    def log_problem(state: AutoscalerState, problem: str, facts: Mapping[str, str] | None = None) -> None:
        """Log a failure of an autoscaler, or its end, if it differs from the last one.

        Args:
            problem: The failure; empty if there is none.
        """
        key = state.parsed.key
        if problem == state.problem:
            return
        if problem:
            _log.warning("%s/%s: %s", key.namespace, key.name, problem, extra=facts)
        else:
            _log.info("%s/%s: works again", key.namespace, key.name, extra=facts)
        state.problem = problem
