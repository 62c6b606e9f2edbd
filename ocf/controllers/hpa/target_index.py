"""Index of scale targets: which autoscalers name which target.

Two controllers on one target revert each other's writes forever. The built-in controller runs every
HorizontalPodAutoscaler, so an autoscaler of our own kind does not run while a HorizontalPodAutoscaler names the same
target. Of two autoscalers of our own kind the older one runs.
"""

from collections import defaultdict
from typing import NamedTuple, TypeAlias

from ocf.autoscaling.targets.targets import scale_target_key
from ocf.objects import Manifest

__all__ = ["TargetIndex", "TargetUser"]


_UnversionedKey: TypeAlias = tuple[str, str, str, str]


class TargetUser(NamedTuple):
    """An autoscaler that names a target; older ones compare as smaller.

    Args:
        created: Its creation timestamp, as the API writes it.
    """

    created: str
    name: str
    kind: str


class TargetIndex:
    """The autoscalers of each target, kept up to date from watches.

    Example:
        >>> def autoscaler(kind: str, name: str, created: str) -> Manifest:
        ...     reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        ...     metadata = {"namespace": "shop", "name": name, "creationTimestamp": created}
        ...     return {"kind": kind, "metadata": metadata, "spec": {"scaleTargetRef": reference}}
        >>> first = autoscaler("HorizontalAutoscaler", "first", "2026-01-31T12:00:00Z")
        >>> second = autoscaler("HorizontalAutoscaler", "second", "2026-01-31T13:00:00Z")
        >>> index = TargetIndex()
        >>> index.put(first), index.put(second)
        (None, None)
        >>> index.conflicting_autoscaler(first), index.conflicting_autoscaler(second).name
        (None, 'first')
        >>> index.put(autoscaler("HorizontalPodAutoscaler", "built-in", "2026-01-31T14:00:00Z"))
        >>> index.conflicting_autoscaler(first).name
        'built-in'
    """

    def __init__(self) -> None:
        self._by_target: defaultdict[_UnversionedKey, set[TargetUser]] = defaultdict(set)
        self._by_autoscaler: dict[tuple[str, str, str], tuple[_UnversionedKey, TargetUser]] = {}

    def put(self, autoscaler: Manifest) -> None:
        """Record the target of an autoscaler, in place of its former one.

        Args:
            autoscaler: Its manifest.
        """
        self.drop(autoscaler)
        # Two versions of a kind are one object, and so one target.
        target, user = scale_target_key(autoscaler).unversioned, _user(autoscaler)
        self._by_target[target].add(user)
        self._by_autoscaler[_identity(autoscaler)] = (target, user)

    def drop(self, autoscaler: Manifest) -> None:
        """Remove an autoscaler.

        Args:
            autoscaler: Its manifest.
        """
        known = self._by_autoscaler.pop(_identity(autoscaler), None)
        if known is not None:
            target, user = known
            self._by_target[target].discard(user)
            if not self._by_target[target]:
                del self._by_target[target]

    def users_of(self, autoscaler: Manifest) -> frozenset[TargetUser]:
        """Return the autoscalers that name the target of an autoscaler.

        Args:
            autoscaler: Its manifest.
        """
        return frozenset(self._by_target.get(scale_target_key(autoscaler).unversioned, ()))

    def conflicting_autoscaler(self, autoscaler: Manifest) -> TargetUser | None:
        """Return the autoscaler that keeps another one from running.

        Args:
            autoscaler: The manifest of an autoscaler of our own kind.

        Returns:
            An autoscaler of another kind with the same target, or else an older one of the same kind; None if there is
            neither.
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
