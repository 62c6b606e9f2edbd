"""Conversion of objects between the versions of their kinds.

A kind has one storage version, and clients can read and write it in others. The conversion of a custom resource without
a webhook changes `apiVersion` and prunes fields that the other version does not declare. The conversion of a built-in
kind moves fields as a real API server does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource
from ocf_server.api.webhook_client import AdmissionClient, UnansweredError
from ocf_server.apiextensions import prune
from ocf_server.codec.decoding import decode
from ocf_server.registry.conversion_review import (
    ConversionCache,
    ConversionNeeded,
    conversion_review,
    converted_objects,
    failed,
)

__all__ = ["ConversionWebhooks", "convert"]

Result = TypeVar("Result")

# The API server sets no timeout of its own for this call; 30 s is the most that an admission webhook may ask for.
_SECONDS: Final = 30.0
"""Timeout of the call of a conversion webhook."""
_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
_RENAMED: Final = {
    "involvedObject": "regarding",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "message": "note",
    "reportingComponent": "reportingController",
}


def _to_new_event(event: Manifest) -> Manifest:
    return {_RENAMED.get(name, name): value for name, value in event.items()}


def _to_old_event(event: Manifest) -> Manifest:
    back = {new: old for old, new in _RENAMED.items()}
    return {back.get(name, name): value for name, value in event.items()}


def _to_v1_autoscaler(autoscaler: Manifest) -> Manifest:
    from ocf.autoscaling.api.v1_conversion import to_v1

    return to_v1(autoscaler)


def _to_v2_autoscaler(autoscaler: Manifest, *, defaults: bool = True) -> Manifest:
    from ocf.autoscaling.api.v1_conversion import to_v2

    return to_v2(autoscaler, defaults=defaults)


def _without_defaults(converted: Manifest, source: Manifest) -> Manifest:
    """Remove the defaults that the conversion from `autoscaling/v1` added."""
    spec, annotations = source.get("spec") or {}, source["metadata"].get("annotations") or {}
    if "minReplicas" not in spec:
        converted["spec"].pop("minReplicas", None)
    if "targetCPUUtilizationPercentage" not in spec and _METRICS not in annotations:
        converted["spec"].pop("metrics", None)
    return converted


_CONVERTERS: Final[Mapping[tuple[str, str, str], Callable[[Manifest], Manifest]]] = {
    ("Event", "v1", "events.k8s.io/v1"): _to_new_event,
    ("Event", "events.k8s.io/v1", "v1"): _to_old_event,
    ("HorizontalPodAutoscaler", "autoscaling/v2", "autoscaling/v1"): _to_v1_autoscaler,
    ("HorizontalPodAutoscaler", "autoscaling/v1", "autoscaling/v2"): _to_v2_autoscaler,
}


def convert(
    manifest: Manifest, source: ApiResource, target: ApiResource, *, filled: bool = True, new: bool = False
) -> Manifest:
    """Return an object in another version.

    Args:
        manifest: The object; it is not changed.
        source: Its kind, in the version of the object.
        filled: Whether to set the defaults of the target version, as for objects read from the store.
        new: Whether it is the object of a request, which is validated with the defaults of its own version.

    Returns:
        The object in the target version; it shares parts with the given one.
    """
    if source.api_version == target.api_version:
        return manifest
    head: dict[str, Any] = {"apiVersion": target.api_version, "kind": target.kind}
    if target.custom:
        moved = {**manifest, **head}
        return moved if target.schema is None else prune(moved, target.schema)
    change = _CONVERTERS[target.kind, source.api_version, target.api_version]
    changed = _to_v2_autoscaler(manifest, defaults=False) if new and change is _to_v2_autoscaler else change(manifest)
    if not filled and change is _to_v2_autoscaler:
        changed = _without_defaults(changed, manifest)
    # Decoding adds the fields that are always present in the target version.
    return decode({**changed, **head}, target.type)


@dataclass(frozen=True, slots=True)
class ConversionWebhooks:
    """Calls conversion webhooks, for reads and for writes.

    Args:
        new_uid: Returns the uid of a request.
    """

    cache: ConversionCache
    new_uid: Callable[[], str]
    client: AdmissionClient

    async def ready(self, compute: Callable[[], Result]) -> Result:
        """Compute a value; call conversion webhooks for the objects that it needs in other versions.

        Args:
            compute: The computation; it is repeated after each call, so it must not change anything.

        Raises:
            ApiError: If a webhook cannot convert an object.
        """
        # Once per object at most: each answer is in the cache when the computation is repeated.
        while True:
            try:
                return compute()
            except ConversionNeeded as needed:
                request = needed
            await self.call(request)

    async def call(self, needed: ConversionNeeded) -> None:
        """Call the webhook of a kind and keep the objects that it returns; raise ApiError if it cannot convert them."""
        review = conversion_review(needed, self.new_uid())
        try:
            body = await self.client.ask(needed.webhook, review, seconds=_SECONDS)
        except UnansweredError as error:
            raise failed(needed, f"failed: {str(error).removeprefix('failed to call webhook: ')}") from error
        converted = converted_objects(needed, body, review)
        for before, after in zip(needed.manifests, converted, strict=True):
            self.cache.add(before, needed.target.api_version, after)
