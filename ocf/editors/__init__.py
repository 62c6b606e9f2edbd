"""How one part of an object is changed: object metadata, HPA spec, deployment spec, pod spec, container."""

from ocf.editors.container import ContainerEditor
from ocf.editors.deployment import DeploymentSpecEditor
from ocf.editors.editor import Editor
from ocf.editors.hpa import HPASpecEditor
from ocf.editors.keyed import CONTAINERS, INIT_CONTAINERS, KeyedList
from ocf.editors.metadata import ObjectMetaEditor
from ocf.editors.metrics import ANY, AnyValue
from ocf.editors.pod import PodSpecEditor
from ocf.editors.selectors import (
    ContainerSelector,
    all_containers,
    container_at_index,
    container_named,
    container_not_named,
    containers_named,
    containers_not_named,
)

__all__ = [
    "ANY",
    "CONTAINERS",
    "INIT_CONTAINERS",
    "AnyValue",
    "ContainerEditor",
    "ContainerSelector",
    "DeploymentSpecEditor",
    "Editor",
    "HPASpecEditor",
    "KeyedList",
    "ObjectMetaEditor",
    "PodSpecEditor",
    "all_containers",
    "container_at_index",
    "container_named",
    "container_not_named",
    "containers_named",
    "containers_not_named",
]
