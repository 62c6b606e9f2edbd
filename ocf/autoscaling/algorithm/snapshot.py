"""Snapshot of a sync: the HPA, its scale, pods and metric values, and the selectors of the other HPAs.

Snapshots are immutable values, parsed from API objects. A simulation or a test creates them directly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm.entries import entries
from ocf.autoscaling.algorithm.hpa_spec import Autoscaler
from ocf.autoscaling.algorithm.pod import Pod
from ocf.autoscaling.algorithm.pod_selectors import parse_selector
from ocf.autoscaling.algorithm.status import Status
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector

__all__ = [
    "MetricValues",
    "Sample",
    "Scale",
    "Snapshot",
    "Unavailable",
]

_MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A value that could not be read.

    Args:
        message: The error message of the server.
        spec: Whether the cause is the spec of the HPA.
    """

    message: str
    spec: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """The Scale of a workload.

    Args:
        replicas: `spec.replicas`, the desired replicas.
        observed: `status.replicas`, the observed replicas.
        selector: `status.selector`, the selector of the pods as a string.

    Example:
        >>> Scale.of({"spec": {"replicas": 3}, "status": {"replicas": 2, "selector": "app=web"}})
        Scale(replicas=3, observed=2, selector='app=web')
    """

    replicas: int
    observed: int
    selector: str

    @classmethod
    def of(cls, scale: Manifest) -> "Scale":
        """Parse a Scale of autoscaling/v1.

        Args:
            scale: The manifest.

        Returns:
            The scale; missing numbers are 0.
        """
        status = scale.get("status") or {}
        replicas = (scale.get("spec") or {}).get("replicas") or 0
        return cls(replicas, status.get("replicas") or 0, status.get("selector") or "")


class Sample(NamedTuple):
    """A metric sample of one pod.

    Args:
        value: Thousandths.
        at: The end of the measurement.
        window: The length of the measurement.
    """

    value: int
    at: datetime
    window: timedelta = _MINUTE


MetricValues = Mapping[str, Sample] | Sequence[int] | Unavailable
"""The measured values of a metric: samples by pod name for Resource, ContainerResource and Pods; thousandths for Object
(one number) and External (one per series); or why they could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that one sync reads.

    Args:
        autoscaler: The spec of the HPA.
        status: The status of the HPA as it was read.
        scale: The scale of its target, or why it could not be read.
        pods: The pods in the namespace of the HPA that the scale's selector selects, whatever owns them.
        metric_values: The measured values, one entry per metric of the HPA, in the same order.
        others: The selectors of the other HPAs of the namespace by name, each as of the last sync of that HPA.
    """

    autoscaler: Autoscaler
    status: Status = field(default_factory=Status)
    scale: Scale | Unavailable
    pods: Sequence[Pod] = ()
    metric_values: Sequence[MetricValues] = ()
    others: Mapping[str, LabelSelector] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        hpa: Manifest,
        *,
        scale: Manifest,
        pods: Sequence[Manifest] = (),
        metric_values: Sequence[MetricValues] = (),
        others: Mapping[str, LabelSelector] | None = None,
    ) -> "Snapshot":
        """Parse a snapshot from manifests.

        Args:
            hpa: The HPA, autoscaling/v2, with its status.
            scale: The Scale of its target.
            pods: Pods; those that are in other namespaces or not selected by the scale are left out.
            metric_values: The measured values, one entry per metric.
            others: The selectors of the other HPAs of the namespace.

        Returns:
            The snapshot.

        Raises:
            ManifestError: If the HPA cannot be decoded, or a list has an entry that is not a map.
            QuantityError: If a request of a pod is not a quantity.
        """
        autoscaler, read = Autoscaler.of(hpa), Scale.of(scale)
        selector = parse_selector(read.selector)
        return cls(
            autoscaler=autoscaler,
            status=Status.of(hpa.get("status")),
            scale=read,
            pods=tuple(
                Pod.of(pod)
                for pod in entries(pods, "pods", "Snapshot")
                if _is_selected(pod, autoscaler.namespace, selector)
            ),
            metric_values=metric_values,
            others=others or {},
        )


def _is_selected(pod: Manifest, namespace: str, selector: LabelSelector | str) -> bool:
    metadata = pod.get("metadata") or {}
    # An invalid selector selects nothing here; `decide` reports it.
    if isinstance(selector, str) or (metadata.get("namespace") or "default") != namespace:
        return False
    return selector.matches(metadata.get("labels") or {})
