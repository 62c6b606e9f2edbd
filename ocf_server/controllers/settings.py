"""Settings of the built-in controllers and of the simulated nodes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from ocf.errors import ConfigError

__all__ = ["ALL", "CONTROLLER_NAMES", "ControllerSettings"]

CONTROLLER_NAMES: Final = (
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "replicaset-controller",
    "statefulset-controller",
    "validatingadmissionpolicy-status-controller",
)
"""The controllers, by their names in kube-controller-manager."""

ALL: Final = "all"
"""Stands for all controllers in a list of names."""

_HPA: Final = "horizontal-pod-autoscaler-controller"

_CAPACITY: Final[Mapping[str, str]] = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def _capacity() -> Mapping[str, str]:
    return dict(_CAPACITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """Settings of the built-in controllers of an embedded cluster.

    Args:
        names: The controllers that run, by their names in kube-controller-manager; `all` stands for all of them.
        nodes: Number of simulated nodes to create at the start. Without any node, no pod is ever bound.
        capacity: Capacity of each of these nodes by resource, as quantities.
        ready_after: Delay from the binding of a pod to a node until it is ready. An annotation of the pod,
            `ocf.dev/ready-after`, replaces it (`30s`, or `never`).
        finish_after: Delay from the start of a pod of a Job until its containers exit with code 0. The annotation
            `ocf.dev/finish-after` replaces it, also for pods without a Job, and `ocf.dev/exit-code` the exit code.
        stop_after: Delay from the deletion of a pod on a node until it is removed, at most its grace period.

    Raises:
        ConfigError: If a name is unknown, or a number or delay is negative.

    Example:
        >>> ControllerSettings(names=("deployment-controller",)).runs("job-controller")
        False
        >>> ControllerSettings().runs("job-controller")
        True
    """

    names: Collection[str] = (ALL,)
    nodes: int = 1
    capacity: Mapping[str, str] = field(default_factory=_capacity)
    ready_after: timedelta = timedelta(seconds=1)
    finish_after: timedelta = timedelta(seconds=1)
    stop_after: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.names) - {ALL, *CONTROLLER_NAMES})
        if unknown:
            separate = "; autoscalers need metrics, run `ocf hpa-controller` beside it" if unknown[0] == _HPA else ""
            known = ", ".join(CONTROLLER_NAMES)
            raise ConfigError(f'unknown controller "{unknown[0]}": must be one of {ALL}, {known}{separate}')
        if self.nodes < 0:
            raise ConfigError(f"the number of nodes must be 0 or more, got {self.nodes}")
        for name in ("ready_after", "finish_after", "stop_after"):
            if getattr(self, name) < timedelta(0):
                raise ConfigError(f"{name} must be 0 or more, got {getattr(self, name)}")

    def runs(self, name: str) -> bool:
        """Return whether a controller runs.

        Args:
            name: Its name in kube-controller-manager.
        """
        return ALL in self.names or name in self.names
