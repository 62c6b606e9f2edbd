"""The PodDisruptionBudget (`policy/v1`): static, ready as soon as it exists.

It only limits evictions of other objects, so nothing waits for it, and suspending does not change it: without pods it
has no effect.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.editors import ObjectMetaEditor, PodDisruptionBudgetSpecEditor
from ocf.lazy_types.kubernetes import V1PodDisruptionBudget
from ocf.primitives.builder import StaticBuilder
from ocf.primitives.kind import Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import StaticResource

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]


class Mutator(BaseMutator):
    """Records edits of a disruption budget: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_pdb_spec = Edits(PodDisruptionBudgetSpecEditor, "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a disruption budget."""

Resource: TypeAlias = StaticResource["V1PodDisruptionBudget", Mutator]
"""A disruption budget as a resource of a component."""


class Builder(StaticBuilder[V1PodDisruptionBudget, Mutator]):
    """Builds a disruption budget.

    Args:
        base: The desired baseline: a `V1PodDisruptionBudget`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> base = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}
        >>> strict = Mutation("strict", lambda m: m.edit_pdb_spec(lambda spec: spec.set_min_available(1)))
        >>> Builder(base).with_mutation(strict).build().render()["spec"]
        {'minAvailable': 1}
    """

    kind = Kind(
        "policy/v1",
        "PodDisruptionBudget",
        "V1PodDisruptionBudget",
        Mutator,
        selector=("spec", "selector", "matchLabels"),
    )
