"""The ClusterRole (`rbac.authorization.k8s.io/v1`, cluster-scoped): static, ready as soon as it exists.

The API server rejects a ClusterRole with privileges that its author does not have: the operator needs them too, or the
verb `escalate` on cluster roles. The control plane sets the rules of a role with an aggregation rule, so such a role
must not have rules of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ocf import feature
from ocf.editors import AggregationRuleEditor, ObjectMetaEditor, PolicyRulesEditor
from ocf.lazy_types.kubernetes import V1AggregationRule, V1ClusterRole, V1PolicyRule
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, forbidden
from ocf.objects.models import copy_model
from ocf.primitives.builder import StaticBuilder
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import StaticResource

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]


class Mutator(BaseMutator):
    """Records edits of a ClusterRole, in this order: metadata, rules, aggregation rule."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_rules = Edits(PolicyRulesEditor, "")
    edit_aggregation_rule = Edits(AggregationRuleEditor, "")

    def append_rule(self, rule: V1PolicyRule) -> None:
        """Record a rule to append."""
        rule = copy_model(rule)
        self.edit_rules(lambda role: role.append_rule(rule))

    def set_aggregation_rule(self, rule: V1AggregationRule | None) -> None:
        """Record the aggregation rule, applied after the edits of the rules; None unsets it."""
        rule = None if rule is None else copy_model(rule)
        self.edit_aggregation_rule(lambda role: role.set_aggregation_rule(rule))


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a ClusterRole."""

Resource: TypeAlias = StaticResource["V1ClusterRole", Mutator]
"""A ClusterRole as a resource of a component."""


def _aggregated_with_rules(manifest: Manifest) -> Iterator[FieldError]:
    # The aggregation controller force-applies the rules (pkg/controller/clusterroleaggregation in Kubernetes), so
    # rules of ours, also an empty list, would be written and replaced for ever.
    if manifest.get("aggregationRule") is not None and "rules" in manifest:
        detail = "the control plane sets the rules of a role with an aggregation rule; remove the field"
        yield forbidden("rules", detail)


class Builder(StaticBuilder[V1ClusterRole, Mutator]):
    """Builds a ClusterRole.

    Args:
        base: The desired baseline: a `V1ClusterRole`, a manifest, or a YAML text with one document.

    Example:
        >>> from kubernetes.client import V1PolicyRule
        >>> metadata = {"name": "web"}
        >>> base = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata}
        >>> rule = V1PolicyRule(api_groups=[""], resources=["pods"], verbs=["get"])
        >>> pods = Mutation("pods", lambda m: m.append_rule(rule))
        >>> Builder(base).with_mutation(pods).build().render()["rules"]
        [{'apiGroups': [''], 'resources': ['pods'], 'verbs': ['get']}]
    """

    kind = Kind(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "V1ClusterRole",
        Mutator,
        cluster_scoped=True,
        validate=_aggregated_with_rules,
    )
