"""Helm chart: the same objects as templates, with values for what differs between clusters."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ocf.manifests.helm_templates import (
    KUBERNETES,
    NAMESPACE,
    SCHEMA,
    in_release,
    json_type,
    kept,
    only,
    template,
    when,
)
from ocf.manifests.kustomize import kustomization
from ocf.objects import dump_document
from ocf.runtime.admission.match import SYSTEM_NAMESPACES
from ocf.runtime.admission.policies import MUTATING, POLICY_API

if TYPE_CHECKING:
    from ocf.manifests.installation import Installation
    from ocf.objects import Manifest

__all__ = ["chart"]

_EXPRESSIONS: Final = {
    "image": '"{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"',
    "pullPolicy": "{{ .Values.image.pullPolicy }}",
    "pullSecrets": "{{- toYaml .Values.image.pullSecrets | nindent 8 }}",
    "replicas": "{{ .Values.replicas }}",
    "podAnnotations": "{{- toYaml .Values.podAnnotations | nindent 8 }}",
    "resources": "{{- toYaml .Values.resources | nindent 10 }}",
    "nodeSelector": "{{- toYaml .Values.nodeSelector | nindent 8 }}",
    "tolerations": "{{- toYaml .Values.tolerations | nindent 8 }}",
    "affinity": "{{- toYaml .Values.affinity | nindent 8 }}",
    "interval": "{{ .Values.serviceMonitor.interval }}",
    # One list: checks of clusters for webhooks that block the namespaces of Kubernetes look at a single one.
    "excludedNamespaces": (
        "{{- toYaml (append .Values.webhooks.excludedNamespaces .Release.Namespace | uniq) | nindent 6 }}"
    ),
    "mutating": (
        f'{POLICY_API}/{{{{ semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version | ternary "v1" "v1beta1" }}}}'
    ),
}


_WITH_MUTATIONS: Final = ">=1.34.0-0"
"""The releases that have MutatingAdmissionPolicies: before 1.36 in `v1beta1`, which has to be enabled."""


def chart(installation: Installation) -> dict[str, str]:
    """Return the files of a chart.

    The names of the objects are those of the operator: a CustomResourceDefinition belongs to one operator of a cluster.
    The definition is a template, so that upgrades update it, and it is kept when the release is uninstalled.

    Args:
        installation: The operator and its options.
    """
    name = installation.name
    note = installation.note
    mark, namespace = _unused(installation)
    render = partial(template, expressions={f"{key}{mark}": one for key, one in _EXPRESSIONS.items()}, note=note)
    inside = replace(installation, options=replace(installation.options, namespace=namespace))
    templates = {
        "definition.yaml": when("crds.install", render([kept(one) for one in inside.definitions])),
        "service-account.yaml": render([inside.service_account()]),
        "roles.yaml": render([_named_apart(one, namespace) for one in inside.roles()]),
        "service.yaml": render([inside.service()]),
        "webhooks.yaml": render([_excluding(one, namespace, mark) for one in inside.webhooks()]),
        "policies.yaml": render([_for_release(one, mark) for one in inside.policy_objects()]),
        "deployment.yaml": render([_with_values(inside.deployment(), mark)]),
        "disruption-budget.yaml": only("gt (int .Values.replicas) 1", render([inside.disruption_budget()])),
        "network-policy.yaml": when("networkPolicy.enabled", render([inside.network_policy()])),
        "service-monitor.yaml": when("serviceMonitor.enabled", render([_scraped(inside.service_monitor(), mark)])),
        "alerts.yaml": when("alerts.enabled", render([inside.alerts()])),
        "dashboard.yaml": when("dashboard.enabled", render([inside.dashboard()])),
    }
    project = installation.options.project
    described = {
        "apiVersion": "v2",
        "name": name,
        "description": project.description or f"The operator {name}.",
        "type": "application",
        "version": project.version,
        "appVersion": project.version,
        "kubeVersion": _WITH_MUTATIONS if any(one.mutations for one in inside.policies) else KUBERNETES,
        "keywords": list(project.keywords),
        "maintainers": [
            {"name": author, **({"email": mail} if mail else {})} for author, mail in project.authors if author
        ],
        "sources": [url for _, url in project.links],
    }
    values = _values(inside)
    files = {
        "Chart.yaml": _noted({key: value for key, value in described.items() if value}, note),
        "values.yaml": _noted(values, note),
        "values.schema.json": _schema(values, note),
        **{f"templates/{path}": text for path, text in templates.items() if text},
    }
    return {path: in_release(text, namespace) for path, text in files.items()}


def _named_apart(role: Manifest, release: str) -> Manifest:
    """Return a role or binding of a chart under a name of its own if its namespace is not that of the release.

    The namespace of the release may turn out to be the same one, and two objects cannot share a name.

    Args:
        release: What stands for the namespace of the release.
    """
    home = role["metadata"].get("namespace")
    if home in (None, release):
        return role
    name = f"{role['metadata']['name']}-{home}"
    reference = {"roleRef": {**role["roleRef"], "name": name}} if "roleRef" in role else {}
    return {**role, "metadata": {**role["metadata"], "name": name}, **reference}


def _unused(installation: Installation) -> tuple[str, str]:
    """Return a mark of placeholders and a stand-in for the namespace that no text of the operator has.

    An author may write of `@image@`, or call a namespace as the stand-in is called.
    """
    texts = json.dumps([kustomization(installation), asdict(installation.options)])
    mark, namespace = "", NAMESPACE
    while any(f"@{key}{mark}@" in texts for key in _EXPRESSIONS):
        mark += "_"
    while namespace in texts:
        namespace += "-x"
    return mark, namespace


def _noted(content: dict[str, Any], note: str) -> str:
    return f"# {note}\n{dump_document(content)}"


def _values(installation: Installation) -> dict[str, Any]:
    repository, colon, tag = installation.image.rpartition(":")
    is_tagged = bool(colon) and "/" not in tag
    pod = installation.deployment()["spec"]["template"]["spec"]
    return {
        "image": {
            "repository": repository if is_tagged else installation.image,
            "tag": tag if is_tagged else "",
            "pullPolicy": "IfNotPresent",
            "pullSecrets": [],
        },
        "replicas": installation.options.replicas,
        "resources": pod["containers"][0]["resources"],
        "podAnnotations": {},
        "nodeSelector": {},
        "tolerations": [],
        "affinity": pod["affinity"],
        "crds": {"install": True},
        **({"webhooks": {"excludedNamespaces": excluded}} if (excluded := _excluded(installation)) else {}),
        "networkPolicy": {"enabled": True},
        "serviceMonitor": {"enabled": False, "interval": "30s"},
        "alerts": {"enabled": False},
        "dashboard": {"enabled": False},
    }


_FREE: Final = ("resources", "podAnnotations", "nodeSelector", "affinity")
"""Values whose content is a part of a pod's spec."""


def _schema(values: dict[str, Any], note: str) -> str:
    schema = {
        "$comment": note,
        "$schema": SCHEMA,
        **_schema_of(values, ""),
    }
    schema["properties"]["replicas"]["minimum"] = 1
    schema["properties"]["image"]["properties"]["pullPolicy"]["enum"] = ["Always", "IfNotPresent", "Never"]
    schema["properties"]["global"] = {"type": "object"}  # set by charts that include this one
    return json.dumps(schema, indent=2) + "\n"


def _schema_of(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, dict) and name not in _FREE:
        properties = {key: _schema_of(each, key) for key, each in value.items()}
        return {"type": "object", "additionalProperties": False, "properties": properties}
    return {"type": json_type(value)}


def _with_values(deployment: Manifest, mark: str) -> Manifest:
    """Put placeholders where values of the chart go."""
    spec = deployment["spec"]
    template = spec["template"]
    (container,) = template["spec"]["containers"]
    values = {"image": "image", "imagePullPolicy": "pullPolicy", "resources": "resources"}
    filled = {**container, **{key: f"@{value}{mark}@" for key, value in values.items()}}
    placement = {key: f"@{key}{mark}@" for key in ("nodeSelector", "tolerations", "affinity")}
    pod = {**template["spec"], "imagePullSecrets": f"@pullSecrets{mark}@", **placement, "containers": [filled]}
    metadata = {**template["metadata"], "annotations": f"@podAnnotations{mark}@"}
    return {
        **deployment,
        "spec": {**spec, "replicas": f"@replicas{mark}@", "template": {"metadata": metadata, "spec": pod}},
    }


def _excluding(configuration: Manifest, namespace: str, mark: str) -> Manifest:
    """Put a placeholder where webhooks leave out the namespaces of Kubernetes and that of the release.

    Args:
        namespace: What stands for the namespace of the release.
    """
    left_out = [*SYSTEM_NAMESPACES, namespace]
    webhooks = []
    for webhook in configuration["webhooks"]:
        selector = webhook.get("namespaceSelector")
        if selector is not None:
            found = [
                {**one, "values": f"@excludedNamespaces{mark}@"} if one.get("values") == left_out else one
                for one in selector.get("matchExpressions") or ()
            ]
            changed = {**selector, **({"matchExpressions": found} if found else {})}
            webhook = {**webhook, "namespaceSelector": changed}  # noqa: PLW2901 (a changed copy)
        webhooks.append(webhook)
    return {**configuration, "webhooks": webhooks}


def _excluded(installation: Installation) -> list[str]:
    """Return the namespaces that webhooks leave out beside that of the release; empty if no webhook does."""
    found = (_excluding(one, installation.namespace, "") for one in installation.webhooks())
    return [*SYSTEM_NAMESPACES] if "'@excludedNamespaces@'" in str([*found]) else []


def _for_release(policy: Manifest, mark: str) -> Manifest:
    """Put a placeholder where the version depends on the release of Kubernetes."""
    return {**policy, "apiVersion": f"@mutating{mark}@"} if policy["kind"].startswith(MUTATING) else policy


def _scraped(monitor: Manifest, mark: str) -> Manifest:
    endpoints = [{**each, "interval": f"@interval{mark}@"} for each in monitor["spec"]["endpoints"]]
    return {**monitor, "spec": {**monitor["spec"], "endpoints": endpoints}}
