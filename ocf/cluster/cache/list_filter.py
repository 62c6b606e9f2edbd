"""Selectors that the cache can evaluate: by label, name and namespace."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ocf.cluster.cache.keys import NamespacedName, namespaced_name
from ocf.errors import ManifestError
from ocf.objects import Manifest
from ocf.objects.label_requirements import SelectorOperator
from ocf.objects.selectors import FieldTerm, LabelSelector, parse_field_selector

__all__ = ["ListFilter"]

_EQUALITIES: Final = frozenset({SelectorOperator.IN, SelectorOperator.EQUALS, SelectorOperator.DOUBLE_EQUALS})
_NAME_FIELDS: Final[Mapping[str, int]] = {"metadata.namespace": 0, "metadata.name": 1}


class ListFilter(NamedTuple):
    """The selectors of a list, parsed.

    Args:
        terms: The field selector, which names only `metadata.name` and `metadata.namespace`.
    """

    labels: LabelSelector
    terms: tuple[FieldTerm, ...]

    @classmethod
    def parse(cls, label_selector: str, field_selector: str) -> "ListFilter | None":
        """Parse the selectors of a list.

        Args:
            label_selector: The text of the label selector; empty selects all objects.
            field_selector: The text of the field selector; empty selects all objects.

        Returns:
            The filter; None if only the cluster can evaluate the selectors: they use other fields, or are invalid.
        """
        try:
            terms = parse_field_selector(field_selector)
            selected = cls(LabelSelector.parse(label_selector), terms)
        except ManifestError:
            return None
        return selected if all(term.path in _NAME_FIELDS for term in terms) else None

    @property
    def common_text(self) -> str:
        """A text that is in the labels of every object that it selects; empty if there is none."""
        required = (one.key for one in self.labels.requirements if one.operator is SelectorOperator.EXISTS)
        return self.one_value[1] if self.one_value is not None else next(required, "")

    @property
    def one_value(self) -> tuple[str, str] | None:
        """The first label of which it selects a single value, with that value; None if there is none."""
        single = (one for one in self.labels.requirements if one.operator in _EQUALITIES and len(one.values) == 1)
        return next(((one.key, one.values[0]) for one in single), None)

    @property
    def needs_labels(self) -> bool:
        """Whether matching depends on labels."""
        return bool(self.labels.requirements)

    def selected(self, items: Iterable[Manifest]) -> dict[NamespacedName, Manifest]:
        """Return those of some objects that it selects."""
        return {
            name: one
            for name, one in ((namespaced_name(one), one) for one in items)
            if self.matches(name, one["metadata"].get("labels") or {})
        }

    def matches(self, name: NamespacedName, labels: Mapping[str, str]) -> bool:
        """Return whether the filter selects an object."""
        for term in self.terms:
            if (name[_NAME_FIELDS[term.path]] == term.value) is not (term.operator == "="):
                return False
        return self.labels.matches(labels)
