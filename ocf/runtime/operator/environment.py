"""Options of an operator's process from the environment variables of its Deployment.

`ocf manifests` writes a Deployment that sets these variables, so the manifests and the process always agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry

from ocf.concepts.tracing import Tracer
from ocf.errors import ConfigError
from ocf.runtime.operator.options import Lease, Listen, ManagerOptions
from ocf.runtime.operator.webhook_options import WebhookOptions
from ocf.runtime.page import PageOptions
from ocf.runtime.sharding import Sharding

__all__ = [
    "METRICS_PORT",
    "PAGE_PORT",
    "WEBHOOK_PORT",
    "environment_options",
    "environment_switch",
    "environment_tracer",
    "metrics_prefix",
]

METRICS_PORT: Final = 8080
"""Default port of metrics and probes."""
WEBHOOK_PORT: Final = 9443
"""Default port of the webhooks."""
PAGE_PORT: Final = 8090
"""Port of the page in the manifests of an operator that serves it."""

_SWITCH: Final = {"true": True, "false": False}


def environment_options(
    name: str, environment: Mapping[str, str], *, registry: CollectorRegistry | None = None
) -> ManagerOptions:
    """Return the options of a process whose settings are environment variables.

    | variable | meaning | default |
    | --- | --- | --- |
    | `POD_NAMESPACE` | namespace of the process, which has its lease and the Secret with its certificate | none |
    | `LEADER_ELECTION` | whether to use a lease: `true` or `false` | `true` if `POD_NAMESPACE` is set |
    | `WARM_STANDBY` | whether a process that waits for the lease fills its caches: `true` or `false` | `true` |
    | `SHARDING` | what the replicas divide the owners by: `uid` or `namespace` | one replica reconciles all |
    | `WATCH_NAMESPACES` | namespaces to watch, separated by commas | all |
    | `PORT` | port of metrics and probes | 8080 |
    | `WEBHOOK_SERVICE` | name of the Service of the webhooks, in `POD_NAMESPACE` | no webhooks are served |
    | `WEBHOOK_PORT` | port of the webhooks | 9443 |
    | `WEBHOOK_CERTIFICATES` | folder with `tls.crt` and `tls.key` that another program renews | a Secret of its own |
    | `PAGE_PORT` | port of the page of owners and reconciles, on the loopback address | the page is not served |
    | `TRACING` | whether spans are recorded with OpenTelemetry: `true` or `false` | `false` |

    Args:
        name: Name of the operator: of its lease, and the prefix of its metrics with `_` for `-`.
        environment: The variables, usually `os.environ`.
        registry: The registry of the metrics; None creates one.

    Raises:
        ConfigError: If a value is not allowed, or a variable needs `POD_NAMESPACE`, which is not set.

    Example:
        >>> options = environment_options("shops", {"POD_NAMESPACE": "ops", "WATCH_NAMESPACES": "shop, town"})
        >>> options.lease.namespace, options.namespaces, options.admission
        ('ops', ('shop', 'town'), None)
        >>> environment_options("shops", {"PORT": "many"})
        Traceback (most recent call last):
        ocf.errors.ConfigError: PORT must be a port, 0 to 65535, got 'many'
    """
    namespace = environment.get("POD_NAMESPACE", "")
    elected = environment_switch(environment, "LEADER_ELECTION", default=bool(namespace))
    if elected and not namespace:
        raise ConfigError("LEADER_ELECTION needs POD_NAMESPACE, the namespace of the lease")
    sharding = environment.get("SHARDING", "")
    if sharding not in {"", "uid", "namespace"}:
        raise ConfigError(f"SHARDING must be uid or namespace, got {sharding!r}")
    if sharding and not elected:
        raise ConfigError("SHARDING needs the lease: set POD_NAMESPACE, and not LEADER_ELECTION=false")
    watched = environment.get("WATCH_NAMESPACES", "").split(",")
    return ManagerOptions(
        namespaces=tuple(each.strip() for each in watched if each.strip()),
        lease=Lease(name, namespace) if elected else None,
        sharding=Sharding(by="uid" if sharding == "uid" else "namespace") if sharding else None,
        warm_standby=environment_switch(environment, "WARM_STANDBY", default=True),
        listen=Listen(_port(environment, "PORT", METRICS_PORT)),
        admission=_admission(environment, namespace),
        page=_page(environment),
        metrics_prefix=metrics_prefix(name),
        registry=registry,
        tracer=environment_tracer(environment),
    )


def environment_tracer(environment: Mapping[str, str]) -> Tracer | None:
    """Return the tracer that `TRACING` asks for: the global one of OpenTelemetry.

    Args:
        environment: The variables.

    Raises:
        ConfigError: If it is neither `true` nor `false`, or OpenTelemetry is not installed.
    """
    if not environment_switch(environment, "TRACING"):
        return None
    try:
        from ocf.runtime.tracing import OpenTelemetryTracer
    except ImportError as error:
        raise ConfigError(f"TRACING=true: {error}") from error
    return OpenTelemetryTracer()


def environment_switch(environment: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """Return the value of a variable that is `true` or `false`.

    Args:
        environment: The variables.
        name: The name of the variable.
        default: The value if the variable is not set or empty.

    Raises:
        ConfigError: If it has another value.
    """
    text = environment.get(name, "")
    if text and text not in _SWITCH:
        raise ConfigError(f"{name} must be true or false, got {text!r}")
    return _SWITCH.get(text, default)


def metrics_prefix(name: str) -> str:
    """Return the prefix of the metrics of an operator.

    Example:
        >>> metrics_prefix("shop-operator")
        'shop_operator'
    """
    return name.replace("-", "_").replace(".", "_")


def _admission(environment: Mapping[str, str], namespace: str) -> WebhookOptions | None:
    service, port = environment.get("WEBHOOK_SERVICE", ""), _port(environment, "WEBHOOK_PORT", WEBHOOK_PORT)
    if not service:
        return None
    if not namespace:
        raise ConfigError("WEBHOOK_SERVICE needs POD_NAMESPACE, the namespace of the Service and of the certificate")
    # Servers and certificates are loaded only where webhooks are served.
    from ocf.runtime.admission.certificate_source import FileCertificates
    from ocf.runtime.admission.webhook_configurations import Service

    folder = environment.get("WEBHOOK_CERTIFICATES", "")
    return WebhookOptions(
        address=Service(service, namespace),
        port=port,
        certificates=FileCertificates(Path(folder, "tls.crt"), Path(folder, "tls.key")) if folder else None,
    )


def _page(environment: Mapping[str, str]) -> PageOptions | None:
    return PageOptions(port=_port(environment, "PAGE_PORT", PAGE_PORT)) if environment.get("PAGE_PORT") else None


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "")
    if text and not (text.isdecimal() and int(text) < 2**16):
        raise ConfigError(f"{name} must be a port, 0 to 65535, got {text!r}")
    return int(text) if text else default
