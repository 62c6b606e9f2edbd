"""What a cluster's operator sets for the controller, and which of its features are on.

None of it can be read from the API: the flags belong to the kube-controller-manager, the gates to its release. So they
are given, and their defaults are those of Kubernetes 1.36.
"""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ocf.errors import ConfigError
from ocf.schema.kubernetes import FeatureGates

__all__ = ["Settings"]

_CURRENT: Final = FeatureGates()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The controller's settings; the defaults are those of the kube-controller-manager.

    Source: https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/.

    Args:
        sync_period: How often an autoscaler is looked at. No computation uses it; a loop does.
        workers: How many autoscalers are looked at side by side. No computation uses it; a loop does.
        downscale_stabilization: How long a recommendation keeps a workload from shrinking below it, where the HPA
            says nothing itself.
        tolerance: By how much a ratio may differ from 1 without consequence, 0.1 for 10 percent.
        cpu_initialization_period: How long after its start a pod's cpu is looked at with suspicion.
        initial_readiness_delay: How long after its start a change to unready still counts as never having been ready.
        scale_up_limit_factor: Without `behavior`, a workload grows at most to this multiple at once,
        scale_up_limit_minimum: or to this many pods, if that is more. Both are constants of the controller.
        features: The feature gates.

    Raises:
        ConfigError: If a value is negative or no number, or a period or a number of workers is not positive.

    Example:
        >>> Settings(tolerance=0.05).downscale_stabilization
        datetime.timedelta(seconds=300)
    """

    sync_period: timedelta = timedelta(seconds=15)
    workers: int = 5
    downscale_stabilization: timedelta = timedelta(minutes=5)
    tolerance: float = 0.1
    cpu_initialization_period: timedelta = timedelta(minutes=5)
    initial_readiness_delay: timedelta = timedelta(seconds=30)
    scale_up_limit_factor: float = 2.0
    scale_up_limit_minimum: float = 4.0
    features: FeatureGates = _CURRENT

    def __post_init__(self) -> None:
        for name in ("downscale_stabilization", "cpu_initialization_period", "initial_readiness_delay"):
            _require(getattr(self, name) >= timedelta(), name, getattr(self, name), "at least 0")
        for name in ("tolerance", "scale_up_limit_factor", "scale_up_limit_minimum"):
            value = getattr(self, name)
            _require(math.isfinite(value) and value >= 0, name, value, "a number of at least 0")
        _require(self.sync_period > timedelta(), "sync_period", self.sync_period, "more than 0")
        _require(self.workers > 0, "workers", self.workers, "at least 1")


def _require(holds: object, name: str, value: object, allowed: str) -> None:
    if not holds:
        raise ConfigError(f"the setting {name} of the autoscaling controller must be {allowed}, not {value}")
