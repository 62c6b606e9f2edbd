"""Workloads: the labels of their pods, and a workload whose pods another one runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ocf.autoscaling.targets.targets import key_of
from ocf.objects import Manifest, ObjectKey
from ocf.objects.paths import get_field

__all__ = ["pod_labels", "pod_template", "referenced_workload"]

_TEMPLATE: Final = ("spec", "template")
_TEMPLATE_OF_CRON_JOB: Final = ("spec", "jobTemplate", "spec", "template")


def pod_labels(manifest: Manifest) -> Mapping[str, str] | None:
    """Return the labels of the pods that an object is or makes; None if it makes none, or without labels."""
    is_pod = manifest.get("kind") == "Pod" and manifest.get("apiVersion") == "v1"
    path = _TEMPLATE_OF_CRON_JOB if manifest.get("kind") == "CronJob" else _TEMPLATE
    labels = get_field(manifest if is_pod else get_field(manifest, path), ("metadata", "labels"))
    if not isinstance(labels, Mapping) or not all(isinstance(value, str) for value in labels.values()):
        return None
    return labels


def referenced_workload(manifest: Manifest) -> ObjectKey | None:
    """Return the key of the workload whose pods an Argo Rollout runs (`workloadRef`); None without one."""
    if manifest.get("kind") != "Rollout":
        return None
    key = key_of(manifest)
    reference = get_field(manifest, ("spec", "workloadRef"))
    if key.group != "argoproj.io" or not isinstance(reference, Mapping):
        return None
    api_version, kind, name = (str(reference.get(field) or "") for field in ("apiVersion", "kind", "name"))
    return ObjectKey(api_version, kind, name, key.namespace)


def pod_template(manifest: Manifest) -> Any:
    """Return the pod template of a workload."""
    return get_field(manifest, _TEMPLATE)
