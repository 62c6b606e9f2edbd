"""The PrometheusRule of the Prometheus Operator (`monitoring.coreos.com/v1`): static, ready as soon as it exists.

The models for its baseline and its editors are in `ocf.objects.third_party.prometheus`.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.editors import ObjectMetaEditor, PrometheusRuleSpecEditor
from ocf.objects.third_party.lazy import PrometheusRule
from ocf.primitives.builder import StaticBuilder
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import StaticResource

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
]


class Mutator(BaseMutator):
    """Records edits of a PrometheusRule: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_prometheusrule_spec = Edits(PrometheusRuleSpecEditor, "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a PrometheusRule."""

Resource: TypeAlias = StaticResource["PrometheusRule", Mutator]
"""A PrometheusRule as a resource of a component."""


class Builder(StaticBuilder[PrometheusRule, Mutator]):
    """Builds a PrometheusRule.

    Args:
        base: The desired baseline: a `PrometheusRule`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> base = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": metadata}
        >>> def alerts(m: Mutator) -> None:
        ...     m.edit_prometheusrule_spec(lambda spec: spec.ensure_group(RuleGroup(name="web")))
        ...     m.edit_prometheusrule_spec(lambda spec: spec.ensure_rule("web", Rule(alert="Down", expr="up == 0")))
        >>> from ocf.objects.third_party.prometheus import Rule, RuleGroup
        >>> Builder(base).with_mutation(Mutation("alerts", alerts)).build().render()["spec"]["groups"]
        [{'name': 'web', 'rules': [{'alert': 'Down', 'expr': 'up == 0'}]}]
    """

    kind = Kind(
        "monitoring.coreos.com/v1", "PrometheusRule", "ocf.objects.third_party.prometheus:PrometheusRule", Mutator
    )
