"""Factory for an HPA from its target, validated as a whole.

Arguments that are not given are not set, so the defaults of the API server apply. The target is returned without
`replicas`: otherwise every apply of the target would revert the autoscaler. Where the target is live and has had the
field, the first apply without it may set the count to 1: `docs/operators/scale-with-hpa.md` has what to do beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast, overload

from ocf.autoscaling.api.defaulting import default
from ocf.autoscaling.builders.arguments import check_integer
from ocf.autoscaling.targets.missing_requests import missing_requests
from ocf.autoscaling.targets.targets import Reference, Renderable, Scalable, cannot_scale, read_target
from ocf.autoscaling.validation.validation import validate
from ocf.errors import ConfigError, FieldProblem, ManifestError
from ocf.lazy_types.kubernetes import V2HorizontalPodAutoscaler, V2HorizontalPodAutoscalerBehavior, V2MetricSpec
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, ObjectKey, write_model
from ocf.objects.model_fields import client_model
from ocf.objects.paths import without_field
from ocf.schema.kubernetes import FeatureGates

__all__ = ["Autoscaled", "autoscale"]

TargetT = TypeVar("TargetT", bound="Mapping[str, Any] | BaseModel | Scalable | ObjectKey")

_INT32_MAX: Final = 2**31 - 1
_CURRENT: Final = FeatureGates()


@dataclass(frozen=True)
class Autoscaled(Generic[TargetT]):
    """The result of `autoscale`.

    Args:
        hpa: The autoscaler.
        target: The target without `replicas`; the manifest of a primitive; a mere reference unchanged.
    """

    hpa: V2HorizontalPodAutoscaler
    target: TargetT


@overload
def autoscale(
    target: Renderable,
    *,
    max_replicas: int,
    min_replicas: int | None = ...,
    metrics: Iterable[V2MetricSpec] = ...,
    behavior: V2HorizontalPodAutoscalerBehavior | None = ...,
    name: str = ...,
    namespace: str = ...,
    labels: Mapping[str, str] | None = ...,
    annotations: Mapping[str, str] | None = ...,
    requests_added: bool = ...,
    gates: FeatureGates = ...,
) -> Autoscaled[Manifest]: ...


@overload
def autoscale(
    target: TargetT,
    *,
    max_replicas: int,
    min_replicas: int | None = ...,
    metrics: Iterable[V2MetricSpec] = ...,
    behavior: V2HorizontalPodAutoscalerBehavior | None = ...,
    name: str = ...,
    namespace: str = ...,
    labels: Mapping[str, str] | None = ...,
    annotations: Mapping[str, str] | None = ...,
    requests_added: bool = ...,
    gates: FeatureGates = ...,
) -> Autoscaled[TargetT]: ...


def autoscale(  # noqa: PLR0913 (all but the target are optional or named)
    target: Any,
    *,
    max_replicas: int,
    min_replicas: int | None = None,
    metrics: Iterable[V2MetricSpec] = (),
    behavior: V2HorizontalPodAutoscalerBehavior | None = None,
    name: str = "",
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    requests_added: bool = False,
    gates: FeatureGates = _CURRENT,
) -> Autoscaled[Any]:
    """Return the HPA of a target.

    Source: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/.

    Args:
        target: The target: a manifest or a model of the client (of an object or of a reference), a primitive, an
            object's key, or an object of a class of the user that is `Scalable`. It is not changed.
        max_replicas: The upper limit.
        min_replicas: The lower limit; None for the default of the API server, 1.
        metrics: The metrics, from `ocf.autoscaling.metrics`; without any, the API server scales on 80 percent of the
            cpu requests.
        behavior: The behavior, from `ocf.autoscaling.scaling`; None for the defaults of the API server.
        name: Name of the HPA; by default that of the target.
        namespace: Namespace of the HPA, for a target without a namespace.
        labels: Labels of the HPA; those of the target are not copied.
        annotations: Annotations of the HPA.
        requests_added: Whether the cluster adds requests (by a LimitRange or a webhook), so that containers without a
            request are accepted.
        gates: The feature gates of the cluster; by default those of Kubernetes 1.36.

    Returns:
        The autoscaler as a model of the client, and the target without `replicas`.

    Raises:
        ConfigError: If the target cannot be scaled or is in another namespace, if a utilization target applies to a
            container without a request, or if a metric names a container that the target does not have.
        ManifestError: If the API server would reject the HPA.

    Example:
        >>> web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
        >>> made = autoscale(web, max_replicas=10)
        >>> made.hpa.metadata.name, made.target["spec"], web["spec"]
        ('web', {}, {'replicas': 3})
    """
    found = read_target(target)
    subject = f"autoscale: {found}"
    if cannot_scale(found.api_version, found.kind):
        raise ConfigError(f"{subject} cannot be scaled: a {found.kind} has no scale subresource")
    if namespace and found.namespace not in {"", namespace}:
        raise ConfigError(f"{subject} is not in {namespace}: an autoscaler scales only what is in its own namespace")
    manifest = _manifest(
        found,
        {
            "name": name or found.name,
            "namespace": namespace or found.namespace,
            "labels": _copy(labels),
            "annotations": _copy(annotations),
        },
        spec={
            **(
                {}
                if min_replicas is None
                else {"minReplicas": _check_replicas(f"{subject}: min_replicas", min_replicas)}
            ),
            "maxReplicas": _check_replicas(f"{subject}: max_replicas", max_replicas),
            **_metrics(f"{subject}: metrics", metrics),
            **({} if behavior is None else {"behavior": _to_manifest(f"{subject}: behavior", _BEHAVIOR, behavior)}),
        },
    )
    _check(manifest, gates)
    if not requests_added:
        _check_requests(manifest, found, subject)
    model = client_model("V2HorizontalPodAutoscaler").model_validate(manifest)
    return Autoscaled(cast("V2HorizontalPodAutoscaler", model), _without_replicas(target))


def _check(manifest: Manifest, gates: FeatureGates) -> None:
    # The API server reports some errors twice; here each is one problem.
    errors = dict.fromkeys(validate(manifest, gates=gates))
    if errors:
        named = f"HorizontalPodAutoscaler {manifest['metadata']['name']}"
        raise ManifestError(named, [FieldProblem(error.path, error.message) for error in errors])


def _check_requests(manifest: Manifest, target: Reference, subject: str) -> None:
    if target.pods is None:
        return
    invalid = "; ".join(target.pods.invalid_amounts())
    if invalid:
        raise ConfigError(f"{subject}: must be quantities such as 500m or 1Gi: {invalid}")
    by_default = "metrics" not in manifest["spec"]
    problems = list(missing_requests(default(manifest), target.pods, by_default=by_default))
    if problems:
        raise ConfigError(f"{subject}: {'; '.join(map(str, problems))}")


_BEHAVIOR: Final = "V2HorizontalPodAutoscalerBehavior"


def _copy(texts: Any) -> Any:
    """Return a map of the manifest's own; validation rejects any other value."""
    return dict(texts) if isinstance(texts, Mapping) else texts


def _manifest(target: Reference, metadata: Manifest, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {field: value for field, value in metadata.items() if value},
        "spec": {"scaleTargetRef": target.to_manifest(), **spec},
    }


def _check_replicas(subject: str, value: int) -> int:
    # Only what an int32 cannot hold; about any other number, validation has the API server's text.
    return check_integer(subject, value, -_INT32_MAX, _INT32_MAX)


def _metrics(subject: str, metrics: Iterable[V2MetricSpec]) -> Manifest:
    listed = [_to_manifest(subject, "V2MetricSpec", metric) for metric in metrics]
    return {"metrics": listed} if listed else {}


def _to_manifest(subject: str, model: str, value: Any) -> Manifest:
    if not isinstance(value, client_model(model)):
        raise ConfigError(f"{subject}: must be made of {model}, not {value!r:.60}")
    return write_model(value)


def _without_replicas(target: Any) -> Any:
    if isinstance(target, ObjectKey):
        return target
    if isinstance(target, Mapping):
        return without_field(dict(target), ("spec", "replicas"))
    if isinstance(target, Renderable):
        return without_field(target.render(), ("spec", "replicas"))
    if isinstance(target, Scalable):
        return target.without_replicas()
    return type(target).model_validate(without_field(write_model(target), ("spec", "replicas")))
