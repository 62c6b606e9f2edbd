"""What a round sees of an autoscaler in a cluster, and what can be known of its history from outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from ocf.autoscaling.algorithm import Scale, Settings, Snapshot
from ocf.autoscaling.explain import KnownHistory
from ocf.cli.explain.watch import Place, watched
from ocf.cluster import ListOptions
from ocf.concepts import SystemClock
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.controllers.hpa.settings import override_settings
from ocf.controllers.hpa.snapshot import SelectorIndex, SnapshotReader, SubresourceScaleGetter
from ocf.controllers.metrics_client import RESTMapper, RESTMetricsClient
from ocf.errors import ApiError, ConfigError, ManifestError, NotFoundError
from ocf.objects import LabelSelector, Manifest, ObjectKey, get_field
from ocf.objects.timestamps import parse_time

__all__ = ["Observed", "observed", "reach"]

_LEFT_ALONE: Final = frozenset({"TargetClaimed", "InvalidSpec"})
_EVENTS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Observed:
    """What was observed.

    Args:
        snapshot: What a round sees now.
        known: What is known of the history.
        now: When it was seen.
        settings: The controller's settings, with what the autoscaler itself says instead.
        events: Events about the autoscaler, the latest first.
    """

    snapshot: Snapshot
    known: KnownHistory
    now: datetime
    settings: Settings
    events: tuple[Manifest, ...] = ()

    def lines(self) -> Iterator[str]:
        """Tell what the controller last said of the autoscaler."""
        status = self.snapshot.status
        if not status.conditions:
            yield "Nothing yet: no controller has looked at this autoscaler."
        else:
            scaled = "never" if status.last_scale_time is None else f"{status.last_scale_time:%Y-%m-%d %H:%M:%S} UTC"
            yield f"currentReplicas {status.current_replicas}, desiredReplicas {status.desired_replicas}."
            yield f"Last scaled: {scaled}."
        for condition in status.conditions:
            yield f"{condition.type}={condition.status} {condition.reason}"
            yield f"  {condition.message}"
        if any(each.reason in _LEFT_ALONE for each in status.conditions):
            yield "Its controller leaves it alone for that reason; what follows is what it would do otherwise."
        for event in self.events[:_EVENTS_SHOWN]:
            yield f"Event {event['type']} {event['reason']} at {event['at']}"
            yield f"  {event['message']}"

    def plain(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"status": self.snapshot.status.to_manifest(), "events": list(self.events)}


async def observed(  # noqa: PLR0917 (what the command line says)
    name: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    watch: timedelta | None,
    settings: Settings,
    *,
    own_kind: bool = False,
) -> Observed:
    """Observe an autoscaler of a cluster.

    Args:
        name: Its name.
        namespace: Its namespace; None for the one of the context.
        kubeconfig: How to reach the cluster; None as kubectl finds it.
        context: The context; None for the current one.
        watch: For how long to collect the history first; None for not at all.
        settings: The controller's settings.
        own_kind: Whether it is an autoscaler of our own kind.

    Raises:
        ConfigError: If there is no such autoscaler.
        ApiError: If the API server refuses to tell.
    """
    where = namespace or _namespace(kubeconfig, context)
    key = ObjectKey(*(OWN if own_kind else BUILT_IN), name, where)
    async with reach(kubeconfig, context, key, settings) as place:
        live = await _present(place)
        settings = override_settings(settings, get_field(live, ("spec", "settings")))
        await _note_others(place)
        known, snapshot = await watched(place, watch or timedelta(), settings)
        return Observed(snapshot, known, place.clock.now(), settings, await _events(place))


@asynccontextmanager
async def reach(
    kubeconfig: str | None, context: str | None, key: ObjectKey, settings: Settings
) -> AsyncIterator[Place]:
    """Open the cluster that is meant; a separate function, so that a test can give another one."""
    from ocf.cluster.client import ApiServerCluster

    async with await ApiServerCluster.connect(kubeconfig, context=context) as cluster:
        kinds = RESTMapper(cluster)
        scales = SubresourceScaleGetter(cluster, cluster, kinds=kinds)
        metrics = RESTMetricsClient(cluster, kinds=kinds)
        selectors = SelectorIndex()
        async with SnapshotReader(
            cluster, metrics, scales=scales, selectors=selectors, settings=settings, max_age=timedelta()
        ) as observer:
            yield Place(cluster, observer, scales, key, SystemClock())


def _namespace(kubeconfig: str | None, context: str | None) -> str:
    """Return the namespace of a context, as kubectl does."""
    from kubernetes.config import list_kube_config_contexts

    try:
        found: tuple[Any, Any] = list_kube_config_contexts(config_file=kubeconfig)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 (whoever connects says what is wrong, and shows no secret)
        return "default"
    contexts, active = found
    meant = [each for each in contexts if each["name"] == context] if context else [active]
    return str(meant[0]["context"].get("namespace") or "default") if meant else "default"


async def _present(place: Place) -> Manifest:
    """Return the autoscaler; refuse one that is not there, and name those that are."""
    key = place.key
    try:
        return await place.cluster.get(key)
    except NotFoundError as error:
        found = await place.cluster.list(key.api_version, key.kind, ListOptions(namespace=key.namespace))
        names = ", ".join(sorted(each["metadata"]["name"] for each in found.items)) or "none"
        raise ConfigError(f"{error.message}; in namespace {key.namespace} there are: {names}") from error


async def _note_others(place: Place) -> None:
    """Learn which pods the other autoscalers of the namespace count, as a running controller knows it."""
    key = place.key
    found = await place.cluster.list(key.api_version, key.kind, ListOptions(namespace=key.namespace))
    await asyncio.gather(*(_note(place, each) for each in found.items if each["metadata"]["name"] != key.name))


async def _note(place: Place, hpa: Manifest) -> None:
    target = hpa["spec"]["scaleTargetRef"]
    key = ObjectKey(target.get("apiVersion", ""), target["kind"], target["name"], place.key.namespace)
    try:
        selector = Scale.of(await place.scales.scale(key)).selector
        place.observer.selectors.put(place.key.namespace, hpa["metadata"]["name"], LabelSelector.parse(selector))
    except (ApiError, ManifestError):
        # Whoever has no readable selector claims no pods.
        return


async def _events(place: Place) -> tuple[Manifest, ...]:
    """Return what was told about the autoscaler, the latest first."""
    key = place.key
    about = f"involvedObject.kind={key.kind},involvedObject.name={key.name}"
    try:
        found = await place.cluster.list("v1", "Event", ListOptions(namespace=key.namespace, field_selector=about))
    except ApiError:
        return ()
    told = [_event(each) for each in found.items]
    return tuple(sorted(told, key=lambda each: parse_time(each["at"]), reverse=True))


def _event(event: Manifest) -> Manifest:
    times: Sequence[Any] = (
        (event.get("series") or {}).get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return {
        "type": event.get("type") or "Normal",
        "reason": event.get("reason") or "",
        "message": event.get("message") or "",
        "count": event.get("count") or 1,
        "at": next(each for each in times if each),
    }
