"""Templates of one controller: its Deployment and the objects around it, with expressions for what values determine."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ocf.cluster import ServiceAccount
from ocf.controllers.installation import access_manifests
from ocf.manifests.helm_templates import NAMESPACE, kept, only, template
from ocf.objects import Manifest, dump_document
from ocf.runtime.rbac import PolicyRule, roles
from scripts.generate.charts.notes import NOTE
from scripts.generate.charts.values import Section

__all__ = ["ACCOUNT", "ChartedController", "choose", "controller_templates", "role_templates", "rules_text"]

ACCOUNT: Final = ServiceAccount("@account@", NAMESPACE)
"""Placeholder of the service account."""

_IMAGE: Final = (
    "{{ .Values.image.repository }}"
    "{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartedController:
    """A controller in the chart.

    Args:
        key: The section of its values.
        section: The values.
        name: The name of its objects.
        definitions: Its CustomResourceDefinitions.
        defines: The condition under which it needs them, beside being enabled.
        installed: The objects that install it, with `NAMESPACE` as their namespace.
        elected: The condition under which one of several processes leads.
        arguments: Lines of a template with its arguments, each an item of a list.
        roles: The template of its roles.
        pod: Expressions for fields of the pod that only it has: `volumes`, `volumeMounts`, `annotations`.
        more: Other templates, by file name.
        alerts: The groups of alerting rules.
    """

    key: str
    section: Section
    name: str
    definitions: Sequence[Manifest]
    defines: str = ""
    installed: Sequence[Manifest]
    elected: str
    arguments: str
    roles: str
    pod: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)
    alerts: Sequence[Manifest] = ()

    @property
    def path(self) -> str:
        """The path of its values."""
        return f".Values.{self.key}"

    def object(self, kind: str) -> Manifest:
        """Return the installed object of a kind."""
        (found,) = (each for each in self.installed if each["kind"] == kind)
        return found

    def prometheus_rule(self, namespace: str) -> Manifest:
        """Return its alerts as an object of the Prometheus operator."""
        metadata = {**self.object("Deployment")["metadata"], "namespace": namespace}
        return {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": metadata,
            "spec": {"groups": list(self.alerts)},
        }


def choose(*cases: tuple[str, str]) -> str:
    r"""Return a template of which one part is rendered: that of the first condition that holds.

    Args:
        cases: Conditions, and parts that end in a line break. An empty condition is the last one, and always holds.

    Example:
        >>> print(choose((".a", "one\n"), ("", "other\n")), end="")
        {{- if .a }}
        one
        {{- else }}
        other
        {{- end }}
    """
    words = ["if", *["else if"] * (len(cases) - 1)]
    parts = [
        f"{{{{- {f'{word} {condition}' if condition else 'else'} }}}}\n{text}"
        for word, (condition, text) in zip(words, cases, strict=True)
    ]
    return "".join([*parts, "{{- end }}\n"])


def rules_text(rules: Iterable[PolicyRule]) -> str:
    """Return the rules of a ClusterRole as items of a list, indented by two.

    Args:
        rules: The rules.
    """
    found = roles(rules, name="role", account=ACCOUNT)
    return textwrap.indent(_items(found[0]["rules"]), "  ") if found else ""


def _items(items: Sequence[Any]) -> str:
    _, _, text = dump_document({"items": list(items)}).partition("\n")
    return textwrap.dedent(text)


def role_templates(manifests: Sequence[Manifest], rules: str, controller: str, name: str) -> str:
    """Return the template of roles and their bindings to the service account of a controller.

    Args:
        manifests: The roles and bindings; the rules of those with the placeholder `@rules@` are given.
        rules: The lines of these rules.
        controller: The path of its values.
        name: The name of the service account by default.
    """
    expressions = {"rules": f"\n{rules.rstrip()}", "account": _account(controller, name)}
    return template(manifests, expressions, note=NOTE)


def _account(path: str, name: str) -> str:
    return f'{{{{ {path}.serviceAccount.name | default "{name}" }}}}'


def controller_templates(controller: ChartedController) -> dict[str, str]:
    """Return the templates of a controller, by file name; nothing of it is rendered unless it is enabled.

    Args:
        controller: The controller.
    """
    path, name = controller.path, controller.name
    access = access_manifests(name, NAMESPACE)
    guarded = f"and .Values.podDisruptionBudget.enabled {controller.elected} (gt (int {path}.replicas) 1)"
    files = {
        "service-account.yaml": only(f"{path}.serviceAccount.create", _service_account(controller)),
        "roles.yaml": controller.roles,
        "deployment.yaml": _deployment(controller),
        "service.yaml": template([access["Service"]], {}, note=NOTE),
        "disruption-budget.yaml": only(guarded, template([access["PodDisruptionBudget"]], {}, note=NOTE)),
        "network-policy.yaml": only(
            ".Values.networkPolicy.enabled", template([access["NetworkPolicy"]], {}, note=NOTE)
        ),
        "service-monitor.yaml": only(".Values.serviceMonitor.enabled", _monitor(access["ServiceMonitor"])),
        "alerts.yaml": only(".Values.alerts.enabled", _alerts(controller)),
        **controller.more,
    }
    enabled = {file: only(f"{path}.enabled", text) for file, text in files.items()}
    wanted = f"and .Values.crds.install {path}.enabled"
    definitions = template([kept(each) for each in controller.definitions], {}, note=NOTE)
    return {"definitions.yaml": only(f"{wanted} {controller.defines}".strip(), definitions), **enabled}


def _service_account(controller: ChartedController) -> str:
    manifest = controller.object("ServiceAccount")
    metadata = {**manifest["metadata"], "name": ACCOUNT.name, "annotations": "@annotations@"}
    expressions = {
        "account": _account(controller.path, controller.name),
        "annotations": f"{{{{- toYaml {controller.path}.serviceAccount.annotations | nindent 4 }}}}",
    }
    return template([{**manifest, "metadata": metadata}], expressions, note=NOTE)


def _monitor(manifest: Manifest) -> str:
    endpoints = [{**each, "interval": "@interval@"} for each in manifest["spec"]["endpoints"]]
    filled = {**_labelled(manifest), "spec": {**manifest["spec"], "endpoints": endpoints}}
    expressions = {"interval": "{{ .Values.serviceMonitor.interval }}", **_labels(manifest, ".Values.serviceMonitor")}
    return template([filled], expressions, note=NOTE)


def _alerts(controller: ChartedController) -> str:
    manifest = controller.prometheus_rule(NAMESPACE)
    return template([_labelled(manifest)], _labels(manifest, ".Values.alerts"), note=NOTE)


def _labelled(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "labels": "@labels@"}}


def _labels(manifest: Manifest, path: str) -> dict[str, str]:
    """Return the expression for labels: those of the object, and those of the user."""
    given = "".join(f"\n    {key}: {value}" for key, value in manifest["metadata"]["labels"].items())
    return {"labels": f"{given}\n    {{{{- with {path}.labels }}}}{{{{ toYaml . | nindent 4 }}}}{{{{- end }}}}"}


def _deployment(controller: ChartedController) -> str:
    path, manifest = controller.path, controller.object("Deployment")
    spec = manifest["spec"]
    labels = "".join(f"\n        {key}: {value}" for key, value in spec["selector"]["matchLabels"].items())
    expressions = {
        "account": _account(path, controller.name),
        "arguments": f"\n{textwrap.indent(controller.arguments, ' ' * 8).rstrip()}",
        "image": _IMAGE,
        "pullPolicy": "{{ .Values.image.pullPolicy }}",
        "pullSecrets": _yaml(".Values.image.pullSecrets", 8),
        "replicas": f"{{{{ if {controller.elected} }}}}{{{{ int {path}.replicas }}}}{{{{ else }}}}1{{{{ end }}}}",
        # Without a lease nothing but the strategy keeps two processes apart.
        "strategy": f"{{{{ if {controller.elected} }}}}RollingUpdate{{{{ else }}}}Recreate{{{{ end }}}}",
        "labels": f"{labels}\n        {{{{- with {path}.podLabels }}}}{{{{ toYaml . | nindent 8 }}}}{{{{- end }}}}",
        "priorityClassName": f"{{{{ {path}.priorityClassName | quote }}}}",
        "annotations": _yaml(f"{path}.podAnnotations", 8),
        "volumes": "[]",
        "volumeMounts": "[]",
        **{each: _yaml(f"{path}.{each}", 10) for each in ("env", "resources")},
        **{each: _yaml(f"{path}.{each}", 8) for each in _PLACEMENT},
        **controller.pod,
    }
    return template([_with_placeholders(manifest)], expressions, note=NOTE)


_PLACEMENT: Final = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")
_IN_CONTAINER: Final = ("env", "resources", "volumeMounts")
_IN_POD: Final = ("priorityClassName", "volumes", *_PLACEMENT)


def _yaml(path: str, indent: int) -> str:
    return f"{{{{- toYaml {path} | nindent {indent} }}}}"


def _with_placeholders(deployment: Manifest) -> Manifest:
    spec = deployment["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    filled = {
        **container,
        "image": "@image@",
        "imagePullPolicy": "@pullPolicy@",
        "args": "@arguments@",
        **{each: f"@{each}@" for each in _IN_CONTAINER},
    }
    pod = {
        **spec["template"]["spec"],
        "serviceAccountName": ACCOUNT.name,
        "imagePullSecrets": "@pullSecrets@",
        **{each: f"@{each}@" for each in _IN_POD},
        "containers": [filled],
    }
    metadata = {"labels": "@labels@", "annotations": "@annotations@"}
    changed = {"replicas": "@replicas@", "strategy": {"type": "@strategy@"}}
    return {**deployment, "spec": {**spec, **changed, "template": {"metadata": metadata, "spec": pod}}}
