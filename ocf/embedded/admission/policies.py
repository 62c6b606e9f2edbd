"""Enforcement of ValidatingAdmissionPolicies.

Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/; the error texts are those
of a real API server. There is no audit log: the validation action `Audit` and audit annotations have no effect, except
that an audit annotation that cannot be evaluated denies the request if the failure policy is `Fail`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.embedded.admission.conditions import ConditionError, conditions_match
from ocf.embedded.admission.matching import matched_resource, request_namespace
from ocf.embedded.admission.params import ParamError, collected_params, param_resource
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
from ocf.schema.builtin import ApiResource

__all__ = ["PolicyEngine"]

_ADMISSION: Final = "admissionregistration.k8s.io"
_POLICY: Final = (_ADMISSION, "ValidatingAdmissionPolicy")
_BINDING: Final = (_ADMISSION, "ValidatingAdmissionPolicyBinding")
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
        return self.spec.get("failurePolicy") != "Ignore"


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
        self._warnings: list[str] = []

    def enforce(self, review: Review) -> None:
        """Evaluate all policies for a write, and pass on their warnings.

        Args:
            review: The write, in the validating phase.

        Raises:
            ApiError: If a policy denies the write.
        """
        if review.resource.group == _ADMISSION and "AdmissionPolicy" in review.resource.kind:
            # Otherwise a broken policy could prevent its own change. Webhook configurations are not exempt.
            return
        denied: list[tuple[str, str, _Denial]] = []
        self._warnings = []
        bindings = [binding for _, binding in self._registry.store.objects(_BINDING)]
        for (_, name), policy in self._registry.store.objects(_POLICY):
            bound = [binding for binding in bindings if binding["spec"]["policyName"] == name]
            if bound:
                denied += self._evaluate(self._compiled(name, policy), bound, review)
        # Not before all policies are evaluated: the evaluation is repeated if an object has to be converted.
        for text in self._warnings:
            review.options.warn(text)
        if denied:
            raise _error(review, *denied[0])

    def _compiled(self, name: str, policy: Manifest) -> _Policy:
        known = self._policies.get(name)
        if known is None or known.given is not policy:
            known = self._policies[name] = _Policy.of(policy)
        return known

    def _evaluate(
        self, policy: _Policy, bindings: list[Manifest], review: Review
    ) -> Iterator[tuple[str, str, _Denial]]:
        name = policy.given["metadata"]["name"]
        resource = matched_resource(self._registry, policy.spec.get("matchConstraints") or {}, review)
        if resource is None:
            return
        try:
            param_kind = param_resource(self._registry, policy.spec.get("paramKind"))
        except ParamError as error:
            if policy.fails_closed:
                yield name, "", _Denial(f"failed to configure policy: {error}", config=True)
            return
        for binding in bindings:
            if matched_resource(self._registry, binding["spec"].get("matchResources") or {}, review) is None:
                continue
            for denial in self._bound(policy, param_kind, binding, review, resource):
                actions = binding["spec"].get("validationActions") or ()
                place = (name, binding["metadata"]["name"])
                if denial.config or "Deny" in actions:
                    yield *place, denial
                if not denial.config and "Warn" in actions:
                    self._warnings.append(
                        f"Validation failed for ValidatingAdmissionPolicy '{place[0]}' with binding '{place[1]}': "
                        f"{denial.message}"
                    )

    def _bound(
        self,
        policy: _Policy,
        param_kind: ApiResource | None,
        binding: Manifest,
        review: Review,
        resource: ApiResource,
    ) -> Iterator[_Denial]:
        """Evaluate a policy for each parameter of a binding."""
        try:
            params = collected_params(
                self._registry, param_kind, binding["spec"].get("paramRef"), request_namespace(review)
            )
        except ParamError as error:
            if policy.fails_closed:
                yield _Denial(f"failed to configure binding: {error}", config=True)
            return
        values = {
            "object": converted(self._registry, review.object, resource, review),
            "oldObject": converted(self._registry, review.old, resource, review),
            "request": admission_request(resource, review),
        }
        for param in params:
            yield from self._validated(policy, {**values, "params": param}, review)

    def _validated(self, policy: _Policy, values: Mapping[str, Any], review: Review) -> Iterator[_Denial]:
        has_params = bool(policy.spec.get("paramKind"))
        try:
            if not conditions_match(policy.spec.get("matchConditions") or (), values, params=has_params):
                return
        except ConditionError as error:
            if policy.fails_closed:
                yield _Denial(str(error))
            return
        budget = Budget(MAX_POLICY_STEPS)
        namespace = namespace_value(self._namespace(review))
        given = policy.environment.values(budget, namespaceObject=namespace, **values)
        try:
            denials = [*_denials(policy, given, budget)]
        except OutOfBudgetError as error:
            denials = [_Denial(str(error))] if policy.fails_closed else []
        yield from denials

    def _namespace(self, review: Review) -> Manifest | None:
        if not review.resource.namespaced:
            return None
        return self._registry.store.get(("", "Namespace"), ("", review.namespace))


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
