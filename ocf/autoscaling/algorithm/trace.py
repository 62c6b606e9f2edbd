"""Trace of a decision: all its numbers, and the rule that decided.

A trace holds the results of the steps, which are computed anyway, and formats them only on request.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from ocf.autoscaling.algorithm.metric_proposals import Combination, Failure, MetricOutcome
from ocf.autoscaling.algorithm.replica_calculator import Calculation, Tolerances
from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.scaling_policies import Limit
from ocf.autoscaling.algorithm.stabilization import Stabilization
from ocf.objects import Quantity

__all__ = ["Trace"]


class Trace(NamedTuple):
    """The steps from a snapshot to the desired replicas.

    Args:
        now: Time of the sync.
        current: The replicas before; None if they could not be read.
        minimum: `minReplicas`.
        maximum: `maxReplicas`.
        desired: The desired replicas.
        tolerances: The tolerated ratios.
        early_exit: The rule that decided before the metrics were read; None if the metrics decided.
        combination: The outcomes of the metrics; None if they were not evaluated.
        stabilization: The result of the stabilization; None if there was no proposal.
        limit: The result of the limits; None if there was no proposal.
        raised_to_minimum: Whether a workload that is scaled up from zero was raised to the minimum.
        problem: The problem that ended the sync early; empty if there was none.
    """

    now: datetime
    current: int | None
    minimum: int
    maximum: int
    desired: int
    tolerances: Tolerances
    early_exit: Rule | None = None
    combination: Combination | None = None
    stabilization: Stabilization | None = None
    limit: Limit | None = None
    raised_to_minimum: bool = False
    problem: str = ""

    @property
    def decided_by(self) -> Rule:
        """The rule that decided."""
        if self.early_exit is not None:
            return self.early_exit
        if self.raised_to_minimum:
            return Rule.BELOW_MINIMUM
        if self.limit is not None and self.limit.replicas != self.limit.wanted:
            return self.limit.rule
        if self.stabilization is not None and self.stabilization.rule is not None:
            return self.stabilization.rule
        chosen = self.chosen
        return Rule.FAILED if chosen is None or isinstance(chosen.result, Failure) else chosen.result.rule

    @property
    def chosen(self) -> MetricOutcome | None:
        """The metric with the chosen proposal; None if no proposal was chosen."""
        found = self.combination
        return None if found is None or found.chosen is None else found.outcomes[found.chosen]

    def render(self) -> Iterator[str]:
        """Render the steps as sentences.

        Yields:
            One line per step.
        """
        current = "unknown" if self.current is None else str(self.current)
        yield f"{current} replicas now, allowed are {self.minimum} to {self.maximum}"
        if self.combination is not None:
            for outcome in self.combination.outcomes:
                yield from _outcome(outcome, self.tolerances)
        if self.problem:
            yield f"stopped: {self.problem}"
        if self.stabilization is not None:
            yield _stabilization(self.stabilization)
        if self.limit is not None:
            yield from _limit(self.limit)
        if self.raised_to_minimum:
            yield f"raised to the minimum of {self.minimum}, coming from zero"
        yield f"{self.desired} replicas wanted, decided by: {self.decided_by}"


def _outcome(outcome: MetricOutcome, tolerances: Tolerances) -> Iterator[str]:
    result = outcome.result
    if isinstance(result, Failure):
        yield f"{outcome.metric.type} {outcome.metric.name}: {result.reason}, {result.message}"
        return
    yield f"{outcome.name}: {result.replicas} replicas, {result.rule}"
    yield f"  {_measured(result)}, ratio {result.ratio:.6g}, tolerated {tolerances}"
    if result.groups is not None:
        groups = result.groups
        others = (("unready", groups.unready), ("missing", groups.missing), ("ignored", groups.ignored))
        counts = (f"{len(names)} {word} ({', '.join(names)})" for word, names in others if names)
        yield f"  pods: {', '.join((f'{groups.ready} ready', *counts))}"
    if result.filled is not None:
        yield f"  after filling in: ratio {result.filled:.6g} over {result.counted} pods"


def _measured(result: Calculation) -> str:
    amount = str(Quantity.from_milli(result.measured))
    if result.utilization is None:
        return f"measured {amount}"
    usage, requests = (str(Quantity.from_milli(each or 0)) for each in (result.usage, result.requests))
    return f"measured {result.utilization}% ({usage} of {requests}, {amount} per pod)"


def _stabilization(step: Stabilization) -> str:
    lowest = "" if step.lowest is None else f"lowest {step.lowest}, "
    what = "unchanged" if step.rule is None else str(step.rule)
    return f"stabilization: {step.wanted} becomes {step.replicas} ({lowest}highest {step.highest}), {what}"


def _limit(step: Limit) -> Iterator[str]:
    for policy, start, replicas in step.allowances:
        seconds = int(policy.period.total_seconds())
        unit = "%" if policy.type == "Percent" else " pods"
        yield f"policy {policy.value}{unit} in {seconds}s: from {start} to {replicas}"
    bound = "" if step.bound is None else f" (bound {step.bound})"
    yield f"limits: {step.wanted} becomes {step.replicas}{bound}, {step.rule}"
