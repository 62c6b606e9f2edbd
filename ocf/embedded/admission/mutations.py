"""Mutations of writes by MutatingAdmissionPolicies.

Source: https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/; the error texts are those of
a real API server. Policies run before the webhooks, in the order of their names, which is random on a real API server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf.embedded.admission.conditions import ConditionError, conditions_match
from ocf.embedded.admission.invocations import ConfigError, Invocation, fails_closed, invocations, review_namespace
from ocf.embedded.admission.patches import NO_TYPE, PatchFailedError, applied_configuration, patched
from ocf.embedded.admission.review import admission_request, converted, is_part
from ocf.embedded.api.status_errors import DeniedError
from ocf.embedded.cel.environment import (
    MAX_POLICY_STEPS,
    Budget,
    Environment,
    Expression,
    OutOfBudgetError,
    namespace_value,
)
from ocf.embedded.cel.patch_types import APPLY_CONFIGURATION, JSON_PATCH
from ocf.embedded.cel.values import EvaluationError
from ocf.embedded.registry.pending_write import Review
from ocf.embedded.registry.registry import Registry
from ocf.embedded.registry.request_checks import decode
from ocf.errors import ApiError
from ocf.objects import Manifest

__all__ = ["ConfigError", "MutationEngine", "MutationOutcome", "denied", "fails_closed"]

_KIND: Final = "MutatingAdmissionPolicy"


@dataclass(frozen=True, slots=True)
class _Mutation:
    """A compiled mutation: an apply configuration, or a JSON patch."""

    expression: Expression
    applies: bool


@dataclass(frozen=True, slots=True)
class _Policy:
    """A compiled policy."""

    given: Manifest
    environment: Environment
    mutations: tuple[_Mutation, ...]

    @classmethod
    def of(cls, policy: Manifest) -> "_Policy":
        spec = policy["spec"]
        environment = Environment(params=bool(spec.get("paramKind")), compose=bool(spec.get("variables")))
        for variable in spec.get("variables") or ():
            environment.add_variable(variable["name"], variable["expression"])
        return cls(policy, environment, tuple(_compiled(environment, given) for given in spec["mutations"]))


def _compiled(environment: Environment, given: Mapping[str, Any]) -> _Mutation:
    applies = given["patchType"] == "ApplyConfiguration"
    text = given["applyConfiguration" if applies else "jsonPatch"]["expression"].strip()
    gives = APPLY_CONFIGURATION if applies else JSON_PATCH
    return _Mutation(environment.compiled(text, (gives,), mutates=True), applies)


@dataclass(frozen=True, slots=True)
class MutationOutcome:
    """What the mutations of a policy did.

    Args:
        object: The object with the mutations; the given one if there are none.
        problems: The texts of the errors.
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
        self._policies: dict[str, _Policy] = {}

    def invocations(self, review: Review) -> list[Invocation | ConfigError]:
        """Return the evaluations of policies for a write."""
        return [*invocations(self._registry, _KIND, review)]

    def run(self, invocation: Invocation, review: Review) -> MutationOutcome:
        """Run the mutations of a policy; nothing is changed, since the computation may be repeated.

        Args:
            invocation: The evaluation of the policy.
            review: The write, in the mutating phase.

        Returns:
            The object with the mutations, and what happened.

        Raises:
            ValueError: If a patch leaves an object that cannot be decoded.
        """
        seen = converted(self._registry, review.object, invocation.resource, review)
        values = {
            "oldObject": converted(self._registry, review.old, invocation.resource, review),
            "request": admission_request(invocation.resource, review),
            "params": invocation.param,
        }
        has_params = bool(invocation.policy["spec"].get("paramKind"))
        conditions = invocation.policy["spec"].get("matchConditions") or ()
        try:
            if not conditions_match(conditions, {"object": seen, **values}, params=has_params):
                return MutationOutcome(review.object, matched=False)
        except ConditionError as error:
            return MutationOutcome(review.object, problems=(str(error),), matched=False)
        result, problems, ran = seen, [], False
        for mutation in self._compiled(invocation.policy).mutations:
            if result is None:
                break
            try:
                result = self._patched(mutation, invocation, {**values, "object": result}, review)
                ran = True
            except (EvaluationError, OutOfBudgetError, PatchFailedError) as error:
                problems.append(str(error))
        whole = review.object if result is seen else self._restored(result, invocation, review)
        return MutationOutcome(whole, tuple(problems), ran=ran)

    def _compiled(self, policy: Manifest) -> _Policy:
        name = policy["metadata"]["name"]
        known = self._policies.get(name)
        if known is None or known.given is not policy:
            known = self._policies[name] = _Policy.of(policy)
        return known

    def _patched(
        self, mutation: _Mutation, invocation: Invocation, values: Mapping[str, Any], review: Review
    ) -> Manifest:
        budget = Budget(MAX_POLICY_STEPS)
        namespace = namespace_value(review_namespace(self._registry, review))
        environment = self._compiled(invocation.policy).environment
        given = environment.values(budget, namespaceObject=namespace, **values)
        value = mutation.expression.evaluate(given, budget)
        if is_part(review):
            if mutation.applies:
                kind = admission_request(invocation.resource, review)["kind"]
                shown = f"{kind['group']}/{kind['version']}, Kind={kind['kind']}"
                raise PatchFailedError(f"{NO_TYPE} {shown}")
            return patched(values["object"], value, None)
        if mutation.applies:
            changed = applied_configuration(values["object"], value, invocation.resource)
        else:
            changed = patched(values["object"], value, invocation.resource)
        return decode(changed, invocation.resource)

    def _restored(self, manifest: Manifest | None, invocation: Invocation, review: Review) -> Manifest | None:
        """Return a mutated object in the API version of the request."""
        if manifest is None or is_part(review):
            return manifest
        return decode(self._registry.convert(manifest, invocation.resource, review.resource), review.resource)


def denied(review: Review, problems: Sequence[tuple[ConfigError | Invocation, str]]) -> ApiError:
    """Return the error of a request that policies deny.

    Args:
        review: The write.
        problems: The policies that could not be evaluated, with the texts of the errors.
    """
    texts = [
        f"policy '{of.policy['metadata']['name']}'{_bound(of.binding)} denied request: {text}" for of, text in problems
    ]
    metadata = (review.object or review.old or {}).get("metadata") or {}
    name = review.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    reason = "Forbidden" if isinstance(problems[0][0], ConfigError) else "Invalid"
    return DeniedError(review.resource.group_resource, name, texts, reason)


def _bound(binding: str) -> str:
    return f" with binding '{binding}'" if binding else ""
