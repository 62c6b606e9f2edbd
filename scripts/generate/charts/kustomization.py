"""Bases and components for kustomize: the controllers with their defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ocf.controllers.installation import access_manifests
from ocf.manifests.kustomize import base_folder, component_folder
from ocf.objects import Manifest
from scripts.generate.charts.controller import ChartedController
from scripts.generate.charts.hpa_controller import hpa_manifests
from scripts.generate.charts.nodegroups_controller import nodegroup_manifests
from scripts.generate.charts.notes import NOTE

__all__ = ["kustomization_files"]

_NAMESPACE: Final = "ocf-system"
_FILES: Final = {
    "definitions.yaml": ("CustomResourceDefinition",),
    "service-account.yaml": ("ServiceAccount",),
    "roles.yaml": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    "deployment.yaml": ("Deployment",),
    "service.yaml": ("Service",),
    "disruption-budget.yaml": ("PodDisruptionBudget",),
    "network-policy.yaml": ("NetworkPolicy",),
}


def kustomization_files(controllers: Sequence[ChartedController]) -> dict[str, str]:
    """Return the files for kustomize, by their path.

    Args:
        controllers: The controllers.
    """
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE, "labels": labels}}
    installed = {"hpa-controller": hpa_manifests(_NAMESPACE), "nodegroup-controller": nodegroup_manifests(_NAMESPACE)}
    files = base_folder("namespace", {"namespace.yaml": [namespace]}, note=NOTE)
    for controller, (folder, manifests) in zip(controllers, installed.items(), strict=True):
        files |= _controller(controller, folder, manifests)
    return files


def _controller(controller: ChartedController, folder: str, manifests: Sequence[Manifest]) -> dict[str, str]:
    access = access_manifests(controller.name, _NAMESPACE)
    monitoring = {
        "service-monitor.yaml": [access.pop("ServiceMonitor")],
        "alerts.yaml": [controller.prometheus_rule(_NAMESPACE)],
    }
    every = [*manifests, *access.values()]
    base = {file: [each for each in every if each["kind"] in kinds] for file, kinds in _FILES.items()}
    return {
        **base_folder(folder, base, note=NOTE),
        **component_folder(f"components/{folder}-monitoring", monitoring, note=NOTE),
    }
