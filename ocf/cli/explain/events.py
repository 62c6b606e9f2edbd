"""Events about an autoscaler, and when it was created."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from ocf.autoscaling.explain.rescale_events import RescaleEvent
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf.objects.paths import get_field
from ocf.objects.timestamps import parse_time

__all__ = ["creation_time", "events_about", "read_events", "rescale_events"]


def read_events(events: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """Return the parts of events that are shown, the latest event first.

    Args:
        events: Events of `v1` or `events.k8s.io/v1`; those without a time are left out.
    """
    read = (_event(each) for each in events)
    return tuple(sorted((each for each in read if each["at"]), key=lambda each: parse_time(each["at"]), reverse=True))


def events_about(events: Iterable[Manifest], subject: Manifest, namespace: str) -> Iterator[Manifest]:
    """Yield the events about one object, and not about a former one of its name or one of another group.

    Args:
        events: Events; what they do not say of their object counts as equal, except for kind and name.
        namespace: The namespace of the object, which may not name it.
    """
    metadata, group = subject["metadata"], split_api_version(subject["apiVersion"])[0]
    wanted = {"kind": subject["kind"], "name": metadata["name"], "namespace": namespace, "group": group}
    wanted |= {"uid": metadata["uid"]} if metadata.get("uid") else {}
    for each in events:
        about = each.get("involvedObject") or each.get("regarding") or {}
        said = {name: about.get(name) for name in ("kind", "name")}
        said |= {name: about[name] for name in ("namespace", "uid") if about.get(name)}
        said |= {"group": split_api_version(about["apiVersion"])[0]} if about.get("apiVersion") else {}
        if all(wanted.get(name, value) == value for name, value in said.items()):
            yield each


def _event(event: Manifest) -> Manifest:
    times: Sequence[Any] = (
        (event.get("series") or {}).get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
        (event.get("metadata") or {}).get("creationTimestamp"),
    )
    return {
        "type": event.get("type") or "Normal",
        "reason": event.get("reason") or "",
        "message": event.get("message") or event.get("note") or "",
        "count": event.get("count") or event.get("deprecatedCount") or 1,
        "at": next((each for each in times if each), ""),
    }


def rescale_events(events: Iterable[Manifest]) -> Iterator[RescaleEvent]:
    """Yield events as the explanation takes them."""
    for each in events:
        yield RescaleEvent(each["reason"], each["message"], parse_time(each["at"]))


def creation_time(manifest: Manifest) -> datetime | None:
    """Return when an object was created; None if that is not known."""
    text = get_field(manifest, ("metadata", "creationTimestamp"))
    return parse_time(text) if isinstance(text, str) and text else None
