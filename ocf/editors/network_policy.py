"""Editor of the spec of a NetworkPolicy."""

from __future__ import annotations

from ocf.editors.editor import Editor
from ocf.editors.model_values import own, own_or_none
from ocf.lazy_types.kubernetes import (
    V1LabelSelector,
    V1NetworkPolicyEgressRule,
    V1NetworkPolicyIngressRule,
    V1NetworkPolicySpec,
)

__all__ = ["NetworkPolicySpecEditor"]


class NetworkPolicySpecEditor(Editor[V1NetworkPolicySpec]):
    """Edits the spec of a NetworkPolicy.

    Rules do not have a name or another key, so they are appended one by one and removed all at once.

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
        """Set the selector of the pods that the policy applies to.

        Args:
            selector: Replaces the whole selector; a copy is stored. An empty selector selects all pods of the
                namespace, and so does None, which unsets the field.

        Raises:
            ConfigError: If the argument is not a label selector.
        """
        self._raw.pod_selector = own_or_none(self._raw, "pod_selector", selector)

    def append_ingress_rule(self, rule: V1NetworkPolicyIngressRule) -> None:
        """Append a rule that allows ingress traffic.

        Args:
            rule: The rule; a copy is stored. An empty rule allows all ingress traffic. Set its peers by assigning
                `rule.var_from`: the constructor of the client's model silently ignores an argument of that name.

        Raises:
            ConfigError: If the argument is not an ingress rule.
        """
        rule = own(self._raw, "ingress", rule)
        if self._raw.ingress is None:
            self._raw.ingress = []
        self._raw.ingress.append(rule)

    def remove_ingress_rules(self) -> None:
        """Remove all ingress rules; a policy of type `Ingress` then allows no ingress traffic."""
        self._raw.ingress = None

    def append_egress_rule(self, rule: V1NetworkPolicyEgressRule) -> None:
        """Append a rule that allows egress traffic.

        Args:
            rule: The rule; a copy is stored. An empty rule allows all egress traffic.

        Raises:
            ConfigError: If the argument is not an egress rule.
        """
        rule = own(self._raw, "egress", rule)
        if self._raw.egress is None:
            self._raw.egress = []
        self._raw.egress.append(rule)

    def remove_egress_rules(self) -> None:
        """Remove all egress rules; a policy of type `Egress` then allows no egress traffic."""
        self._raw.egress = None

    def set_policy_types(self, types: list[str] | None) -> None:
        """Set the policy types.

        Args:
            types: `Ingress`, `Egress` or both. None unsets the field; the API server then uses `Ingress`, and also
                `Egress` if the policy has an egress rule.
        """
        self._raw.policy_types = types
