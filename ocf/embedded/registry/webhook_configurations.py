"""Validation of webhook configurations; the error texts are those of a real API server."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.embedded.api.status_errors import go_json, unsupported
from ocf.errors import FieldProblem
from ocf.objects import Manifest

__all__ = ["configuration_problems"]

_VERSIONS: Final = ("v1", "v1beta1")
_LEAST_SEGMENTS: Final = 3
_LONGEST_TIMEOUT: Final = 30
_CHOICES: Final = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
}


def configuration_problems(configuration: Manifest) -> Iterator[FieldProblem]:
    """Validate a MutatingWebhookConfiguration or ValidatingWebhookConfiguration.

    Args:
        configuration: The configuration, defaulted.

    Yields:
        The violations.

    Raises:
        BadRequestError: If it contains `matchConditions`, which the embedded cluster does not support.
    """
    for index, webhook in enumerate(configuration["webhooks"]):
        yield from _webhook_problems(webhook, f"webhooks[{index}]")
        if webhook.get("matchConditions"):
            raise unsupported("evaluate matchConditions", "use namespaceSelector, objectSelector and rules")


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
    for index, rule in enumerate(webhook.get("rules") or ()):
        for field in ("operations", "apiGroups", "apiVersions", "resources"):
            if not rule.get(field):
                yield FieldProblem(f"{path}.rules[{index}].{field}", "Required value")


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
