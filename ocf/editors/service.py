"""Editor of the spec of a Service."""

from __future__ import annotations

from typing import Final

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import KeyedList, ensure_entry, remove_entry
from ocf.editors.model_values import own, own_or_none, require
from ocf.lazy_types.kubernetes import V1ServicePort, V1ServiceSpec, V1SessionAffinityConfig

__all__ = ["ServiceSpecEditor"]

_DEFAULT_PROTOCOL: Final = "TCP"

_BY_NAME: Final[KeyedList[V1ServiceSpec, V1ServicePort]] = KeyedList("ports", key=lambda port: port.name or "")
_BY_NUMBER: Final[KeyedList[V1ServiceSpec, V1ServicePort]] = KeyedList(
    "ports", key=lambda port: (port.port, port.protocol or _DEFAULT_PROTOCOL)
)


class ServiceSpecEditor(Editor[V1ServiceSpec]):
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
        """Set the type of the Service.

        Args:
            service_type: `ClusterIP`, `NodePort`, `LoadBalancer` or `ExternalName`. None unsets the field; the API
                server then uses `ClusterIP`.
        """
        self._raw.type = service_type

    def ensure_port(self, port: V1ServicePort) -> None:
        """Add a port or replace an existing one.

        A port with a name replaces the first port with the same name. A port without a name replaces the first port
        with the same number and protocol, whether that port has a name or not.

        Args:
            port: The port; a copy is stored. The default protocol is TCP.

        Raises:
            ConfigError: If the argument is not a service port.
        """
        port = own(self._raw, "ports", port)
        (_BY_NAME if port.name else _BY_NUMBER).ensure(self._raw, port)

    def remove_port(self, name: str) -> None:
        """Remove all ports with a name.

        Args:
            name: Name of the port; an empty name matches ports without a name.

        Raises:
            ConfigError: If the name is not a string.
        """
        _BY_NAME.remove(self._raw, require("ports", name, str))

    def set_selector(self, selector: dict[str, str] | None) -> None:
        """Set the selector of the pods that receive the traffic.

        Args:
            selector: Labels of the pods; replaces the whole selector. None unsets the field; the user then has to
                provide the endpoints of the Service.
        """
        self._raw.selector = selector

    def ensure_selector(self, key: str, value: str) -> None:
        """Set one label of the selector.

        Args:
            key: Key of the label.
            value: Required value of the label; an existing value is overwritten.

        Raises:
            ConfigError: If the key or the value is not a string.
        """
        ensure_entry(self._raw, "selector", key, value)

    def remove_selector(self, key: str) -> None:
        """Remove one label of the selector if it exists.

        Args:
            key: Key of the label.

        Raises:
            ConfigError: If the key is not a string.
        """
        remove_entry(self._raw, "selector", key)

    def set_session_affinity(self, affinity: str | None) -> None:
        """Set the session affinity.

        Args:
            affinity: `ClientIP` or the string `None`. None unsets the field; the API server then uses the string
                `None`.
        """
        self._raw.session_affinity = affinity

    def set_session_affinity_config(self, config: V1SessionAffinityConfig | None) -> None:
        """Set the configuration of the session affinity, such as its timeout.

        Args:
            config: Replaces the whole configuration; a copy is stored. None unsets the field.

        Raises:
            ConfigError: If the argument is not a session affinity configuration.
        """
        self._raw.session_affinity_config = own_or_none(self._raw, "session_affinity_config", config)

    def set_publish_not_ready_addresses(self, publish: bool | None) -> None:  # noqa: FBT001 (the value is the subject)
        """Set whether DNS and endpoints include pods that are not ready.

        Args:
            publish: The value. None unsets the field, which means false.
        """
        self._raw.publish_not_ready_addresses = publish

    def set_external_traffic_policy(self, policy: str | None) -> None:
        """Set the policy for traffic from outside the cluster.

        Args:
            policy: `Cluster` or `Local`. None unsets the field; the API server then uses `Cluster` if the policy
                applies to the type.
        """
        self._raw.external_traffic_policy = policy

    def set_internal_traffic_policy(self, policy: str | None) -> None:
        """Set the policy for traffic from inside the cluster.

        Args:
            policy: `Cluster` or `Local`. None unsets the field; the API server then uses `Cluster`.
        """
        self._raw.internal_traffic_policy = policy

    def set_load_balancer_source_ranges(self, ranges: list[str] | None) -> None:
        """Set the client networks that may use the load balancer.

        Args:
            ranges: Networks, `10.0.0.0/8`; replaces the whole list. None unsets the field, which allows all clients.
        """
        self._raw.load_balancer_source_ranges = ranges

    def set_external_name(self, name: str | None) -> None:
        """Set the DNS name that a Service of type `ExternalName` refers to.

        Args:
            name: A host name. None unsets the field.
        """
        self._raw.external_name = name
