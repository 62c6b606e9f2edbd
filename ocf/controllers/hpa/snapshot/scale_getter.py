"""Scales of targets: read through the subresource, or derived from the object.

The built-in controller reads the subresource `scale` of the target, once per autoscaler and reconcile. For built-in
kinds the Scale follows from the object alone. So with a cache of the objects no request is needed: the cost is one list
and one watch per kind, however many autoscalers there are.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Protocol

from ocf.autoscaling.api.decoders import integer, read_object, struct, text
from ocf.cluster import Cluster, Subresource
from ocf.cluster.client.paths import object_path
from ocf.controllers.metrics_client import RESTMapper
from ocf.controllers.metrics_client.errors import with_client_message
from ocf.controllers.metrics_client.retry import PathReader, RetryingReader
from ocf.errors import ApiError, ManifestError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.label_requirements import SelectorOperator
from ocf.objects.selectors import LabelSelector

__all__ = ["DerivedScaleGetter", "ScaleGetter", "SubresourceScaleGetter"]

_VERSION: Final = "autoscaling/v1"
_SHOWN: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
# The four kinds whose Scale the API server itself derives from the object (pkg/registry/apps, pkg/registry/core).
_DERIVED: Final = {
    ("apps", "Deployment"): ("apps/v1", "deployments.apps"),
    ("apps", "ReplicaSet"): ("apps/v1", "replicasets.apps"),
    ("apps", "StatefulSet"): ("apps/v1", "statefulsets.apps"),
    ("", "ReplicationController"): ("v1", "replicationcontrollers"),
}
_OK: Final = 200
_CONVERTED: Final = {SelectorOperator.DOUBLE_EQUALS: SelectorOperator.EQUALS}
_REFUSED: Final = {
    SelectorOperator.NOT_EQUALS: '"!=" is not a valid label selector operator',
    SelectorOperator.GREATER_THAN: '"gt" isn\'t supported in label selectors',
    SelectorOperator.LESS_THAN: '"lt" isn\'t supported in label selectors',
}
_INT32: Final = integer("int32")
_SCALE: Final = struct(
    apiVersion=text,
    kind=text,
    metadata=struct(**dict.fromkeys(_SHOWN, text)),
    spec=struct(replicas=_INT32),
    status=struct(replicas=_INT32, selector=text),
)


class ScaleGetter(Protocol):
    """A source of the Scales of workloads."""

    async def scale(self, target: ObjectKey) -> Manifest:
        """Return the Scale of a workload.

        Args:
            target: The workload, in the version that its autoscaler names; the version does not count.

        Returns:
            A Scale of autoscaling/v1; its metadata has at least `resourceVersion`, for a later write.

        Raises:
            ApiError: If it cannot be read; with the message of the built-in controller.
            ManifestError: If the response is not a Scale.
        """
        ...


class SubresourceScaleGetter:
    """Reads Scales through the subresource `scale` of their workloads.

    Args:
        cluster: The cluster of the workloads.
        reader: The API server, if the cluster is one (or in front of one): targets are then found by group and kind as
            the built-in controller finds them, whatever version an autoscaler names, and errors have its messages. None
            uses the version that an autoscaler names.
        kinds: Finds the resource of a kind; None makes one from `reader`.
    """

    def __init__(self, cluster: Cluster, reader: PathReader | None = None, *, kinds: RESTMapper | None = None) -> None:
        self._cluster = cluster
        self._reader = None if reader is None else RetryingReader(reader)
        self._kinds = kinds or (RESTMapper(reader) if reader is not None else None)

    async def scale(self, target: ObjectKey) -> Manifest:
        """Return the Scale of a workload; as `ScaleGetter`."""
        if self._reader is None or self._kinds is None:
            answer = await self._cluster.get(target, subresource=Subresource.SCALE)
        else:
            answer = await self._read(target, self._reader, self._kinds)
        return _converted(read_object(answer, _SCALE, _VERSION, "Scale", strict=False))

    @staticmethod
    async def _read(target: ObjectKey, reader: PathReader, kinds: RESTMapper) -> Manifest:
        found = await kinds.find(*target.group_kind)
        path = object_path(found, target, Subresource.SCALE)
        try:
            return await reader.read_path(path)
        except NotFoundError as error:
            # The definition of the kind may have been deleted, or serve another version.
            kinds.forget(*target.group_kind)
            raise with_client_message(error, path, found.plural, target.name) from error
        except ApiError as error:
            raise with_client_message(error, path, found.plural, target.name) from error


class DerivedScaleGetter:
    """Derives the Scales of built-in kinds from the workloads themselves.

    Meant for a `CachedCluster`, which reads from memory. The cache is never older than our own writes. A write of
    another client may arrive late; a write of ours that is based on the old object is rejected with a conflict, if it
    has the `resourceVersion`.

    Args:
        cluster: The cluster of the workloads.
        others: Reads the Scales of other kinds.

    Example:
        >>> import asyncio
        >>> from ocf_server import EmbeddedCluster
        >>> template = {
        ...     "metadata": {"labels": {"app": "web"}},
        ...     "spec": {"containers": [{"name": "app", "image": "web"}]},
        ... }
        >>> spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        >>> web = {
        ...     "apiVersion": "apps/v1",
        ...     "kind": "Deployment",
        ...     "metadata": {"name": "web", "namespace": "shop"},
        ...     "spec": spec,
        ... }
        >>> async def main() -> None:
        ...     cluster = EmbeddedCluster(namespaces=("shop",))
        ...     await cluster.create(web, field_manager="demo")
        ...     subresource = SubresourceScaleGetter(cluster)
        ...     key = ObjectKey.of(web)
        ...     print(await DerivedScaleGetter(cluster, subresource).scale(key) == await subresource.scale(key))
        >>> asyncio.run(main())
        True
    """

    def __init__(self, cluster: Cluster, others: ScaleGetter) -> None:
        self._cluster = cluster
        self._others = others

    async def scale(self, target: ObjectKey) -> Manifest:
        """Return the Scale of a workload; as `ScaleGetter`."""
        known = _DERIVED.get(target.group_kind)
        if known is None:
            return await self._others.scale(target)
        api_version, resource = known
        try:
            found = await self._cluster.get(ObjectKey(api_version, target.kind, target.name, target.namespace))
        except NotFoundError as error:
            message = f'{resource} "{target.name}" not found'
            raise NotFoundError(message, code=error.code, reason=error.reason) from error
        return _derived(found)


def _converted(scale: Manifest) -> Manifest:
    """Convert the selector of a Scale as the built-in controller's client does, or raise its error.

    The text form of a selector has more operators than the object form, and the client converts text to objects.
    """
    status = scale.get("status") or {}
    written = status.get("selector")
    if not written:
        return scale
    try:
        found = LabelSelector.parse(written)
    except ManifestError as error:
        raise _inconvertible(f'couldn\'t parse the selector string "{written}": {error}') from error
    for each in found.requirements:
        if each.operator in _REFUSED:
            raise _inconvertible(_REFUSED[each.operator])
    requirements = tuple(
        replace(each, operator=_CONVERTED.get(each.operator, each.operator)) for each in found.requirements
    )
    return {**scale, "status": {**status, "selector": str(LabelSelector(requirements))}}


def _inconvertible(problem: str) -> ServerError:
    place = "received an object from a /scale endpoint which was not convertible to autoscaling Scale"
    return ServerError(f"{place}: failed to parse target selector: {problem}", code=_OK)


def _derived(workload: Manifest) -> Manifest:
    metadata, spec, status = (workload.get(part) or {} for part in ("metadata", "spec", "status"))
    # The default of the API server, for a cluster that does not set defaults.
    replicas = spec.get("replicas", 1)
    return {
        "apiVersion": _VERSION,
        "kind": "Scale",
        "metadata": {name: metadata[name] for name in _SHOWN if name in metadata},
        # As in the API server's response: zero is omitted in the spec and not in the status.
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": status.get("replicas") or 0, **_selector(workload["kind"], spec.get("selector"))},
    }


def _selector(kind: str, selector: Any) -> dict[str, str]:
    # A ReplicationController selects by a map of labels; the others have the object form.
    in_object_form = {"matchLabels": selector} if kind == "ReplicationController" and selector else selector
    if in_object_form is None:
        return {}
    labels = in_object_form.get("matchLabels") or {}
    only_labels = labels and not in_object_form.get("matchExpressions")
    written = _labels_text(tuple(labels.items())) if only_labels else str(LabelSelector.of(in_object_form))
    return {"selector": written} if written else {}


@lru_cache(maxsize=4096)
def _labels_text(labels: tuple[tuple[str, str], ...]) -> str:
    """Return the text form of `matchLabels`, with a cache: a workload has the same one in every sync."""
    return str(LabelSelector.of({"matchLabels": dict(labels)}))
