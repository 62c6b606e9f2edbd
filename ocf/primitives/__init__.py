"""Kinds of resources: one engine, then one small package per kind.

A kind is a declaration (`Kind`, a mutator class that lists its categories of edits in order, `Handlers`) and its status
functions; recording, rendering, building, identity, preview, guards, data and suspension are the engine's.
"""

from ocf.primitives.builder import IntegrationBuilder, StaticBuilder, TaskBuilder, WorkloadBuilder
from ocf.primitives.containers import ContainerEdits, ContainerPresence, PodTemplateMutator
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, CategoryDescriptor, Edits
from ocf.primitives.resource import IntegrationResource, StaticResource, TaskResource, WorkloadResource

__all__ = [
    "BaseMutator",
    "CategoryDescriptor",
    "ContainerEdits",
    "ContainerPresence",
    "Edits",
    "Handlers",
    "IntegrationBuilder",
    "IntegrationResource",
    "Kind",
    "PodTemplateMutator",
    "StaticBuilder",
    "StaticResource",
    "TaskBuilder",
    "TaskResource",
    "WorkloadBuilder",
    "WorkloadResource",
]
