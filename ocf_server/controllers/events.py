"""Events of the controllers; one that repeats is counted instead of written again."""

from typing import Final

from ocf.cluster.protocol import Cluster
from ocf.errors import ApiError
from ocf.objects import Manifest
from ocf_server.controllers.actions import Event
from ocf_server.controllers.view import ClusterView

__all__ = ["EventRecorder"]

# maxLruCacheEntries of client-go: events that drop out are written anew when they repeat.
_MOST: Final = 4096


class EventRecorder:
    """Records the events of controllers in the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[tuple[str, str, str, str], Manifest] = {}

    async def record(self, view: ClusterView, component: str, event: Event) -> None:
        """Record an event; an event that the API server rejects is lost, as in a real cluster."""
        metadata = event.about["metadata"]
        key = (component, metadata.get("uid", ""), event.reason, event.message)
        # Popped and set again, which puts it last: the first one is the one that was not seen for longest.
        known = self._known.pop(key, None)
        manifest = _new(view, component, event) if known is None else _repeated(known, view.timestamp)
        try:
            if known is None:
                self._known[key] = await self._cluster.create(manifest, field_manager=component)
            else:
                self._known[key] = await self._cluster.update(manifest, field_manager=component)
        except ApiError:
            return
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]


def _new(view: ClusterView, component: str, event: Event) -> Manifest:
    about, metadata = event.about, event.about["metadata"]
    namespace = metadata.get("namespace") or "default"
    subject = {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        "name": metadata["name"],
        **({"namespace": metadata["namespace"]} if metadata.get("namespace") else {}),
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }
    # As client-go: the time in nanoseconds, in hex. The version of the store separates events of one instant.
    number = int(view.now.timestamp() * 1_000_000) * 1000 + view.registry.store.version % 1000
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.{number:x}", "namespace": namespace},
        "involvedObject": subject,
        "reason": event.reason,
        "message": event.message,
        "type": "Warning" if event.warning else "Normal",
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": view.timestamp,
        "lastTimestamp": view.timestamp,
        "count": 1,
    }


def _repeated(known: Manifest, timestamp: str) -> Manifest:
    metadata = {name: value for name, value in known["metadata"].items() if name != "resourceVersion"}
    return {**known, "metadata": metadata, "count": known.get("count", 1) + 1, "lastTimestamp": timestamp}
