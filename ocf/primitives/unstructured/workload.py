"""Objects of any kind that run until they are deleted."""

from __future__ import annotations

from typing import TypeAlias

from ocf.concepts import AliveStatus
from ocf.primitives import builder, resource
from ocf.primitives.unstructured.builder import AnyKindBuilder
from ocf.primitives.unstructured.model import Mutation, Mutator, Unstructured

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]

Resource: TypeAlias = resource.WorkloadResource[Unstructured, Mutator]
"""An object of any kind as a resource of a component."""


class Builder(AnyKindBuilder[AliveStatus], builder.WorkloadBuilder[Unstructured, Mutator]):
    """Builds an object that runs until it is deleted; it needs a status handler.

    Args:
        base: The desired baseline: a manifest, a YAML text with one document, or a pydantic model of the user.
        cluster_scoped: Whether objects of the kind are cluster-scoped.
    """
