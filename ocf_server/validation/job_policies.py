"""Validation of the policies of a Job for failed pods and for its success.

Source: `validatePodFailurePolicy` and `validateSuccessPolicy` in `pkg/apis/batch/validation/validation.go` of
Kubernetes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import (
    OMITTED,
    FieldError,
    duplicate,
    invalid,
    required,
    too_long,
    too_many,
)
from ocf.objects.name_validation import qualified_name
from ocf_server.validation.fields import each_problem, enumeration, nonnegative
from ocf_server.validation.job_indexes import IndexesError, index_intervals

__all__ = ["failure_policy_errors", "success_policy_errors"]

_Json: TypeAlias = Mapping[str, Any]

# The limits of pkg/apis/batch/validation: maxPodFailurePolicyRules and those that follow it.
_MOST_RULES: Final = 20
_MOST_CODES: Final = 255
_MOST_CONDITIONS: Final = 20
_LONGEST_INDEXES: Final = 64 * 1024
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES: Final = ("False", "True", "Unknown")


def _required_one_of(value: str, supported: tuple[str, ...], path: str) -> Iterator[FieldError]:
    if value:
        yield from enumeration(value, supported, path)
    else:
        quoted = " ".join(f'"{each}"' for each in supported)
        yield required(path, f"valid values: [{quoted}]")


def failure_policy_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of the pod failure policy of a Job."""
    rules = spec["podFailurePolicy"].get("rules") or ()
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(rules), _MOST_RULES)
    pod = spec["template"]["spec"]
    names = {each["name"] for field in ("containers", "initContainers") for each in pod.get(field) or ()}
    for index, rule in enumerate(rules):
        place = f"{path}.rules[{index}]"
        yield from _action_errors(rule.get("action", ""), spec, f"{place}.action")
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if codes is not None:
            yield from _exit_code_errors(codes, names, f"{place}.onExitCodes")
        yield from _condition_errors(conditions, f"{place}.onPodConditions")
        if codes is not None and conditions:
            detail = "specifying both OnExitCodes and OnPodConditions is not supported"
            yield invalid(place, OMITTED, detail)
        if codes is None and not conditions:
            yield invalid(place, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required")


def _action_errors(action: str, spec: _Json, path: str) -> Iterator[FieldError]:
    if action == "FailIndex":
        if "backoffLimitPerIndex" not in spec:
            yield invalid(path, action, "requires the backoffLimitPerIndex to be set", as_json=True)
    else:
        yield from _required_one_of(action, _ACTIONS, path)


def _exit_code_errors(codes: _Json, names: set[str], path: str) -> Iterator[FieldError]:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    yield from _required_one_of(operator, ("In", "NotIn"), f"{path}.operator")
    container = codes.get("containerName")
    if container is not None and container not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", container, detail)
    if not values:
        yield invalid(f"{path}.values", codes.get("values"), "at least one value is required")
    elif len(values) > _MOST_CODES:
        yield too_many(f"{path}.values", len(values), _MOST_CODES)
    for index, value in enumerate(values):
        if operator == "In" and not value:
            yield invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
        if value in values[:index]:
            yield duplicate(f"{path}.values[{index}]", value)
    if values != sorted(values):
        yield invalid(f"{path}.values", values, "must be ordered")


def _condition_errors(conditions: Any, path: str) -> Iterator[FieldError]:
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(path, len(conditions), _MOST_CONDITIONS)
    for index, pattern in enumerate(conditions):
        yield from each_problem(qualified_name, pattern.get("type", ""), f"{path}[{index}].type")
        yield from _required_one_of(pattern.get("status", ""), _STATUSES, f"{path}[{index}].status")


def success_policy_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of the success policy of an indexed Job."""
    rules = spec["successPolicy"].get("rules") or ()
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{path}.rules", detail)
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(rules), _MOST_RULES)
    for index, rule in enumerate(rules):
        yield from _success_rule_errors(rule, spec.get("completions", 0), f"{path}.rules[{index}]")


def _success_rule_errors(rule: _Json, completions: int, path: str) -> Iterator[FieldError]:
    count, indexes, total = rule.get("succeededCount"), rule.get("succeededIndexes"), 0
    if count is None and indexes is None:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    if indexes is not None:
        place = f"{path}.succeededIndexes"
        if len(indexes.encode(errors="surrogatepass")) > _LONGEST_INDEXES:
            yield too_long(place, _LONGEST_INDEXES)
        total, problem = _count_indexes(indexes, completions)
        if problem:
            yield invalid(place, indexes, f"error parsing succeededIndexes: {problem}")
    if count is None:
        return
    place = f"{path}.succeededCount"
    yield from nonnegative(count, place)
    if count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        yield invalid(place, count, detail)
    if indexes is not None and count > total:
        what = "the number of indexes in the specified succeededIndexes field"
        yield invalid(place, count, f"must be less than or equal to {total} ({what})")


def _count_indexes(text: str, completions: int) -> tuple[int, str]:
    """Return the number of indexes in a text like `0,2-4`, and the first problem of the text; empty if none."""
    try:
        return sum(last - first + 1 for first, last in index_intervals(text, completions)), ""
    except IndexesError as error:
        return 0, str(error)
