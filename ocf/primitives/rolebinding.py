"""The RoleBinding (`rbac.authorization.k8s.io/v1`): static, ready as soon as it exists.

Its `roleRef` is immutable after creation, so it is set in the baseline only. The API server rejects a binding to a role
with privileges that its author does not have: the operator needs them too, or the verb `bind` on the role.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.editors import BindingSubjectsEditor, ObjectMetaEditor
from ocf.lazy_types.kubernetes import V1RoleBinding
from ocf.primitives.builder import StaticBuilder
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import StaticResource

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]


class Mutator(BaseMutator):
    """Records edits of a RoleBinding: first its metadata, then its subjects."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_subjects = Edits(BindingSubjectsEditor, "")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a RoleBinding."""

Resource: TypeAlias = StaticResource["V1RoleBinding", Mutator]
"""A RoleBinding as a resource of a component."""


class Builder(StaticBuilder[V1RoleBinding, Mutator]):
    """Builds a RoleBinding.

    Args:
        base: The desired baseline: a `V1RoleBinding`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "web"}
        >>> base = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        ...         "metadata": metadata, "roleRef": role}
        >>> web = Mutation("web", lambda m: m.edit_subjects(lambda found: found.ensure_service_account("web", "shop")))
        >>> Builder(base).with_mutation(web).build().render()["subjects"]
        [{'kind': 'ServiceAccount', 'name': 'web', 'namespace': 'shop'}]
    """

    kind = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "V1RoleBinding", Mutator)
