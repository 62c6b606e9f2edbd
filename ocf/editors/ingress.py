"""Editor of the spec of an Ingress."""

from __future__ import annotations

from typing import Final

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import KeyedList
from ocf.editors.model_values import own, own_or_none, require
from ocf.lazy_types.kubernetes import V1IngressBackend, V1IngressRule, V1IngressSpec, V1IngressTLS

__all__ = ["IngressSpecEditor"]

_RULES: Final[KeyedList[V1IngressSpec, V1IngressRule]] = KeyedList("rules", key=lambda rule: rule.host or "")
_TLS: Final[KeyedList[V1IngressSpec, V1IngressTLS]] = KeyedList(
    "tls", key=lambda entry: entry.hosts[0] if entry.hosts else None
)


class IngressSpecEditor(Editor[V1IngressSpec]):
    """Edits the spec of an Ingress.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/service-resources/ingress-v1/#IngressSpec.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1IngressRule, V1IngressSpec, V1IngressTLS
        >>> spec = IngressSpecEditor(V1IngressSpec())
        >>> spec.ensure_rule(V1IngressRule(host="shop.example.com"))
        >>> spec.ensure_tls(V1IngressTLS(hosts=["shop.example.com"], secret_name="old"))
        >>> spec.ensure_tls(V1IngressTLS(hosts=["shop.example.com"], secret_name="new"))
        >>> [rule.host for rule in spec.raw.rules], [entry.secret_name for entry in spec.raw.tls]
        (['shop.example.com'], ['new'])
    """

    __slots__ = ()

    def set_ingress_class_name(self, name: str | None) -> None:
        """Set the IngressClass, which names the controller that implements the Ingress.

        Args:
            name: Name of an IngressClass. None unsets the field; the default class of the cluster then applies.
        """
        self._raw.ingress_class_name = name

    def set_default_backend(self, backend: V1IngressBackend | None) -> None:
        """Set the backend of requests that match no rule.

        Args:
            backend: Replaces the whole backend; a copy is stored. None unsets the field.

        Raises:
            ConfigError: If the argument is not an Ingress backend.
        """
        self._raw.default_backend = own_or_none(self._raw, "default_backend", backend)

    def ensure_rule(self, rule: V1IngressRule) -> None:
        """Add a rule or replace the first one of the same host.

        Args:
            rule: The rule; a copy is stored. It replaces the other one as a whole: their paths are not merged. A rule
                without a host, which applies to all hosts, replaces the first other one without a host.

        Raises:
            ConfigError: If the argument is not an Ingress rule.
        """
        _RULES.ensure(self._raw, rule)

    def remove_rule(self, host: str) -> None:
        """Remove all rules of a host.

        Args:
            host: The host; an empty text matches rules without a host.

        Raises:
            ConfigError: If the host is not a string.
        """
        _RULES.remove(self._raw, require("rules", host, str))

    def ensure_tls(self, entry: V1IngressTLS) -> None:
        """Add a TLS entry or replace the first one with the same first host.

        Args:
            entry: The entry; a copy is stored. An entry without hosts is ignored, because it has no key; assign
                `raw.tls` to set one.

        Raises:
            ConfigError: If the argument is not a TLS entry of an Ingress.
        """
        if own(self._raw, "tls", entry).hosts:
            _TLS.ensure(self._raw, entry)

    def remove_tls(self, *hosts: str) -> None:
        """Remove all TLS entries whose first host is one of the given hosts.

        Args:
            hosts: The hosts.

        Raises:
            ConfigError: If a host is not a string.
        """
        _TLS.remove(self._raw, *(require("tls", host, str) for host in hosts))
