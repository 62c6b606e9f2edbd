"""The spec of a Service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import KeyedList, ensure_entry, remove_entry
from ocf.editors.model_values import own, own_or_none, require

if TYPE_CHECKING:
    from kubernetes.client import V1ServicePort, V1ServiceSpec, V1SessionAffinityConfig

__all__ = ["ServiceSpecEditor"]

_DEFAULT_PROTOCOL: Final = "TCP"

_BY_NAME: Final[KeyedList[V1ServiceSpec, V1ServicePort]] = KeyedList("ports", key=lambda port: port.name or "")
_BY_NUMBER: Final[KeyedList[V1ServiceSpec, V1ServicePort]] = KeyedList(
    "ports", key=lambda port: (port.port, port.protocol or _DEFAULT_PROTOCOL)
)


class ServiceSpecEditor(Editor["V1ServiceSpec"]):
    """Edits the spec of a Service.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/#ServiceSpec.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1ServicePort, V1ServiceSpec
        >>> spec = ServiceSpecEditor(V1ServiceSpec())
        >>> spec.ensure_port(V1ServicePort(name="http", port=80))
        >>> spec.ensure_port(V1ServicePort(name="http", port=8080))
        >>> spec.ensure_selector("app", "web")
        >>> [port.port for port in spec.raw.ports], spec.raw.selector
        ([8080], {'app': 'web'})
    """

    __slots__ = ()

    def set_type(self, service_type: str | None) -> None:
        """Set how the Service is reached.

        Args:
            service_type: `ClusterIP`, `NodePort`, `LoadBalancer` or `ExternalName`. None unsets the field, and the API
                server takes `ClusterIP`.
        """
        self._raw.type = service_type

    def ensure_port(self, port: V1ServicePort) -> None:
        """Put a port into the list, in place of the one it stands for, or at the end.

        A port with a name stands for the first one of its name. One without stands for the first one of its number
        and protocol, be that one named or not.

        Args:
            port: The port; a copy is stored. Without a protocol it is a TCP port.

        Raises:
            ConfigError: If it is no port.
        """
        port = own(self._raw, "ports", port)
        (_BY_NAME if port.name else _BY_NUMBER).ensure(self._raw, port)

    def remove_port(self, name: str) -> None:
        """Drop every port of a name.

        Args:
            name: The name; an empty one stands for ports without a name.

        Raises:
            ConfigError: If it is no text.
        """
        _BY_NAME.remove(self._raw, require("ports", name, str))

    def set_selector(self, selector: dict[str, str] | None) -> None:
        """Set which pods are behind the Service.

        Args:
            selector: The labels they have; replaces the whole selector. None unsets the field: nobody but the user
                then says what is behind the Service.
        """
        self._raw.selector = selector

    def ensure_selector(self, key: str, value: str) -> None:
        """Ask for pods with a label.

        Args:
            key: Key of the label.
            value: The value it must have; a value already there is overwritten.

        Raises:
            ConfigError: If one of them is no text.
        """
        ensure_entry(self._raw, "selector", key, value)

    def remove_selector(self, key: str) -> None:
        """Ask no longer for a label.

        Args:
            key: Key of the label; one that is not asked for is passed over.

        Raises:
            ConfigError: If it is no text.
        """
        remove_entry(self._raw, "selector", key)

    def set_session_affinity(self, affinity: str | None) -> None:
        """Say whether a client stays with one pod.

        Args:
            affinity: `ClientIP` or `None` (the text). None unsets the field, and the API server takes the text `None`.
        """
        self._raw.session_affinity = affinity

    def set_session_affinity_config(self, config: V1SessionAffinityConfig | None) -> None:
        """Set how long a client stays with one pod.

        Args:
            config: Replaces the whole configuration; a copy is stored. None unsets the field.

        Raises:
            ConfigError: If it is no such configuration.
        """
        self._raw.session_affinity_config = own_or_none(self._raw, "session_affinity_config", config)

    def set_publish_not_ready_addresses(self, publish: bool | None) -> None:  # noqa: FBT001 (the value is the subject)
        """Say whether pods are found before they are ready.

        Args:
            publish: Whether they are. None unsets the field, which means false.
        """
        self._raw.publish_not_ready_addresses = publish

    def set_external_traffic_policy(self, policy: str | None) -> None:
        """Set where traffic from outside may go.

        Args:
            policy: `Cluster` or `Local`. None unsets the field, and the API server takes `Cluster` where it applies.
        """
        self._raw.external_traffic_policy = policy

    def set_internal_traffic_policy(self, policy: str | None) -> None:
        """Set where traffic from inside may go.

        Args:
            policy: `Cluster` or `Local`. None unsets the field, and the API server takes `Cluster`.
        """
        self._raw.internal_traffic_policy = policy

    def set_load_balancer_source_ranges(self, ranges: list[str] | None) -> None:
        """Set who may use the load balancer.

        Args:
            ranges: Networks, `10.0.0.0/8`; replaces all of them. None unsets the field: everybody may.
        """
        self._raw.load_balancer_source_ranges = ranges

    def set_external_name(self, name: str | None) -> None:
        """Set the name that a Service of type `ExternalName` stands for.

        Args:
            name: A host name. None unsets the field.
        """
        self._raw.external_name = name
