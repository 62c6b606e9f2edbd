"""The Role (`rbac.authorization.k8s.io/v1`): static, ready as soon as it exists.

The API server rejects a Role with privileges that its author does not have: the operator needs them too, or the verb
`escalate` on roles.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.editors import ObjectMetaEditor, PolicyRulesEditor
from ocf.lazy_types.kubernetes import V1Role
from ocf.primitives.builder import StaticBuilder
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import StaticResource

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]


class Mutator(BaseMutator):
    """Records edits of a Role: first its metadata, then its rules."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_rules = Edits(PolicyRulesEditor, "")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a Role."""

Resource: TypeAlias = StaticResource["V1Role", Mutator]
"""A Role as a resource of a component."""


class Builder(StaticBuilder[V1Role, Mutator]):
    """Builds a Role.

    Args:
        base: The desired baseline: a `V1Role`, a manifest, or a YAML text with one document.

    Example:
        >>> from kubernetes.client import V1PolicyRule
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> base = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata}
        >>> rule = V1PolicyRule(api_groups=[""], resources=["pods"], verbs=["get"])
        >>> pods = Mutation("pods", lambda m: m.edit_rules(lambda role: role.append_rule(rule)))
        >>> Builder(base).with_mutation(pods).build().render()["rules"]
        [{'apiGroups': [''], 'resources': ['pods'], 'verbs': ['get']}]
    """

    kind = Kind("rbac.authorization.k8s.io/v1", "Role", "V1Role", Mutator)
