"""Which lists memory can answer: those by label, name and namespace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ocf.cluster.cache.keys import NamespacedName
from ocf.errors import ManifestError
from ocf.objects import FieldTerm, LabelSelector, parse_field_selector

__all__ = ["ListFilter"]

_PART_OF_PLACE: Final[Mapping[str, int]] = {"metadata.namespace": 0, "metadata.name": 1}


@dataclass(frozen=True, slots=True)
class ListFilter:
    """Which objects of a kind are meant.

    Args:
        labels: By their labels.
        terms: By their names and namespaces.
    """

    labels: LabelSelector
    terms: tuple[FieldTerm, ...]

    @classmethod
    def parse(cls, label_selector: str, field_selector: str) -> "ListFilter | None":
        """Read the selectors of a list.

        Args:
            label_selector: The text; empty for all.
            field_selector: The text; empty for all.

        Returns:
            The selection; None where only the cluster can tell: other fields, and texts that it will refuse.
        """
        try:
            terms = parse_field_selector(field_selector)
            selected = cls(LabelSelector.parse(label_selector), terms)
        except ManifestError:
            return None
        return selected if all(term.path in _PART_OF_PLACE for term in terms) else None

    @property
    def asks_for_labels(self) -> bool:
        """Whether labels matter."""
        return bool(self.labels.requirements)

    def matches(self, place: NamespacedName, labels: Mapping[str, str]) -> bool:
        """Tell whether an object is meant.

        Args:
            place: Where it is.
            labels: Its labels.
        """
        for term in self.terms:
            if (place[_PART_OF_PLACE[term.path]] == term.value) is not (term.operator == "="):
                return False
        return self.labels.matches(labels)
