"""Validation of admission policies and their bindings; the error texts are those of a real API server."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from ocf.objects.name_validation import dns_1035_label, dns_subdomain, path_segment, qualified_name
from ocf_server.registry.match_validation import (
    choice_errors,
    condition_errors,
    expression_errors,
    match_resources_errors,
)
from ocf_server.validation.fields import label_selector

if TYPE_CHECKING:
    from ocf_server.cel.environment import Environment

__all__ = ["binding_errors", "binding_target_errors", "constraint_errors", "policy_errors", "variable_errors"]

_Fields = Mapping[str, Any]

_ACTIONS: Final = ("Audit", "Deny", "Warn")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
# maxAuditAnnotations and maxAuditAnnotationValueExpressionLength.
_MAX_ANNOTATIONS: Final = 20
_MAX_ANNOTATION_BYTES: Final = 5 * 1024
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_NO_RULES: Final = "validations or auditAnnotations must contain at least one item"
_REPEATED: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)


def policy_errors(policy: Manifest) -> Iterator[FieldError]:
    """Validate a ValidatingAdmissionPolicy.

    Args:
        policy: The policy, defaulted.

    Yields:
        The errors.

    Raises:
        BadRequestError: If an expression uses a feature of CEL that the embedded cluster does not support.
    """
    spec = policy["spec"]
    yield from constraint_errors(spec)
    yield from _expressions_errors(policy["metadata"].get("name", ""), spec)


def constraint_errors(spec: _Fields, operation_errors: Iterable[FieldError] = ()) -> Iterator[FieldError]:
    """Validate what selects the requests of a policy: its failure policy, parameters, constraints and conditions.

    Args:
        spec: The spec of the policy, defaulted.
        operation_errors: The errors of the operations in its rules, which stand after those of its constraints.
    """
    kind = spec.get("paramKind")
    yield from choice_errors(spec, "failurePolicy", ("Fail", "Ignore"), "spec")
    if kind is not None:
        yield from _param_kind_errors(kind, "spec.paramKind")
    match = spec.get("matchConstraints")
    if match is None:
        yield required("spec.matchConstraints")
    else:
        yield from match_resources_errors(match, "spec.matchConstraints")
        if not match.get("resourceRules"):
            yield required("spec.matchConstraints.resourceRules")
    yield from operation_errors
    yield from condition_errors(spec.get("matchConditions") or (), "spec.matchConditions", params=kind is not None)


def _expressions_errors(name: str, spec: _Fields) -> Iterator[FieldError]:
    from ocf_server.cel.environment import Environment

    variables, validations = spec.get("variables") or (), spec.get("validations") or ()
    environment = Environment.of_policy(spec)
    for index, variable in enumerate(variables):
        yield from variable_errors(environment, variable, f"spec.variables[{index}]")
    annotations = spec.get("auditAnnotations") or []
    if not validations and not annotations:
        yield required("spec.validations", _NO_RULES)
        yield required("spec.auditAnnotations", _NO_RULES)
    for index, validation in enumerate(validations):
        yield from _validation_errors(environment, validation, f"spec.validations[{index}]")
    if len(annotations) > _MAX_ANNOTATIONS:
        text = f"must not have more than {_MAX_ANNOTATIONS} auditAnnotations"
        yield invalid("spec.auditAnnotations", annotations, text)
    for index, annotation in enumerate(annotations):
        path = f"spec.auditAnnotations[{index}]"
        yield from _annotation_errors(environment, name, annotation, path)
        if any(annotation.get("key") == other.get("key") for other in annotations[:index]):
            yield duplicate(f"{path}.key", annotation.get("key", ""))


def _param_kind_errors(kind: _Fields, path: str) -> Iterator[FieldError]:
    api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    group, _, version = api_version.rpartition("/")
    if not api_version:
        yield required(f"{path}.apiVersion")
    elif api_version.count("/") > 1:
        yield invalid(f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}")
    else:
        if group and (problems := dns_subdomain(group)):
            yield invalid(f"{path}.apiVersion", group, ",".join(problems))
        if not version:
            yield invalid(f"{path}.apiVersion", api_version, "version must be specified")
        elif problems := dns_1035_label(version):
            yield invalid(f"{path}.apiVersion", version, ",".join(problems))
    if not name:
        yield required(f"{path}.kind")
    elif problems := dns_1035_label(name.lower()):
        text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        yield invalid(f"{path}.kind", name, text)


def variable_errors(environment: "Environment", variable: _Fields, path: str) -> Iterator[FieldError]:
    """Validate a variable of a policy, and declare it in the environment of the later expressions."""
    from ocf_server.cel.types import RESERVED

    name, text = variable.get("name", ""), variable.get("expression", "")
    if not name.strip():
        yield required(f"{path}.name", "name is not specified")
    elif not _IDENTIFIER.fullmatch(name) or name in RESERVED:
        yield invalid(f"{path}.name", name, "must be a valid CEL identifier")
    if text.strip():
        yield from expression_errors(environment.add_variable(name, text), f"{path}.expression")
    else:
        yield required(f"{path}.expression", "expression is not specified")


def _validation_errors(environment: "Environment", validation: _Fields, path: str) -> Iterator[FieldError]:
    from ocf_server.cel.environment import BOOLEAN, TEXT

    text, message = validation.get("expression", ""), validation.get("message", "")
    if text.strip():
        yield from expression_errors(environment.compiled(text, BOOLEAN), f"{path}.expression")
    else:
        yield required(f"{path}.expression", "expression is not specified")
    message_text = validation.get("messageExpression", "")
    if message_text.strip():
        compiled = environment.compiled(message_text, TEXT, authorizer=False)
        yield from expression_errors(compiled, f"{path}.messageExpression")
    elif message_text:
        yield invalid(f"{path}.messageExpression", message_text, "must be non-empty if specified")
    if message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif re.search(r"[\n\r]", message.strip()):
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    reason = validation.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{path}.reason", reason, _REASONS)


def _annotation_errors(environment: "Environment", name: str, annotation: _Fields, path: str) -> Iterator[FieldError]:
    from ocf_server.cel.environment import TEXT_OR_NULL

    key, text = annotation.get("key", ""), annotation.get("valueExpression", "").strip()
    if name:
        yield from (invalid(f"{path}.key", f"{name}/{key}", problem) for problem in qualified_name(f"{name}/{key}"))
    else:
        yield invalid(f"{path}.key", key, "requires metadata.name be non-empty")
    if not text:
        yield required(f"{path}.valueExpression", "valueExpression is not specified")
    elif len(text.encode()) > _MAX_ANNOTATION_BYTES:
        yield required(f"{path}.valueExpression", f"must not exceed {_MAX_ANNOTATION_BYTES} bytes in length")
    else:
        yield from expression_errors(environment.compiled(text, TEXT_OR_NULL), f"{path}.valueExpression")


def binding_errors(binding: Manifest) -> Iterator[FieldError]:
    """Validate a ValidatingAdmissionPolicyBinding.

    Args:
        binding: The binding, defaulted.

    Yields:
        The errors.
    """
    spec = binding["spec"]
    yield from binding_target_errors(spec)
    yield from _action_errors(spec.get("validationActions") or [], "spec.validationActions")


def binding_target_errors(spec: _Fields) -> Iterator[FieldError]:
    """Validate the policy, the parameters and the match resources of a binding."""
    name = spec.get("policyName", "")
    if not name:
        yield required("spec.policyName")
    yield from (invalid("spec.policyName", name, problem) for problem in (dns_subdomain(name) if name else ()))
    if spec.get("paramRef") is not None:
        yield from _param_ref_errors(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        yield from match_resources_errors(spec["matchResources"], "spec.matchResources")


def _param_ref_errors(reference: _Fields, path: str) -> Iterator[FieldError]:
    name, selector = reference.get("name", ""), reference.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        yield from (invalid(f"{path}.name", name, problem) for problem in path_segment(name))
        if selector is not None:
            yield forbidden(f"{path}.name", exclusive)
    if selector is not None:
        yield from label_selector(selector, f"{path}.selector")
        if name:
            yield forbidden(f"{path}.selector", exclusive)
    if not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction")
    if not action:
        yield required(f"{path}.parameterNotFoundAction")
    elif action not in ("Deny", "Allow"):
        yield not_supported(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))


def _action_errors(actions: list[str], path: str) -> Iterator[FieldError]:
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield not_supported(f"{path}[{index}]", action, _ACTIONS)
        if action in actions[:index]:
            yield duplicate(f"{path}[{index}]", action)
    if {"Deny", "Warn"} <= set(actions):
        yield invalid(path, actions, _REPEATED)
    if not actions:
        yield required(path, "at least one validation action is required")
