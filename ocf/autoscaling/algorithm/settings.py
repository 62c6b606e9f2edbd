"""What a cluster's operator sets for the controller, and which of its features are on.

None of it can be read from the API: the flags belong to the kube-controller-manager, the gates to its release. So they
are given, and their defaults are those of Kubernetes 1.36.
"""

import math
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ocf.autoscaling.api.feature_gates import FeatureGates
from ocf.errors import ConfigError

__all__ = ["Features", "Settings"]

_MINOR: Final = re.compile(r"v?1\.(\d+)")
_POD_LEVEL_ON: Final = 34
_REMEMBERED_ZERO_KNOWN: Final = 36
_GENERATION_ON: Final = 37


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The feature gates that decide how the controller computes; by default those of Kubernetes 1.36.

    Args:
        scale_to_zero: `HPAScaleToZero`: a workload that the controller took to zero is brought back.
        configurable_tolerance: `HPAConfigurableTolerance`: `behavior.scaleUp.tolerance` and its counterpart count.
        pod_level_resources: `PodLevelResources`: what a pod requests as a whole replaces the sum of its containers.
        remembered_zero: Whether the condition `ScaledToZero` tells who took a workload to zero. Before 1.36 there was
            none: with `minReplicas: 0` a workload came back from zero, whoever took it there.
        observed_generation: `HPAGeneration`: the status says which generation of the spec it is about.

    Example:
        >>> Features.of("1.33").configurable_tolerance, Features.of("1.37").scale_to_zero
        (False, True)
    """

    scale_to_zero: bool = False
    configurable_tolerance: bool = True
    pod_level_resources: bool = True
    remembered_zero: bool = True
    observed_generation: bool = False

    @classmethod
    def of(cls, version: str) -> "Features":
        """Return the defaults of a release.

        Args:
            version: Version of Kubernetes, `1.36` or `v1.36.3`.

        Returns:
            What that release has, if nobody changed it.

        Raises:
            ConfigError: If it is no version, or one whose rules are not known here.
        """
        gates = FeatureGates.of(version)
        found = _MINOR.match(version)
        minor = int(found[1]) if found else 0
        return cls(
            scale_to_zero=gates.scale_to_zero,
            configurable_tolerance=gates.configurable_tolerance,
            pod_level_resources=minor >= _POD_LEVEL_ON,
            remembered_zero=minor >= _REMEMBERED_ZERO_KNOWN,
            observed_generation=minor >= _GENERATION_ON,
        )


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
    features: Features = Features()

    def __post_init__(self) -> None:
        for name in ("downscale_stabilization", "cpu_initialization_period", "initial_readiness_delay"):
            _demand(getattr(self, name) >= timedelta(), name, getattr(self, name), "at least 0")
        for name in ("tolerance", "scale_up_limit_factor", "scale_up_limit_minimum"):
            value = getattr(self, name)
            _demand(math.isfinite(value) and value >= 0, name, value, "a number of at least 0")
        _demand(self.sync_period > timedelta(), "sync_period", self.sync_period, "more than 0")
        _demand(self.workers > 0, "workers", self.workers, "at least 1")


def _demand(holds: object, name: str, value: object, allowed: str) -> None:
    if not holds:
        raise ConfigError(f"the setting {name} of the autoscaling controller must be {allowed}, not {value}")
