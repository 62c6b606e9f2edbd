"""The NetworkPolicy (`networking.k8s.io/v1`): static, ready as soon as it exists."""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.editors import NetworkPolicySpecEditor, ObjectMetaEditor
from ocf.lazy_types.kubernetes import V1NetworkPolicy
from ocf.primitives.builder import StaticBuilder
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import StaticResource

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]


class Mutator(BaseMutator):
    """Records edits of a network policy: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_network_policy_spec = Edits(NetworkPolicySpecEditor, "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a network policy."""

Resource: TypeAlias = StaticResource["V1NetworkPolicy", Mutator]
"""A network policy as a resource of a component."""


class Builder(StaticBuilder[V1NetworkPolicy, Mutator]):
    """Builds a network policy.

    Args:
        base: The desired baseline: a `V1NetworkPolicy`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> base = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata,
        ...         "spec": {"podSelector": {}}}
        >>> closed = Mutation("closed", lambda m: m.edit_network_policy_spec(lambda s: s.set_policy_types(["Ingress"])))
        >>> Builder(base).with_mutation(closed).build().render()["spec"]
        {'podSelector': {}, 'policyTypes': ['Ingress']}
    """

    kind = Kind(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "V1NetworkPolicy",
        Mutator,
        selector=("spec", "podSelector", "matchLabels"),
    )
