"""The ServiceMonitor of the Prometheus Operator (`monitoring.coreos.com/v1`): static, ready as soon as it exists.

The models for its baseline and its editors are in `ocf.objects.third_party.prometheus`.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.editors import ObjectMetaEditor, ServiceMonitorSpecEditor
from ocf.objects.third_party.lazy import ServiceMonitor
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
    """Records edits of a ServiceMonitor: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_servicemonitor_spec = Edits(ServiceMonitorSpecEditor, "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a ServiceMonitor."""

Resource: TypeAlias = StaticResource["ServiceMonitor", Mutator]
"""A ServiceMonitor as a resource of a component."""


class Builder(StaticBuilder[ServiceMonitor, Mutator]):
    """Builds a ServiceMonitor.

    Args:
        base: The desired baseline: a `ServiceMonitor`, a manifest, or a YAML text with one document.

    Example:
        >>> spec = {"selector": {"matchLabels": {"app": "web"}}, "endpoints": [{"port": "metrics"}]}
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> base = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": metadata}
        >>> tier = Mutation("tier", lambda m: m.edit_servicemonitor_spec(lambda spec: spec.ensure_target_label("tier")))
        >>> Builder({**base, "spec": spec}).with_mutation(tier).build().render()["spec"]["targetLabels"]
        ['tier']
    """

    kind = Kind(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        "ocf.objects.third_party.prometheus:ServiceMonitor",
        Mutator,
        selector=("spec", "selector", "matchLabels"),
    )
