"""Settings of the operator in a cluster, read from environment variables of its Deployment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from examples.memcached.operator import NAME
from ocf.errors import ConfigError
from ocf.runtime.admission import Service
from ocf.runtime.operator import Lease, Listen, ManagerOptions, WebhookOptions

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["Settings"]

_PORT: Final = 8080
_WEBHOOK_PORT: Final = 9443
_SWITCH: Final = {"true": True, "false": False, "": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the operator.

    Args:
        namespace: Namespace of the operator (`POD_NAMESPACE`), which contains its lease and the Secret with its
            certificate. If empty, the operator uses neither.
        namespaces: Namespaces in which it watches caches (`WATCH_NAMESPACES`, separated by commas); empty for all.
        port: Port of the metrics and probes (`PORT`).
        webhook_service: Name of the Service of the webhooks (`WEBHOOK_SERVICE`); if empty, no webhooks are served.
        webhook_port: Port of the webhooks (`WEBHOOK_PORT`).
        strict: Whether the webhooks also reject valid but probably unintended specs (`STRICT_VALIDATION`, `true` or
            `false`).
    """

    namespace: str = ""
    namespaces: tuple[str, ...] = ()
    port: int = _PORT
    webhook_service: str = ""
    webhook_port: int = _WEBHOOK_PORT
    strict: bool = False

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings from environment variables.

        Args:
            environment: Usually `os.environ`.

        Raises:
            ConfigError: If a value is not allowed, or `WEBHOOK_SERVICE` is set without `POD_NAMESPACE`.

        Example:
            >>> Settings.of({"WATCH_NAMESPACES": "shop, town", "STRICT_VALIDATION": "true"}).namespaces
            ('shop', 'town')
        """
        watched = environment.get("WATCH_NAMESPACES", "").split(",")
        found = cls(
            namespace=environment.get("POD_NAMESPACE", ""),
            namespaces=tuple(name.strip() for name in watched if name.strip()),
            port=_port(environment, "PORT", _PORT),
            webhook_service=environment.get("WEBHOOK_SERVICE", ""),
            webhook_port=_port(environment, "WEBHOOK_PORT", _WEBHOOK_PORT),
            strict=_switch(environment, "STRICT_VALIDATION"),
        )
        if found.webhook_service and not found.namespace:
            raise ConfigError("WEBHOOK_SERVICE needs POD_NAMESPACE, the namespace of the Secret with the certificate")
        return found

    def options(self, registry: CollectorRegistry | None = None) -> ManagerOptions:
        """Return the options of the manager.

        Args:
            registry: The registry of all metrics.
        """
        address = Service(self.webhook_service, self.namespace)
        return ManagerOptions(
            namespaces=self.namespaces,
            lease=Lease(NAME, self.namespace) if self.namespace else None,
            listen=Listen(self.port),
            admission=WebhookOptions(address=address, port=self.webhook_port) if self.webhook_service else None,
            metrics_prefix="memcached_operator",
            registry=registry,
        )


def _port(environment: Mapping[str, str], name: str, usual: int) -> int:
    text = environment.get(name, "")
    if text and not (text.isdecimal() and int(text) < 2**16):
        raise ConfigError(f"{name} must be a port, 0 to 65535, got {text!r}")
    return int(text) if text else usual


def _switch(environment: Mapping[str, str], name: str) -> bool:
    text = environment.get(name, "")
    if text not in _SWITCH:
        raise ConfigError(f"{name} must be true or false, got {text!r}")
    return _SWITCH[text]
