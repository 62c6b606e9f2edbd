"""Mutations of writes by MutatingAdmissionPolicies.

Source: https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/; the error texts are those of
a real API server. Policies run before the webhooks, in the order of their names, which is random on a real API server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf.errors import ApiError
from ocf.objects import Manifest
from ocf_server.admission.conditions import ConditionError
from ocf_server.admission.invocations import Invocation, Misconfiguration, fails_closed, invocations
from ocf_server.admission.patches import NO_TYPE, PatchFailedError, applied_configuration, patched
from ocf_server.admission.policy_evaluation import CompiledPolicies, PolicyEvaluation, denial_text, denied_name
from ocf_server.admission.review import is_part
from ocf_server.api.status_errors import DeniedError
from ocf_server.cel.environment import CompiledExpression, Environment, OutOfBudgetError
from ocf_server.cel.patch_types import APPLY_CONFIGURATION, JSON_PATCH
from ocf_server.cel.values import EvaluationError
from ocf_server.registry.pending_write import Review
from ocf_server.registry.registry import Registry
from ocf_server.registry.request_checks import decode

__all__ = ["Misconfiguration", "MutationEngine", "MutationOutcome", "denied", "fails_closed"]

_KIND: Final = "MutatingAdmissionPolicy"


@dataclass(frozen=True, slots=True)
class _Mutation:
    """A compiled mutation: an apply configuration, or a JSON patch."""

    expression: CompiledExpression
    applies: bool


def _compiled(environment: Environment, given: Mapping[str, Any]) -> _Mutation:
    applies = given["patchType"] == "ApplyConfiguration"
    text = given["applyConfiguration" if applies else "jsonPatch"]["expression"].strip()
    gives = APPLY_CONFIGURATION if applies else JSON_PATCH
    return _Mutation(environment.compiled(text, (gives,), mutates=True), applies)


def _mutations(environment: Environment, spec: Mapping[str, Any]) -> tuple[_Mutation, ...]:
    return tuple(_compiled(environment, given) for given in spec["mutations"])


@dataclass(frozen=True, slots=True)
class MutationOutcome:
    """What the mutations of a policy did.

    Args:
        object: The object with the mutations; the given one if there are none.
        ran: Whether a mutation was applied, which makes the API server repeat policies and webhooks, even if it changed
            nothing.
        matched: Whether the match conditions selected the request.
    """

    object: Manifest | None
    problems: tuple[str, ...] = ()
    ran: bool = False
    matched: bool = True


class MutationEngine:
    """Evaluates the MutatingAdmissionPolicies of a cluster.

    Args:
        registry: The registry with the policies, their bindings and parameters.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._policies = CompiledPolicies(_mutations)

    def invocations(self, review: Review) -> list[Invocation | Misconfiguration]:
        """Return the evaluations of policies for a write."""
        return [*invocations(self._registry, _KIND, review)]

    def run(self, invocation: Invocation, review: Review) -> MutationOutcome:
        """Run the mutations of a policy; nothing is changed, since the computation may be repeated.

        Returns:
            The object with the mutations, and what happened.

        Raises:
            ValueError: If a patch leaves an object that cannot be decoded.
        """
        evaluation = PolicyEvaluation.of(self._registry, invocation, review)
        try:
            if not evaluation.is_selected():
                return MutationOutcome(review.object, matched=False)
        except ConditionError as error:
            return MutationOutcome(review.object, problems=(str(error),), matched=False)
        policy = self._policies.of(invocation.policy)
        seen: Manifest | None = evaluation.values["object"]
        result, problems, ran = seen, [], False
        for mutation in policy.rules:
            if result is None:
                break
            try:
                # Each mutation sees the object of those before, and has its own budget.
                values, budget = evaluation.inputs(policy.environment, object=result)
                result = _patched(result, mutation, mutation.expression.evaluate(values, budget), evaluation)
                ran = True
            except (EvaluationError, OutOfBudgetError, PatchFailedError) as error:
                problems.append(str(error))
        whole = review.object if result is seen else self._restored(result, invocation, review)
        return MutationOutcome(whole, tuple(problems), ran=ran)

    def _restored(self, manifest: Manifest | None, invocation: Invocation, review: Review) -> Manifest | None:
        """Return a mutated object in the API version of the request."""
        if manifest is None or is_part(review):
            return manifest
        return decode(self._registry.convert(manifest, invocation.resource, review.resource), review.resource)


def _patched(manifest: Manifest, mutation: _Mutation, value: Any, evaluation: PolicyEvaluation) -> Manifest:
    """Return an object with the value of a mutation."""
    resource = evaluation.invocation.resource
    if is_part(evaluation.review):
        # An apply configuration needs a schema, and Scale, Eviction and Binding have none.
        if mutation.applies:
            kind = evaluation.values["request"]["kind"]
            raise PatchFailedError(f"{NO_TYPE} {kind['group']}/{kind['version']}, Kind={kind['kind']}")
        return patched(manifest, value, None)
    changed = (applied_configuration if mutation.applies else patched)(manifest, value, resource)
    return decode(changed, resource)


def denied(review: Review, problems: Sequence[tuple[Misconfiguration | Invocation, str]]) -> ApiError:
    """Return the error of a request that policies deny.

    Args:
        problems: The policies that could not be evaluated, with the texts of the errors.
    """
    texts = [denial_text(f"policy '{of.policy['metadata']['name']}'", of.binding, text) for of, text in problems]
    # The API server gives the reason of the first problem, and a broken policy has another one than a failed mutation.
    reason = "Forbidden" if isinstance(problems[0][0], Misconfiguration) else "Invalid"
    return DeniedError(review.resource.group_resource, denied_name(review), texts, reason)
