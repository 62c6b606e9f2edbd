"""What a lint says: a code that stays, a severity, a place, why it matters, and what to do."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Code", "Finding", "Severity"]


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """It cannot work as written."""

    WARNING = "warning"
    """It works, and will be regretted."""

    INFO = "info"
    """Worth knowing."""


class Code(StrEnum):
    """What was found. Codes are kept from release to release, so that programs can rely on them."""

    CANNOT_SCALE = "cannot-scale"
    COARSE_UTILIZATION = "coarse-utilization"
    CONSTANT_SIZE = "constant-size"
    DEFAULT_METRIC = "default-metric"
    DUPLICATE_METRIC = "duplicate-metric"
    FIXED_REPLICAS = "fixed-replicas"
    FLAT_MEMORY = "flat-memory"
    IDLE_POLICY = "idle-policy"
    IDLE_RULES = "idle-rules"
    IDLE_WINDOW = "idle-window"
    INVALID_SELECTOR = "invalid-selector"
    MISMATCHED_TARGET = "mismatched-target"
    MISSING_REQUEST = "missing-request"
    NEVER_DOWN = "never-down"
    NEVER_UP = "never-up"
    OVERLAPPING_SELECTORS = "overlapping-selectors"
    SHARED_TARGET = "shared-target"
    SLOW_DRAIN = "slow-drain"
    UNBOUNDED_UTILIZATION = "unbounded-utilization"
    UNKNOWN_CONTAINER = "unknown-container"
    UNKNOWN_REQUESTS = "unknown-requests"
    UNKNOWN_RESOURCE = "unknown-resource"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the API server accepts and production regrets.

    Args:
        code: What was found.
        severity: How bad it is.
        path: The field, `spec.metrics[0].resource`.
        explanation: Why it matters, with the numbers that count here.
        mend: What to do about it.

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
        """Return it as JSON: `code`, `severity`, `path`, `explanation` and `mend`."""
        return {
            "code": self.code.value,
            "severity": self.severity.value,
            "path": self.path,
            "explanation": self.explanation,
            "mend": self.fix,
        }
