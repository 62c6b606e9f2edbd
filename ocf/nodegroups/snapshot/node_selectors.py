"""Node selectors, taints and tolerations.

Source: `k8s.io/component-helpers/scheduling/corev1` and `k8s.io/api/core/v1/toleration.go` of Kubernetes 1.36.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ocf.nodegroups.snapshot.fields import Fields
from ocf.objects.label_requirements import Requirement, SelectorOperator

__all__ = ["NodeSelectorTerm", "Taint", "Toleration", "matches_any", "read_terms", "untolerated"]

_OPERATORS: Final = {
    "In": SelectorOperator.IN,
    "NotIn": SelectorOperator.NOT_IN,
    "Exists": SelectorOperator.EXISTS,
    "DoesNotExist": SelectorOperator.DOES_NOT_EXIST,
    "Gt": SelectorOperator.GREATER_THAN,
    "Lt": SelectorOperator.LESS_THAN,
}
_NAME: Final = "metadata.name"
_HARD: Final = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """One term of a node selector; all of its requirements must hold.

    Args:
        expressions: Requirements on the labels of a node.
        names: Requirements on the name of a node: the name, and whether it must be that name or must not.
        valid: Whether the term can match: as in the scheduler, a term with an invalid requirement matches no node.
        name_sets: The values of each `In` requirement on the name, however many values it has.
    """

    expressions: tuple[Requirement, ...] = ()
    names: tuple[tuple[str, bool], ...] = ()
    valid: bool = True
    name_sets: tuple[frozenset[str], ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the term matches a node with this name and these labels."""
        return (
            self.valid
            and all(each.matches(labels) for each in self.expressions)
            and all((name == value) is wanted for value, wanted in self.names)
        )


def read_terms(terms: Iterable[Fields]) -> tuple[NodeSelectorTerm, ...]:
    """Read the terms of a node selector; an empty term matches no node.

    Args:
        terms: The entries of `nodeSelectorTerms`.
    """
    return tuple(map(_term, terms))


def matches_any(terms: Iterable[NodeSelectorTerm], name: str, labels: Mapping[str, str]) -> bool:
    """Return whether one of the terms matches a node."""
    return any(term.matches(name, labels) for term in terms)


def _term(term: Fields) -> NodeSelectorTerm:
    expressions, fields = list(term.items("matchExpressions")), list(term.items("matchFields"))
    # A nil or empty term matches no object (k8s.io/component-helpers, isEmptyNodeSelectorTerm).
    if not expressions and not fields:
        return NodeSelectorTerm(valid=False)
    requirements = tuple(filter(None, map(_requirement, expressions)))
    valid = len(requirements) == len(expressions) and not any(any(each.problems()) for each in requirements)
    names: list[tuple[str, bool]] = []
    name_sets: list[frozenset[str]] = []
    for each in fields:
        operator, values = each.text("operator"), each.texts("values")
        if each.text("key") != _NAME or operator not in ("In", "NotIn"):
            each.reject("must be metadata.name with the operator In or NotIn")
            valid = False
            continue
        if operator == "In":
            name_sets.append(frozenset(values))
        # The API server demands exactly one value here; with more, the helper finds no match.
        if len(values) == 1:
            names.append((values[0], operator == "In"))
        else:
            valid = False
    return NodeSelectorTerm(requirements, tuple(names), valid, tuple(name_sets))


def _requirement(expression: Fields) -> Requirement | None:
    operator = expression.text("operator")
    if operator not in _OPERATORS:
        expression.reject(f"must be one of {', '.join(_OPERATORS)}, not {operator!r}", "operator")
        return None
    return Requirement(expression.text("key"), _OPERATORS[operator], tuple(sorted(set(expression.texts("values")))))


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node.

    Args:
        effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    """

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    @classmethod
    def read(cls, taint: Fields) -> "Taint":
        """Read a taint."""
        return cls(taint.text("key"), taint.text("value"), taint.text("effect"))


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod.

    The operators `Lt` and `Gt` match no taint: the feature gate of the scheduler for them is off by default in 1.36.

    Args:
        key: The key; empty for all keys.
        operator: `Exists` or `Equal`; empty for `Equal`.
        value: The value for `Equal`.
        effect: The effect; empty for all effects.

    Example:
        >>> Toleration(operator="Exists").tolerates(Taint("dedicated", "gpu"))
        True
    """

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    @classmethod
    def read(cls, toleration: Fields) -> "Toleration":
        """Read a toleration."""
        return cls(*(toleration.text(key) for key in ("key", "operator", "value", "effect")))

    def tolerates(self, taint: Taint) -> bool:
        """Return whether the pod tolerates a taint."""
        if self.effect and self.effect != taint.effect:
            return False
        # An empty key tolerates all keys; validation demands the operator Exists then, which is not repeated here.
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first taint that keeps pods off a node and is not tolerated; None if there is none.

    Args:
        taints: The taints of the node; those with the effect `PreferNoSchedule` are only a preference.
        tolerations: The tolerations of the pod.
    """
    accepted = tuple(tolerations)
    for taint in taints:
        if taint.effect in _HARD and not any(each.tolerates(taint) for each in accepted):
            return taint
    return None
