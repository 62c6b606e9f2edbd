"""Categories of edits of containers, shared by all kinds with a pod spec.

*Presence* adds and removes containers; *edits* change the containers that a selector accepts. Selectors see the list as
it was before the first edit of the mutation and after its presence category. So they see containers that the same
mutation added, and a rename by one edit does not affect the selection of the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

from ocf.editors import ContainerEditor, ObjectMetaEditor, all_containers
from ocf.editors.container_selectors import ContainerSelector
from ocf.editors.keyed_lists import KeyedList
from ocf.editors.model_values import api_name
from ocf.feature.mutation import PlainResult
from ocf.lazy_types.kubernetes import V1Container, V1EnvVar
from ocf.objects.managed_fields import entry_key, fields_path
from ocf.objects.models import copy_model
from ocf.primitives.cleared import EditedPart
from ocf.primitives.content_hash import DATA_HASH, combined_hash
from ocf.primitives.mutator import (
    BaseMutator,
    BoundRecorder,
    CategoryDescriptor,
    Edits,
    ListEdits,
    SubObject,
    call_edit,
    require_callable,
)

__all__ = ["ContainerEdits", "ContainerListEdits", "PodMutator", "PodTemplateMutator"]


class ContainerListEdits(ListEdits[V1Container]):
    """A category that adds and removes containers, in order of recording.

    Args:
        containers: The list of the pod spec to change.
        path: Path of the pod spec.
    """

    def __init__(self, containers: KeyedList[Any, V1Container], path: str = "spec.template.spec") -> None:
        super().__init__(containers, path)


class ContainerEdits(CategoryDescriptor["ContainerEditsRecorder"]):
    """A category of edits of the containers that a selector accepts.

    Args:
        field: The list of the pod spec, `containers` or `init_containers`.
        path: Path of the pod spec.
    """

    def __init__(self, field: str, path: str = "spec.template.spec") -> None:
        super().__init__(ContainerEditsRecorder)
        self._field = field
        self._part = SubObject(path)

    def parts(self, target: Any) -> Iterator[EditedPart]:
        """Yield each container."""
        pod, place = self._part.placed(target)
        for container in getattr(pod, self._field, None) or ():
            entry = entry_key({"name": container.name})
            yield EditedPart(container, (*place, *fields_path([api_name(pod, self._field)]), entry))

    def apply(self, target: Any, records: list[_ContainerEdit]) -> None:
        """Apply to each container the edits whose selector accepts it."""
        containers: list[V1Container] = getattr(self._part.of(target), self._field) or []
        # All selectors are called before the first edit, so that none sees its changes.
        selected = [
            (container, [record.edit for record in records if record.selector(index, container)])
            for index, container in enumerate(containers)
        ]
        for container, edits in selected:
            editor = ContainerEditor(container)
            for edit in edits:
                call_edit(edit, editor)


class _ContainerEdit(NamedTuple):
    selector: ContainerSelector
    edit: Callable[[ContainerEditor], PlainResult]


class ContainerEditsRecorder(BoundRecorder):
    """Records edits of selected containers."""

    __slots__ = ()

    def __call__(self, selector: ContainerSelector) -> SelectedContainersRecorder:
        """Return a function that records an edit of the selected containers and returns the edit.

        Args:
            selector: Called with the position of a container and the container as it was before this mutation's edits.

        Returns:
            A function that can be called with any edit or used as a decorator; it must be called.

        Raises:
            ConfigError: If the selector, or later the edit, is not callable, or recording has ended.
        """
        require_callable(selector, self._category)
        self.is_used = True
        return self._mutator.hand_out(SelectedContainersRecorder(self._mutator, self._category, selector))


class SelectedContainersRecorder(BoundRecorder):
    """Records edits of the containers that one selector accepts."""

    __slots__ = ("_selector",)

    def __init__(self, mutator: BaseMutator, category: str, selector: ContainerSelector) -> None:
        super().__init__(mutator, category)
        self._selector = selector

    def __call__(self, edit: Callable[[ContainerEditor], PlainResult]) -> Callable[[ContainerEditor], PlainResult]:
        """Record an edit.

        Args:
            edit: Called with the editor of each selected container; its result is ignored. An asynchronous function is
                an error.

        Returns:
            The edit itself, so that this method can be used as a decorator.

        Raises:
            ConfigError: If the edit is not callable or recording has ended.
        """
        self._record(_ContainerEdit(self._selector, require_callable(edit, self._category)))
        return edit

    @property
    def lost_edit(self) -> str:
        """The problem to report if it was never called."""
        call = f"{self._category}(selector)"
        return (
            f"the result of {call} was not called, so an edit is lost: call it, m.{call}(edit), or use it as a "
            f"decorator, @m.{call}"
        )


class PodMutator(BaseMutator):
    """Base class of the mutators of kinds with a pod spec: records edits of containers.

    Each kind declares the categories itself, because their path and their position in its order depend on the kind.
    """

    _container_presence: ClassVar[ContainerListEdits]
    edit_containers: ClassVar[ContainerEdits]
    _init_container_presence: ClassVar[ContainerListEdits]
    edit_init_containers: ClassVar[ContainerEdits]

    def ensure_container(self, container: V1Container) -> None:
        """Record a container: it replaces the container of the same name at its position, or is appended."""
        self._container_presence.ensure(container)

    def remove_container(self, *names: str) -> None:
        """Record the removal of containers with these names."""
        self._container_presence.remove(*names)

    def ensure_init_container(self, container: V1Container) -> None:
        """Record an init container, as `ensure_container` does."""
        self._init_container_presence.ensure(container)

    def remove_init_container(self, *names: str) -> None:
        """Record the removal of init containers with these names."""
        self._init_container_presence.remove(*names)

    def ensure_container_env_var(self, *variables: V1EnvVar) -> None:
        """Record environment variables of all containers except init containers."""
        copies = [copy_model(variable) for variable in variables]
        self.edit_containers(all_containers)(lambda container: container.ensure_env_var(*copies))

    def remove_container_env_var(self, *names: str) -> None:
        """Record the removal of environment variables with these names from all containers except init containers."""
        self.edit_containers(all_containers)(lambda container: container.remove_env_var(*names))

    def ensure_container_arg(self, *args: str) -> None:
        """Record arguments of all containers except init containers; the same flag with another value is different."""
        self.edit_containers(all_containers)(lambda container: container.ensure_arg(*args))

    def remove_container_arg(self, *args: str) -> None:
        """Record the removal of arguments from all containers except init containers."""
        self.edit_containers(all_containers)(lambda container: container.remove_arg(*args))


class PodTemplateMutator(PodMutator):
    """Base class of the mutators of kinds that replace their pods when the pod template changes."""

    edit_pod_template_metadata: ClassVar[Edits[ObjectMetaEditor]]

    def roll_on_change(self, *hashes: Callable[[], str], annotation: str = DATA_HASH) -> None:
        """Record a pod template annotation with a hash of the configuration, so that a change replaces the pods.

        Args:
            hashes: Functions that return the hashes of everything that configures the pods, called when the edits are
                applied: `desired_hash` of a ConfigMap or a Secret, or `require` of a data cell with the hash of an
                object that is only read.
            annotation: Key of the annotation; another call with the same key overwrites it.

        Example:
            >>> from ocf.primitives import configmap, deployment
            >>> metadata = {"name": "settings", "namespace": "shop"}
            >>> settings = configmap.Builder({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).build()
            >>> rolling = deployment.Mutation("rolling", lambda m: m.roll_on_change(settings.desired_hash))
        """

        def annotate(template: ObjectMetaEditor) -> None:
            template.ensure_annotation(annotation, combined_hash(*(found() for found in hashes)))

        self.edit_pod_template_metadata(annotate)
