"""Validation of probes and lifecycle hooks.

Source: `validateProbe`, `validateHandler` and `validateLifecycle` in `pkg/apis/core/validation/validation.go` of
Kubernetes.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, forbidden, invalid, required
from ocf_server.validation.fields import each_problem, enumeration, nonnegative, port_number_or_name

__all__ = ["lifecycle_errors", "probe_errors"]

_Json: TypeAlias = Mapping[str, Any]

_COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HEADER: Final = "[-A-Za-z0-9]+"
_is_header: Final = re.compile(_HEADER).fullmatch


def _header_name(text: str) -> list[str]:
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [] if _is_header(text) else [f"{rule} (e.g. 'X-Header-Name', regex used for validation is '{_HEADER}')"]


def lifecycle_errors(lifecycle: _Json, grace_period: int | None, path: str) -> Iterator[FieldError]:
    """Yield the errors of lifecycle hooks.

    Args:
        lifecycle: The hooks. Stop signals are not checked: their feature gate is off by default.
        grace_period: The grace period of the pod in seconds.
    """
    for name in ("postStart", "preStop"):
        if name in lifecycle:
            yield from _handler_errors(lifecycle[name], grace_period, f"{path}.{name}")


def probe_errors(container: _Json, grace_period: int | None, path: str) -> Iterator[FieldError]:
    """Yield the errors of the probes of a container at a path."""
    for name in _PROBES:
        if name in container:
            yield from _probe_errors(name, container[name], grace_period, f"{path}.{name}")


def _probe_errors(name: str, probe: _Json, grace_period: int | None, path: str) -> Iterator[FieldError]:
    yield from _handler_errors(probe, grace_period, path)
    for count in _COUNTS:
        yield from nonnegative(probe.get(count), f"{path}.{count}")
    own_period = probe.get("terminationGracePeriodSeconds")
    if own_period is not None and own_period <= 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", own_period, "must be greater than 0")
    if name == "readinessProbe":
        if own_period is not None:
            detail = "must not be set for readinessProbes"
            yield invalid(f"{path}.terminationGracePeriodSeconds", own_period, detail)
    elif probe.get("successThreshold", 0) != 1:
        yield invalid(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1")


def _handler_errors(handler: _Json, grace_period: int | None, path: str) -> Iterator[FieldError]:
    given = [name for name in ("exec", "httpGet", "tcpSocket", "grpc", "sleep") if name in handler]
    if not given:
        yield required(path, "must specify a handler type")
        return
    first, *others = given
    action, place = handler[first], f"{path}.{first}"
    if first == "exec":
        if not action.get("command"):
            yield required(f"{place}.command")
    elif first == "httpGet":
        yield from _http_errors(action, place)
    elif first == "sleep":
        yield from _sleep_errors(action.get("seconds", 0), grace_period, place)
    else:
        yield from port_number_or_name(action.get("port", 0), f"{place}.port")
    for name in others:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")


def _http_errors(action: _Json, path: str) -> Iterator[FieldError]:
    if not action.get("path"):
        yield required(f"{path}.path")
    yield from port_number_or_name(action.get("port", 0), f"{path}.port")
    yield from enumeration(action.get("scheme", ""), ("HTTP", "HTTPS"), f"{path}.scheme")
    for header in action.get("httpHeaders", ()):
        yield from each_problem(_header_name, header.get("name", ""), f"{path}.httpHeaders")


def _sleep_errors(seconds: int, grace_period: int | None, path: str) -> Iterator[FieldError]:
    if grace_period is not None and not 0 <= seconds <= grace_period:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
        yield invalid(path, seconds, detail)
