"""Objects of any kind that another controller makes operational."""

from __future__ import annotations

from typing import TypeAlias

from ocf.concepts import OperationalStatus
from ocf.primitives import builder, resource
from ocf.primitives.unstructured.builder import AnyKindBuilder
from ocf.primitives.unstructured.model import Mutation, Mutator, Unstructured

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]

Resource: TypeAlias = resource.IntegrationResource[Unstructured, Mutator]
"""An object of any kind as a resource of a component."""


class Builder(AnyKindBuilder[OperationalStatus], builder.IntegrationBuilder[Unstructured, Mutator]):
    """Builds an object that another controller makes operational; it needs a status handler.

    Args:
        base: The desired baseline: a manifest, a YAML text with one document, or a pydantic model of the user.
        cluster_scoped: Whether objects of the kind are cluster-scoped.
    """
