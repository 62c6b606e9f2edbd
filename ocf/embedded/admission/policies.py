"""Enforcement of ValidatingAdmissionPolicies.

Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/; the error texts are those
of a real API server. There is no audit log: the validation action `Audit` and audit annotations have no effect, except
that an audit annotation that cannot be evaluated denies the request if the failure policy is `Fail`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.embedded.admission.conditions import ConditionError, conditions_match
from ocf.embedded.admission.invocations import ConfigError, Invocation, fails_closed, invocations, review_namespace
from ocf.embedded.admission.review import admission_request, converted
from ocf.embedded.cel.environment import (
    BOOLEAN,
    MAX_POLICY_STEPS,
    TEXT,
    TEXT_OR_NULL,
    Budget,
    Environment,
    Expression,
    OutOfBudgetError,
    namespace_value,
)
from ocf.embedded.cel.values import EvaluationError
from ocf.embedded.registry.pending_write import Review
from ocf.embedded.registry.registry import Registry
from ocf.errors import ApiError, StatusCause, api_error
from ocf.objects import Manifest

__all__ = ["PolicyEngine"]

_KIND: Final = "ValidatingAdmissionPolicy"
_CODES: Final = {"Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
_MAX_MESSAGE_BYTES: Final = 5 * 1024


@dataclass(frozen=True, slots=True)
class _Validation:
    """A compiled validation of a policy."""

    given: Mapping[str, Any]
    expression: Expression
    message: Expression | None


@dataclass(frozen=True, slots=True)
class _Policy:
    """A compiled policy."""

    given: Manifest
    environment: Environment
    validations: tuple[_Validation, ...]
    annotations: tuple[Expression, ...]

    @classmethod
    def of(cls, policy: Manifest) -> "_Policy":
        spec = policy["spec"]
        environment = Environment(params=bool(spec.get("paramKind")), compose=bool(spec.get("variables")))
        for variable in spec.get("variables") or ():
            environment.add_variable(variable["name"], variable["expression"])
        validations = tuple(_compiled(environment, given) for given in spec.get("validations") or ())
        annotations = tuple(
            environment.compiled(given["valueExpression"].strip(), TEXT_OR_NULL)
            for given in spec.get("auditAnnotations") or ()
        )
        return cls(policy, environment, validations, annotations)

    @property
    def spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.given["spec"]
        return spec

    @property
    def fails_closed(self) -> bool:
        return fails_closed(self.given)


def _compiled(environment: Environment, given: Mapping[str, Any]) -> _Validation:
    text = given.get("messageExpression")
    message = environment.compiled(text, TEXT, authorizer=False) if text else None
    return _Validation(given, environment.compiled(given["expression"], BOOLEAN), message)


@dataclass(frozen=True, slots=True)
class _Denial:
    """A failed validation.

    Args:
        message: Its message.
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
        self._policies: dict[str, _Policy] = {}

    def enforce(self, review: Review) -> None:
        """Evaluate all policies for a write, and pass on their warnings.

        Args:
            review: The write, in the validating phase.

        Raises:
            ApiError: If a policy denies the write.
        """
        denied: list[tuple[str, str, _Denial]] = []
        warnings: list[str] = []
        for found in invocations(self._registry, _KIND, review):
            if isinstance(found, ConfigError):
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
            raise _error(review, *denied[0])

    def _compiled(self, name: str, policy: Manifest) -> _Policy:
        known = self._policies.get(name)
        if known is None or known.given is not policy:
            known = self._policies[name] = _Policy.of(policy)
        return known

    def _validated(self, found: Invocation, review: Review) -> Iterator[_Denial]:
        policy = self._compiled(found.name, found.policy)
        values = {
            "object": converted(self._registry, review.object, found.resource, review),
            "oldObject": converted(self._registry, review.old, found.resource, review),
            "request": admission_request(found.resource, review),
            "params": found.param,
        }
        has_params = bool(policy.spec.get("paramKind"))
        try:
            if not conditions_match(policy.spec.get("matchConditions") or (), values, params=has_params):
                return
        except ConditionError as error:
            if policy.fails_closed:
                yield _Denial(str(error))
            return
        budget = Budget(MAX_POLICY_STEPS)
        namespace = namespace_value(review_namespace(self._registry, review))
        given = policy.environment.values(budget, namespaceObject=namespace, **values)
        try:
            denials = [*_denials(policy, given, budget)]
        except OutOfBudgetError as error:
            denials = [_Denial(str(error))] if policy.fails_closed else []
        yield from denials


def _denials(policy: _Policy, values: Mapping[str, Any], budget: Budget) -> Iterator[_Denial]:
    for validation in policy.validations:
        try:
            if validation.expression.evaluate(values, budget) is not True:
                yield _Denial(_message(validation, values, budget), validation.given.get("reason") or "Invalid")
        except EvaluationError as error:
            if policy.fails_closed:
                yield _Denial(str(error))
    for annotation in policy.annotations:
        try:
            annotation.evaluate(values, budget)
        except EvaluationError as error:
            if policy.fails_closed:
                yield _Denial(str(error), config=True)


def _message(validation: _Validation, values: Mapping[str, Any], budget: Budget) -> str:
    text = ""
    if validation.message is not None:
        try:
            value = validation.message.evaluate(values, budget)
        except EvaluationError:
            value = ""
        text = value.strip() if isinstance(value, str) else ""
        if len(text.encode()) > _MAX_MESSAGE_BYTES or "\n" in text:
            text = ""
    text = text or (validation.given.get("message") or "").strip()
    return text or f"failed expression: {validation.given['expression'].strip()}"


def _error(review: Review, policy: str, binding: str, denial: _Denial) -> ApiError:
    bound = f" with binding '{binding}'" if binding else ""
    text = f"ValidatingAdmissionPolicy '{policy}'{bound} denied request: {denial.message}"
    metadata = (review.object or review.old or {}).get("metadata") or {}
    name = review.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    reason = denial.reason or "Invalid"
    return api_error(
        f'{review.resource.group_resource} "{name}" is forbidden: {text}',
        code=_CODES[reason],
        reason=reason,
        causes=[StatusCause("", text)],
    )
