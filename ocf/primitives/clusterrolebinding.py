"""The ClusterRoleBinding (`rbac.authorization.k8s.io/v1`, cluster-scoped): static, ready as soon as it exists.

Its `roleRef` is immutable after creation, so it is set in the baseline only. The API server rejects a binding to a role
with privileges that its author does not have: the operator needs them too, or the verb `bind` on the role.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.editors import BindingSubjectsEditor, ObjectMetaEditor
from ocf.lazy_types.kubernetes import V1ClusterRoleBinding
from ocf.primitives.builder import StaticBuilder
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import StaticResource

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]


class Mutator(BaseMutator):
    """Records edits of a ClusterRoleBinding: first its metadata, then its subjects."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_subjects = Edits(BindingSubjectsEditor, "")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a ClusterRoleBinding."""

Resource: TypeAlias = StaticResource["V1ClusterRoleBinding", Mutator]
"""A ClusterRoleBinding as a resource of a component."""


class Builder(StaticBuilder[V1ClusterRoleBinding, Mutator]):
    """Builds a ClusterRoleBinding.

    Args:
        base: The desired baseline: a `V1ClusterRoleBinding`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "web"}
        >>> role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "web"}
        >>> base = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        ...         "metadata": metadata, "roleRef": role}
        >>> web = Mutation("web", lambda m: m.edit_subjects(lambda found: found.ensure_service_account("web", "shop")))
        >>> Builder(base).with_mutation(web).build().render()["subjects"]
        [{'kind': 'ServiceAccount', 'name': 'web', 'namespace': 'shop'}]
    """

    kind = Kind(
        "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "V1ClusterRoleBinding", Mutator, cluster_scoped=True
    )
