"""Objects of any kind, including custom resources: built from a manifest, with fields edited by path.

There is one builder per category. A static object is ready as soon as it exists; for the other categories the user
provides the status handler, because only the user knows how the kind reports its status.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.primitives import resource
from ocf.primitives.unstructured.builder import IntegrationBuilder, StaticBuilder, TaskBuilder, WorkloadBuilder
from ocf.primitives.unstructured.model import Mutator, Unstructured

__all__ = [
    "IntegrationBuilder",
    "IntegrationResource",
    "Mutation",
    "Mutator",
    "StaticBuilder",
    "StaticResource",
    "TaskBuilder",
    "TaskResource",
    "Unstructured",
    "WorkloadBuilder",
    "WorkloadResource",
]

Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of an object of any kind."""

StaticResource: TypeAlias = resource.StaticResource[Unstructured, Mutator]
WorkloadResource: TypeAlias = resource.WorkloadResource[Unstructured, Mutator]
TaskResource: TypeAlias = resource.TaskResource[Unstructured, Mutator]
IntegrationResource: TypeAlias = resource.IntegrationResource[Unstructured, Mutator]
