"""Conditions of pods that the API server itself sets."""

from typing import Any

from ocf.objects import Manifest

__all__ = ["with_condition"]


def with_condition(pod: Manifest, now: str, **content: str) -> Manifest:
    """Return a pod with a condition.

    Args:
        pod: The pod; it is not changed.
        now: The instant, which is the lastTransitionTime if the status of the condition changes.

    Example:
        >>> pod = with_condition({}, "2026-01-31T12:00:00Z", type="PodScheduled", status="True")
        >>> pod["status"]["conditions"][0]["lastTransitionTime"]
        '2026-01-31T12:00:00Z'
    """
    status = pod.get("status", {})
    known: list[dict[str, Any]] = status.get("conditions") or []
    old = next((each for each in known if each["type"] == content["type"]), {})
    since = old.get("lastTransitionTime", now) if old.get("status") == content["status"] else now
    # `lastProbeTime` is always written, as null if unset: it is a struct in Go, and omitempty omits no struct.
    new = {"lastProbeTime": old.get("lastProbeTime"), "lastTransitionTime": since, **content}
    conditions = [new if each is old else each for each in known] + ([] if old else [new])
    return {**pod, "status": {**status, "conditions": conditions}}
