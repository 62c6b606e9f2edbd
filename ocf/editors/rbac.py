"""Editors of RBAC objects, whose fields are at the top level: rules of roles, and subjects of role bindings."""

from __future__ import annotations

from typing import Any, Final

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import KeyedList
from ocf.editors.model_values import field_type, own, own_or_none, require
from ocf.lazy_types.kubernetes import (
    RbacV1Subject,
    V1AggregationRule,
    V1ClusterRole,
    V1ClusterRoleBinding,
    V1PolicyRule,
    V1Role,
    V1RoleBinding,
)

__all__ = ["AggregationRuleEditor", "BindingSubjectsEditor", "PolicyRulesEditor"]

_SUBJECTS: Final[KeyedList[Any, RbacV1Subject]] = KeyedList(
    "subjects", key=lambda subject: (subject.kind, subject.name, subject.namespace or "")
)
_SERVICE_ACCOUNT: Final = "ServiceAccount"


class PolicyRulesEditor(Editor[V1Role | V1ClusterRole]):
    """Edits the rules of a Role or of a ClusterRole.

    A rule does not have a name or another key, so rules are appended one by one, and removed by position or all at
    once.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/role-v1/.

    Args:
        raw: The live role.

    Example:
        >>> from kubernetes.client import V1PolicyRule, V1Role
        >>> role = PolicyRulesEditor(V1Role())
        >>> role.append_rule(V1PolicyRule(api_groups=[""], resources=["pods"], verbs=["get"]))
        >>> [rule.resources for rule in role.raw.rules]
        [['pods']]
    """

    __slots__ = ()

    def append_rule(self, rule: V1PolicyRule) -> None:
        """Append a rule, also if the role has an equal one.

        Args:
            rule: The rule; a copy is stored.

        Raises:
            ConfigError: If the argument is not a policy rule.
        """
        rule = own(self._raw, "rules", rule)
        if self._raw.rules is None:
            self._raw.rules = []
        self._raw.rules.append(rule)

    def set_rules(self, rules: list[V1PolicyRule] | None) -> None:
        """Set all rules.

        Args:
            rules: Replaces all rules; copies are stored. None unsets the field.

        Raises:
            ConfigError: If an item is not a policy rule; then nothing is changed.
        """
        self._raw.rules = None if rules is None else [own(self._raw, "rules", rule) for rule in rules]

    def remove_rule_at(self, index: int) -> None:
        """Remove the rule at a position; later rules move up.

        Args:
            index: Position, from 0. A position without a rule changes nothing.

        Raises:
            ConfigError: If the index is not an integer.
        """
        rules = self._raw.rules or []
        if 0 <= require("index of rules", index, int) < len(rules):
            del rules[index]
            self._raw.rules = rules or None

    def remove_rules(self) -> None:
        """Remove all rules; a role without rules grants nothing."""
        self._raw.rules = None


class AggregationRuleEditor(Editor[V1ClusterRole]):
    """Edits which ClusterRoles the control plane aggregates into this one.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles.

    Args:
        raw: The live role.
    """

    __slots__ = ()

    def set_aggregation_rule(self, rule: V1AggregationRule | None) -> None:
        """Set the aggregation rule.

        Args:
            rule: Replaces the whole rule; a copy is stored. None unsets the field.

        Raises:
            ConfigError: If the argument is not an aggregation rule.
        """
        self._raw.aggregation_rule = own_or_none(self._raw, "aggregation_rule", rule)


class BindingSubjectsEditor(Editor[V1RoleBinding | V1ClusterRoleBinding]):
    """Edits the subjects of a RoleBinding or of a ClusterRoleBinding, by kind, name and namespace.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/role-binding-v1/.

    Args:
        raw: The live binding. Its `roleRef` is immutable; set it in the baseline.

    Example:
        >>> from kubernetes.client import V1RoleBinding, V1RoleRef
        >>> binding = V1RoleBinding(role_ref=V1RoleRef(kind="Role", name="viewer"))
        >>> subjects = BindingSubjectsEditor(binding)
        >>> subjects.ensure_service_account("web", "shop")
        >>> subjects.ensure_service_account("web", "shop")
        >>> [(subject.kind, subject.name, subject.namespace) for subject in binding.subjects]
        [('ServiceAccount', 'web', 'shop')]
    """

    __slots__ = ()

    def ensure_subject(self, subject: RbacV1Subject) -> None:
        """Add a subject or replace the first one of the same kind, name and namespace.

        Args:
            subject: The subject; a copy is stored. Its API group is not compared, but replaced.

        Raises:
            ConfigError: If the argument is not a subject.
        """
        _SUBJECTS.ensure(self._raw, subject)

    def remove_subject(self, kind: str, name: str, namespace: str = "") -> None:
        """Remove all subjects with a kind, a name and a namespace.

        Args:
            kind: `User`, `Group` or `ServiceAccount`.
            name: Name of the subject.
            namespace: Namespace of a service account; empty for the other kinds.

        Raises:
            ConfigError: If an argument is not a string.
        """
        key = tuple(require("subjects", part, str) for part in (kind, name, namespace))
        _SUBJECTS.remove(self._raw, key)

    def ensure_service_account(self, name: str, namespace: str) -> None:
        """Add a service account, or replace the subject that names it.

        Args:
            name: Name of the service account.
            namespace: Its namespace.

        Raises:
            ConfigError: If an argument is not a string.
        """
        subject = field_type(type(self._raw), "subjects")
        for part in (name, namespace):
            require("subjects", part, str)
        _SUBJECTS.ensure(self._raw, subject(kind=_SERVICE_ACCOUNT, name=name, namespace=namespace))

    def remove_service_account(self, name: str, namespace: str) -> None:
        """Remove a service account.

        Args:
            name: Name of the service account.
            namespace: Its namespace.

        Raises:
            ConfigError: If an argument is not a string.
        """
        self.remove_subject(_SERVICE_ACCOUNT, name, namespace)
