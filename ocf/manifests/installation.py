"""The objects that install an operator, one function for each file.

The Deployment sets environment variables that `ocf.runtime.operator.environment_options` reads, and the privileges are
those of a process with these options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf.component import Component
from ocf.manifests.install_options import InstallOptions
from ocf.objects import Manifest, load_document
from ocf.runtime.monitoring import alert_rules, dashboard
from ocf.runtime.operator import ManagerOptions, Operator
from ocf.runtime.operator.environment import METRICS_PORT, WEBHOOK_PORT, environment_options, metrics_prefix
from ocf.runtime.pod_objects import (
    container_security,
    disruption_budget,
    network_policy,
    pod_security,
    service,
    service_monitor,
    spread_over_nodes,
)
from ocf.runtime.rbac import PolicyRule, ServiceAccount, kopf_rules, roles

__all__ = ["Installation"]

_NAME: Final = "app.kubernetes.io/name"
_PORT_OF_SERVICE: Final = 443
_RESOURCES: Final[dict[str, Any]] = {
    "requests": {"cpu": "50m", "memory": "128Mi"},
    "limits": {"memory": "512Mi"},
}


@dataclass(frozen=True, slots=True)
class Installation:
    """An operator with what its installation depends on.

    Args:
        operator: The declaration.
        components: Its components in every state that they may have: the privileges follow from them.
        options: The options.
        examples: Sample owners.
        certificates: Folder in which another program keeps the certificate of the webhooks; empty if the process keeps
            it in a Secret.
    """

    operator: Operator[Any]
    components: Sequence[Component]
    options: InstallOptions
    examples: Sequence[Manifest] = ()
    certificates: str = ""

    @property
    def name(self) -> str:
        """Name of the operator and of its objects."""
        return self.operator.name

    @property
    def namespace(self) -> str:
        """Namespace of the operator."""
        return self.options.namespace or self.name

    @property
    def image(self) -> str:
        """Image of the operator."""
        return self.options.image or f"{self.name}:{self.options.project.version}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of its pods, which select them."""
        return {_NAME: self.name}

    @property
    def serves_webhooks(self) -> bool:
        """Whether API servers call the operator."""
        return self.operator.serves_webhooks

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of the process, with its namespace as a value."""
        given = {"POD_NAMESPACE": self.namespace}
        if not self.options.leader_election:
            given["LEADER_ELECTION"] = "false"
        if self.options.watch_namespaces:
            given["WATCH_NAMESPACES"] = ",".join(self.options.watch_namespaces)
        if self.serves_webhooks:
            given["WEBHOOK_SERVICE"] = self.name
        if self.certificates:
            given["WEBHOOK_CERTIFICATES"] = self.certificates
        return given

    @property
    def process(self) -> ManagerOptions:
        """Options of the process, as it reads them from its environment."""
        return environment_options(self.name, self.environment)

    @property
    def definitions(self) -> list[Manifest]:
        """CustomResourceDefinitions that belong to the operator: that of its owners, with its conversion webhook."""
        if self.operator.conversions and (admission := self.process.admission) is not None:
            return admission.definitions(self.operator)
        return self.operator.all_definitions[:1] if self.operator.owner.definition is not None else []

    def policy_rules(self, *, enforced: bool = False) -> frozenset[PolicyRule]:
        """Return the privileges of the process.

        Args:
            enforced: Whether to grant what the plugin `OwnerReferencesPermissionEnforcement` requires in any case.
        """
        options = self.options
        needed = self.operator.policy_rules(
            self.components, enforced=enforced or options.owner_references_enforced
        ) | self.process.policy_rules(self.operator)
        return needed | kopf_rules(clusterwide=not options.watch_namespaces, posting=False) if options.kopf else needed

    def roles(self) -> list[Manifest]:
        """Return the roles and their bindings."""
        account = ServiceAccount(self.name, self.namespace)
        return roles(self.policy_rules(), name=self.name, account=account, namespaces=self.options.watch_namespaces)

    def webhooks(self) -> list[Manifest]:
        """Return the webhook configurations; the process writes their `caBundle`."""
        admission = self.process.admission
        return [] if admission is None else admission.configurations(self.operator)

    def namespace_object(self) -> Manifest:
        """Return the namespace, which admits only pods that comply with the Pod Security Standard `restricted`."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels}}

    def service_account(self) -> Manifest:
        """Return the service account."""
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self._metadata()}

    def service(self) -> Manifest:
        """Return the Service for metrics, and for API servers that call the webhooks."""
        webhooks = {"webhooks": _PORT_OF_SERVICE} if self.serves_webhooks else {}
        return service(self._metadata(labelled=True), self.labels, {**webhooks, "metrics": METRICS_PORT})

    def deployment(self) -> Manifest:
        """Return the Deployment: its pods comply with the Pod Security Standard `restricted`."""
        spec = {
            "replicas": self.options.replicas,
            "selector": {"matchLabels": self.labels},
            "template": {"metadata": {"labels": self.labels}, "spec": self._pod()},
        }
        metadata = self._metadata(labelled=True)
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}

    def disruption_budget(self) -> Manifest:
        """Return the PodDisruptionBudget: evictions leave one process."""
        return disruption_budget(self._metadata(), self.labels)

    def network_policy(self) -> Manifest:
        """Return the NetworkPolicy: only the served ports can be reached."""
        return network_policy(self._metadata(), self.labels, [port["name"] for port in self._ports()])

    def service_monitor(self) -> Manifest:
        """Return the ServiceMonitor of the Prometheus operator."""
        return service_monitor(self._metadata(labelled=True), self.labels, "metrics")

    def alerts(self) -> Manifest:
        """Return the PrometheusRule of the Prometheus operator, for the conditions of the operator."""
        rules = load_document(alert_rules(metrics_prefix(self.name), conditions=self._good_conditions()))
        return {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": self._metadata(labelled=True),
            "spec": dict(rules),
        }

    def dashboard(self) -> Manifest:
        """Return the ConfigMap with the dashboard, which Grafana's sidecar finds by its label."""
        metadata = self._metadata(suffix="-dashboard")
        text = json.dumps(dashboard(metrics_prefix(self.name)), indent=2) + "\n"
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**metadata, "labels": {**self.labels, "grafana_dashboard": "1"}},
            "data": {f"{self.name}.json": text},
        }

    def _good_conditions(self) -> str:
        """Return a regular expression for the types of conditions that are good when True."""
        operator = self.operator
        found = dict.fromkeys([*(one.condition_type for one in self.components), *operator.published_conditions])
        good = [each for each in found if each not in operator.abnormal_conditions]
        return "|".join(re.sub(r"[^\w/-]", "[.]", each) for each in [*good, operator.failure_type])

    def _metadata(self, *, labelled: bool = False, suffix: str = "") -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": f"{self.name}{suffix}", "namespace": self.namespace}
        return {**metadata, "labels": self.labels} if labelled else metadata

    def _ports(self) -> list[dict[str, Any]]:
        webhooks = [{"name": "webhooks", "containerPort": WEBHOOK_PORT}] if self.serves_webhooks else []
        return [{"name": "metrics", "containerPort": METRICS_PORT}, *webhooks]

    def _pod(self) -> dict[str, Any]:
        return {
            "serviceAccountName": self.name,
            # Running reconciles get up to 20 seconds to finish; the lease is released after that.
            "terminationGracePeriodSeconds": 30,
            "securityContext": pod_security(),
            "affinity": spread_over_nodes(self.labels),
            "containers": [self._container()],
        }

    def _container(self) -> dict[str, Any]:
        served: dict[str, Any] = {"path": "/readyz", "port": "metrics"}
        if self.serves_webhooks:
            # Ready only once API servers trust the certificate of the webhooks.
            served = {"path": "/readyz", "port": "webhooks", "scheme": "HTTPS"}
        return {
            "name": "operator",
            "image": self.image,
            "env": list(self._variables()),
            "ports": self._ports(),
            "livenessProbe": {
                "httpGet": {"path": "/healthz", "port": "metrics"},
                "initialDelaySeconds": 10,
                "periodSeconds": 20,
                "timeoutSeconds": 5,
            },
            "readinessProbe": {"httpGet": served, "periodSeconds": 5},
            "resources": _RESOURCES,
            "securityContext": container_security(),
        }

    def _variables(self) -> Iterator[dict[str, Any]]:
        for name, value in self.environment.items():
            if name == "POD_NAMESPACE":
                yield {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
            else:
                yield {"name": name, "value": value}
