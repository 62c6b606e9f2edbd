"""Default status handlers of kinds: by the counts of a rollout, by conditions, and by one function of the live object.

Resources give most default handlers the manifest: a model of the whole object would be built only for the few fields
that they read. An author's function may call the same handlers with the model, so the helpers here accept both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus, OperationalStatus, StatusReport, SuspensionStatus
from ocf.concepts.status import stale_generation_report
from ocf.errors import FieldProblem, ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.objects.paths import format_path

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ConditionStatus",
    "IntegrationStatus",
    "PodCounts",
    "RolloutStatus",
    "SeenCondition",
    "always_suspended",
    "condition_of",
    "conditions_of",
    "is_stale",
    "live_count",
    "live_field",
    "port_error",
    "replica_counts",
    "rollout_failure",
]

ModelT = TypeVar("ModelT", bound="BaseModel")


def live_field(value: Any, *path: str) -> Any:
    """Return a field of a manifest, a model or a part of one, by names in API spelling; None if it does not exist.

    Example:
        >>> from kubernetes.client import V1Service
        >>> live_field(V1Service(api_version="v1"), "apiVersion")
        'v1'
        >>> live_field({"spec": {"type": "LoadBalancer"}}, "spec", "type")
        'LoadBalancer'
    """
    for name in path:
        value = value.get(name) if isinstance(value, dict) else _field(value, name)
    return value


def live_count(value: Any, *path: str, unset: int = 0) -> int:
    """Return a field that holds a count; any value but a whole number is a `ManifestError`.

    Example:
        >>> live_count({"status": {"readyReplicas": 3}}, "status", "readyReplicas")
        3
    """
    found = live_field(value, *path)
    if found is None:
        return unset
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    problem = f"must be a whole number, not of type {type(found).__name__}"
    raise ManifestError("live object", [FieldProblem(format_path(path), problem)])


def _field(value: Any, name: str) -> Any:
    """Return a field of a model; None for a value that has no fields."""
    for attribute, info in getattr(type(value), "model_fields", {}).items():
        if (info.serialization_alias or attribute) == name:
            return getattr(value, attribute)
    return (getattr(value, "model_extra", None) or {}).get(name)


class PodCounts(NamedTuple):
    """Counts of pods in the status of a workload.

    Pods that are `running` exist, ready or not; those that are `available` have been ready for `minReadySeconds`.
    """

    desired: int
    ready: int
    running: int
    available: int


def replica_counts(live: BaseModel | Manifest) -> PodCounts:
    """Return the pod counts of a live Deployment, ReplicaSet or StatefulSet."""
    return PodCounts(
        # The API server's default of `spec.replicas` is 1.
        desired=live_count(live, "spec", "replicas", unset=1),
        ready=live_count(live, "status", "readyReplicas"),
        running=live_count(live, "status", "replicas"),
        available=live_count(live, "status", "availableReplicas"),
    )


@dataclass(frozen=True, kw_only=True)
class RolloutStatus:
    """Default status handlers of a workload that runs several pods: Deployment, StatefulSet, DaemonSet and ReplicaSet.

    The kinds differ in which fields of their status hold the counts and in when a rollout is complete, so each declares
    these two. The converging and the grace handler evaluate the same conditions: after the grace period a workload is
    healthy exactly when it would be healthy while converging.
    """

    kind: str
    counts: Callable[[BaseModel | Manifest], PodCounts]
    # For a live object and its desired number of pods: what the rollout still has to do; empty once it is complete.
    pending: Callable[[BaseModel | Manifest, int], str]
    controller: str
    pods: str = "replicas"
    # Reason of a healthy workload without desired pods; empty for the usual one.
    none_desired: str = ""

    def converging(self, operation: ApplyOperation, live: BaseModel | Manifest) -> StatusReport[AliveStatus]:
        """Return the status of a workload that converges to its latest spec."""
        stale = self._stale_report(operation, live)
        if stale is not None:
            return stale
        desired, ready, _, available = self.counts(live)
        if ready != desired:
            status, waiting = AliveStatus.SCALING, f"Waiting for {self.pods}: {ready}/{desired} ready"
        else:
            status, waiting = AliveStatus.UPDATING, self._unfinished(live, desired, available)
        if not waiting:
            return StatusReport(AliveStatus.HEALTHY, self._healthy_reason(desired))
        failure = rollout_failure(live)
        if failure:
            return StatusReport(AliveStatus.FAILING, f"{failure} ({waiting})")
        return StatusReport(self._progress(operation, status), waiting)

    def grace(self, live: BaseModel | Manifest) -> StatusReport[GraceStatus]:
        """Return the status of a workload whose grace period has expired."""
        desired, ready, _, available = self.counts(live)
        stale = self._stale_report(ApplyOperation.NONE, live)
        failure = rollout_failure(live) if stale is None else ""
        cause = f": {failure}" if failure else ""
        if ready == 0 and desired > 0:
            return StatusReport(GraceStatus.DOWN, f"No {self.pods} are ready{cause}")
        if stale is not None:
            return StatusReport(GraceStatus.DEGRADED, stale.reason)
        if ready != desired:
            return StatusReport(GraceStatus.DEGRADED, f"{self.kind} partially available{cause}")
        unfinished = self._unfinished(live, desired, available)
        if unfinished:
            return StatusReport(GraceStatus.DEGRADED, f"{failure} ({unfinished})" if failure else unfinished)
        return StatusReport(GraceStatus.HEALTHY, self._healthy_reason(desired))

    def suspension(self, live: BaseModel | Manifest) -> StatusReport[SuspensionStatus]:
        """Return the status of a workload that is suspended by scaling it to zero."""
        running = self.counts(live).running
        if running == 0:
            return StatusReport(SuspensionStatus.SUSPENDED, f"{self.kind} scaled to zero")
        waiting = f"Waiting for replicas to scale down, {running} replicas still running."
        return StatusReport(SuspensionStatus.SUSPENDING, waiting)

    def _unfinished(self, live: BaseModel | Manifest, desired: int, available: int) -> str:
        """Return what is still to be done once the desired pods are ready; empty if nothing is."""
        pending = self.pending(live, desired)
        if not pending and available < desired and live_count(live, "spec", "minReadySeconds"):
            return f"Waiting for minReadySeconds: {available}/{desired} {self.pods} available"
        return pending

    def _stale_report(self, operation: ApplyOperation, live: BaseModel | Manifest) -> StatusReport[AliveStatus] | None:
        return stale_generation_report(
            operation,
            observed=live_count(live, "status", "observedGeneration"),
            generation=live_count(live, "metadata", "generation"),
            controller=self.controller,
        )

    def _healthy_reason(self, desired: int) -> str:
        return self.none_desired if self.none_desired and not desired else f"All {self.pods} are ready"

    @staticmethod
    def _progress(operation: ApplyOperation, otherwise: AliveStatus) -> AliveStatus:
        """Return the status that matches what this reconcile did; `otherwise` if it did not write the object."""
        known = {ApplyOperation.CREATED: AliveStatus.CREATING, ApplyOperation.UPDATED: AliveStatus.UPDATING}
        return known.get(operation, otherwise)


class SeenCondition(NamedTuple):
    """A condition in the status of a live object; a field that is not set is empty or None."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int | None

    @property
    def text(self) -> str:
        """Its message, else its type and status."""
        return self.message or f"{self.type} is {self.status}"

    @property
    def with_reason(self) -> str:
        """Its text after its reason, by which the documentation of its controller is found."""
        return f"{self.reason}: {self.text}" if self.reason else self.text


def conditions_of(status: Any) -> Iterator[SeenCondition]:
    """Yield the conditions of a status, or of another part of an object with a list `conditions`."""
    yield from map(_seen_condition, _listed_conditions(status))


def condition_of(live: BaseModel | Manifest, kind: str) -> SeenCondition | None:
    """Return the condition of one type in the status of a live object; None if it has none."""
    listed = _listed_conditions(live_field(live, "status"))
    return next((_seen_condition(one) for one in listed if live_field(one, "type") == kind), None)


def _listed_conditions(status: Any) -> list[Any]:
    found = live_field(status, "conditions")
    return found if isinstance(found, list) else []


def _seen_condition(condition: Any) -> SeenCondition:
    observed = live_field(condition, "observedGeneration")
    kind, status, reason, message = (
        str(live_field(condition, name) or "") for name in ("type", "status", "reason", "message")
    )
    return SeenCondition(kind, status, reason, message, observed if isinstance(observed, int) else None)


def is_stale(live: BaseModel | Manifest, observed: int | None) -> bool:
    """Return whether an observed generation is that of an older spec; None, which is not reported, is current."""
    generation = live_field(live, "metadata", "generation")
    return isinstance(generation, int) and observed is not None and observed < generation


def rollout_failure(live: BaseModel | Manifest) -> str:
    """Return why the controller of a workload cannot make progress, as its conditions report it; empty if it can.

    A pod that cannot be created, which the message of the API server explains, is the cause of a missed deadline.

    Source: `getReplicaFailures` and `syncRolloutStatus` of the deployment controller. The built-in controllers of
    StatefulSets and DaemonSets set no conditions.

    Example:
        >>> missed = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
        >>> rollout_failure({"status": {"conditions": [missed]}})
        'ProgressDeadlineExceeded: Progressing is False'
    """
    for name, failed in (("ReplicaFailure", "True"), ("Progressing", "False")):
        condition = condition_of(live, name)
        if condition is not None and condition.status == failed:
            return condition.with_reason
    return ""


def port_error(live: BaseModel | Manifest) -> str:
    """Return the first error of a port that the load balancer of a Service or an Ingress reports; empty without one.

    Example:
        >>> failed = {"ports": [{"port": 80, "protocol": "TCP", "error": "example.com/PortInUse"}]}
        >>> port_error({"status": {"loadBalancer": {"ingress": [failed]}}})
        'port 80: example.com/PortInUse'
    """
    for entry in live_field(live, "status", "loadBalancer", "ingress") or ():
        for port in live_field(entry, "ports") or ():
            if live_field(port, "error"):
                return f"port {live_field(port, 'port')}: {live_field(port, 'error')}"
    return ""


# https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md,
# "Typical status properties".
@dataclass(frozen=True, slots=True)
class ConditionStatus:
    """Status by one condition, and optionally by another one that reports a failure, as most custom resources have it.

    Args:
        ready: Type of the condition that is True once the object is operational.
        failing: Type of the condition that is True while the controller cannot make progress, such as `Stalled`; empty
            if there is none.

    Example:
        >>> from kubernetes.client import V1Namespace
        >>> ConditionStatus().observe(V1Namespace())
        StatusReport(status=<OperationalStatus.PENDING: 'OperationPending'>, reason='Waiting for condition Ready')
    """

    ready: str = "Ready"
    failing: str = ""

    def observe(self, live: BaseModel | Manifest) -> StatusReport[OperationalStatus]:
        """Return the status of a live object.

        Args:
            live: The object.

        Returns:
            `OperationFailing` while the failing condition is True; `Operational` while the ready condition is True;
            else `OperationPending`, also while the condition or the whole status is about an older generation.
            The reason is the message of the condition.
        """
        status = live_field(live, "status")
        of_status = live_field(status, "observedGeneration")
        seen: dict[str, SeenCondition] = {}
        for condition in conditions_of(status):
            seen.setdefault(condition.type, condition)
        waiting = StatusReport(OperationalStatus.PENDING, f"Waiting for condition {self.ready}")
        stale = StatusReport(OperationalStatus.PENDING, "Waiting for the controller to observe the latest spec")
        if is_stale(live, of_status if isinstance(of_status, int) else None):
            return stale
        failing, ready = seen.get(self.failing), seen.get(self.ready)
        if failing and failing.status == "True" and not is_stale(live, failing.observed_generation):
            return StatusReport(OperationalStatus.FAILING, failing.text)
        if ready is None:
            return waiting
        if is_stale(live, ready.observed_generation):
            return stale
        operational = ready.status == "True"
        return StatusReport(OperationalStatus.OPERATIONAL if operational else OperationalStatus.PENDING, ready.text)


_AFTER_GRACE: Final[Mapping[OperationalStatus, GraceStatus]] = {
    OperationalStatus.OPERATIONAL: GraceStatus.HEALTHY,
    OperationalStatus.PENDING: GraceStatus.DEGRADED,
    OperationalStatus.FAILING: GraceStatus.DOWN,
}


@dataclass(frozen=True)
class IntegrationStatus(Generic[ModelT]):
    """Default status handlers of one kind of integration, derived from one function of the live object.

    Both handlers evaluate the same conditions and give the same reason.

    Args:
        observe: Returns the status of a live object.

    Example:
        >>> from kubernetes.client import V1PersistentVolumeClaim
        >>> def bound(live: V1PersistentVolumeClaim) -> StatusReport[OperationalStatus]:
        ...     is_bound = live.status is not None and live.status.phase == "Bound"
        ...     return StatusReport(OperationalStatus.OPERATIONAL if is_bound else OperationalStatus.PENDING)
        >>> status = IntegrationStatus(bound)
        >>> status.grace(V1PersistentVolumeClaim()).status
        <GraceStatus.DEGRADED: 'Degraded'>
    """

    observe: Callable[[ModelT], StatusReport[OperationalStatus]]

    def operational(
        self,
        operation: ApplyOperation,  # noqa: ARG002 (the signature of every status handler)
        live: ModelT,
    ) -> StatusReport[OperationalStatus]:
        """Return the status of a live object.

        Args:
            operation: What this reconcile did to the object; not used.
            live: The object as the API server returned it.
        """
        return self.observe(live)

    def grace(self, live: ModelT) -> StatusReport[GraceStatus]:
        """Return the status of a live object after the grace period.

        Args:
            live: The object as the API server returned it.

        Returns:
            `Healthy` if it is operational, `Degraded` if that is pending, `Down` if it is failing; the same reason.
        """
        report = self.observe(live)
        return StatusReport(_AFTER_GRACE[report.status], report.reason)


def always_suspended(reason: str) -> Callable[[Any], StatusReport[SuspensionStatus]]:
    """Return the suspension handler of a kind for which suspending has nothing to wait for.

    Args:
        reason: Reason of its status.

    Example:
        >>> always_suspended("Ingress suspended (backend unavailable)")(None).status
        <SuspensionStatus.SUSPENDED: 'Suspended'>
    """
    report = StatusReport(SuspensionStatus.SUSPENDED, reason)

    def suspended(_live: object) -> StatusReport[SuspensionStatus]:
        """Return that the resource is suspended, whatever the live object."""
        return report

    return suspended
