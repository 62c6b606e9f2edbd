"""Findings about limits and behavior: constant sizes, policies without effect, and slow scale-down."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.autoscaling.algorithm import Tolerances
from ocf.autoscaling.api.defaulting import default_decoded
from ocf.autoscaling.linter.findings import Code, Finding, Severity
from ocf.autoscaling.linter.scale_down_time import SYNC_SECONDS, scale_down_seconds, shown_duration
from ocf.objects import Manifest
from ocf.objects.paths import get_field

__all__ = ["behavior_findings"]

# An hour: the longest stabilization window that the API server accepts.
_LONG_SCALE_DOWN: Final = 3600
# A scale-up that waits for so many seconds comes too late for most loads.
_LATE_SCALE_UP: Final = 600
_ALL: Final = 100
_DEFAULTS: Final[Manifest] = default_decoded({"spec": {"behavior": {}}})["spec"]["behavior"]


def dropped_tolerances(written: Manifest, stored: Manifest) -> Iterator[Finding]:
    """Find tolerances that the API server drops without an error, because a feature gate is off."""
    for direction in ("scaleUp", "scaleDown"):
        path = ("behavior", direction, "tolerance")
        tolerance = get_field(written, path)
        if tolerance is not None and get_field(stored, path) is None:
            yield Finding(
                Code.DROPPED_TOLERANCE,
                Severity.WARNING,
                f"spec.behavior.{direction}.tolerance",
                f"Without the feature gate HPAConfigurableTolerance the API server drops the tolerance of {tolerance}, "
                "and that of the controller applies, by default 0.1.",
                "Remove it, enable the feature gate, or use Kubernetes 1.35 or newer.",
            )


def behavior_findings(spec: Manifest, tolerances: Tolerances) -> Iterator[Finding]:
    """Find limits and rules that have no effect, or a late one.

    Args:
        spec: The spec of an HPA, with its defaults.
    """
    least, most = spec["minReplicas"], spec.get("maxReplicas", 0)
    if least == most:
        yield Finding(
            Code.CONSTANT_SIZE,
            Severity.WARNING,
            "spec.maxReplicas",
            f"minReplicas and maxReplicas are both {most}, so it never scales.",
            f"Raise maxReplicas, or set replicas to {most} in the target and then delete the autoscaler.",
        )
        return
    behavior = spec.get("behavior", {})
    for direction in ("scaleUp", "scaleDown"):
        rules = behavior.get(direction)
        if rules:
            yield from _rules_findings(rules, f"spec.behavior.{direction}", most - least)
    if behavior.get("scaleUp", {}).get("selectPolicy") == "Disabled":
        yield Finding(
            Code.NEVER_UP,
            Severity.WARNING,
            "spec.behavior.scaleUp.selectPolicy",
            f"Scaling up is disabled: it only removes pods, and only to minReplicas, which is {least}, it adds them.",
            "Allow to scale up, or set replicas in the target to the live count and then delete the autoscaler.",
        )
    down = behavior.get("scaleDown")
    if down:
        yield from _scale_down_findings(down, most, least, tolerances)


def _rules_findings(rules: Manifest, path: str, size_range: int) -> Iterator[Finding]:
    default = _DEFAULTS[path.rpartition(".")[2]]
    if rules["selectPolicy"] == "Disabled":
        # The defaults are there even if the user wrote nothing but Disabled.
        if {**rules, "selectPolicy": default["selectPolicy"]} != default:
            yield Finding(
                Code.IDLE_RULES,
                Severity.INFO,
                path,
                "Scaling in this direction is disabled, so its window, policies and tolerance have no effect.",
                "Remove them, or remove selectPolicy.",
            )
        return
    window = rules.get("stabilizationWindowSeconds", 0)
    # Exactly one period is too short as well: an entry as old as the window does not count.
    if 0 < window <= SYNC_SECONDS:
        yield Finding(
            Code.IDLE_WINDOW,
            Severity.INFO,
            f"{path}.stabilizationWindowSeconds",
            f"The controller syncs every {SYNC_SECONDS} s, so {window} s never hold a second recommendation.",
            f"Use 0, or more than {SYNC_SECONDS}.",
        )
    if window >= _LATE_SCALE_UP and path.endswith("scaleUp"):
        yield Finding(
            Code.LATE_SCALE_UP,
            Severity.WARNING,
            f"{path}.stabilizationWindowSeconds",
            f"No pod is added until the load has been high for {shown_duration(window)}, because the lowest "
            "recommendation of the window counts; each dip of the load starts the wait again.",
            "Use 0, the default, or less than a minute against spikes; a long window belongs to scaleDown.",
        )
    if rules["policies"] != default["policies"]:
        yield from _short_periods(rules, path)
        yield from _idle_policies(rules, path, size_range)


def _short_periods(rules: Manifest, path: str) -> Iterator[Finding]:
    for position, policy in enumerate(rules["policies"]):
        period = policy["periodSeconds"]
        if period < SYNC_SECONDS:
            yield Finding(
                Code.SHORT_PERIOD,
                Severity.INFO,
                f"{path}.policies[{position}].periodSeconds",
                f"The controller syncs every {SYNC_SECONDS} s, so a period of {period} s has the effect of one of "
                f"{SYNC_SECONDS} s: the change of the policy is allowed at each sync, and not more often.",
                f"Write {SYNC_SECONDS}, or a longer period.",
            )


def _idle_policies(rules: Manifest, path: str, size_range: int) -> Iterator[Finding]:
    policies: Sequence[Mapping[str, Any]] = rules["policies"]
    selection = rules["selectPolicy"]
    down = path.endswith("scaleDown")
    for position, policy in enumerate(policies):
        for other_position, other in enumerate(policies):
            # With Min the policy that allows less applies, so the larger one is idle.
            winner, loser = (other, policy) if selection == "Max" else (policy, other)
            # Of two equal policies the first one counts.
            equal = _always_allows(loser, winner, size_range, down=down)
            if position == other_position or not _always_allows(winner, loser, size_range, down=down):
                continue
            if equal and position < other_position:
                continue
            less = "less" if selection == "Max" else "more"
            yield Finding(
                Code.IDLE_POLICY,
                Severity.INFO,
                f"{path}.policies[{position}]",
                f"It has no effect: policies[{other_position}] never allows {less}, and selectPolicy is {selection}.",
                "Remove it, or change selectPolicy.",
            )
            break


def _always_allows(one: Mapping[str, Any], other: Mapping[str, Any], size_range: int, *, down: bool) -> bool:
    """Return whether a policy never allows less than another, for every size and history."""
    same = one["type"] == other["type"] and one["periodSeconds"] == other["periodSeconds"]
    return _is_unlimited(one, size_range, down=down) or (same and one["value"] >= other["value"])


def _is_unlimited(policy: Mapping[str, Any], size_range: int, *, down: bool) -> bool:
    """Return whether a policy allows the whole range at once."""
    if policy["type"] == "Pods":
        return bool(policy["value"] >= size_range)
    # No percentage is unlimited upwards.
    return bool(down and policy["value"] >= _ALL)


def _scale_down_findings(rules: Manifest, most: int, least: int, tolerances: Tolerances) -> Iterator[Finding]:
    path = "spec.behavior.scaleDown"
    if rules.get("selectPolicy") == "Disabled":
        yield Finding(
            Code.NEVER_DOWN,
            Severity.INFO,
            f"{path}.selectPolicy",
            "Scaling down is disabled: after a peak it keeps the largest size until a user scales it.",
            "Allow a slow scale-down, for example half of the pods per 10 minutes.",
        )
        return
    # A metric of 0 is the lowest there is; if it is tolerated, all are.
    if "tolerance" in rules and 0.0 in tolerances:
        yield Finding(
            Code.NEVER_DOWN,
            Severity.ERROR,
            f"{path}.tolerance",
            f"With a tolerance of {rules['tolerance']}, no metric is ever low enough to scale down.",
            "Write it as a fraction: 0.1 is ten percent.",
        )
        return
    seconds = scale_down_seconds(rules, most, least)
    if seconds is None or seconds > _LONG_SCALE_DOWN:
        shown = "more than three days" if seconds is None else shown_duration(seconds)
        yield Finding(
            Code.SLOW_DRAIN,
            Severity.WARNING,
            f"{path}.policies",
            f"From {most} pods to {least} it takes {shown} after the load has ended.",
            "Allow more pods per period, a percentage of them, or a shorter window.",
        )
