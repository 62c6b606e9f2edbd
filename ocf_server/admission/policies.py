"""Enforcement of ValidatingAdmissionPolicies.

Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/; the error texts are those
of a real API server. There is no audit log: the validation action `Audit` and audit annotations have no effect, except
that an audit annotation that cannot be evaluated denies the request if the failure policy is `Fail`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.errors import ApiError, StatusCause, api_error
from ocf_server.admission.conditions import ConditionError
from ocf_server.admission.invocations import Invocation, Misconfiguration, fails_closed, invocations
from ocf_server.admission.policy_evaluation import CompiledPolicies, PolicyEvaluation, denial_text, denied_name
from ocf_server.cel.environment import (
    BOOLEAN,
    TEXT,
    TEXT_OR_NULL,
    Budget,
    CompiledExpression,
    Environment,
    OutOfBudgetError,
)
from ocf_server.cel.values import EvaluationError
from ocf_server.registry.pending_write import Review
from ocf_server.registry.registry import Registry

__all__ = ["PolicyEngine"]

_KIND: Final = "ValidatingAdmissionPolicy"
_CODES: Final = {"Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
# MaxEvaluatedMessageExpressionSizeBytes.
_MAX_MESSAGE_BYTES: Final = 5 * 1024


@dataclass(frozen=True, slots=True)
class _Validation:
    """A compiled validation of a policy."""

    given: Mapping[str, Any]
    expression: CompiledExpression
    message: CompiledExpression | None


@dataclass(frozen=True, slots=True)
class _Rules:
    """The compiled expressions of a policy."""

    validations: tuple[_Validation, ...]
    annotations: tuple[CompiledExpression, ...]

    @classmethod
    def of(cls, environment: Environment, spec: Mapping[str, Any]) -> "_Rules":
        validations = tuple(_compiled(environment, given) for given in spec.get("validations") or ())
        annotations = tuple(
            environment.compiled(given["valueExpression"].strip(), TEXT_OR_NULL)
            for given in spec.get("auditAnnotations") or ()
        )
        return cls(validations, annotations)


def _compiled(environment: Environment, given: Mapping[str, Any]) -> _Validation:
    text = given.get("messageExpression")
    message = environment.compiled(text, TEXT, authorizer=False) if text else None
    return _Validation(given, environment.compiled(given["expression"], BOOLEAN), message)


@dataclass(frozen=True, slots=True)
class _Denial:
    """A failed validation.

    Args:
        reason: Its reason; empty for the default.
        config: Whether the policy or the binding itself is at fault; such a denial ignores `validationActions`.
    """

    message: str
    reason: str = ""
    config: bool = False


class PolicyEngine:
    """Evaluates the ValidatingAdmissionPolicies of a cluster.

    Args:
        registry: The registry with the policies, their bindings and parameters.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._policies = CompiledPolicies(_Rules.of)

    def enforce(self, review: Review) -> None:
        """Evaluate all policies for a write, and pass on their warnings.

        Raises:
            ApiError: If a policy denies the write.
        """
        denied: list[tuple[str, str, _Denial]] = []
        warnings: list[str] = []
        for found in invocations(self._registry, _KIND, review):
            if isinstance(found, Misconfiguration):
                if fails_closed(found.policy):
                    name = found.policy["metadata"]["name"]
                    denied.append((name, found.binding, _Denial(found.text, config=True)))
                continue
            for denial in self._validated(found, review):
                if denial.config or "Deny" in found.actions:
                    denied.append((found.name, found.binding, denial))
                if not denial.config and "Warn" in found.actions:
                    place = f"ValidatingAdmissionPolicy '{found.name}' with binding '{found.binding}'"
                    warnings.append(f"Validation failed for {place}: {denial.message}")
        # Not before all policies are evaluated: the evaluation is repeated if an object has to be converted.
        for text in warnings:
            review.options.warn(text)
        if denied:
            # One reason and one code fit in a response: those of the first denial.
            raise _error(review, *denied[0])

    def _validated(self, found: Invocation, review: Review) -> Iterator[_Denial]:
        closed = fails_closed(found.policy)
        evaluation = PolicyEvaluation.of(self._registry, found, review)
        try:
            if not evaluation.is_selected():
                return
        except ConditionError as error:
            if closed:
                yield _Denial(str(error))
            return
        policy = self._policies.of(found.policy)
        values, budget = evaluation.inputs(policy.environment)
        try:
            denials = [*_denials(policy.rules, values, budget, closed=closed)]
        except OutOfBudgetError as error:
            denials = [_Denial(str(error))] if closed else []
        yield from denials


def _denials(rules: _Rules, values: Mapping[str, Any], budget: Budget, *, closed: bool) -> Iterator[_Denial]:
    for validation in rules.validations:
        try:
            if validation.expression.evaluate(values, budget) is not True:
                yield _Denial(_message(validation, values, budget), validation.given.get("reason") or "Invalid")
        except EvaluationError as error:
            if closed:
                yield _Denial(str(error))
    for annotation in rules.annotations:
        try:
            annotation.evaluate(values, budget)
        except EvaluationError as error:
            if closed:
                yield _Denial(str(error), config=True)


def _message(validation: _Validation, values: Mapping[str, Any], budget: Budget) -> str:
    text = ""
    if validation.message is not None:
        try:
            value = validation.message.evaluate(values, budget)
        except EvaluationError:
            value = ""
        text = value.strip() if isinstance(value, str) else ""
        # A message that does not fit in one line of an error is replaced by the fixed one, as one that cannot be
        # evaluated.
        if len(text.encode()) > _MAX_MESSAGE_BYTES or "\n" in text:
            text = ""
    text = text or (validation.given.get("message") or "").strip()
    return text or f"failed expression: {validation.given['expression'].strip()}"


def _error(review: Review, policy: str, binding: str, denial: _Denial) -> ApiError:
    text = denial_text(f"ValidatingAdmissionPolicy '{policy}'", binding, denial.message)
    reason = denial.reason or "Invalid"
    return api_error(
        f'{review.resource.group_resource} "{denied_name(review)}" is forbidden: {text}',
        code=_CODES[reason],
        reason=reason,
        causes=[StatusCause("", text)],
    )
