"""`NamespaceUsage`: the usage of the pods of a namespace, which selectors are applied to."""

from collections.abc import Sequence
from typing import Any, Self

from ocf.controllers.hpa.snapshot.label_index import LabelIndex
from ocf.controllers.metrics_client.usage import PodUsage, has_text_labels
from ocf.objects.selectors import LabelSelector

__all__ = ["NamespaceUsage"]


class NamespaceUsage:
    """The entries of one response, in groups of equal labels.

    The pods of a workload mostly have the same labels, so the index has few groups, however many pods there are that no
    autoscaler selects.
    """

    def __init__(self) -> None:
        self._groups: LabelIndex[int, list[tuple[int, Any]]] = LabelIndex()
        self._known: dict[tuple[Any, ...], list[tuple[int, Any]]] = {}
        self._usage: dict[int, PodUsage] = {}

    @classmethod
    def of(cls, entries: Sequence[Any]) -> Self | None:
        """Group the entries of a response.

        Args:
            entries: PodMetrics of metrics.k8s.io/v1beta1, unchecked.

        Returns:
            The usage; None if an entry has no labels, as with some implementations of the API, or malformed ones.
        """
        usage = cls()
        for position, entry in enumerate(entries):
            group = usage._group(_labels_of(entry))
            if group is None:
                return None
            group.append((position, entry))
        return usage

    def select(self, selector: LabelSelector) -> list[PodUsage]:
        """Return the entries that a selector matches, in the order of the response; the same objects each time."""
        found = sorted((place for group in self._groups.matching(selector) for place in group), key=lambda one: one[0])
        return [self._usage.setdefault(position, PodUsage(entry)) for position, entry in found]

    def _group(self, labels: Any) -> list[tuple[int, Any]] | None:
        if not labels or labels.__class__ is not dict:
            return None
        identity = tuple(labels.items())
        try:
            group = self._known.get(identity)
        except TypeError:  # a value that is a list or a map
            return None
        # Checked once per group, because equal labels are equally valid.
        if group is None and has_text_labels(labels):
            group = self._known[identity] = []
            self._groups.put(len(self._known), labels, group)
        return group


def _labels_of(entry: Any) -> Any:
    metadata: Any = entry.get("metadata") if entry.__class__ is dict else None
    return metadata.get("labels") if metadata.__class__ is dict else None
