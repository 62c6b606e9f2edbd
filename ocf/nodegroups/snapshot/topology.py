"""Rules of a pod about topologies: affinity and anti-affinity to other pods, and topology spread.

Only required rules are read; preferences never keep a pod off a node.
Source: `pkg/scheduler/framework/plugins/interpodaffinity` and `podtopologyspread` of Kubernetes 1.36.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ocf.nodegroups.snapshot.fields import Fields
from ocf.objects.label_requirements import Requirement, SelectorOperator
from ocf.objects.selectors import LabelSelector

__all__ = ["AffinityTerm", "SpreadConstraint"]

_NONE: Final = LabelSelector(nothing=True)
_NO_LABELS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A required term of a pod's affinity or anti-affinity to other pods.

    Args:
        topology_key: The label of nodes whose values are the topologies.
        selector: The selector of the other pods.
        namespaces: The namespaces of the other pods.
        namespace_selector: The selector of further namespaces.
    """

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str] = frozenset()
    namespace_selector: LabelSelector = _NONE

    @classmethod
    def read(cls, term: Fields, namespace: str, labels: Mapping[str, str]) -> "AffinityTerm":
        """Read a term.

        The API server merges `matchLabelKeys` and `mismatchLabelKeys` into the selector when it creates a pod; for the
        template of a pod this is done here.

        Args:
            namespace: The namespace of the pod that has it.
            labels: The labels of the pod that has it.
        """
        selector = term.selector("labelSelector")
        for key, operator in (
            ("matchLabelKeys", SelectorOperator.IN),
            ("mismatchLabelKeys", SelectorOperator.NOT_IN),
        ):
            wanted = term.texts(key)
            known = {requirement.key for requirement in selector.requirements}
            selector = _merged(selector, [each for each in wanted if each not in known], labels, operator)
        namespaces = frozenset(term.texts("namespaces"))
        # Neither given means the pod's own namespace (getNamespacesFromPodAffinityTerm).
        if not namespaces and "namespaceSelector" not in term:
            namespaces = frozenset({namespace})
        return cls(term.text("topologyKey"), selector, namespaces, term.selector("namespaceSelector"))

    def selects_for_incoming(
        self, namespace: str, labels: Mapping[str, str], namespaces: Mapping[str, Mapping[str, str]]
    ) -> bool:
        """Return whether a term of the pod to schedule selects a pod.

        The scheduler of 1.36 also matches the namespace selector against no labels at all, so that a selector such as
        `!team` selects the pods of every namespace. This is repeated, because the pod is placed by that scheduler.

        Args:
            namespace: The namespace of the other pod.
            labels: The labels of the other pod.
            namespaces: The labels of all namespaces by name.
        """
        if namespace not in self.namespaces and not self.namespace_selector.matches(_NO_LABELS):
            known = namespaces.get(namespace)
            if known is None or not self.namespace_selector.matches(known):
                return False
        return self.selector.matches(labels)

    def selects_for_existing(
        self, namespace: str, labels: Mapping[str, str], namespaces: Mapping[str, Mapping[str, str]]
    ) -> bool:
        """Return whether a term of a pod on a node selects the pod to schedule.

        Args:
            namespace: The namespace of the pod to schedule.
            labels: The labels of the pod to schedule.
            namespaces: The labels of all namespaces by name; a namespace without an entry has none.
        """
        if namespace not in self.namespaces and not self.namespace_selector.matches(
            namespaces.get(namespace, _NO_LABELS)
        ):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A required topology spread constraint of a pod.

    Args:
        max_skew: The largest allowed difference to the topology with the fewest pods.
        topology_key: The label of nodes whose values are the topologies.
        selector: The selector of the pods that count, in the namespace of the pod.
        min_domains: With fewer topologies than this, the fewest pods count as 0.
        honor_affinity: Whether only nodes that match the pod's node affinity count.
        honor_taints: Whether only nodes whose taints the pod tolerates count.
    """

    max_skew: int
    topology_key: str
    selector: LabelSelector
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False

    @classmethod
    def read(cls, constraint: Fields, labels: Mapping[str, str]) -> "SpreadConstraint":
        """Read a constraint.

        Args:
            labels: The labels of the pod that has it, for `matchLabelKeys`.
        """
        selector = constraint.selector("labelSelector")
        selector = _merged(selector, constraint.texts("matchLabelKeys"), labels, SelectorOperator.EQUALS)
        return cls(
            constraint.integer("maxSkew", 1),
            constraint.text("topologyKey"),
            selector,
            constraint.integer("minDomains", 1),
            constraint.text("nodeAffinityPolicy", "Honor") == "Honor",
            constraint.text("nodeTaintsPolicy", "Ignore") == "Honor",
        )

    def counts(self, namespace: str, labels: Mapping[str, str], *, own_namespace: str) -> bool:
        """Return whether a pod on a node counts; an empty selector counts none, as in the scheduler.

        Args:
            namespace: The namespace of the pod on the node.
            own_namespace: The namespace of the pod that has the constraint.
        """
        # countPodsMatchSelector returns 0 for an empty selector, although it would match every pod.
        return namespace == own_namespace and bool(self.selector.requirements) and self.selector.matches(labels)


def _merged(
    selector: LabelSelector, keys: tuple[str, ...] | list[str], labels: Mapping[str, str], operator: SelectorOperator
) -> LabelSelector:
    added = tuple(Requirement(key, operator, (labels[key],)) for key in keys if key in labels)
    if selector.nothing or not added:
        return selector
    return LabelSelector(tuple(sorted((*selector.requirements, *added), key=lambda each: each.key)))
