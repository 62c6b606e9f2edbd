"""Values that the API server's own admission plugins add to values that have one owner as a whole.

Only one such plugin is enabled by default: DefaultTolerationSeconds, which adds tolerations to pods
(https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#defaulttolerationseconds). It does not
change pod templates. The others set fields or append to lists that are merged entry by entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["admitted"]

_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_EFFECT: Final = "NoExecute"


def admitted(desired: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as the API server stores it after its admission plugins.

    The time of a default toleration is a setting of the API server, so it is taken from the live object. A list of
    tolerations that is not declared is not completed, because it then belongs to the API server.

    Args:
        desired: The object to apply; it is not changed.

    Example:
        >>> added = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
        ...          "tolerationSeconds": 300}
        >>> ours = {"key": "node.kubernetes.io/unreachable"}
        >>> pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"tolerations": [ours]}}
        >>> admitted(pod, {**pod, "spec": {"tolerations": [ours, added]}})["spec"]["tolerations"] == [ours, added]
        True
    """
    completed = dict(desired)
    if (desired.get("apiVersion"), desired.get("kind")) != ("v1", "Pod"):
        return completed
    spec = desired.get("spec") or {}
    declared, stored = spec.get("tolerations"), (live.get("spec") or {}).get("tolerations")
    if isinstance(declared, list) and declared and isinstance(stored, list):
        completed["spec"] = {**spec, "tolerations": [*declared, *_added(declared, stored)]}
    return completed


def _added(declared: list[Any], stored: list[Any]) -> Iterator[Any]:
    missing = [taint for taint in _TAINTS if not any(_tolerates(toleration, taint) for toleration in declared)]
    for toleration in stored[len(declared) :]:
        added = {"operator": "Exists", "effect": _EFFECT, "tolerationSeconds": toleration.get("tolerationSeconds")}
        if any(toleration == {"key": taint, **added} for taint in missing):
            yield toleration


def _tolerates(toleration: Mapping[str, Any], taint: str) -> bool:
    """Return whether the plugin takes a toleration for one of a taint; it looks at the key and the effect only."""
    return toleration.get("key") in {taint, "", None} and toleration.get("effect") in {_EFFECT, "", None}
