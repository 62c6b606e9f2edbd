"""Findings of the linter: stable code, severity, path, explanation and fix."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Code", "Finding", "Severity"]


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    """It cannot work as written."""

    WARNING = "warning"
    """It works, but causes problems."""

    INFO = "info"
    """It may not be what is meant."""


class Code(StrEnum):
    """Code of a finding. Codes are stable across releases, so that programs can rely on them."""

    ALWAYS_UP = "always-up"
    BLOCKED_EVICTIONS = "blocked-evictions"
    CANNOT_SCALE = "cannot-scale"
    COARSE_UTILIZATION = "coarse-utilization"
    CONSTANT_SIZE = "constant-size"
    DEFAULT_METRIC = "default-metric"
    DROPPED_TOLERANCE = "dropped-tolerance"
    DUPLICATE_METRIC = "duplicate-metric"
    FIXED_REPLICAS = "fixed-replicas"
    FLAT_MEMORY = "flat-memory"
    IDLE_POLICY = "idle-policy"
    IDLE_RULES = "idle-rules"
    IDLE_WINDOW = "idle-window"
    INVALID_RESOURCES = "invalid-resources"
    INVALID_SELECTOR = "invalid-selector"
    LATE_SCALE_UP = "late-scale-up"
    MISMATCHED_TARGET = "mismatched-target"
    MISSING_REQUEST = "missing-request"
    MISSING_TARGET = "missing-target"
    NEVER_DOWN = "never-down"
    NEVER_UP = "never-up"
    OVERLAPPING_SELECTORS = "overlapping-selectors"
    REJECTED_HPA = "rejected-hpa"
    SHARED_TARGET = "shared-target"
    SHORT_PERIOD = "short-period"
    SLOW_DRAIN = "slow-drain"
    UNBOUNDED_UTILIZATION = "unbounded-utilization"
    UNKNOWN_CONTAINER = "unknown-container"
    UNKNOWN_REQUESTS = "unknown-requests"
    UNKNOWN_RESOURCE = "unknown-resource"
    VERTICAL_AUTOSCALER = "vertical-autoscaler"


@dataclass(frozen=True, slots=True)
class Finding:
    """A setting that the API server accepts and that causes problems in production.

    Args:
        code: The code.
        severity: The severity.
        path: The field, `spec.metrics[0].resource`.
        explanation: Why it is a problem, with the values of this HPA.
        fix: How to fix it.

    Example:
        >>> print(Finding(Code.CONSTANT_SIZE, Severity.WARNING, "spec.maxReplicas", "It never scales.", "Raise it."))
        spec.maxReplicas: warning constant-size: It never scales. Raise it.
    """

    code: Code
    severity: Severity
    path: str
    explanation: str
    fix: str

    def __str__(self) -> str:
        return f"{self.path}: {self.severity} {self.code}: {self.explanation} {self.fix}"

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON values: `code`, `severity`, `path`, `explanation` and `fix`."""
        return {
            "code": self.code.value,
            "severity": self.severity.value,
            "path": self.path,
            "explanation": self.explanation,
            "fix": self.fix,
        }
