"""Evaluation of an admission policy for a write: the part that validating and mutating policies share.

Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/; the error texts are those
of a real API server.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ocf.objects import Manifest
from ocf_server.admission.conditions import conditions_match
from ocf_server.admission.invocations import Invocation, review_namespace
from ocf_server.admission.review import expression_values
from ocf_server.cel.environment import MAX_POLICY_STEPS, Budget, Environment, namespace_value
from ocf_server.registry.pending_write import Review
from ocf_server.registry.registry import Registry

__all__ = ["CompiledPolicies", "CompiledPolicy", "PolicyEvaluation", "denial_text", "denied_name"]

Rules = TypeVar("Rules")


@dataclass(frozen=True)
class CompiledPolicy(Generic[Rules]):
    """A compiled policy.

    Args:
        environment: The environment with its parameters and variables.
    """

    given: Manifest
    environment: Environment
    rules: Rules


class CompiledPolicies(Generic[Rules]):
    """Compiled policies of a cluster, by name.

    Args:
        rules: Function that compiles the expressions of a policy, given its environment and its spec.
    """

    def __init__(self, rules: Callable[[Environment, Mapping[str, Any]], Rules]) -> None:
        self._rules = rules
        self._known: dict[str, CompiledPolicy[Rules]] = {}

    def of(self, policy: Manifest) -> CompiledPolicy[Rules]:
        """Return a compiled policy; it is compiled on first use and after each change."""
        name, spec = policy["metadata"]["name"], policy["spec"]
        known = self._known.get(name)
        # Stored objects are never changed in place, so the same object is the same policy.
        if known is None or known.given is not policy:
            environment = Environment.of_policy(spec)
            for variable in spec.get("variables") or ():
                environment.add_variable(variable["name"], variable["expression"])
            known = self._known[name] = CompiledPolicy(policy, environment, self._rules(environment, spec))
        return known


@dataclass(frozen=True, slots=True)
class PolicyEvaluation:
    """An evaluation of a policy for a write.

    Args:
        values: Values of `object`, `oldObject`, `request` and `params`.
    """

    registry: Registry
    invocation: Invocation
    review: Review
    values: Mapping[str, Any]

    @classmethod
    def of(cls, registry: Registry, invocation: Invocation, review: Review) -> "PolicyEvaluation":
        """Return the evaluation, with the objects in the API version that the policy matches."""
        values = {**expression_values(registry, invocation.resource, review), "params": invocation.param}
        return cls(registry, invocation, review, values)

    def is_selected(self) -> bool:
        """Return whether the match conditions of the policy select the write.

        Raises:
            ConditionError: If no condition is false and some cannot be evaluated.
        """
        spec = self.invocation.policy["spec"]
        return conditions_match(spec.get("matchConditions") or (), self.values, params=bool(spec.get("paramKind")))

    def inputs(self, environment: Environment, **others: Any) -> tuple[dict[str, Any], Budget]:
        """Return the values of all variables, and a budget for the expressions that use them."""
        budget = Budget(MAX_POLICY_STEPS)
        namespace = namespace_value(review_namespace(self.registry, self.review))
        return environment.values(budget, namespaceObject=namespace, **{**self.values, **others}), budget


def denial_text(policy: str, binding: str, problem: str) -> str:
    """Return the text with which a policy denies a request.

    Args:
        policy: The kind and the name of the policy.
        binding: Name of the binding; empty if the policy itself is at fault.

    Example:
        >>> denial_text("policy 'limits'", "shops", "too large")
        "policy 'limits' with binding 'shops' denied request: too large"
    """
    bound = f" with binding '{binding}'" if binding else ""
    return f"{policy}{bound} denied request: {problem}"


def denied_name(review: Review) -> str:
    """Return the name of the object in the error of a denied write."""
    metadata = (review.object or review.old or {}).get("metadata") or {}
    return str(review.name or metadata.get("name") or metadata.get("generateName") or "Unknown")
