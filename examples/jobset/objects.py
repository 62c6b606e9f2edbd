"""The objects of a JobSet: functions of values, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha1
from typing import Any, Final

from examples.jobset.model import PREFIX, JobSet, ReplicatedJob, ReplicatedJobStatus
from examples.jobset.policy import Decision, waits
from ocf.objects import Manifest

__all__ = ["JOBSET", "claims", "jobs", "service", "subdomain"]

JOBSET: Final = f"{PREFIX}jobset-name"
_EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_NODE_SELECTOR: Final = "alpha.jobset.sigs.k8s.io/node-selector"


def subdomain(jobset: JobSet) -> str:
    """Return the name of the headless Service, under which pods have host names."""
    return jobset.spec.network.subdomain or jobset.metadata.name


def service(jobset: JobSet) -> Manifest:
    """Return the headless Service of all pods."""
    metadata = {"name": subdomain(jobset), "namespace": jobset.metadata.namespace}
    ready = {"publishNotReadyAddresses": jobset.spec.network.publish_not_ready_addresses}
    spec = {"clusterIP": "None", "selector": {JOBSET: jobset.metadata.name}, **ready}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def claims(jobset: JobSet) -> Iterator[tuple[Manifest, bool]]:
    """Yield the claims that all Jobs share, each with whether it outlives the JobSet."""
    for policy in jobset.spec.volume_claim_policies:
        for template in policy.templates:
            name, labels = _claim_name(jobset, template), {JOBSET: jobset.metadata.name}
            metadata = {"name": name, "namespace": jobset.metadata.namespace, **_marked(template, labels, {})}
            claim = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": metadata,
                "spec": template["spec"],
            }
            yield claim, policy.retention_policy.when_deleted == "Retain"


def _claim_name(jobset: JobSet, template: Manifest) -> str:
    return f"{template['metadata']['name']}-{jobset.metadata.name}"


def jobs(jobset: JobSet, decision: Decision) -> Iterator[Manifest]:
    """Yield the Jobs of the present attempt that should be applied.

    A Job that has to wait is not made yet, and one that exists stays suspended. A Job is left out while its name is
    that of a former attempt, after it has ended, and until it reports that it is suspended: before that its pod
    template cannot be changed. With `BlockingRecreate`, none is made while there is any Job of a former attempt.
    """
    spec, status = jobset.spec, decision.status
    live = {job.name: job for job in decision.children}
    taken = {job.name for job in decision.obsolete}
    is_blocked = taken and spec.failure_policy and spec.failure_policy.restart_strategy == "BlockingRecreate"
    for place, replicated in enumerate(spec.replicated_jobs):
        depends = not _dependencies_reached(jobset, replicated, status.replicated_jobs_status)
        held = depends or waits(jobset, status.replicated_jobs_status, place)
        for index in range(replicated.replicas):
            name = _job_name(jobset, replicated, index)
            child = live.get(name)
            if child is None and (name in taken or is_blocked or depends or (held and not spec.suspend)):
                continue
            is_suspended = spec.suspend or (held and child is not None and child.is_suspended)
            if child and (child.end or child.is_ending or (is_suspended and not child.can_change)):
                continue
            own = child.own_attempt if child else status.restarts_of(replicated.name, index)
            attempts = {"restart-attempt": status.restarts, "job-restart-attempt": own}
            yield _job(jobset, replicated, index, attempts, is_suspended=is_suspended)


def _dependencies_reached(jobset: JobSet, one: ReplicatedJob, numbers: Sequence[ReplicatedJobStatus]) -> bool:
    replicas = {each.name: each.replicas for each in jobset.spec.replicated_jobs}
    for dependency in one.depends_on:
        number = next((each for each in numbers if each.name == dependency.name), ReplicatedJobStatus(name=""))
        reached = number.succeeded if dependency.status == "Complete" else number.started
        if reached != replicas.get(dependency.name):
            return False
    return True


def _job_name(jobset: JobSet, replicated: ReplicatedJob, index: int) -> str:
    return f"{jobset.metadata.name}-{replicated.name}-{index}"


def _job(
    jobset: JobSet, replicated: ReplicatedJob, index: int, attempts: dict[str, int], *, is_suspended: bool
) -> Manifest:
    name, namespace = _job_name(jobset, replicated, index), jobset.metadata.namespace
    labels = _labels(jobset, replicated, index, attempts)
    annotations = labels | _placement(jobset, replicated)
    template = replicated.template
    spec: dict[str, Any] = {"completionMode": "Indexed", **template.get("spec", {}), "suspend": is_suspended}
    pod = spec.get("template", {})
    pod_spec: dict[str, Any] = {"restartPolicy": "OnFailure", **pod.get("spec", {})}
    if jobset.spec.network.hostnames:
        pod_spec["subdomain"] = subdomain(jobset)
    if _EXCLUSIVE in annotations and _NODE_SELECTOR in annotations:
        node = {"alpha.jobset.sigs.k8s.io/namespaced-job": f"{namespace}_{name}"}
        toleration = {"key": "alpha.jobset.sigs.k8s.io/no-schedule", "operator": "Exists", "effect": "NoSchedule"}
        pod_spec["nodeSelector"] = {**pod_spec.get("nodeSelector", {}), **node}
        pod_spec["tolerations"] = [*pod_spec.get("tolerations", ()), toleration]
    if volumes := _volumes(jobset, pod_spec):
        pod_spec["volumes"] = [*pod_spec.get("volumes", ()), *volumes]
    spec["template"] = {"metadata": _marked(pod, labels, annotations), "spec": pod_spec}
    metadata = {"name": name, "namespace": namespace, **_marked(template, labels, annotations)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _marked(template: Manifest, labels: dict[str, str], annotations: dict[str, str]) -> Manifest:
    given = template.get("metadata", {})
    return {
        "labels": {**given.get("labels", {}), **labels},
        "annotations": {**given.get("annotations", {}), **annotations},
    }


def _labels(jobset: JobSet, replicated: ReplicatedJob, index: int, attempts: dict[str, int]) -> dict[str, str]:
    """Return the labels of a Job and its pods, which they have as annotations, too."""
    everyone = jobset.spec.replicated_jobs
    before = everyone[: everyone.index(replicated)]
    group = [one for one in everyone if one.group_name == replicated.group_name]
    key = f"{jobset.metadata.namespace}/{_job_name(jobset, replicated, index)}"
    values: dict[str, object] = {
        "jobset-name": jobset.metadata.name,
        "jobset-uid": jobset.metadata.uid,
        "replicatedjob-name": replicated.name,
        "replicatedjob-replicas": replicated.replicas,
        "global-replicas": sum(one.replicas for one in everyone),
        "job-index": index,
        "job-key": sha1(key.encode(), usedforsecurity=False).hexdigest(),
        "job-global-index": sum(one.replicas for one in before) + index,
        "group-name": replicated.group_name,
        "group-replicas": sum(one.replicas for one in group),
        "job-group-index": sum(one.replicas for one in before if one in group) + index,
        **attempts,
    }
    if coordinator := jobset.spec.coordinator:
        pod = f"{coordinator.replicated_job}-{coordinator.job_index}-{coordinator.pod_index}"
        values["coordinator"] = f"{jobset.metadata.name}-{pod}.{subdomain(jobset)}"
    return {f"{PREFIX}{name}": str(value) for name, value in values.items()}


def _placement(jobset: JobSet, replicated: ReplicatedJob) -> dict[str, str]:
    """Return the annotations about exclusive placement; those of the replicated Job win."""
    found: dict[str, str] = {}
    for given in (jobset.metadata.annotations, replicated.template.get("metadata", {}).get("annotations", {})):
        if _EXCLUSIVE in given:
            found |= {name: given[name] for name in (_EXCLUSIVE, _NODE_SELECTOR) if name in given}
    return found


def _volumes(jobset: JobSet, pod_spec: Manifest) -> list[Manifest]:
    """Return a volume for each shared claim that a container mounts by the name of its template."""
    containers = [*pod_spec.get("containers", ()), *pod_spec.get("initContainers", ())]
    mounted = {mount["name"] for container in containers for mount in container.get("volumeMounts", ())}
    templates = [template for policy in jobset.spec.volume_claim_policies for template in policy.templates]
    names = {template["metadata"]["name"]: _claim_name(jobset, template) for template in templates}
    return [{"name": name, "persistentVolumeClaim": {"claimName": names[name]}} for name in names if name in mounted]
