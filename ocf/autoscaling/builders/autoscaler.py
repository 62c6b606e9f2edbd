"""An autoscaler from its target: one call, checked as a whole, and nothing in it that was not asked for.

What was not given is left out, so the API server's defaults apply and stay visible as such. The target comes back
without `replicas`: what sets a number that the autoscaler sets as well fights with it on every apply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast, overload

from ocf.autoscaling.api.defaulting import default
from ocf.autoscaling.builders.arguments import check_integer
from ocf.autoscaling.targets.missing_requests import missing_requests
from ocf.autoscaling.targets.targets import Reference, Renderable, Scalable, cannot_scale, read_target
from ocf.autoscaling.validation.validation import validate
from ocf.errors import ConfigError, FieldProblem, ManifestError
from ocf.objects import Manifest, ObjectKey, client_model, without_field, write_model
from ocf.schema.kubernetes import FeatureGates

if TYPE_CHECKING:
    from kubernetes.client import (
        V2HorizontalPodAutoscaler,
        V2HorizontalPodAutoscalerBehavior,
        V2MetricSpec,
    )
    from pydantic import BaseModel
__all__ = ["Autoscaled", "autoscale"]

TargetT = TypeVar("TargetT", bound="Mapping[str, Any] | BaseModel | Scalable | ObjectKey")

_INT32_MAX: Final = 2**31 - 1
_CURRENT: Final = FeatureGates()


@dataclass(frozen=True, slots=True)
class Autoscaled(Generic[TargetT]):
    """What `autoscale` made.

    Args:
        hpa: The autoscaler.
        target: The target without `replicas`; of a primitive its manifest, of a mere reference the reference.
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
    requests_added: bool = False,
    gates: FeatureGates = _CURRENT,
) -> Autoscaled[Any]:
    """Make the autoscaler of a target.

    Source: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/.

    Args:
        target: What is scaled: a manifest or a model of the client (of an object, or only of a reference), a primitive,
            an object's key, or an object of a class of yours that is `Scalable`. It is not changed.
        max_replicas: The upper limit.
        min_replicas: The lower limit; None leaves it to the API server, which takes 1.
        metrics: What to scale on, from `ocf.autoscaling.metrics`; without any, the API server takes 80 percent of the
            cpu that the pods request.
        behavior: How fast, from `ocf.autoscaling.scaling`; None leaves it to the API server.
        name: Name of the autoscaler; by default that of the target.
        namespace: Its namespace, for a target that does not say its own.
        requests_added: Say that the cluster adds requests (a LimitRange, a webhook), so that containers without one
            are no mistake.
        gates: The feature gates of the cluster; by default those of Kubernetes 1.36.

    Returns:
        The autoscaler as a model of the client, and the target without `replicas`.

    Raises:
        ConfigError: If the target cannot be scaled or is in another namespace, or a metric is a share of what one of
            its containers does not request, or is of a container it does not have.
        ManifestError: If the API server would refuse the autoscaler.

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
        name=name or found.name,
        namespace=namespace or found.namespace,
        spec={
            **({} if min_replicas is None else {"minReplicas": _count(f"{subject}: min_replicas", min_replicas)}),
            "maxReplicas": _count(f"{subject}: max_replicas", max_replicas),
            **_listed(f"{subject}: metrics", metrics),
            **({} if behavior is None else {"behavior": _written(f"{subject}: behavior", _BEHAVIOR, behavior)}),
        },
    )
    _check(manifest, gates)
    if not requests_added:
        _check_requests(manifest, found, subject)
    model = client_model("V2HorizontalPodAutoscaler").model_validate(manifest)
    return Autoscaled(cast("V2HorizontalPodAutoscaler", model), _without_replicas(target))


def _check(manifest: Manifest, gates: FeatureGates) -> None:
    errors = dict.fromkeys(validate(manifest, gates=gates))
    if errors:
        named = f"HorizontalPodAutoscaler {manifest['metadata']['name']}"
        raise ManifestError(named, [FieldProblem(error.path, error.message) for error in errors])


def _check_requests(manifest: Manifest, target: Reference, subject: str) -> None:
    if target.pods is None:
        return
    by_default = "metrics" not in manifest["spec"]
    problems = list(missing_requests(default(manifest), target.pods, by_default=by_default))
    if problems:
        raise ConfigError(f"{subject}: {'; '.join(map(str, problems))}")


_BEHAVIOR: Final = "V2HorizontalPodAutoscalerBehavior"


def _manifest(target: Reference, *, name: str, namespace: str, spec: Manifest) -> Manifest:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata,
        "spec": {"scaleTargetRef": target.to_manifest(), **spec},
    }


def _count(subject: str, value: int) -> int:
    return check_integer(subject, value, -_INT32_MAX, _INT32_MAX)


def _listed(subject: str, metrics: Iterable[V2MetricSpec]) -> Manifest:
    listed = [_written(subject, "V2MetricSpec", metric) for metric in metrics]
    return {"metrics": listed} if listed else {}


def _written(subject: str, model: str, value: Any) -> Manifest:
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
