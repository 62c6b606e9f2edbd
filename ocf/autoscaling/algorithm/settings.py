"""Settings of the HPA controller: the flags and feature gates of the kube-controller-manager.

The API does not expose them, so the caller passes them. The defaults are those of Kubernetes 1.36.
"""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ocf.errors import ConfigError
from ocf.schema.kubernetes import FeatureGates

__all__ = ["Settings"]

_CURRENT: Final = FeatureGates()
_PERIODS: Final = ("sync_period", "downscale_stabilization", "cpu_initialization_period", "initial_readiness_delay")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The controller's settings; the defaults are those of the kube-controller-manager.

    Source: https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/.

    Args:
        sync_period: Time between two syncs of an HPA. Used by a control loop only, not by the algorithm.
        workers: Number of HPAs that are synced concurrently. Used by a control loop only, not by the algorithm.
        downscale_stabilization: Stabilization window for scaling down, if the HPA does not set one.
        tolerance: How far a ratio may differ from 1 without a rescale: 0.1 is 10 percent.
        cpu_initialization_period: Time after the start of a pod in which its cpu samples may be ignored.
        initial_readiness_delay: Time after the start of a pod in which a change to unready counts as never ready.
        scale_up_limit_factor: Without `behavior`: the largest multiple of the replicas that one sync may scale up to.
        scale_up_limit_minimum: Without `behavior`: the replicas that one sync may always scale up to. This and the
            factor are constants of the controller.
        features: The feature gates.

    Raises:
        ConfigError: If a period, a window, a delay or the number of workers is not positive, or if another value is
            negative or not a number.

    Example:
        >>> Settings(tolerance=0.05).downscale_stabilization
        datetime.timedelta(seconds=300)
        >>> Settings(downscale_stabilization=timedelta(0))
        Traceback (most recent call last):
        ocf.errors.ConfigError: the setting downscale_stabilization of the autoscaling controller must be more than 0 s, not 0 s
    """  # noqa: E501 (an example on one line)

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
        for name in _PERIODS:
            period = getattr(self, name)
            _require(period > timedelta(), name, f"{period.total_seconds():g} s", "more than 0 s")
        for name in ("tolerance", "scale_up_limit_factor", "scale_up_limit_minimum"):
            value = getattr(self, name)
            _require(math.isfinite(value) and value >= 0, name, value, "a number of at least 0")
        _require(self.workers > 0, "workers", self.workers, "at least 1")


def _require(holds: object, name: str, value: object, allowed: str) -> None:
    if not holds:
        raise ConfigError(f"the setting {name} of the autoscaling controller must be {allowed}, not {value}")
