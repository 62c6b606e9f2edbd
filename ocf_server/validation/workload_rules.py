"""Rules that the kinds of workloads share: their selector, their template, and amounts of pods.

Source: `pkg/apis/apps/validation/validation.go` of Kubernetes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, forbidden, invalid, not_supported, required
from ocf.objects.name_validation import NameRule
from ocf_server.validation.fields import (
    label_selector,
    matches,
    percent,
    shown_selector,
)
from ocf_server.validation.metadata import metadata_errors
from ocf_server.validation.pod_spec import pod_template_errors
from ocf_server.validation.validation import CreateRule

__all__ = [
    "always_errors",
    "amount_number",
    "at_most_all",
    "create_rule",
    "label_mismatch",
    "selected_template_errors",
    "selector_errors",
    "template_labels",
]

_Json: TypeAlias = Mapping[str, Any]
_Amount: TypeAlias = int | str

_NO_MATCH: Final = "`selector` does not match template `labels`"


def template_labels(template: _Json) -> dict[str, str]:
    """Return the labels of a template."""
    return template.get("metadata", {}).get("labels") or {}


def label_mismatch(template: _Json, path: str) -> FieldError:
    """Return the error of a template whose labels the selector does not match."""
    return invalid(f"{path}.metadata.labels", dict(sorted(template_labels(template).items())) or None, _NO_MATCH)


def selector_errors(spec: _Json, what: str) -> Iterator[FieldError]:
    """Yield the errors of the selector of a workload.

    Args:
        what: The workload as messages name it.
    """
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    yield from label_selector(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid("spec.selector", shown_selector(selector), f"empty selector is invalid for {what}")


def selected_template_errors(spec: _Json, malformed: str) -> Iterator[FieldError]:
    """Yield the errors of the template of a Deployment or ReplicaSet, which a malformed selector hides."""
    given, template = spec.get("selector"), spec["template"]
    matching = matches(given, template_labels(template))
    if matching is None:
        yield invalid("spec.selector", shown_selector(given), malformed)
        return
    if not matching:
        yield label_mismatch(template, "spec.template")
    yield from pod_template_errors(template, "spec.template")
    yield from always_errors(template["spec"], "ReplicaSet")


def always_errors(spec: _Json, what: str) -> Iterator[FieldError]:
    """Yield the errors of a pod spec of a workload, whose containers must always be restarted."""
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        yield not_supported("spec.template.spec.restartPolicy", policy, ["Always"])
    if "activeDeadlineSeconds" in spec:
        detail = f"activeDeadlineSeconds in {what} is not Supported"
        yield forbidden("spec.template.spec.activeDeadlineSeconds", detail)


def amount_number(amount: _Amount) -> int:
    """Return the number of an integer, a percentage or the text of an integer; 0 for any other text."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%") if not percent(amount) else amount
    try:
        return int(digits)
    except ValueError:
        return 0


def at_most_all(amount: _Amount, path: str) -> Iterator[FieldError]:
    """Yield the error of a percentage above 100."""
    if isinstance(amount, str) and not percent(amount) and int(amount[:-1]) > 100:  # noqa: PLR2004
        yield invalid(path, amount, "must not be greater than 100%", as_json=True)


def create_rule(rule: Callable[[_Json], Iterator[FieldError]], *names: NameRule) -> CreateRule:
    """Return the rule for new objects.

    Args:
        *names: The rules for names and their prefixes; none for DNS subdomains.
    """

    def create(manifest: Manifest) -> Iterator[FieldError]:
        yield from metadata_errors(manifest["metadata"], *names)
        yield from rule(manifest["spec"])

    return create
