"""Editor of a pod spec, of a pod or in the pod template of a workload."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from ocf.editors.keyed_lists import KeyedList, ensure_entry, remove_entry
from ocf.editors.model_values import own_or_none, require
from ocf.editors.pull_secrets import PullSecretsEditor
from ocf.errors import ConfigError
from ocf.lazy_types.kubernetes import V1PodSecurityContext, V1PodSpec, V1Toleration, V1Volume

__all__ = ["PodSpecEditor"]


def _whole_toleration(toleration: V1Toleration) -> Hashable:
    """A toleration has no name, so the whole value is its key; empty and unset are equal."""
    fields = {field: value for field, value in vars(toleration).items() if value is not None and value != ""}
    return frozenset(fields.items())


_VOLUMES: Final[KeyedList[V1PodSpec, V1Volume]] = KeyedList("volumes", key=lambda volume: volume.name)
_TOLERATIONS: Final[KeyedList[V1PodSpec, V1Toleration]] = KeyedList("tolerations", key=_whole_toleration)


class PodSpecEditor(PullSecretsEditor[V1PodSpec]):
    """Edits the spec of a pod; its containers have a separate editor.

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
            name: Name of the service account. None unsets the field; the API server then uses `default`.
        """
        self._raw.service_account_name = name

    def set_priority_class_name(self, name: str | None) -> None:
        """Set the priority class.

        Args:
            name: Name of the priority class. None unsets the field; the cluster's default class then applies.
        """
        self._raw.priority_class_name = name

    def set_host_network(self, host_network: bool | None) -> None:  # noqa: FBT001 (the value is the subject)
        """Set whether the pod uses the network namespace of its node.

        Args:
            host_network: The value. None unsets the field, which means false.
        """
        self._raw.host_network = host_network

    def set_host_pid(self, host_pid: bool | None) -> None:  # noqa: FBT001 (as above)
        """Set whether the pod uses the PID namespace of its node.

        Args:
            host_pid: The value. None unsets the field, which means false.
        """
        self._raw.host_pid = host_pid

    def set_host_ipc(self, host_ipc: bool | None) -> None:  # noqa: FBT001 (as above)
        """Set whether the pod uses the IPC namespace of its node.

        Args:
            host_ipc: The value. None unsets the field, which means false.
        """
        self._raw.host_ipc = host_ipc

    def set_security_context(self, security_context: V1PodSecurityContext | None) -> None:
        """Set the security context of the pod.

        Args:
            security_context: Replaces the whole security context; a copy is stored. None unsets the field.

        Raises:
            ConfigError: If the argument is not the security context of a pod.
        """
        self._raw.security_context = own_or_none(self._raw, "security_context", security_context)

    def ensure_volume(self, volume: V1Volume) -> None:
        """Add a volume or replace the first one with the same name.

        Args:
            volume: The volume; a copy is stored.

        Raises:
            ConfigError: If the argument is not a volume.
        """
        _VOLUMES.ensure(self._raw, volume)

    def remove_volume(self, name: str) -> None:
        """Remove all volumes with a name; volume mounts are not removed.

        Args:
            name: Name of the volume.

        Raises:
            ConfigError: If the name is not a string.
        """
        _VOLUMES.remove(self._raw, require("volumes", name, str))

    def ensure_toleration(self, toleration: V1Toleration) -> None:
        """Add a toleration unless the list contains an equal one.

        Tolerations do not have a name: two that differ in any field, such as `tolerationSeconds`, are different.

        Args:
            toleration: The toleration; a copy is stored.

        Raises:
            ConfigError: If the argument is not a toleration.
        """
        _TOLERATIONS.ensure(self._raw, toleration)

    def remove_tolerations(self, condition: Callable[[V1Toleration], bool]) -> None:
        """Remove all tolerations for which a condition is true.

        Args:
            condition: Called once for each toleration, in order.

        Raises:
            ConfigError: If the condition is not callable.
        """
        if not callable(condition):
            raise ConfigError(f"tolerations: the condition must be callable, not of type {type(condition).__name__}")
        _TOLERATIONS.remove_where(self._raw, condition)

    def ensure_node_selector(self, key: str, value: str) -> None:
        """Set one label of the node selector.

        Args:
            key: Key of the label.
            value: Required value of the label; an existing value is overwritten.

        Raises:
            ConfigError: If the key or the value is not a string.
        """
        ensure_entry(self._raw, "node_selector", key, value)

    def remove_node_selector(self, key: str) -> None:
        """Remove one label of the node selector if it exists.

        Args:
            key: Key of the label.

        Raises:
            ConfigError: If the key is not a string.
        """
        remove_entry(self._raw, "node_selector", key)
