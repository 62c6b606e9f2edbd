"""Kinds of resources: shared modules, and one small package per kind.

A kind is a declaration (`Kind`, a mutator class that lists its categories of edits in order, `Handlers`) and its status
functions. Recording, rendering, building, identity, preview, guards, data and suspension are shared by all kinds.
"""

from ocf.primitives.builder import IntegrationBuilder, StaticBuilder, TaskBuilder, WorkloadBuilder
from ocf.primitives.containers import PodMutator, PodTemplateMutator
from ocf.primitives.content_hash import DATA_HASH, data_hash
from ocf.primitives.custom_kind import CustomMutator, custom_kind
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import IntegrationResource, StaticResource, TaskResource, WorkloadResource
from ocf.primitives.status import ConditionStatus, IntegrationStatus, always_suspended

__all__ = [
    "DATA_HASH",
    "BaseMutator",
    "ConditionStatus",
    "CustomMutator",
    "Edits",
    "Handlers",
    "IntegrationBuilder",
    "IntegrationResource",
    "IntegrationStatus",
    "Kind",
    "PodMutator",
    "PodTemplateMutator",
    "StaticBuilder",
    "StaticResource",
    "TaskBuilder",
    "TaskResource",
    "WorkloadBuilder",
    "WorkloadResource",
    "always_suspended",
    "custom_kind",
    "data_hash",
]
