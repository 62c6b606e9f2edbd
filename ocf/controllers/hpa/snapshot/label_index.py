"""Index of labelled objects: which of them does a selector match?

A namespace may have thousands of pods and hundreds of autoscalers. Matching every pod for every autoscaler would take
longer than everything else, so the index finds candidates by one label.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, Generic, TypeVar

from ocf.objects import LabelSelector

__all__ = ["LabelIndex", "required_labels"]

T = TypeVar("T")
_ONE_OF: Final = frozenset({"in", "=", "=="})


def required_labels(selector: LabelSelector) -> tuple[tuple[str, str], ...] | None:
    """Return labels of which every selected object has at least one.

    Args:
        selector: The selector.

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
    least = min(choices, key=lambda each: len(each.values))
    return tuple((least.key, value) for value in least.values)


class LabelIndex(Generic[T]):
    """An ordered collection of labelled objects.

    Args:
        things: The objects, each with its labels.

    Example:
        >>> pods = LabelIndex([({"app": "web"}, "web-0"), ({"app": "db"}, "db-0"), ({"app": "web"}, "web-1")])
        >>> pods.matching(LabelSelector.parse("app=web"))
        ['web-0', 'web-1']
    """

    def __init__(self, things: Iterable[tuple[Mapping[str, str], T]]) -> None:
        self._things = list(things)
        self._by_label: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, (labels, _) in enumerate(self._things):
            for label in labels.items():
                self._by_label[label].append(place)

    def __len__(self) -> int:
        return len(self._things)

    def matching(self, selector: LabelSelector) -> list[T]:
        """Return the objects that a selector matches, in order.

        Args:
            selector: The selector.
        """
        labels = required_labels(selector)
        if labels is None:
            places: Iterable[int] = range(len(self._things))
        else:  # an object has one value per key, so none is found twice
            places = sorted(place for label in labels for place in self._by_label.get(label, ()))
        return [self._things[place][1] for place in places if selector.matches(self._things[place][0])]
