"""Index of labelled objects: which of them does a selector match?

A namespace may have thousands of pods and hundreds of autoscalers. Matching every pod for every autoscaler would take
longer than everything else, so the index finds candidates by one label.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, Generic, TypeVar

from ocf.objects.selectors import LabelSelector

__all__ = ["LabelIndex", "required_labels"]


K = TypeVar("K", str, int)
T = TypeVar("T")
_ONE_OF: Final = frozenset({"in", "=", "=="})


def required_labels(selector: LabelSelector) -> tuple[tuple[str, str], ...] | None:
    """Return labels of which every selected object has at least one.

    Returns:
        Pairs of key and value, from the requirement with the fewest; None if the selector requires no value.

    Example:
        >>> required_labels(LabelSelector.parse("tier in (back,front),app=web"))
        (('app', 'web'),)
        >>> required_labels(LabelSelector.parse("!canary")) is None
        True
    """
    choices = [each for each in selector.requirements if each.operator in _ONE_OF]
    if not choices:
        return None
    # All requirements hold, so any will do; the fewest values mostly give the fewest candidates.
    least = min(choices, key=lambda each: len(each.values))
    return tuple((least.key, value) for value in least.values)


class LabelIndex(Generic[K, T]):
    """A collection of labelled objects by key.

    Example:
        >>> pods: LabelIndex[str, str] = LabelIndex()
        >>> for name, app in (("web-1", "web"), ("db-0", "db"), ("web-0", "web")):
        ...     pods.put(name, {"app": app}, f"pod {name}")
        >>> pods.matching(LabelSelector.parse("app=web"))
        ['pod web-0', 'pod web-1']
    """

    def __init__(self) -> None:
        self._things: dict[K, tuple[Mapping[str, str], T]] = {}
        self._by_label: defaultdict[tuple[str, str], dict[K, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._things)

    def put(self, key: K, labels: Mapping[str, str], thing: T) -> None:
        """Add an object, in place of the one with the same key.

        Args:
            key: Its key; results are sorted by it.
            labels: Its labels; the caller does not change them.
            thing: The object.
        """
        known = self._things.get(key)
        # Most changes of a pod are of its status, so its labels are indexed again only where they differ.
        if known is None or known[0] != labels:
            self.drop(key)
            for label in labels.items():
                self._by_label[label][key] = None
        self._things[key] = (labels, thing)

    def drop(self, key: K) -> None:
        """Remove an object if it exists."""
        known = self._things.pop(key, None)
        for label in () if known is None else known[0].items():
            keys = self._by_label[label]
            del keys[key]
            if not keys:
                del self._by_label[label]

    def matching(self, selector: LabelSelector) -> list[T]:
        """Return the objects that a selector matches, sorted by key."""
        if selector.nothing:
            return []
        labels = required_labels(selector)
        if labels is None:
            keys = sorted(self._things)
        else:  # an object has one value per key, so none is found twice
            keys = sorted(key for label in labels for key in self._by_label.get(label, ()))
        things = map(self._things.__getitem__, keys)
        # The index has matched the only requirement already.
        if labels is not None and len(selector.requirements) == 1:
            return [thing for _, thing in things]
        return [thing for labels, thing in things if selector.matches(labels)]
