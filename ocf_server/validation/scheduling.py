"""Validation of the scheduling constraints of a pod.

Source: `validateAffinity`, `ValidateTolerations` and `validateTopologySpreadConstraints` in
`pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from ocf.objects.name_validation import dns_label, dns_subdomain, label_value, qualified_name
from ocf_server.validation.fields import (
    each_problem,
    enumeration,
    label_selector,
    positive,
    requirement_names,
    requirement_values,
)

__all__ = ["affinity_errors", "spread_errors", "toleration_errors"]

_Json: TypeAlias = Mapping[str, Any]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHTS: Final = range(1, 101)
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_BAD_OPERATOR: Final = "not a valid selector operator"


def affinity_errors(affinity: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of the affinity of a pod."""
    if "nodeAffinity" in affinity:
        yield from _node_affinity_errors(affinity["nodeAffinity"], f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if name in affinity:
            yield from _pod_affinity_errors(affinity[name], f"{path}.{name}")


def _node_affinity_errors(affinity: _Json, path: str) -> Iterator[FieldError]:
    if _REQUIRED in affinity:
        terms = affinity[_REQUIRED].get("nodeSelectorTerms") or ()
        place = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not terms:
            yield required(place, "must have at least one node selector term")
        for index, term in enumerate(terms):
            yield from _node_term_errors(term, f"{place}[{index}]")
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        place = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_errors(preferred, place)
        yield from _node_term_errors(preferred.get("preference", {}), f"{place}.preference", any_value=True)


def _weight_errors(term: _Json, path: str) -> Iterator[FieldError]:
    if term.get("weight", 0) not in _WEIGHTS:
        yield invalid(f"{path}.weight", term.get("weight", 0), "must be in the range 1-100")


def _node_term_errors(term: _Json, path: str, *, any_value: bool = False) -> Iterator[FieldError]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        yield from _expression_errors(expression, f"{path}.matchExpressions[{index}]", any_value=any_value)
    for index, expression in enumerate(term.get("matchFields") or ()):
        yield from _field_errors(expression, f"{path}.matchFields[{index}]")


def _expression_errors(expression: _Json, path: str, *, any_value: bool) -> Iterator[FieldError]:
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    found = requirement_values(expression, path)
    if found is not None:
        yield from found
    elif operator not in ("Gt", "Lt"):
        yield invalid(f"{path}.operator", operator, _BAD_OPERATOR, as_json=True)
    elif len(values) != 1:
        yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    yield from requirement_names(expression, path, any_value=any_value)


def _field_errors(expression: _Json, path: str) -> Iterator[FieldError]:
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    if operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", operator, _BAD_OPERATOR, as_json=True)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if expression.get("key") != "metadata.name":
        yield invalid(f"{path}.key", expression.get("key", ""), "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from each_problem(dns_subdomain, value, f"{path}.values[{index}]")


def _pod_affinity_errors(affinity: _Json, path: str) -> Iterator[FieldError]:
    for index, term in enumerate(affinity.get(_REQUIRED, ())):
        yield from _pod_term_errors(term, f"{path}.{_REQUIRED}[{index}]")
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        place = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_errors(preferred, place)
        yield from _pod_term_errors(preferred.get("podAffinityTerm", {}), f"{place}.podAffinityTerm")


def _pod_term_errors(term: _Json, path: str) -> Iterator[FieldError]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from label_selector(term.get(name) or {}, f"{path}.{name}")
    for namespace in term.get("namespaces", ()):
        yield from each_problem(dns_label, namespace, f"{path}.namespace")
    match, mismatch = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    yield from _label_key_errors(match, mismatch, term.get("labelSelector"), path)
    topology = term.get("topologyKey", "")
    if not topology:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from each_problem(qualified_name, topology, f"{path}.topologyKey")


def _label_key_errors(
    match: Sequence[str], mismatch: Sequence[str], selector: _Json | None, path: str
) -> Iterator[FieldError]:
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            yield forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(keys):
            yield from each_problem(qualified_name, key, f"{path}.{name}[{index}]")
    places = {key: index for index, key in enumerate(match)}
    seen = set((selector or {}).get("matchLabels") or ())
    for expression in (selector or {}).get("matchExpressions") or ():
        key = expression.get("key", "")
        if key in places and key in seen:
            yield invalid(f"{path}[{places[key]}]", key, "exists in both matchLabelKeys and labelSelector")
        seen.add(key)
    for index, key in enumerate(match):
        if key in mismatch:
            place = f"{path}.matchLabelKeys[{index}]"
            yield invalid(place, key, "exists in both matchLabelKeys and mismatchLabelKeys")


def toleration_errors(tolerations: Sequence[_Json], path: str) -> Iterator[FieldError]:
    """Yield the errors of the tolerations of a pod."""
    for index, toleration in enumerate(tolerations):
        place = f"{path}[{index}]"
        key, operator, effect = (toleration.get(name, "") for name in ("key", "operator", "effect"))
        if key:
            yield from each_problem(qualified_name, key, f"{place}.key")
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{place}.operator", operator, detail, as_json=True)
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{place}.effect", effect, detail, as_json=True)
        yield from _operator_errors(operator, toleration.get("value", ""), f"{place}.operator")
        if effect:
            yield from enumeration(effect, _EFFECTS, f"{place}.effect")


def _operator_errors(operator: str, value: str, path: str) -> Iterator[FieldError]:
    if operator in ("Equal", ""):
        problems = label_value(value)
        if problems:
            yield invalid(path, value, ";".join(problems))
    elif operator == "Exists":
        if value:
            yield invalid(path, value, "value must be empty when `operator` is 'Exists'")
    else:
        comparing = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
        yield not_supported(path, operator, ("Equal", "Exists", *comparing))


def spread_errors(constraints: Sequence[_Json], path: str) -> Iterator[FieldError]:
    """Yield the errors of the topology spread constraints of a pod."""
    for index, constraint in enumerate(constraints):
        place = f"{path}[{index}]"
        action, topology = constraint.get("whenUnsatisfiable", ""), constraint.get("topologyKey", "")
        yield from positive(constraint.get("maxSkew", 0), f"{place}.maxSkew")
        if not topology:
            yield required(f"{place}.topologyKey", "can not be empty")
        yield from enumeration(action, _ACTIONS, f"{place}.whenUnsatisfiable")
        for other in constraints[index + 1 :]:
            if (other.get("topologyKey", ""), other.get("whenUnsatisfiable", "")) == (topology, action):
                yield duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", f"{{{topology}, {action}}}")
                break
        yield from _domain_errors(constraint.get("minDomains"), action, f"{place}.minDomains")
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield from enumeration(constraint.get(name), ("Honor", "Ignore"), f"{place}.{name}")
        selector = constraint.get("labelSelector")
        yield from _label_key_errors(constraint.get("matchLabelKeys") or (), (), selector, place)
        yield from label_selector(selector or {}, f"{place}.labelSelector")


def _domain_errors(count: int | None, action: str, path: str) -> Iterator[FieldError]:
    if count is None:
        return
    yield from positive(count, path)
    if action != "DoNotSchedule":
        yield invalid(path, count, f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}")
