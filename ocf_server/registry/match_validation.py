"""Validation of the parts that webhooks and admission policies share: rules, selectors, and match conditions.

Source: https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/validating-admission-policy-v1/; the error
texts are those of a real API server.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ocf.objects.field_errors import (
    FieldError,
    duplicate,
    internal,
    invalid,
    not_supported,
    required,
    too_many,
)
from ocf.objects.name_validation import path_segment, qualified_name
from ocf_server.validation.fields import label_selector

if TYPE_CHECKING:
    from ocf_server.cel.environment import CompiledExpression

__all__ = [
    "MATCH_POLICIES",
    "choice_errors",
    "condition_errors",
    "expression_errors",
    "match_resources_errors",
    "rule_errors",
]

_Fields = Mapping[str, Any]

MATCH_POLICIES: Final = ("Equivalent", "Exact")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_MAX_CONDITIONS: Final = 64


def choice_errors(fields: _Fields, name: str, allowed: Sequence[str], path: str) -> Iterator[FieldError]:
    """Yield the error of a required field with fixed values."""
    value = fields.get(name)
    if value is None:
        yield required(f"{path}.{name}")
    elif value not in allowed:
        yield not_supported(f"{path}.{name}", value, allowed)


def expression_errors(compiled: "CompiledExpression", path: str) -> Iterator[FieldError]:
    """Yield the error of an expression that cannot be compiled."""
    if compiled.problem.startswith("program instantiation failed"):
        yield internal(path, compiled.problem)
    elif compiled.problem:
        yield invalid(path, compiled.text, compiled.problem)


def condition_errors(conditions: Sequence[_Fields], path: str, *, params: bool = False) -> Iterator[FieldError]:
    """Validate match conditions.

    Args:
        conditions: The conditions, each with a name and an expression.
        params: Whether the expressions can use the parameters of a policy.

    Yields:
        The errors.

    Raises:
        BadRequestError: If an expression uses a feature of CEL that the embedded cluster does not support.
    """
    if not conditions:
        return
    from ocf_server.cel.environment import BOOLEAN, Environment

    if len(conditions) > _MAX_CONDITIONS:
        yield too_many(path, len(conditions), _MAX_CONDITIONS)
    environment = Environment(params=params)
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        below = f"{path}[{index}]"
        name, text = condition.get("name", ""), condition.get("expression", "").strip()
        if text:
            yield from expression_errors(environment.compiled(text, BOOLEAN), f"{below}.expression")
        else:
            yield required(f"{below}.expression")
        if not name:
            yield required(f"{below}.name")
        for problem in qualified_name(name) if name else ():
            yield invalid(f"{below}.name", name, problem)
        if name in names:
            yield duplicate(f"{below}.name", name)
        names |= {name} if name else set()


def match_resources_errors(match: _Fields, path: str) -> Iterator[FieldError]:
    """Validate the `matchConstraints` of a policy, or the `matchResources` of a binding."""
    yield from choice_errors(match, "matchPolicy", MATCH_POLICIES, path)
    for name in ("namespaceSelector", "objectSelector"):
        if match.get(name) is None:
            yield required(f"{path}.{name}")
        else:
            yield from label_selector(match[name], f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(name) or ()):
            yield from _resource_name_errors(rule.get("resourceNames") or (), f"{path}.{name}[{index}].resourceNames")
            yield from rule_errors(rule, f"{path}.{name}[{index}]")


def _resource_name_errors(names: Sequence[str], path: str) -> Iterator[FieldError]:
    for index, name in enumerate(names):
        yield from (invalid(f"{path}[{index}]", name, problem) for problem in path_segment(name))
        if name in names[:index]:
            yield duplicate(f"{path}[{index}]", name)


def rule_errors(rule: _Fields, path: str) -> Iterator[FieldError]:
    """Validate a rule with operations, of a webhook or a policy."""
    operations = rule.get("operations") or []
    if not operations:
        yield required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        yield invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    yield from _names_errors(rule.get("apiGroups") or [], f"{path}.apiGroups", "API groups")
    versions = rule.get("apiVersions") or []
    yield from _names_errors(versions, f"{path}.apiVersions", "API versions")
    yield from (required(f"{path}.apiVersions[{index}]") for index, each in enumerate(versions) if not each)
    yield from _resources_errors(rule.get("resources") or [], f"{path}.resources")
    scope = rule.get("scope")
    if scope is not None and scope not in _SCOPES:
        yield not_supported(f"{path}.scope", scope, _SCOPES)


def _names_errors(names: Sequence[str], path: str, what: str) -> Iterator[FieldError]:
    if not names:
        yield required(path)
    if len(names) > 1 and "*" in names:
        yield invalid(path, names, f"if '*' is present, must not specify other {what}")


def _resources_errors(resources: Sequence[str], path: str) -> Iterator[FieldError]:
    if not resources:
        yield required(path)
    all_parts_of: set[str] = set()
    part_of_all: set[str] = set()
    for index, resource in enumerate(resources):
        if not resource:
            yield required(f"{path}[{index}]")
        name, slash, part = resource.partition("/")
        if not slash:
            continue
        if name in all_parts_of:
            yield invalid(f"{path}[{index}]", resource, f"if '{name}/*' is present, must not specify {resource}")
        if part in part_of_all:
            yield invalid(f"{path}[{index}]", resource, f"if '*/{part}' is present, must not specify {resource}")
        all_parts_of |= {name} if part == "*" else set()
        part_of_all |= {part} if name == "*" else set()
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(path, resources, "if '*/*' is present, must not specify other resources")
    whole = [resource for resource in resources if resource and "/" not in resource]
    # The real server compares with the last entry only (validateResources), so `["pods", "*"]` passes.
    if "*" in whole and whole[-1] != "*":
        text = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, resources, text)
