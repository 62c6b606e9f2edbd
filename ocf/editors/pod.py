"""The spec of a pod, its own or in the template of a workload."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

from ocf.editors.keyed_lists import KeyedList, ensure_entry, remove_entry
from ocf.editors.model_values import own_or_none, require
from ocf.editors.pull_secrets import PullSecretsEditor
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from kubernetes.client import V1PodSecurityContext, V1PodSpec, V1Toleration, V1Volume

__all__ = ["PodSpecEditor"]


def _whole_toleration(toleration: V1Toleration) -> Hashable:
    """A toleration has no name, so all it says is its key; an empty text says as little as an unset field."""
    said = {field: value for field, value in vars(toleration).items() if value is not None and value != ""}
    return frozenset(said.items())


_VOLUMES: Final[KeyedList[V1PodSpec, V1Volume]] = KeyedList("volumes", key=lambda volume: volume.name)
_TOLERATIONS: Final[KeyedList[V1PodSpec, V1Toleration]] = KeyedList("tolerations", key=_whole_toleration)


class PodSpecEditor(PullSecretsEditor["V1PodSpec"]):
    """Edits the spec of a pod; its containers have an editor of their own.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodSpec.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1EmptyDirVolumeSource, V1PodSpec, V1Volume
        >>> pod = PodSpecEditor(V1PodSpec(containers=[]))
        >>> pod.ensure_volume(V1Volume(name="cache", empty_dir=V1EmptyDirVolumeSource()))
        >>> pod.ensure_node_selector("kubernetes.io/arch", "arm64")
        >>> [volume.name for volume in pod.raw.volumes], pod.raw.node_selector
        (['cache'], {'kubernetes.io/arch': 'arm64'})
    """

    __slots__ = ()

    def set_service_account_name(self, name: str | None) -> None:
        """Set the service account that the pod runs as.

        Args:
            name: Its name. None unsets the field, and the API server takes `default`.
        """
        self._raw.service_account_name = name

    def set_priority_class_name(self, name: str | None) -> None:
        """Set the priority class.

        Args:
            name: Its name. None unsets the field, which leaves it to the cluster's default class.
        """
        self._raw.priority_class_name = name

    def set_host_network(self, host_network: bool | None) -> None:  # noqa: FBT001 (the value is the subject)
        """Say whether the pod uses the network of its node.

        Args:
            host_network: Whether it does. None unsets the field, which means false.
        """
        self._raw.host_network = host_network

    def set_host_pid(self, host_pid: bool | None) -> None:  # noqa: FBT001 (as above)
        """Say whether the pod sees the processes of its node.

        Args:
            host_pid: Whether it does. None unsets the field, which means false.
        """
        self._raw.host_pid = host_pid

    def set_host_ipc(self, host_ipc: bool | None) -> None:  # noqa: FBT001 (as above)
        """Say whether the pod shares the inter-process communication of its node.

        Args:
            host_ipc: Whether it does. None unsets the field, which means false.
        """
        self._raw.host_ipc = host_ipc

    def set_security_context(self, security_context: V1PodSecurityContext | None) -> None:
        """Set the security settings of the pod.

        Args:
            security_context: Replaces all of them; a copy is stored. None unsets the field.

        Raises:
            ConfigError: If it is no security context of a pod.
        """
        self._raw.security_context = own_or_none(self._raw, "security_context", security_context)

    def ensure_volume(self, volume: V1Volume) -> None:
        """Put a volume into the list: in place of the first one of its name, or at the end.

        Args:
            volume: The volume; a copy is stored.

        Raises:
            ConfigError: If it is no volume.
        """
        _VOLUMES.ensure(self._raw, volume)

    def remove_volume(self, name: str) -> None:
        """Drop every volume of a name; mounts of it stay.

        Args:
            name: Name of the volume.

        Raises:
            ConfigError: If it is no text.
        """
        _VOLUMES.remove(self._raw, require("volumes", name, str))

    def ensure_toleration(self, toleration: V1Toleration) -> None:
        """Put a toleration into the list, unless an equal one is there.

        Tolerations have no name: one that differs in anything, be it `tolerationSeconds`, is another one.

        Args:
            toleration: The toleration; a copy is stored.

        Raises:
            ConfigError: If it is no toleration.
        """
        _TOLERATIONS.ensure(self._raw, toleration)

    def remove_tolerations(self, condition: Callable[[V1Toleration], bool]) -> None:
        """Drop every toleration for which a condition holds.

        Args:
            condition: Asked once per toleration, in order.

        Raises:
            ConfigError: If it cannot be called.
        """
        if not callable(condition):
            raise ConfigError(f"tolerations: the condition must be callable, not of type {type(condition).__name__}")
        _TOLERATIONS.remove_where(self._raw, condition)

    def ensure_node_selector(self, key: str, value: str) -> None:
        """Ask for nodes with a label.

        Args:
            key: Key of the label.
            value: The value it must have; a value already there is overwritten.

        Raises:
            ConfigError: If one of them is no text.
        """
        ensure_entry(self._raw, "node_selector", key, value)

    def remove_node_selector(self, key: str) -> None:
        """Ask no longer for a label.

        Args:
            key: Key of the label; one that is not asked for is passed over.

        Raises:
            ConfigError: If it is no text.
        """
        remove_entry(self._raw, "node_selector", key)
