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

from ocf.cluster import ServiceAccount
from ocf.component import Component
from ocf.manifests.folder import note
from ocf.manifests.install_options import InstallOptions
from ocf.objects import Manifest, load_document
from ocf.runtime.admission.policies import Policy, policy_manifests
from ocf.runtime.crds import VersionedResource
from ocf.runtime.monitoring import alert_rules, dashboard
from ocf.runtime.operator import ManagerOptions, Operator
from ocf.runtime.operator.environment import (
    METRICS_PORT,
    PAGE_PORT,
    WEBHOOK_PORT,
    environment_options,
    metrics_prefix,
)
from ocf.runtime.operator.manager import require_together
from ocf.runtime.operator.operator import Kind
from ocf.runtime.pod_objects import (
    container_security,
    disruption_budget,
    network_policy,
    pod_security,
    service,
    service_monitor,
    spread_over_nodes,
)
from ocf.runtime.rbac import PolicyRule, kopf_rules, roles

__all__ = ["Installation"]

_NAME: Final = "app.kubernetes.io/name"
_PORT_OF_SERVICE: Final = 443
_IMPERSONATE: Final = "impersonate"
_ACCOUNTS: Final = "serviceaccounts"
_NOUNS: Final = {_ACCOUNTS: "service account", "users": "user", "groups": "group", "uids": "uid"}
_RESOURCES: Final[dict[str, Any]] = {
    "requests": {"cpu": "50m", "memory": "128Mi"},
    "limits": {"memory": "512Mi"},
}


@dataclass(frozen=True, slots=True)
class Installation:
    """The operators of a process with what their installation depends on.

    Args:
        operator: The declaration. The process, its objects and its lease have the name of this operator.
        components: Its components in every state that they may have: the privileges follow from them.
        options: The options.
        examples: Sample owners.
        certificates: Folder in which another program keeps the certificate of the webhooks; empty if the process keeps
            it in a Secret.
        others: Further operators that run in the same process, each with its components.
        used_definitions: CustomResourceDefinitions of further kinds that the operators use: their plurals are in the
            privileges, and they are not installed.

    Raises:
        BuildError: If the operators cannot run in one process, as for `ocf.runtime.operator.running`.
    """

    operator: Operator[Any]
    components: Sequence[Component]
    options: InstallOptions
    examples: Sequence[Manifest] = ()
    certificates: str = ""
    others: Sequence[tuple[Operator[Any], Sequence[Component]]] = ()
    used_definitions: Sequence[Manifest] = ()

    def __post_init__(self) -> None:
        require_together(self.operators)

    @property
    def operators(self) -> tuple[Operator[Any], ...]:
        """All operators of the process."""
        return (self.operator, *(other for other, _ in self.others))

    @property
    def conversions(self) -> tuple[VersionedResource, ...]:
        """The resources whose objects the process converts."""
        found = {resource.name: resource for operator in self.operators for resource in operator.conversions}
        return tuple(found.values())

    @property
    def name(self) -> str:
        """Name of the process and of its objects: that of the first operator."""
        return self.operator.name

    @property
    def note(self) -> str:
        """What the first lines of every generated file say."""
        return note(self.name)

    @property
    def namespace(self) -> str:
        """Namespace of the operator."""
        return self.options.namespace or self.name

    @property
    def image(self) -> str:
        """Image of the operator."""
        # A tag may not have the sign before the build of a semantic version; Helm replaces it in the same way.
        return self.options.image or f"{self.name}:{self.options.project.version.replace('+', '_')}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of its pods, which select them."""
        return {_NAME: self.name}

    @property
    def serves_webhooks(self) -> bool:
        """Whether API servers call the operator."""
        return any(operator.serves_webhooks for operator in self.operators)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of the process, with its namespace as a value."""
        given = {"POD_NAMESPACE": self.namespace}
        if not self.options.leader_election:
            given["LEADER_ELECTION"] = "false"
        if self.options.sharding:
            given["SHARDING"] = self.options.sharding
        if self.options.page:
            given["PAGE_PORT"] = str(PAGE_PORT)
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
        """CustomResourceDefinitions that belong to the operators: those of their owners, with conversion webhooks."""
        admission = self.process.admission
        converted = admission.definitions(*self.operators) if self.conversions and admission is not None else []
        return list({one["metadata"]["name"]: one for one in (*self.plain_definitions, *converted)}.values())

    @property
    def plain_definitions(self) -> list[Manifest]:
        """The same without conversion webhooks; operators may share a kind of owners."""
        found = [one.all_definitions[0] for one in self.operators if one.owner.definition is not None]
        return list({one["metadata"]["name"]: one for one in found}.values())

    @property
    def known_definitions(self) -> list[Manifest]:
        """All CustomResourceDefinitions of kinds that the operators use."""
        return [*(each for operator in self.operators for each in operator.all_definitions), *self.used_definitions]

    @property
    def undefined_kinds(self) -> tuple[Kind, ...]:
        """Kinds that the operators name, for which the plural in the privileges is guessed."""
        known = self.known_definitions
        return tuple(dict.fromkeys(kind for one in self.operators for kind in one.undefined_kinds(known)))

    def policy_rules(self, *, enforced: bool = False) -> frozenset[PolicyRule]:
        """Return the privileges of the process.

        Args:
            enforced: Whether to grant what the plugin `OwnerReferencesPermissionEnforcement` requires in any case.
        """
        options = self.options
        enforced = enforced or options.owner_references_enforced
        needed = self.process.policy_rules(*self.operators)
        known = self.known_definitions
        for operator, components in ((self.operator, self.components), *self.others):
            needed |= operator.policy_rules(components, enforced=enforced, definitions=known)
        return needed | kopf_rules(clusterwide=not options.watch_namespaces, posting=False) if options.kopf else needed

    def roles(self) -> list[Manifest]:
        """Return the roles and their bindings."""
        account = ServiceAccount(self.name, self.namespace)
        return roles(self.policy_rules(), name=self.name, account=account, namespaces=self.options.watch_namespaces)

    def impersonation_findings(self) -> Iterator[str]:
        """Yield as whom the operator may act; an attacker who takes it over has the rights of all these users."""
        for role in self.roles():
            namespace = role["metadata"].get("namespace", "")
            for rule in role.get("rules", ()):
                if _IMPERSONATE in rule["verbs"]:
                    head = f"{role['kind']} {self.name}{f' of the namespace {namespace}' if namespace else ''}"
                    names = rule.get("resourceNames", ())
                    yield from (
                        f"{head} may {_IMPERSONATE} {_users(one, names, namespace)}" for one in rule["resources"]
                    )

    def webhooks(self) -> list[Manifest]:
        """Return the webhook configurations; the process writes their `caBundle`."""
        admission = self.process.admission
        return [] if admission is None else admission.configurations(*self.operators)

    def webhook_findings(self) -> list[str]:
        """Return what an administrator should know about the webhooks: what happens while they cannot be called."""
        admission = self.process.admission
        return [] if admission is None else admission.findings(*self.operators)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The admission policies of the operators."""
        return tuple(policy for operator in self.operators for policy in operator.policies)

    def policy_objects(self, *, mutating_version: str = "v1") -> list[Manifest]:
        """Return the admission policies and their bindings.

        Args:
            mutating_version: See `Policy.manifests`.
        """
        return policy_manifests(self.policies, namespace=self.namespace, mutating_version=mutating_version)

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
        """Return the PodDisruptionBudget: evictions leave one process, or all but one where each has its share."""
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
        operators, good = self.operators, dict[str, None]()
        for operator, components in ((self.operator, self.components), *self.others):
            found = [*(one.condition_type for one in components), *operator.published_conditions]
            good |= dict.fromkeys(each for each in found if each not in operator.abnormal_conditions)
        good |= dict.fromkeys(operator.failure_type for operator in operators)
        return "|".join(re.sub(r"[^\w/-]", "[.]", each) for each in good)

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


def _users(resource: str, names: Sequence[str], namespace: str) -> str:
    """Return as which users of a resource an operator may act, and what to do about it."""
    noun = _NOUNS.get(resource, resource)
    if names:
        several = "s" if len(names) > 1 and resource in _NOUNS else ""
        return (
            f"only: {noun}{several} {', '.join(names)}, from the components for the owners given; others "
            "need their owners, too, with --owner, or a role of your own"
        )
    if resource == _ACCOUNTS and namespace:
        return f"every service account there: keep none in {namespace} with rights that the operator must not have"
    if resource == _ACCOUNTS:
        return (
            "every service account, also of kube-system, and so has the rights of all of them: restrict it with "
            "--watch-namespace, or let components act as accounts of one fixed namespace, which are granted by name"
        )
    return f"every {noun}, and so has the rights of all of them: grant single ones by name"
