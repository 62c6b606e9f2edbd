"""Snapshot of an autoscaler in a cluster, with the part of its history that can be known from outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from ocf.autoscaling.algorithm import Scale, Settings, Snapshot
from ocf.autoscaling.explain import KnownHistory
from ocf.autoscaling.explain.rescale_events import scaled_up
from ocf.autoscaling.linter.namespace_index import VERTICAL
from ocf.autoscaling.targets.targets import scale_target_key
from ocf.cli.autoscaler_clients import context_namespace, missing_autoscaler, open_clients
from ocf.cli.explain.events import creation_time, events_about, read_events, rescale_events
from ocf.cli.explain.surroundings import SCALED_OBJECT, Surroundings, Unread, surroundings_of
from ocf.cli.explain.watch import InputsForbiddenError, ObservedAutoscaler, collect_history
from ocf.cluster import Cluster, ListOptions
from ocf.cluster.client import ApiServerCluster
from ocf.concepts import SystemClock
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.controllers.hpa.settings import override_settings
from ocf.controllers.hpa.snapshot import DerivedScaleGetter, SnapshotReader
from ocf.controllers.hpa.snapshot.scale_getter import ScaleGetter
from ocf.controllers.hpa.snapshot.selector_index import SelectorIndex
from ocf.controllers.metrics_client import RESTMapper
from ocf.errors import ApiError, ForbiddenError, ManifestError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import split_api_version
from ocf.objects.paths import get_field
from ocf.objects.selectors import LabelSelector

__all__ = ["Observed", "observe", "open_autoscaler"]

_NOT_SYNCED: Final = frozenset({"TargetClaimed", "InvalidSpec"})
_EVENTS_SHOWN: Final = 5
_WITH_REPLICA_SETS: Final = frozenset({"Deployment", "Rollout"})


@dataclass(frozen=True, slots=True)
class Observed:
    """An observed autoscaler.

    Args:
        forbidden: Why inputs of a sync could not be read, with the missing rights.
    """

    snapshot: Snapshot
    known: KnownHistory
    now: datetime
    settings: Settings
    surroundings: Surroundings
    events: tuple[Manifest, ...] = ()
    forbidden: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Render the last status and events of the autoscaler."""
        status = self.snapshot.status
        if not status.conditions:
            yield "Nothing yet: no controller has synced this autoscaler."
        else:
            scaled = "never" if status.last_scale_time is None else f"{status.last_scale_time:%Y-%m-%d %H:%M:%S} UTC"
            yield f"currentReplicas {status.current_replicas}, desiredReplicas {status.desired_replicas}."
            yield f"Last scaled: {scaled}."
        for condition in status.conditions:
            yield f"{condition.type}={condition.status} {condition.reason}"
            yield f"  {condition.message}"
        if any(each.reason in _NOT_SYNCED for each in status.conditions):
            yield "Its controller does not sync it for that reason; the following is what it would do otherwise."
        for event in self.events[:_EVENTS_SHOWN]:
            yield f"Event {event['type']} {event['reason']} at {event['at']}"
            yield f"  {event['message']}"

    def to_json(self) -> dict[str, Any]:
        """Return the status, the events and what surrounds the autoscaler as JSON values."""
        return {
            "status": self.snapshot.status.to_manifest(),
            "events": list(self.events),
            **self.surroundings.to_json(),
        }


async def observe(  # noqa: PLR0917 (the options of the command line)
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
        namespace: Its namespace; None for that of the context.
        kubeconfig: Kubeconfig file; None for the default of kubectl.
        context: Context of the kubeconfig; None for the current one.
        watch: How long to collect the history first; None for not at all.
    """
    where = namespace or context_namespace(kubeconfig, context)
    key = ObjectKey(*(OWN if own_kind else BUILT_IN), name, where)
    async with open_autoscaler(kubeconfig, context, key, settings) as autoscaler:
        live = await _get_autoscaler(autoscaler)
        settings = override_settings(settings, get_field(live, ("spec", "settings")))
        reads = _Reads(autoscaler)
        forbidden: tuple[str, ...] = ()
        scalers = await _note_other_selectors(reads)
        try:
            known, snapshot = await collect_history(autoscaler, watch or timedelta(), settings)
        except InputsForbiddenError as error:
            snapshot, forbidden = error.snapshot, error.forbidden
            known = KnownHistory(snapshot.status, autoscaler.clock.now())
        events = await _events(reads, live)
        surroundings = await _surroundings(reads, live, scalers, events)
        known = known._replace(
            created=creation_time(live), scaled_up=scaled_up(rescale_events(events), known.status.last_scale_time)
        )
        return Observed(snapshot, known, autoscaler.clock.now(), settings, surroundings, events, forbidden)


@asynccontextmanager
async def open_autoscaler(
    kubeconfig: str | None, context: str | None, key: ObjectKey, settings: Settings
) -> AsyncIterator[ObservedAutoscaler]:
    """Connect to the cluster; a function of its own so that tests can replace it."""
    selectors = SelectorIndex()
    async with (
        open_clients(kubeconfig, context) as (cluster, subresource, metrics),
        SnapshotReader(
            cluster,
            metrics,
            scales=(scales := _Scales(cluster, subresource)),
            selectors=selectors,
            settings=settings,
            max_age=timedelta(),
        ) as reader,
    ):
        kinds = RESTMapper(cluster) if isinstance(cluster, ApiServerCluster) else None
        yield ObservedAutoscaler(cluster, reader, scales, key, SystemClock(), kinds)


class _Scales:
    """Reads Scales through the subresource; without that right, derives those of built-in kinds from the workloads."""

    def __init__(self, cluster: Cluster, subresource: ScaleGetter) -> None:
        self._subresource, self._derived = subresource, DerivedScaleGetter(cluster, subresource)

    async def scale(self, target: ObjectKey) -> Manifest:
        """Return the Scale of a workload; as `ScaleGetter`."""
        try:
            return await self._subresource.scale(target)
        except ForbiddenError as error:
            try:
                return await self._derived.scale(target)
            except ApiError:
                raise error from None


async def _get_autoscaler(autoscaler: ObservedAutoscaler) -> Manifest:
    """Return the autoscaler; if it does not exist, raise an error that names the existing ones."""
    key = autoscaler.key
    try:
        return await autoscaler.cluster.get(key)
    except NotFoundError as error:
        raise await missing_autoscaler(autoscaler.cluster, key, error) from error


async def _note_other_selectors(reads: _Reads) -> list[Manifest]:
    """Record the selectors of the other autoscalers of the namespace, as a running controller does, and return all."""
    key = reads.autoscaler.key
    found = await reads.list(key.api_version, key.kind)
    await asyncio.gather(*(_note_selector(reads, each) for each in found if each["metadata"]["name"] != key.name))
    return found


async def _note_selector(reads: _Reads, hpa: Manifest) -> None:
    autoscaler, target = reads.autoscaler, hpa["spec"]["scaleTargetRef"]
    key = ObjectKey(target.get("apiVersion", ""), target["kind"], target["name"], autoscaler.key.namespace)
    try:
        selector = Scale.of(await autoscaler.scales.scale(key)).selector
        autoscaler.reader.selectors.put(
            autoscaler.key.namespace, hpa["metadata"]["name"], LabelSelector.parse(selector)
        )
    except ForbiddenError as error:
        reads.failures.append(Unread("Scale", target["name"], error.message))
    except (ApiError, ManifestError):
        # An autoscaler without a readable selector matches no pods.
        return


class _Reads:
    """Reads that explain more but are not needed for the decision: one that fails is noted, and its answer is empty."""

    def __init__(self, autoscaler: ObservedAutoscaler) -> None:
        self.autoscaler = autoscaler
        self.failures: list[Unread] = []

    async def get(self, key: ObjectKey) -> Manifest | None:
        """Return an object; None if it does not exist or cannot be read."""
        try:
            return await self.autoscaler.cluster.get(key)
        except NotFoundError:
            return None
        except ApiError as error:
            self.failures.append(Unread(key.kind, key.name, error.message))
            return None

    async def list(self, api_version: str, kind: str, *, selector: str = "") -> list[Manifest]:
        """Return the objects of a kind in the namespace; none if it is not served or cannot be read."""
        options = ListOptions(namespace=self.autoscaler.key.namespace, field_selector=selector)
        try:
            found = await self.autoscaler.cluster.list(api_version, kind, options)
        except NotFoundError:
            return []
        except ApiError as error:
            # The API server asks for the right before it looks for the kind.
            if not isinstance(error, ForbiddenError) or await self._is_served(api_version, kind):
                self.failures.append(Unread(kind, "", error.message))
            return []
        return [{"apiVersion": api_version, "kind": kind, **each} for each in found.items]

    async def _is_served(self, api_version: str, kind: str) -> bool:
        kinds = self.autoscaler.kinds
        try:
            if kinds is not None:
                await kinds.find(split_api_version(api_version)[0], kind)
        except ApiError as error:
            # Of a group that is not served, discovery finds nothing; any other error leaves it open.
            return not isinstance(error, NotFoundError)
        return True


async def _surroundings(
    reads: _Reads, live: Manifest, scalers: list[Manifest], events: tuple[Manifest, ...]
) -> Surroundings:
    """Read the target, its ReplicaSets and the other autoscalers."""
    key, target = reads.autoscaler.key, scale_target_key(live)
    other = BUILT_IN if key.kind == OWN[1] else OWN
    return surroundings_of(
        {"apiVersion": key.api_version, "kind": key.kind, **live},
        await reads.get(target),
        scalers=(
            *({"apiVersion": key.api_version, "kind": key.kind, **each} for each in scalers),
            *await reads.list(*other),
            *await reads.list(*SCALED_OBJECT),
        ),
        verticals=await reads.list(*VERTICAL),
        replica_sets=await reads.list("apps/v1", "ReplicaSet") if target.kind in _WITH_REPLICA_SETS else (),
        events=events,
        unread=reads.failures,
    )


async def _events(reads: _Reads, live: Manifest) -> tuple[Manifest, ...]:
    """Return the events about the autoscaler, the latest first."""
    key = reads.autoscaler.key
    about = f"involvedObject.kind={key.kind},involvedObject.name={key.name}"
    return read_events(events_about(await reads.list("v1", "Event", selector=about), live, key.namespace))
