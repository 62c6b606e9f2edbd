"""The categories of containers, shared by every kind with a pod template.

*Presence* adds and removes containers; *edits* change those that a selector accepts. The selectors look at the list
as it was when the edits of this mutation began, so they see containers added by the same mutation, and a rename by
one edit does not change what the next one selects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ocf.editors import ContainerEditor, ContainerSelector, ObjectMetaEditor, all_containers
from ocf.objects import copy_model
from ocf.primitives.content_hash import DATA_HASH, combined_hash
from ocf.primitives.list_edits import ListEdits
from ocf.primitives.mutator import (
    BaseMutator,
    BoundRecorder,
    CategoryDescriptor,
    Edits,
    SubObject,
    call_edit,
    require_callable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubernetes.client import V1Container, V1EnvVar

    from ocf.editors import KeyedList

__all__ = ["ContainerEdits", "ContainerListEdits", "PodTemplateMutator"]


class ContainerListEdits(ListEdits["V1Container"]):
    """A category that adds and removes containers, in order of recording.

    Args:
        containers: The list of the pod spec that is changed.
        path: Where the pod spec is.
    """

    def __init__(self, containers: KeyedList[Any, V1Container], path: str = "spec.template.spec") -> None:
        super().__init__(containers, path)


class ContainerEdits(CategoryDescriptor["ContainerEditsRecorder"]):
    """A category of edits of the containers that a selector accepts.

    Args:
        field: The list of the pod spec, `containers` or `init_containers`.
        path: Where the pod spec is.
    """

    def __init__(self, field: str, path: str = "spec.template.spec") -> None:
        super().__init__(ContainerEditsRecorder)
        self._field = field
        self._part = SubObject(path)

    def apply(self, target: Any, records: list[_ContainerEdit]) -> None:
        """Run, for each container, the edits whose selector accepts it."""
        containers: list[V1Container] = getattr(self._part.of(target), self._field) or []
        snapshot = [copy_model(container) for container in containers]
        for index, (container, before) in enumerate(zip(containers, snapshot, strict=True)):
            editor = ContainerEditor(container)
            for record in records:
                if record.selector(index, before):
                    call_edit(record.edit, editor)


class _ContainerEdit(NamedTuple):
    selector: ContainerSelector
    edit: Callable[[ContainerEditor], object]


class ContainerEditsRecorder(BoundRecorder):
    """Records edits of chosen containers."""

    __slots__ = ()

    def __call__(
        self, selector: ContainerSelector
    ) -> Callable[[Callable[[ContainerEditor], object]], Callable[[ContainerEditor], object]]:
        """Choose containers; the result records an edit for them and returns it.

        Args:
            selector: Called with the position of a container and the container as it was before this mutation's edits.

        Returns:
            A decorator; called with a lambda or another function it serves as well.

        Raises:
            ConfigError: If the selector, or later the edit, is not callable.
        """
        require_callable(selector, self._category)

        def record(edit: Callable[[ContainerEditor], object]) -> Callable[[ContainerEditor], object]:
            edit = require_callable(edit, self._category)
            self._record(_ContainerEdit(selector, edit))
            return edit

        return record


class PodTemplateMutator(BaseMutator):
    """The recorders of containers, for kinds with a pod template.

    A kind declares the categories itself, because their place in its order is the kind's own.
    """

    edit_pod_template_metadata: ClassVar[Edits[ObjectMetaEditor]]
    _container_presence: ClassVar[ContainerListEdits]
    edit_containers: ClassVar[ContainerEdits]
    _init_container_presence: ClassVar[ContainerListEdits]
    edit_init_containers: ClassVar[ContainerEdits]

    def ensure_container(self, container: V1Container) -> None:
        """Record that a container is there: the one of its name is replaced whole at its place, else it is appended."""
        self._container_presence.ensure(container)

    def remove_container(self, *names: str) -> None:
        """Record that containers of these names are not there."""
        self._container_presence.remove(*names)

    def ensure_init_container(self, container: V1Container) -> None:
        """Record that an init container is there, as `ensure_container` does."""
        self._init_container_presence.ensure(container)

    def remove_init_container(self, *names: str) -> None:
        """Record that init containers of these names are not there."""
        self._init_container_presence.remove(*names)

    def ensure_container_env_var(self, *variables: V1EnvVar) -> None:
        """Record environment variables for every container; init containers are left alone."""
        copies = [copy_model(variable) for variable in variables]
        self.edit_containers(all_containers)(lambda container: container.ensure_env_var(*copies))

    def remove_container_env_var(self, *names: str) -> None:
        """Record that no container has environment variables of these names."""
        self.edit_containers(all_containers)(lambda container: container.remove_env_var(*names))

    def ensure_container_arg(self, *args: str) -> None:
        """Record arguments for every container; a flag with another value is another argument."""
        self.edit_containers(all_containers)(lambda container: container.ensure_arg(*args))

    def remove_container_arg(self, *args: str) -> None:
        """Record that no container has these arguments."""
        self.edit_containers(all_containers)(lambda container: container.remove_arg(*args))

    def roll_on_change(self, *hashes: Callable[[], str], annotation: str = DATA_HASH) -> None:
        """Record an annotation of the pod template that changes with a configuration, so that the pods are replaced.

        Args:
            hashes: All that the pods are configured by, asked when the edits are applied: `desired_hash` of a
                ConfigMap or a Secret, or `require` of a data cell with the hash of one that is only read.
            annotation: Key of the annotation; another call with the same one overwrites it.

        Example:
            >>> from ocf.primitives import configmap, deployment
            >>> metadata = {"name": "settings", "namespace": "shop"}
            >>> settings = configmap.Builder({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).build()
            >>> rolling = deployment.Mutation("rolling", lambda m: m.roll_on_change(settings.desired_hash))
        """

        def annotate(template: ObjectMetaEditor) -> None:
            template.ensure_annotation(annotation, combined_hash(*(found() for found in hashes)))

        self.edit_pod_template_metadata(annotate)
