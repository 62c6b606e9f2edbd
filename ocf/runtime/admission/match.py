"""Which requests a webhook or an admission policy is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

from ocf.errors import BuildError, ManifestError
from ocf.objects.name_validation import qualified_name
from ocf.objects.selectors import LabelSelector
from ocf.schema.builtin import is_builtin_group

__all__ = ["Match", "Operation"]

_NAME: Final = "kubernetes.io/metadata.name"  # the API server sets it on each namespace

SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease")
"""The namespaces that Kubernetes itself needs."""

Scope: TypeAlias = Literal["*", "Namespaced", "Cluster"]


class Operation(StrEnum):
    """Operation of an admission request."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which requests for a resource a webhook or an admission policy is for.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-rules.

    Args:
        operations: Operations of the request.
        subresources: Subresources: `""` for the object itself, `"status"`, and `"*"` for all subresources.
        scope: Whether the objects have a namespace: `"Namespaced"`, `"Cluster"`, or `"*"` for both.
        namespaces: Label selector of the namespaces, with `matchLabels` and `matchExpressions`. Objects without a
            namespace are always selected, but a Namespace is selected by its own labels.
        objects: Label selector of the objects; the old or the new labels have to match. Whoever writes an object can
            avoid a rule that selects by its labels.
        conditions: Conditions in CEL by name, of which each has to be true for the request.
        policy: `"Equivalent"` also matches requests for other versions of the resource, `"Exact"` does not.
        everywhere: Whether the namespaces of Kubernetes and the namespace of the operator are included; None includes
            them only for custom resources. While a webhook of Pods cannot be called, no Pod of its namespaces starts,
            and so neither does the Pod that would serve it.

    Raises:
        BuildError: If there is no operation or no subresource, or a selector or the name of a condition is invalid.

    Example:
        >>> Match(namespaces={"matchLabels": {"team": "web"}}).namespace_selector(["ops"])
        {'matchLabels': {'team': 'web'}, 'matchExpressions': [{'key': 'kubernetes.io/metadata.name', \
'operator': 'NotIn', 'values': ['ops']}]}
    """

    operations: Sequence[Operation] = (Operation.CREATE, Operation.UPDATE)
    subresources: Sequence[str] = ("",)
    scope: Scope = "*"
    namespaces: Mapping[str, Any] = field(default_factory=dict)
    objects: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    policy: Literal["Equivalent", "Exact"] = "Equivalent"
    everywhere: bool | None = None

    def __post_init__(self) -> None:
        problems = []
        if not self.operations:
            problems.append("a match needs at least one operation, such as Operation.CREATE")
        for name, allowed, value in (
            ("scope", ("*", "Namespaced", "Cluster"), self.scope),
            ("policy", ("Equivalent", "Exact"), self.policy),
            ("everywhere", (None, True, False), self.everywhere),
        ):
            if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
                problems.append(f"`{name}` of a match must be one of {', '.join(map(repr, allowed))}, got {value!r}")
        if isinstance(self.operations, str) or not all(isinstance(one, Operation) for one in self.operations):
            seen = repr(self.operations)
            problems.append(f"`operations` of a match must be a list such as [Operation.CREATE], got {seen:.60}")
        if isinstance(self.subresources, str):
            seen = repr(self.subresources)
            problems.append(f'`subresources` of a match must be a list such as ["", "status"], got {seen:.60}')
        if not self.subresources:
            problems.append('a match needs at least one subresource; "" is the object itself')
        for name, selector in (("namespaces", self.namespaces), ("objects", self.objects)):
            try:
                LabelSelector.of(selector)
            except ManifestError as error:
                problems.append(f"the label selector `{name}` of a match is invalid: {error}")
        problems += [
            f'the name of a condition must be such as not-a-node or example.com/not-a-node, got "{name}"'
            for name in self.conditions
            if qualified_name(name)
        ]
        problems += [
            f'the condition "{name}" of a match has no expression' for name, text in self.conditions.items() if not text
        ]
        if problems:
            raise BuildError(problems)

    def has_subresource(self, subresource: str) -> bool:
        """Return whether requests for a subresource match; empty is the object itself."""
        return subresource in self.subresources or (bool(subresource) and "*" in self.subresources)

    def rule(self, group: str, version: str, plural: str) -> dict[str, Any]:
        """Return the rule of a webhook, or the resource rule of a policy."""
        resources = [f"{plural}/{part}" if part else plural for part in self.subresources]
        return {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": [str(operation) for operation in self.operations],
            "resources": resources,
            "scope": self.scope,
        }

    def left_out(self, group: str, own: Sequence[str]) -> list[str]:
        """Return the namespaces that are left out for a resource.

        Args:
            group: Its group.
            own: The namespaces of the operator.
        """
        # Most groups need no look at the table of built-in kinds.
        may_be_built_in = "." not in group or group.endswith(".k8s.io")
        everywhere = self.everywhere
        if everywhere is None:
            everywhere = not (group == "*" or (may_be_built_in and is_builtin_group(group)))
        return [] if everywhere else [*dict.fromkeys((*SYSTEM_NAMESPACES, *own))]

    def namespace_selector(self, without: Sequence[str]) -> dict[str, Any]:
        """Return the label selector of namespaces, which leaves some out.

        Args:
            without: Names of namespaces that do not match.
        """
        selector = dict(self.namespaces)
        if without:
            left_out = {"key": _NAME, "operator": "NotIn", "values": list(without)}
            selector["matchExpressions"] = [*(self.namespaces.get("matchExpressions") or ()), left_out]
        return selector

    def match_conditions(self) -> list[dict[str, str]]:
        """Return the match conditions, as manifests have them."""
        return [{"name": name, "expression": expression} for name, expression in self.conditions.items()]
