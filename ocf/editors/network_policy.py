"""The spec of a NetworkPolicy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocf.editors.editor import Editor
from ocf.editors.model_values import own, own_or_none

if TYPE_CHECKING:
    from kubernetes.client import (
        V1LabelSelector,
        V1NetworkPolicyEgressRule,
        V1NetworkPolicyIngressRule,
        V1NetworkPolicySpec,  # noqa: F401 (named in a base class, which is evaluated)
    )

__all__ = ["NetworkPolicySpecEditor"]


class NetworkPolicySpecEditor(Editor["V1NetworkPolicySpec"]):
    """Edits who may talk to pods, and to whom they may talk.

    A rule has no name and nothing to know it by, so rules are appended, or removed all at once.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/network-policy-v1/.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1NetworkPolicyIngressRule, V1NetworkPolicyPort, V1NetworkPolicySpec
        >>> spec = NetworkPolicySpecEditor(V1NetworkPolicySpec())
        >>> spec.append_ingress_rule(V1NetworkPolicyIngressRule(ports=[V1NetworkPolicyPort(port=11211)]))
        >>> spec.set_policy_types(["Ingress"])
        >>> [rule.ports[0].port for rule in spec.raw.ingress], spec.raw.policy_types
        ([11211], ['Ingress'])
    """

    __slots__ = ()

    def set_pod_selector(self, selector: V1LabelSelector | None) -> None:
        """Set which pods the policy is about.

        Args:
            selector: Replaces the whole selector; a copy is stored. An empty one stands for all pods of the namespace,
                and so does None, which unsets the field.

        Raises:
            ConfigError: If it is no selector.
        """
        self._raw.pod_selector = own_or_none(self._raw, "pod_selector", selector)

    def append_ingress_rule(self, rule: V1NetworkPolicyIngressRule) -> None:
        """Let in what a rule describes, besides what is let in already.

        Args:
            rule: The rule; a copy is stored. An empty one lets in everything, so set its peers by assigning
                `rule.var_from`: the client's model drops them in silence if its constructor gets them by that name.

        Raises:
            ConfigError: If it is no such rule.
        """
        rule = own(self._raw, "ingress", rule)
        if self._raw.ingress is None:
            self._raw.ingress = []
        self._raw.ingress.append(rule)

    def remove_ingress_rules(self) -> None:
        """Drop all rules about what is let in: where the policy is about ingress, nothing is then."""
        self._raw.ingress = None

    def append_egress_rule(self, rule: V1NetworkPolicyEgressRule) -> None:
        """Let out what a rule describes, besides what is let out already.

        Args:
            rule: The rule; a copy is stored. An empty one lets out everything.

        Raises:
            ConfigError: If it is no such rule.
        """
        rule = own(self._raw, "egress", rule)
        if self._raw.egress is None:
            self._raw.egress = []
        self._raw.egress.append(rule)

    def remove_egress_rules(self) -> None:
        """Drop all rules about what is let out: where the policy is about egress, nothing is then."""
        self._raw.egress = None

    def set_policy_types(self, types: list[str] | None) -> None:
        """Set what the policy is about.

        Args:
            types: `Ingress`, `Egress` or both. None unsets the field: the API server takes `Ingress`, and `Egress` too
                where there is an egress rule.
        """
        self._raw.policy_types = types
