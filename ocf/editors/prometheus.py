"""Editors of the specs of a ServiceMonitor and of a PrometheusRule of the Prometheus Operator."""

from __future__ import annotations

from typing import Final

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import KeyedList
from ocf.editors.model_values import own, own_or_none, require
from ocf.errors import ConfigError
from ocf.lazy_types.kubernetes import V1LabelSelector
from ocf.objects.third_party.lazy import (
    Endpoint,
    NamespaceSelector,
    PrometheusRuleSpec,
    Rule,
    RuleGroup,
    ServiceMonitorSpec,
)

__all__ = ["PrometheusRuleSpecEditor", "ServiceMonitorSpecEditor"]

_DEFAULT_PATH: Final = "/metrics"

_ENDPOINTS: Final[KeyedList[ServiceMonitorSpec, Endpoint]] = KeyedList(
    "endpoints", key=lambda endpoint: (endpoint.port or endpoint.target_port, endpoint.path or _DEFAULT_PATH)
)
_TARGET_LABELS: Final[KeyedList[ServiceMonitorSpec, str]] = KeyedList("target_labels", key=lambda label: label)
_GROUPS: Final[KeyedList[PrometheusRuleSpec, RuleGroup]] = KeyedList("groups", key=lambda group: group.name)
# An alert and a recording may have the same name.
_RULES: Final[KeyedList[RuleGroup, Rule]] = KeyedList("rules", key=lambda rule: (rule.alert or "", rule.record or ""))


class ServiceMonitorSpecEditor(Editor[ServiceMonitorSpec]):
    """Edits the spec of a ServiceMonitor.

    Source: https://prometheus-operator.dev/docs/api-reference/api/#monitoring.coreos.com/v1.ServiceMonitorSpec.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1LabelSelector
        >>> from ocf.objects.third_party.prometheus import Endpoint, ServiceMonitorSpec
        >>> spec = ServiceMonitorSpecEditor(ServiceMonitorSpec(selector=V1LabelSelector(), endpoints=[]))
        >>> spec.ensure_endpoint(Endpoint(port="metrics"))
        >>> spec.ensure_endpoint(Endpoint(port="metrics", path="/metrics", interval="30s"))
        >>> [endpoint.interval for endpoint in spec.raw.endpoints]
        ['30s']
    """

    __slots__ = ()

    def ensure_endpoint(self, endpoint: Endpoint) -> None:
        """Add an endpoint or replace the first one of the same port and path.

        Args:
            endpoint: The endpoint; a copy is stored. Its port is `port`, else `target_port`; the default path is
                `/metrics`.

        Raises:
            ConfigError: If the argument is not an endpoint.
        """
        _ENDPOINTS.ensure(self._raw, endpoint)

    def remove_endpoint(self, port: str | int, *, path: str = _DEFAULT_PATH) -> None:
        """Remove all endpoints with a port and a path.

        Args:
            port: Name of the port, or the number of a target port.
            path: The path.
        """
        _ENDPOINTS.remove(self._raw, (port, path or _DEFAULT_PATH))

    def set_selector(self, selector: V1LabelSelector) -> None:
        """Set the selector of the Services.

        Args:
            selector: Replaces the whole selector; a copy is stored.

        Raises:
            ConfigError: If the argument is not a label selector.
        """
        self._raw.selector = own(self._raw, "selector", selector)

    def set_namespace_selector(self, selector: NamespaceSelector | None) -> None:
        """Set the namespaces of the Services.

        Args:
            selector: Replaces the whole selector; a copy is stored. None unsets the field; only the namespace of the
                monitor is then selected.

        Raises:
            ConfigError: If the argument is not a namespace selector.
        """
        self._raw.namespace_selector = own_or_none(self._raw, "namespace_selector", selector)

    def set_job_label(self, label: str | None) -> None:
        """Set the label of the Service whose value becomes the label `job`.

        Args:
            label: Key of the label. None unsets the field; `job` is then the name of the Service.
        """
        self._raw.job_label = label

    def ensure_target_label(self, *labels: str) -> None:
        """Append labels of the Service that are copied to the metrics, unless they are present.

        Args:
            labels: Keys of labels.

        Raises:
            ConfigError: If a key is not a string; then none of them is stored.
        """
        _TARGET_LABELS.ensure(self._raw, *labels)

    def remove_target_label(self, *labels: str) -> None:
        """Remove labels that are copied to the metrics.

        Args:
            labels: Keys of labels.

        Raises:
            ConfigError: If a key is not a string.
        """
        _TARGET_LABELS.remove(self._raw, *(require("targetLabels", label, str) for label in labels))


class PrometheusRuleSpecEditor(Editor[PrometheusRuleSpec]):
    """Edits the spec of a PrometheusRule.

    Source: https://prometheus-operator.dev/docs/api-reference/api/#monitoring.coreos.com/v1.PrometheusRuleSpec.

    Args:
        raw: The live spec.

    Example:
        >>> from ocf.objects.third_party.prometheus import PrometheusRuleSpec, Rule, RuleGroup
        >>> spec = PrometheusRuleSpecEditor(PrometheusRuleSpec())
        >>> spec.ensure_group(RuleGroup(name="web"))
        >>> spec.ensure_rule("web", Rule(alert="Down", expr="up == 0"))
        >>> [(group.name, [rule.alert for rule in group.rules]) for group in spec.raw.groups]
        [('web', ['Down'])]
    """

    __slots__ = ()

    def ensure_group(self, group: RuleGroup) -> None:
        """Add a group or replace the first one of the same name, with all its rules.

        Args:
            group: The group; a copy is stored.

        Raises:
            ConfigError: If the argument is not a group of rules.
        """
        _GROUPS.ensure(self._raw, group)

    def remove_group(self, name: str) -> None:
        """Remove a group with all its rules.

        Args:
            name: Name of the group.

        Raises:
            ConfigError: If the name is not a string.
        """
        _GROUPS.remove(self._raw, require("groups", name, str))

    def ensure_rule(self, group: str, rule: Rule) -> None:
        """Add a rule to a group, or replace the first one of the same alert or record.

        Args:
            group: Name of the group.
            rule: The rule; a copy is stored.

        Raises:
            ConfigError: If there is no such group, or the argument is not a rule, or has neither an alert nor a record.
        """
        found = self._group(group)
        if found is None:
            names = ", ".join(each.name for each in self._raw.groups or ()) or "none"
            raise ConfigError(f'groups: there is no group "{group}" (groups: {names}); add it with ensure_group')
        given = own(found, "rules", rule)
        if not (given.alert or given.record):
            raise ConfigError("rules: a rule needs the name of an alert or of a record")
        _RULES.ensure(found, given)

    def remove_rule(self, group: str, *, alert: str = "", record: str = "") -> None:
        """Remove all rules with a name from a group; nothing happens if there is no such group.

        Args:
            group: Name of the group.
            alert: Name of the alert; empty for a recording rule.
            record: Name of the recording; empty for an alert.
        """
        found = self._group(group)
        if found is not None:
            _RULES.remove(found, (alert, record))

    def _group(self, name: str) -> RuleGroup | None:
        return next((group for group in self._raw.groups or () if group.name == name), None)
