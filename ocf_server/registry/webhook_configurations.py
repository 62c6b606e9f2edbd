"""Validation of the configuration of admission; the error texts are those of a real API server."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError
from ocf_server.api.status_errors import go_json
from ocf_server.registry.match_validation import condition_errors, rule_errors
from ocf_server.registry.mutation_validation import mutating_binding_errors, mutating_policy_errors
from ocf_server.registry.policy_validation import binding_errors, policy_errors
from ocf_server.validation.fields import label_selector

__all__ = ["admission_problems"]

_VERSIONS: Final = ("v1", "v1beta1")
# `name.domain.tld`: the name of a webhook is in a domain.
_LEAST_SEGMENTS: Final = 3
_LONGEST_TIMEOUT: Final = 30
_CHOICES: Final = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
}


def admission_problems(configuration: Manifest) -> Iterator[FieldProblem]:
    """Validate a webhook configuration, an admission policy or a binding.

    Args:
        configuration: The object, defaulted.

    Yields:
        The violations.

    Raises:
        BadRequestError: If an expression uses a feature of CEL that the embedded cluster does not support.
    """
    match configuration["kind"]:
        case "ValidatingAdmissionPolicy":
            yield from _problems(policy_errors(configuration))
        case "ValidatingAdmissionPolicyBinding":
            yield from _problems(binding_errors(configuration))
        case "MutatingAdmissionPolicy":
            yield from _problems(mutating_policy_errors(configuration))
        case "MutatingAdmissionPolicyBinding":
            yield from _problems(mutating_binding_errors(configuration))
        case _:
            yield from _configuration_problems(configuration.get("webhooks") or ())


def _configuration_problems(webhooks: Sequence[Mapping[str, Any]]) -> Iterator[FieldProblem]:
    names: set[str] = set()
    for index, webhook in enumerate(webhooks):
        yield from _webhook_problems(webhook, f"webhooks[{index}]")
        name = webhook.get("name", "")
        if name and name in names:
            yield FieldProblem(f"webhooks[{index}].name", f"Duplicate value: {go_json(name)}")
        names.add(name)


def _problems(errors: Iterator[FieldError]) -> Iterator[FieldProblem]:
    return (FieldProblem(error.path, error.message) for error in errors)


def _webhook_problems(webhook: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    name, seconds = webhook.get("name", ""), webhook.get("timeoutSeconds", 1)
    if len(name.split(".")) < _LEAST_SEGMENTS:
        text = "should be a domain with at least three segments separated by dots"
        yield FieldProblem(f"{path}.name", f"Invalid value: {go_json(name)}: {text}")
    yield from _version_problems(webhook, path)
    effects = webhook.get("sideEffects")
    if not effects:
        yield FieldProblem(f"{path}.sideEffects", "Required value: must specify one of None, NoneOnDryRun")
    elif effects not in ("None", "NoneOnDryRun"):
        yield _unsupported(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun"))
    for field, allowed in _CHOICES.items():
        if field in webhook and webhook[field] not in allowed:
            yield _unsupported(f"{path}.{field}", webhook[field], allowed)
    if not 1 <= seconds <= _LONGEST_TIMEOUT:
        text = "the timeout value must be between 1 and 30 seconds"
        yield FieldProblem(f"{path}.timeoutSeconds", f"Invalid value: {seconds}: {text}")
    yield from _address_problems(webhook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from _problems(_match_errors(webhook, path))


def _match_errors(webhook: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from rule_errors(rule, f"{path}.rules[{index}]")
    for field in ("namespaceSelector", "objectSelector"):
        yield from label_selector(webhook.get(field) or {}, f"{path}.{field}")
    yield from condition_errors(webhook.get("matchConditions") or (), f"{path}.matchConditions")


def _unsupported(path: str, value: str, allowed: tuple[str, ...]) -> FieldProblem:
    listed = ", ".join(map(go_json, allowed))
    return FieldProblem(path, f"Unsupported value: {go_json(value)}: supported values: {listed}")


def _version_problems(webhook: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    versions = webhook.get("admissionReviewVersions") or []
    listed = ", ".join(_VERSIONS)
    if not versions:
        yield FieldProblem(f"{path}.admissionReviewVersions", f"Required value: must specify one of {listed}")
    elif not set(versions) & set(_VERSIONS):
        text = f"must include at least one of {listed}"
        yield FieldProblem(f"{path}.admissionReviewVersions", f"Invalid value: {go_json(versions)}: {text}")


def _address_problems(config: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    url, service = config.get("url"), config.get("service")
    if bool(url) is bool(service):
        yield FieldProblem(path, "Required value: exactly one of url or service is required")
    elif url and not url.startswith("https://"):
        scheme = url.partition("://")[0]
        text = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        yield FieldProblem(f"{path}.url", f"Invalid value: {go_json(scheme)}: {text}")
