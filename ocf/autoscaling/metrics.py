"""Short factories for the metrics of a HorizontalPodAutoscaler.

The models of the client take anything: no target, two targets, a negative percentage, a quantity that is none. The
API server then refuses the whole object, far from the line that was wrong. A factory refuses at the call, and it sets
`type` and target together, so that they cannot disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ocf.errors import ConfigError, QuantityError
from ocf.objects import Manifest, Quantity, client_model

if TYPE_CHECKING:
    from kubernetes.client import V2MetricSpec

__all__ = ["cpu", "memory"]

_INT32_MAX: Final = 2**31 - 1


def cpu(*, average_utilization: int | None = None, average_value: str | int | None = None) -> V2MetricSpec:
    """Scale on the processor time that the pods use.

    Give exactly one target.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        average_utilization: Percent of what the pods request, on average over the pods; 1 or more. Every container
            needs a request.
        average_value: Cores per pod, as a quantity: `"500m"`, `2`.

    Returns:
        A metric of type `Resource`.

    Raises:
        ConfigError: If none or both are given, or the one that is given is not allowed.

    Example:
        >>> cpu(average_utilization=70).resource.target.average_utilization
        70
    """
    return _resource("cpu", average_utilization=average_utilization, average_value=average_value)


def memory(*, average_utilization: int | None = None, average_value: str | int | None = None) -> V2MetricSpec:
    """Scale on the memory that the pods use.

    Give exactly one target.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        average_utilization: Percent of what the pods request, on average over the pods; 1 or more. Every container
            needs a request.
        average_value: Bytes per pod, as a quantity: `"512Mi"`, `1073741824`.

    Returns:
        A metric of type `Resource`.

    Raises:
        ConfigError: If none or both are given, or the one that is given is not allowed.

    Example:
        >>> memory(average_value="512Mi").resource.target.average_value
        '512Mi'
    """
    return _resource("memory", average_utilization=average_utilization, average_value=average_value)


def _resource(name: str, **targets: str | int | None) -> V2MetricSpec:
    return _metric("Resource", "resource", {"name": name, "target": _target(f"metrics.{name}", targets)})


def _metric(kind: str, field: str, source: Manifest) -> V2MetricSpec:
    """Make a metric of a type from its source, as a manifest has it: one model checks the whole at once."""
    return cast("V2MetricSpec", client_model("V2MetricSpec").model_validate({"type": kind, field: source}))


def _target(factory: str, targets: dict[str, str | int | None]) -> Manifest:
    """Make the one target that was given.

    Args:
        factory: What the caller is called in errors.
        targets: The targets it offers, by the name of its parameters; None for one that was not given.
    """
    given = {name: value for name, value in targets.items() if value is not None}
    if len(given) != 1:
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items()) or "none"
        raise ConfigError(f"{factory}: give exactly one of {' and '.join(targets)}, not {shown}")
    ((name, value),) = given.items()
    subject = f"{factory}: {name}"
    if name == "average_utilization":
        return {"type": "Utilization", "averageUtilization": _utilization(subject, value)}
    return {"type": "AverageValue", "averageValue": _quantity(subject, value)}


def _utilization(subject: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _INT32_MAX:
        raise ConfigError(f"{subject} must be an integer from 1 to {_INT32_MAX}, percent, not {value!r}")
    return value


def _quantity(subject: str, value: object) -> str:
    """Check a positive quantity and keep it as it was written."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ConfigError(f"{subject} must be a text or an integer, not {value!r}")
    try:
        quantity = Quantity.parse(value)
    except QuantityError as error:
        raise ConfigError(f"{subject}: {error}") from None
    if quantity.nano <= 0:
        raise ConfigError(f"{subject} must be positive, not {value!r}")
    return str(value)
