"""Validation of Roles, ClusterRoles and their bindings.

Source: `pkg/apis/rbac/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid, not_supported, required
from ocf.objects.name_validation import dns_subdomain, path_segment
from ocf_server.validation.fields import each_problem, label_selector
from ocf_server.validation.metadata import metadata_errors, metadata_update_errors
from ocf_server.validation.validation import CreateRule, Validation

__all__ = ["VALIDATIONS"]

_GROUP: Final = "rbac.authorization.k8s.io"
_REF_FIELDS: Final = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}  # the Go names are shown
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def _role_errors(role: Manifest, *, namespaced: bool) -> Iterator[FieldError]:
    yield from metadata_errors(role["metadata"], path_segment, path_segment)
    for index, rule in enumerate(role.get("rules") or ()):
        yield from _rule_errors(rule, f"rules[{index}]", namespaced=namespaced)


def _cluster_role_errors(role: Manifest) -> Iterator[FieldError]:
    yield from _role_errors(role, namespaced=False)
    aggregation, path = role.get("aggregationRule"), "aggregationRule.clusterRoleSelectors"
    if aggregation is None:
        return
    selectors = aggregation.get("clusterRoleSelectors") or ()
    if not selectors:
        yield required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(selectors):
        found = list(label_selector(selector, f"{path}[{index}]"))
        yield from found
        if found:
            yield invalid(f"{path}[{index}]", None, "invalid label selector.")


def _rule_errors(rule: Mapping[str, Any], path: str, *, namespaced: bool) -> Iterator[FieldError]:
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            yield invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, detail)
        return
    if not rule.get("apiGroups"):
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


def _binding_errors(binding: Manifest, *, kinds: Sequence[str], namespaced: bool) -> Iterator[FieldError]:
    yield from metadata_errors(binding["metadata"], path_segment, path_segment)
    ref = binding.get("roleRef") or {}
    if ref.get("apiGroup") != _GROUP:
        yield not_supported("roleRef.apiGroup", ref.get("apiGroup", ""), [_GROUP])
    if ref.get("kind") not in kinds:
        yield not_supported("roleRef.kind", ref.get("kind", ""), kinds)
    if ref.get("name"):
        yield from each_problem(path_segment, ref["name"], "roleRef.name")
    else:
        yield required("roleRef.name")
    for index, subject in enumerate(binding.get("subjects") or ()):
        yield from _subject_errors(subject, f"subjects[{index}]", namespaced=namespaced)


def _subject_errors(subject: Mapping[str, Any], path: str, *, namespaced: bool) -> Iterator[FieldError]:
    kind, name, group = (subject.get(field, "") for field in ("kind", "name", "apiGroup"))
    if not name:
        yield required(f"{path}.name")
    if kind not in _SUBJECTS:
        yield not_supported(f"{path}.kind", kind, _SUBJECTS)
    elif kind != "ServiceAccount":
        if group != _GROUP:
            yield not_supported(f"{path}.apiGroup", group, [_GROUP])
    else:
        if name:
            yield from each_problem(dns_subdomain, name, f"{path}.name")
        if group:
            yield not_supported(f"{path}.apiGroup", group, [""])
        if not namespaced and not subject.get("namespace"):
            yield required(f"{path}.namespace")


def _role_update_errors(new: Manifest, old: Manifest, *, rule: CreateRule) -> Iterator[FieldError]:
    yield from rule(new)
    yield from metadata_update_errors(new["metadata"], old["metadata"])


def _binding_update_errors(new: Manifest, old: Manifest, *, rule: CreateRule) -> Iterator[FieldError]:
    yield from _role_update_errors(new, old, rule=rule)
    if new.get("roleRef") != old.get("roleRef"):
        ref = new.get("roleRef") or {}
        value = {shown: ref.get(name, "") for shown, name in _REF_FIELDS.items()}
        yield invalid("roleRef", value, "cannot change roleRef")


def _roles(rule: CreateRule) -> Validation:
    return Validation(rule, partial(_role_update_errors, rule=rule))


def _bindings(*kinds: str, namespaced: bool) -> Validation:
    rule = partial(_binding_errors, kinds=kinds, namespaced=namespaced)
    return Validation(rule, partial(_binding_update_errors, rule=rule))


VALIDATIONS: Final = {
    f"Role.{_GROUP}": _roles(partial(_role_errors, namespaced=True)),
    f"ClusterRole.{_GROUP}": _roles(_cluster_role_errors),
    f"RoleBinding.{_GROUP}": _bindings("Role", "ClusterRole", namespaced=True),
    f"ClusterRoleBinding.{_GROUP}": _bindings("ClusterRole", namespaced=False),
}
