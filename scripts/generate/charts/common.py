"""Values of the chart that do not depend on a controller, and those that every controller has."""

from __future__ import annotations

from typing import Any, Final

from ocf.objects import Manifest
from scripts.generate.charts.values import Entries, Section, Value

__all__ = ["chart_values", "pod_values"]

_STRINGS: Final = {"additionalProperties": {"type": "string"}}
_MONITOR: Final = "; needs the definitions of the Prometheus operator."


def chart_values() -> Entries:
    """Return the values that do not depend on a controller."""
    return {
        "image": Section(
            description="The image of both controllers, which has ocf on its path.",
            entries={
                "repository": Value(default="ocf", description="Its name, without a tag.", schema={"minLength": 1}),
                "tag": Value(default="", description="Its tag; empty for the version of the chart."),
                "digest": Value(
                    default="",
                    description="Its digest, sha256:..., which takes the place of the tag.",
                    schema={"pattern": "^(sha256:[0-9a-f]{64})?$"},
                ),
                "pullPolicy": Value(
                    default="IfNotPresent",
                    description="When the kubelet pulls it.",
                    schema={"enum": ["Always", "IfNotPresent", "Never"]},
                ),
                "pullSecrets": Value(
                    default=[],
                    description="Secrets for the registry, as - name: NAME.",
                    schema={"items": _object({"name": {"type": "string"}})},
                ),
            },
        ),
        "crds": Section(
            description="CustomResourceDefinitions of the enabled controllers; uninstalling the release keeps them.",
            entries={"install": Value(default=True, description="Install and upgrade them with the release.")},
        ),
        "podDisruptionBudget": _switch("A disruption budget for each controller with two or more processes.", on=True),
        "networkPolicy": _switch("A policy that lets only the port of metrics and probes be reached.", on=True),
        "serviceMonitor": Section(
            description=f"A ServiceMonitor for each controller{_MONITOR}",
            entries={
                "enabled": Value(default=False, description="Install it."),
                "interval": Value(default="30s", description="Time between two scrapes."),
                "labels": Value(default={}, description="Labels by which Prometheus selects it.", schema=_STRINGS),
            },
        ),
        "alerts": Section(
            description=f"Alerting rules for each controller, as a PrometheusRule{_MONITOR}",
            entries={
                "enabled": Value(default=False, description="Install them."),
                "labels": Value(default={}, description="Labels by which Prometheus selects them.", schema=_STRINGS),
            },
        ),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _switch(description: str, *, on: bool) -> Section:
    return Section(description=description, entries={"enabled": Value(default=on, description="Whether there is one.")})


def pod_values(deployment: Manifest) -> Entries:
    """Return the values that determine the pods of a controller.

    Args:
        deployment: Its Deployment, which has the defaults.
    """
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return {
        "replicas": Value(
            default=deployment["spec"]["replicas"],
            description="Number of processes, of which one leads; 1 without leader election.",
            schema={"minimum": 1},
        ),
        "leaderElection": Value(default=True, description="Use leader election."),
        "serviceAccount": Section(
            description="The service account of the controller, to which its roles are bound.",
            entries={
                "create": Value(default=True, description="Create it; otherwise it must exist."),
                "name": Value(default="", description="Its name; empty for that of the controller."),
                "annotations": Value(default={}, description="Its annotations.", schema=_STRINGS),
            },
        ),
        "resources": Value(default=container["resources"], description="Requests and limits of the container."),
        "env": Value(
            default=[],
            description="Environment variables, such as HTTPS_PROXY.",
            schema={"items": {"type": "object", "required": ["name"]}},
        ),
        "podLabels": Value(default={}, description="More labels of the pods.", schema=_STRINGS),
        "podAnnotations": Value(default={}, description="Annotations of the pods.", schema=_STRINGS),
        "priorityClassName": Value(
            default=pod.get("priorityClassName", ""), description="Priority class of the pods; empty for the default."
        ),
        "nodeSelector": Value(default={}, description="Labels of the nodes for the pods.", schema=_STRINGS),
        "tolerations": Value(
            default=[], description="Taints of nodes that the pods tolerate.", schema={"items": {"type": "object"}}
        ),
        "affinity": Value(default=pod["affinity"], description="Affinity of the pods."),
        "topologySpreadConstraints": Value(
            default=[], description="How the pods are spread.", schema={"items": {"type": "object"}}
        ),
    }
