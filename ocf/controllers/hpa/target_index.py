"""Claims: which autoscalers name which target.

Two controllers on one target undo each other's writes without end, and neither sees why. So an autoscaler of our own
kind does not run while a HorizontalPodAutoscaler names its target, which the built-in controller runs whatever we do;
and of two of our own kind the older one runs.
"""

from collections import defaultdict
from typing import NamedTuple, TypeAlias

from ocf.autoscaling.targets.targets import scale_target_key
from ocf.objects import Manifest

__all__ = ["TargetIndex", "TargetUser"]


_UnversionedKey: TypeAlias = tuple[str, str, str, str]


class TargetUser(NamedTuple):
    """An autoscaler that names a target; the smaller one is the older one.

    Args:
        created: When it was created, as the API writes it.
        name: Its name.
        kind: Its kind.
    """

    created: str
    name: str
    kind: str


class TargetIndex:
    """Who names which target, kept up to date by watches.

    Example:
        >>> def autoscaler(kind: str, name: str, created: str) -> Manifest:
        ...     reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        ...     metadata = {"namespace": "shop", "name": name, "creationTimestamp": created}
        ...     return {"kind": kind, "metadata": metadata, "spec": {"scaleTargetRef": reference}}
        >>> first = autoscaler("HorizontalAutoscaler", "first", "2026-01-31T12:00:00Z")
        >>> second = autoscaler("HorizontalAutoscaler", "second", "2026-01-31T13:00:00Z")
        >>> claims = TargetIndex()
        >>> claims.put(first), claims.put(second)
        (None, None)
        >>> claims.conflicting_autoscaler(first), claims.conflicting_autoscaler(second).name
        (None, 'first')
        >>> claims.put(autoscaler("HorizontalPodAutoscaler", "built-in", "2026-01-31T14:00:00Z"))
        >>> claims.conflicting_autoscaler(first).name
        'built-in'
    """

    def __init__(self) -> None:
        self._by_target: defaultdict[_UnversionedKey, set[TargetUser]] = defaultdict(set)
        self._by_autoscaler: dict[tuple[str, str, str], tuple[_UnversionedKey, TargetUser]] = {}

    def put(self, autoscaler: Manifest) -> None:
        """Note what an autoscaler names, in place of what it named before.

        Args:
            autoscaler: Its manifest.
        """
        self.drop(autoscaler)
        target, claim = scale_target_key(autoscaler).unversioned, _user(autoscaler)
        self._by_target[target].add(claim)
        self._by_autoscaler[_identity(autoscaler)] = (target, claim)

    def drop(self, autoscaler: Manifest) -> None:
        """Forget an autoscaler.

        Args:
            autoscaler: Its manifest.
        """
        known = self._by_autoscaler.pop(_identity(autoscaler), None)
        if known is not None:
            target, claim = known
            self._by_target[target].discard(claim)
            if not self._by_target[target]:
                del self._by_target[target]

    def conflicting_autoscaler(self, autoscaler: Manifest) -> TargetUser | None:
        """Return who has the target in place of an autoscaler.

        Args:
            autoscaler: The manifest of one of our own kind.

        Returns:
            One of another kind, or else an older one of the same kind; None if the target is its own.
        """
        own = _user(autoscaler)
        others = self._by_target.get(scale_target_key(autoscaler).unversioned, set()) - {own}
        foreign = [other for other in others if other.kind != own.kind]
        return min(foreign or (other for other in others if other < own), default=None)


def _user(autoscaler: Manifest) -> TargetUser:
    metadata = autoscaler["metadata"]
    return TargetUser(str(metadata.get("creationTimestamp") or ""), str(metadata["name"]), str(autoscaler["kind"]))


def _identity(autoscaler: Manifest) -> tuple[str, str, str]:
    metadata = autoscaler["metadata"]
    return str(autoscaler["kind"]), str(metadata.get("namespace") or ""), str(metadata["name"])
