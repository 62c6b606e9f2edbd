"""Factories for the metrics of an HPA.

The models of the client accept anything: no target, two targets, a negative percentage, an invalid quantity. The API
server then rejects the whole object. A factory rejects a wrong value at the call, and it sets `type` and target
together, so that they always agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast, overload

from ocf.autoscaling.builders.arguments import check_integer, check_name, check_quantity
from ocf.autoscaling.targets.targets import TargetSource, read_reference
from ocf.errors import ConfigError, ManifestError
from ocf.lazy_types.kubernetes import V1LabelSelector, V2MetricSpec
from ocf.objects import Manifest, write_model
from ocf.objects.model_fields import client_model
from ocf.objects.name_validation import NameRule, dns_label, path_segment, qualified_name
from ocf.objects.selectors import LabelSelector
from ocf.schema.metric_sources import TARGET_FIELDS, source_field

__all__ = ["container_resource", "cpu", "external", "memory", "object", "pods"]

_INT32_MAX: Final = 2**31 - 1

Selector: TypeAlias = V1LabelSelector | Mapping[str, str] | None
"""The selector of the series of a metric: labels and their values, or a selector of the client for anything else; None
for all series."""


@overload
def cpu(*, average_utilization: int, average_value: None = None) -> V2MetricSpec: ...
@overload
def cpu(*, average_utilization: None = None, average_value: str | int) -> V2MetricSpec: ...
def cpu(*, average_utilization: int | None = None, average_value: str | int | None = None) -> V2MetricSpec:
    """Scale on the cpu usage of the pods.

    Give exactly one target.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        average_utilization: Percent of the requests, on average over the pods; 1 or more. Every container needs a
            request.
        average_value: Cores per pod, as a quantity: `"500m"`, `2`.

    Returns:
        A metric of type `Resource`.

    Raises:
        ConfigError: If none or both are given, or the given one is not allowed.

    Example:
        >>> cpu(average_utilization=70).resource.target.average_utilization
        70
    """
    target = _target("cpu", average_utilization=average_utilization, average_value=average_value)
    return _metric("Resource", {"name": "cpu", "target": target})


@overload
def memory(*, average_utilization: int, average_value: None = None) -> V2MetricSpec: ...
@overload
def memory(*, average_utilization: None = None, average_value: str | int) -> V2MetricSpec: ...
def memory(*, average_utilization: int | None = None, average_value: str | int | None = None) -> V2MetricSpec:
    """Scale on the memory usage of the pods.

    Give exactly one target.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        average_utilization: Percent of the requests, on average over the pods; 1 or more. Every container needs a
            request.
        average_value: Bytes per pod, as a quantity: `"512Mi"`, `1073741824`.

    Returns:
        A metric of type `Resource`.

    Raises:
        ConfigError: If none or both are given, or the given one is not allowed.

    Example:
        >>> memory(average_value="512Mi").resource.target.average_value
        '512Mi'
    """
    target = _target("memory", average_utilization=average_utilization, average_value=average_value)
    return _metric("Resource", {"name": "memory", "target": target})


@overload
def container_resource(
    resource: str, container: str, *, average_utilization: int, average_value: None = None
) -> V2MetricSpec: ...
@overload
def container_resource(
    resource: str, container: str, *, average_utilization: None = None, average_value: str | int
) -> V2MetricSpec: ...
def container_resource(
    resource: str, container: str, *, average_utilization: int | None = None, average_value: str | int | None = None
) -> V2MetricSpec:
    """Scale on the usage of one container of each pod.

    Give exactly one target.

    Source: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#container-resource-metrics.

    Args:
        resource: `cpu` or `memory`.
        container: Name of the container.
        average_utilization: Percent of the container's request; 1 or more.
        average_value: Amount per container, as a quantity.

    Returns:
        A metric of type `ContainerResource`.

    Raises:
        ConfigError: If a name or the target is not allowed.

    Example:
        >>> container_resource("cpu", "app", average_value="250m").container_resource.container
        'app'
    """
    target = _target("container_resource", average_utilization=average_utilization, average_value=average_value)
    source = {
        "name": _check_name("container_resource: resource", resource, qualified_name),
        "container": _check_name("container_resource: container", container, dns_label),
        "target": target,
    }
    return _metric("ContainerResource", source)


def pods(name: str, *, average_value: str | int, selector: Selector = None) -> V2MetricSpec:
    """Scale on a metric that every pod reports.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        name: Name of the metric.
        average_value: Amount per pod, as a quantity: `"100"`, `"1k"`.
        selector: The selector of its series.

    Returns:
        A metric of type `Pods`.

    Raises:
        ConfigError: If the name, the target or the selector is not allowed.

    Example:
        >>> pods("requests-per-second", average_value="100").pods.target.type
        'AverageValue'
    """
    target = _target("pods", average_value=average_value)
    return _metric("Pods", {"metric": _identifier("pods", name, selector), "target": target})


@overload
def object(  # noqa: A001 (the API's own word)
    described: TargetSource, name: str, *, value: str | int, average_value: None = None, selector: Selector = None
) -> V2MetricSpec: ...
@overload
def object(  # noqa: A001 (the API's own word)
    described: TargetSource, name: str, *, value: None = None, average_value: str | int, selector: Selector = None
) -> V2MetricSpec: ...
def object(  # noqa: A001 (the API's own word)
    described: TargetSource,
    name: str,
    *,
    value: str | int | None = None,
    average_value: str | int | None = None,
    selector: Selector = None,
) -> V2MetricSpec:
    """Scale on a metric that describes one object, such as the hits of an Ingress.

    Give exactly one target.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        described: The object: a manifest, a model of the client, a primitive, or a reference to it.
        name: Name of the metric.
        value: The amount, as a quantity: `"10k"`.
        average_value: The amount divided by the number of pods, as a quantity.
        selector: The selector of its series.

    Returns:
        A metric of type `Object`.

    Raises:
        ConfigError: If the object, the name, the target or the selector is not allowed.

    Example:
        >>> ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}
        >>> object(ingress, "hits-per-second", value=1000).object.described_object.kind
        'Ingress'
    """
    target = _target("object", value=value, average_value=average_value)
    source = {
        "describedObject": read_reference(described).to_manifest(),
        "metric": _identifier("object", name, selector),
        "target": target,
    }
    return _metric("Object", source)


@overload
def external(name: str, *, value: str | int, average_value: None = None, selector: Selector = None) -> V2MetricSpec: ...
@overload
def external(name: str, *, value: None = None, average_value: str | int, selector: Selector = None) -> V2MetricSpec: ...
def external(
    name: str,
    *,
    value: str | int | None = None,
    average_value: str | int | None = None,
    selector: Selector = None,
) -> V2MetricSpec:
    """Scale on a metric from outside the cluster, such as the length of a queue.

    Give exactly one target.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        name: Name of the metric.
        value: The amount, as a quantity: `"30"`.
        average_value: The amount divided by the number of pods, as a quantity.
        selector: The selector of its series; their values are added up.

    Returns:
        A metric of type `External`.

    Raises:
        ConfigError: If the name, the target or the selector is not allowed.

    Example:
        >>> external("queue-length", average_value=30, selector={"queue": "mail"}).external.metric.selector.match_labels
        {'queue': 'mail'}
    """
    target = _target("external", value=value, average_value=average_value)
    return _metric("External", {"metric": _identifier("external", name, selector), "target": target})


def _metric(kind: str, source: Manifest) -> V2MetricSpec:
    """Return a metric from its type and the manifest of its source; the model checks both at once."""
    return cast("V2MetricSpec", client_model("V2MetricSpec").model_validate({"type": kind, source_field(kind): source}))


_TARGET_TYPES: Final = {
    "value": "Value",
    "average_value": "AverageValue",
    "average_utilization": "Utilization",
}
"""Target types, by the parameter that gives the amount."""


def _target(factory: str, **targets: str | int | None) -> Manifest:
    """Return the target that was given; exactly one is allowed.

    Args:
        targets: The amounts by parameter name; None for one that was not given.
    """
    given = {name: value for name, value in targets.items() if value is not None}
    if len(given) != 1:
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items()) or "none"
        raise ConfigError(f"metrics.{factory}: give exactly one of {' and '.join(targets)}, not {shown}")
    ((name, value),) = given.items()
    subject = f"metrics.{factory}: {name}"
    kind = _TARGET_TYPES[name]
    field = TARGET_FIELDS[kind]
    if kind == "Utilization":
        return {"type": kind, field: check_integer(subject, value, 1, _INT32_MAX, "percent")}
    return {"type": kind, field: check_quantity(subject, value)}


def _check_name(subject: str, value: str, rule: NameRule) -> str:
    return check_name(f"metrics.{subject}", value, rule)


def _identifier(factory: str, name: str, selector: Selector) -> Manifest:
    found: Manifest = {"name": _check_name(f"{factory}: name", name, path_segment)}
    if selector is not None:
        found["selector"] = _selector(factory, selector)
    return found


def _selector(factory: str, selector: Any) -> Manifest:
    if isinstance(selector, Mapping):
        found: Manifest = {"matchLabels": dict(selector)}
    elif isinstance(selector, client_model("V1LabelSelector")):
        found = write_model(selector)
    else:
        raise ConfigError(f"metrics.{factory}: selector must be labels or a V1LabelSelector, not {selector!r:.60}")
    try:
        LabelSelector.of(found)
    except ManifestError as error:
        raise ConfigError(f"metrics.{factory}: {error}") from None
    return found
