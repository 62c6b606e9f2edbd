"""Scale targets and described objects, in any form a user has them.

An HPA refers to its target by API version, kind and name. To write a correct HPA more is needed: whether the containers
have requests, and whether the target sets `replicas`. So the user passes the whole target, and it is read here into one
value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, Self, TypeAlias, cast, runtime_checkable

from ocf.autoscaling.targets.pod_resources import PodResources, read_pods
from ocf.errors import ConfigError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, ObjectKey, write_model
from ocf.objects.manifest import split_api_version
from ocf.objects.paths import get_field

__all__ = [
    "Reference",
    "Renderable",
    "Scalable",
    "TargetSource",
    "cannot_scale",
    "find_scale_target",
    "key_of",
    "manifest_of",
    "read_reference",
    "read_target",
    "scale_target_key",
]


@runtime_checkable
class Renderable(Protocol):
    """A resource that renders to a manifest, as the primitives do."""

    @property
    def key(self) -> ObjectKey:
        """Its key."""
        ...

    def render(self) -> Manifest:
        """Return its manifest."""
        ...


@runtime_checkable
class Scalable(Protocol):
    """An object with a `scale` subresource, described by a class of the user."""

    @property
    def api_version(self) -> str:
        """Group and version, `argoproj.io/v1alpha1`."""
        ...

    @property
    def kind(self) -> str:
        """Kind, `Rollout`."""
        ...

    @property
    def name(self) -> str:
        """Name of the object."""
        ...

    @property
    def containers(self) -> Sequence[Manifest | BaseModel] | None:
        """The containers of its pods; None if they are not known."""
        ...

    @property
    def replicas(self) -> int | None:
        """The `replicas` it sets; None if it does not set them."""
        ...

    def without_replicas(self) -> Self:
        """Return a copy that does not set `replicas`."""
        ...


TargetSource: TypeAlias = Mapping[str, Any] | BaseModel | Renderable | Scalable | ObjectKey
"""A target or a described object: a manifest or a model (of an object or of a reference), a primitive, an object of a
class of the user, or an object's key."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A target or a described object.

    Args:
        api_version: Group and version; empty if a described object does not have them.
        namespace: Namespace; empty if it is not known.
        pods: The resources of its pods; None if they are not known.
        replicas: The `replicas` it sets; None if it does not set them or they are not known.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    pods: PodResources | None = None
    replicas: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def to_manifest(self) -> Manifest:
        """Return the reference as in `scaleTargetRef` and `describedObject`."""
        version = {"apiVersion": self.api_version} if self.api_version else {}
        return {**version, "kind": self.kind, "name": self.name}


# A model does not know its API version and kind unless the user sets them.
_KNOWN_MODELS: Final[Mapping[str, tuple[str, str]]] = {
    "V1DaemonSet": ("apps/v1", "DaemonSet"),
    "V1Deployment": ("apps/v1", "Deployment"),
    "V1Ingress": ("networking.k8s.io/v1", "Ingress"),
    "V1Job": ("batch/v1", "Job"),
    "V1Namespace": ("v1", "Namespace"),
    "V1Pod": ("v1", "Pod"),
    "V1ReplicaSet": ("apps/v1", "ReplicaSet"),
    "V1ReplicationController": ("v1", "ReplicationController"),
    "V1Service": ("v1", "Service"),
    "V1StatefulSet": ("apps/v1", "StatefulSet"),
    "V2HorizontalPodAutoscaler": ("autoscaling/v2", "HorizontalPodAutoscaler"),
}


# Those that users name by mistake; a kind that is not known here may have the subresource.
_WITHOUT_SCALE: Final = frozenset(
    [
        ("apps", "DaemonSet"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("networking.k8s.io", "Ingress"),
        *(("", kind) for kind in ("ConfigMap", "Namespace", "Node", "Pod", "Service")),
    ]
)


def cannot_scale(api_version: str, kind: str) -> bool:
    """Return whether a kind is known to have no `scale` subresource; the API server accepts such a target anyway."""
    return (split_api_version(api_version)[0], kind) in _WITHOUT_SCALE


def scale_target_key(autoscaler: Manifest) -> ObjectKey:
    """Return the key of the object that an autoscaler scales, as its `scaleTargetRef` names it.

    Args:
        autoscaler: The manifest of an autoscaler; what it does not name is empty.

    Example:
        >>> web = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        >>> str(scale_target_key({"metadata": {"namespace": "shop"}, "spec": {"scaleTargetRef": web}}))
        'apps/v1/Deployment/shop/web'
    """
    reference = get_field(autoscaler, ("spec", "scaleTargetRef"))
    return _key(*(get_field(reference, (field,)) for field in ("apiVersion", "kind", "name")), _namespace(autoscaler))


def find_scale_target(autoscaler: Manifest, others: Iterable[Manifest]) -> Manifest | None:
    """Return the object that an autoscaler scales; None if it is not among the given objects.

    Args:
        others: The objects; incomplete ones are allowed.
    """
    wanted = scale_target_key(autoscaler)
    return next((other for other in others if _is_named_by(wanted, key_of(other))), None)


def _is_named_by(wanted: ObjectKey, key: ObjectKey) -> bool:
    # The controller finds a kind by its name in lower case, too.
    return key.same_object(wanted) or key._replace(kind=key.kind.lower()).same_object(wanted)


def key_of(manifest: Manifest) -> ObjectKey:
    """Return the key of an object as far as it has one.

    Args:
        manifest: The object; what it does not have is empty in the key.
    """
    name = get_field(manifest, ("metadata", "name"))
    return _key(manifest.get("apiVersion"), manifest.get("kind"), name, _namespace(manifest))


def _key(*parts: Any) -> ObjectKey:
    return ObjectKey(*(str(part or "") for part in parts))


def _namespace(manifest: Manifest) -> Any:
    return get_field(manifest, ("metadata", "namespace"))


def read_reference(source: TargetSource) -> Reference:
    """Read the reference to an object, without its pods and replicas.

    Args:
        source: A manifest or a model (of an object or of a reference), a primitive, a `Scalable`, or a key.
    """
    if isinstance(source, ObjectKey):
        return Reference(source.api_version, source.kind, source.name, source.namespace)
    if isinstance(source, Renderable) and not isinstance(source, Mapping):
        return read_reference(source.key)
    if isinstance(source, Scalable):
        found = Reference(source.api_version, source.kind, source.name)
    else:
        found = _read_manifest(manifest_of(source))
    if not found.kind or not found.name:
        raise ConfigError(f"{type(source).__name__}: a target needs a kind and a name, got {found!s:.80}")
    return found


def read_target(source: TargetSource) -> Reference:
    """Read a target with its pods and replicas.

    Args:
        source: As for `read_reference`; with a mere reference the pods are unknown.
    """
    found = read_reference(source)
    if isinstance(source, ObjectKey):
        return found
    if isinstance(source, Renderable) and not isinstance(source, Mapping):
        return _with_spec(found, source.render())
    if isinstance(source, Scalable):
        containers = source.containers
        pods = None if containers is None else PodResources(tuple(map(manifest_of, containers)))
        return replace(found, pods=pods, replicas=source.replicas)
    return _with_spec(found, manifest_of(source))


def manifest_of(source: object) -> Manifest:
    """Return the manifest of an object, or of a reference to one.

    Returns:
        A manifest; `apiVersion` and `kind` are set for well-known models.
    """
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, Renderable):
        return source.render()
    if not hasattr(source, "model_dump"):
        raise ConfigError(
            f"{type(source).__name__} cannot be a target: pass a manifest, a model of the client, a primitive, "
            "or an object with api_version, kind, name, containers, replicas and without_replicas()"
        )
    api_version, kind = _KNOWN_MODELS.get(type(source).__name__, ("", ""))
    named = {"apiVersion": api_version, "kind": kind} if kind else {}
    return {**named, **write_model(cast("BaseModel", source))}


def _read_manifest(manifest: Manifest) -> Reference:
    metadata = manifest.get("metadata")
    named: Any = metadata if isinstance(metadata, Mapping) else manifest
    given = (manifest.get("apiVersion"), manifest.get("kind"), named.get("name"), named.get("namespace"))
    api_version, kind, name, namespace = (text if isinstance(text, str) else "" for text in given)
    return Reference(api_version, kind, name, namespace)


def _with_spec(found: Reference, manifest: Manifest) -> Reference:
    template = get_field(manifest, ("spec", "template"))
    replicas = get_field(manifest, ("spec", "replicas"))
    pods = read_pods(template) if isinstance(template, Mapping) else None
    return replace(found, pods=pods, replicas=replicas if isinstance(replicas, int) else None)
