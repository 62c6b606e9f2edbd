"""Objects of one namespace by what refers to them, so that the linter reads each once for all autoscalers of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, TypeAlias

from ocf.autoscaling.api.kinds import HPA_KIND
from ocf.autoscaling.targets.scaled_objects import is_scaled_object, target_of
from ocf.autoscaling.targets.targets import key_of, scale_target_key
from ocf.autoscaling.targets.workloads import pod_labels, referenced_workload
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.label_requirements import SelectorOperator
from ocf.objects.paths import get_field
from ocf.objects.selectors import LabelSelector

__all__ = ["VERTICAL", "FoldedKey", "NamespaceIndex", "folded", "selector_of", "vertical_target"]

FoldedKey: TypeAlias = tuple[str, str, str, str]
_Label: TypeAlias = tuple[Any, Any]

VERTICAL: Final = ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler")
"""apiVersion and kind of vertical autoscalers."""
_VPA: Final = ("autoscaling.k8s.io", VERTICAL[1])
_PDB: Final = ("policy", "PodDisruptionBudget")
_EQUALITIES: Final = frozenset({SelectorOperator.EQUALS, SelectorOperator.IN})


class NamespaceIndex:
    """The objects of one namespace; each map is made on first use.

    Args:
        objects: The objects, the nearest ones first; they may include the autoscaler that is linted.
    """

    def __init__(self, objects: Iterable[Manifest] = ()) -> None:
        self.objects = tuple(objects)

    def find(self, wanted: ObjectKey) -> Manifest | None:
        """Return the nearest object that an autoscaler names; the controller finds a kind in lower case, too."""
        return self._named.get(wanted.unversioned)

    @cached_property
    def keys(self) -> tuple[ObjectKey, ...]:
        """The keys of the objects, in their order."""
        return tuple(map(key_of, self.objects))

    @cached_property
    def by_kind(self) -> Mapping[tuple[str, str], list[ObjectKey]]:
        """The keys of the objects by group and kind."""
        found: dict[tuple[str, str], list[ObjectKey]] = {}
        for key in self.keys:
            found.setdefault(key.group_kind, []).append(key)
        return found

    @cached_property
    def scalers(self) -> Mapping[FoldedKey, list[tuple[int, Manifest]]]:
        """The HPAs and ScaledObjects by their targets, with their positions."""
        found: dict[FoldedKey, list[tuple[int, Manifest]]] = {}
        for position, each in enumerate(self.objects):
            if each.get("kind") == HPA_KIND:
                found.setdefault(folded(scale_target_key(each)), []).append((position, each))
            elif is_scaled_object(each):
                found.setdefault(folded(target_of(each)), []).append((position, each))
        return found

    @cached_property
    def rollouts(self) -> Mapping[FoldedKey, list[Manifest]]:
        """The Rollouts by the workload whose pods they run."""
        found: dict[FoldedKey, list[Manifest]] = {}
        for each in self.objects:
            used = referenced_workload(each)
            if used is not None:
                found.setdefault(folded(used), []).append(each)
        return found

    @cached_property
    def limit_ranges(self) -> tuple[Manifest, ...]:
        """The LimitRanges."""
        return tuple(each for each in self.objects if each.get("kind") == "LimitRange")

    @cached_property
    def vertical(self) -> Mapping[FoldedKey, list[Manifest]]:
        """The VerticalPodAutoscalers by their targets."""
        found: dict[FoldedKey, list[Manifest]] = {}
        for key, each in zip(self.keys, self.objects, strict=True):
            if key.group_kind == _VPA:
                found.setdefault(vertical_target(each), []).append(each)
        return found

    def budgets(self, labels: Mapping[str, str]) -> Iterator[Manifest]:
        """Yield the PodDisruptionBudgets of pods with these labels."""
        return (each for _, each in self._budgets.matching(labels))

    def with_pods_of(self, selector: LabelSelector) -> Iterator[tuple[FoldedKey, Manifest]]:
        """Yield the workloads and pods whose labels a selector matches."""
        listed = [self._with_label.get(each, []) for each in _required(selector)]
        for key in min(listed, key=len, default=list(self._labels)):
            if selector.matches(self._labels[key]):
                yield key, self._first[key]

    def scaled_that_select(self, labels: Mapping[str, str]) -> Iterator[tuple[FoldedKey, Manifest]]:
        """Yield the targets of autoscalers whose selectors match pods with these labels."""
        return self._scaled.matching(labels)

    @cached_property
    def _named(self) -> Mapping[FoldedKey, Manifest]:
        found: dict[FoldedKey, Manifest] = {}
        for key, each in zip(self.keys, self.objects, strict=True):
            found.setdefault(key.unversioned, each)
            found.setdefault(folded(key), each)
        return found

    @cached_property
    def _first(self) -> Mapping[FoldedKey, Manifest]:
        """The objects by key; of one that is given twice the first counts, which is the nearest."""
        found: dict[FoldedKey, Manifest] = {}
        for key, each in zip(self.keys, self.objects, strict=True):
            found.setdefault(folded(key), each)
        return found

    @cached_property
    def _labels(self) -> Mapping[FoldedKey, Mapping[str, str]]:
        labels = ((key, pod_labels(each)) for key, each in self._first.items())
        return {key: each for key, each in labels if each is not None}

    @cached_property
    def _with_label(self) -> Mapping[_Label, list[FoldedKey]]:
        found: dict[_Label, list[FoldedKey]] = {}
        for key, labels in self._labels.items():
            for label in labels.items():
                found.setdefault(label, []).append(key)
        return found

    @cached_property
    def _scaled(self) -> _Selectors:
        known = {key: self._first[key] for key in self.scalers if key in self._first}
        return _Selectors(known.items(), self._with_label)

    @cached_property
    def _budgets(self) -> _Selectors:
        listed = zip(self.keys, self.objects, strict=True)
        return _Selectors(((folded(key), each) for key, each in listed if key.group_kind == _PDB), self._with_label)


class _Selectors:
    """Objects by a label that their selectors require: the one that the fewest pods have."""

    def __init__(
        self, objects: Iterable[tuple[FoldedKey, Manifest]], with_label: Mapping[_Label, list[FoldedKey]]
    ) -> None:
        self._by_label: dict[_Label | None, list[tuple[int, LabelSelector, FoldedKey, Manifest]]] = {}
        for position, (key, each) in enumerate(objects):
            selector = selector_of(each)
            if selector is not None:
                label = min(_required(selector), key=lambda one: len(with_label.get(one, ())), default=None)
                self._by_label.setdefault(label, []).append((position, selector, key, each))

    def matching(self, labels: Mapping[str, str]) -> Iterator[tuple[FoldedKey, Manifest]]:
        """Yield the objects whose selectors match, in their order."""
        found = [one for label in (None, *labels.items()) for one in self._by_label.get(label, ())]
        for _, selector, key, each in sorted(found, key=lambda one: one[0]):
            if selector.matches(labels):
                yield key, each


def _required(selector: LabelSelector) -> list[_Label]:
    """Return labels that all objects have that a selector matches."""
    required = (each for each in selector.requirements if each.operator in _EQUALITIES and len(each.values) == 1)
    return [(each.key, each.values[0]) for each in required]


def vertical_target(vpa: Manifest) -> FoldedKey:
    """Return the workload whose pods a vertical autoscaler changes."""
    reference = {"scaleTargetRef": get_field(vpa, ("spec", "targetRef"))}
    return folded(scale_target_key({"metadata": vpa.get("metadata"), "spec": reference}))


def folded(key: ObjectKey) -> FoldedKey:
    """Return what distinguishes objects: the controller finds a kind by its name in lower case, too."""
    return key._replace(kind=key.kind.lower()).unversioned


def selector_of(manifest: Manifest) -> LabelSelector | None:
    """Return the selector of a workload; None if it has none that can be read."""
    try:
        found = LabelSelector.of(get_field(manifest, ("spec", "selector")))
    except ConfigError:
        return None
    return None if found.nothing or not found.requirements else found
