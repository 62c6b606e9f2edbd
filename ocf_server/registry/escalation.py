"""Prevention of privilege escalation: a user grants only rights that they have.

Source: `pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased` and
`staging/src/k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go` of Kubernetes 1.36.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.json_equality import equal_json
from ocf.schema.builtin import ApiResource
from ocf_server.api.attributes import Attributes
from ocf_server.api.status_errors import forbidden, not_found
from ocf_server.api.users import MASTERS, User
from ocf_server.registry.rbac import ALL, GROUP, Rbac, RoleNotFoundError, Rule, has_path

__all__ = ["require_no_escalation"]

_ROLES: Final = ("Role", "ClusterRole")
_BINDINGS: Final = ("RoleBinding", "ClusterRoleBinding")
_EVERYTHING: Final[Sequence[Rule]] = (
    {"apiGroups": [ALL], "resources": [ALL], "verbs": [ALL]},
    {"nonResourceURLs": [ALL], "verbs": [ALL]},
)
# What the garbage collector changes, and what every write does.
_UNCHECKED: Final = frozenset({"ownerReferences", "finalizers", "managedFields", "resourceVersion"})
_FIELDS: Final = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def require_no_escalation(rbac: Rbac, user: User, resource: ApiResource, new: Manifest, live: Manifest | None) -> None:
    """Check that the user of a write of a role or a binding has the rights that it grants; of other kinds, nothing.

    Args:
        new: The object as sent, after mutating admission.
        live: The stored object; None for a create.

    Raises:
        ForbiddenError: If the user neither has them nor may grant others.
        NotFoundError: If a binding refers to a role that does not exist, and the user may not bind any.
    """
    if resource.group != GROUP or MASTERS in user.groups or (live is not None and _same(new, live)):
        return
    namespace = str(new["metadata"].get("namespace") or "") if resource.namespaced else ""
    if resource.kind in _ROLES:
        _require_of_role(rbac, user, resource, namespace, new, live)
    elif resource.kind in _BINDINGS:
        _require_of_binding(rbac, user, resource, namespace, new)


def _same(new: Manifest, live: Manifest) -> bool:
    return equal_json(_compared(new), _compared(live))


def _compared(manifest: Manifest) -> Manifest:
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in _UNCHECKED}
    return {**manifest, "metadata": metadata}


def _require_of_role(  # noqa: PLR0917 (the facts of one request)
    rbac: Rbac, user: User, resource: ApiResource, namespace: str, new: Manifest, live: Manifest | None
) -> None:
    name = str(new["metadata"].get("name") or "")
    # A create has no name in its path, by which it could be allowed.
    asked = Attributes("escalate", GROUP, resource.plural, "", namespace, name if live is not None else "")
    if rbac.authorize(user, asked).allowed:
        return
    if missing := _missing(rbac.rules_of(user, namespace), new.get("rules") or ()):
        raise forbidden(resource.group_resource, name, _problem(user, missing))
    aggregates = any(role is not None and "aggregationRule" in role for role in (new, live))
    if aggregates and _missing(rbac.rules_of(user, namespace), _EVERYTHING):
        problem = "must have cluster-admin privileges to use the aggregationRule"
        raise forbidden(resource.group_resource, name, problem)


def _require_of_binding(rbac: Rbac, user: User, resource: ApiResource, namespace: str, new: Manifest) -> None:
    reference: Mapping[str, Any] = new.get("roleRef") or {}
    role = str(reference.get("name"))
    plural = f"{str(reference.get('kind')).lower()}s"
    if rbac.authorize(user, Attributes("bind", GROUP, plural, "", namespace, role)).allowed:
        return
    try:
        granted = rbac.rules_of_role(reference, namespace)
    except RoleNotFoundError as error:
        raise not_found(resource.group_resource, role) from error
    if missing := _missing(rbac.rules_of(user, namespace), granted):
        raise forbidden(resource.group_resource, str(new["metadata"].get("name") or ""), _problem(user, missing))


def _problem(user: User, missing: Iterable[Rule]) -> str:
    who = f"user {json.dumps(user.username)} (groups={_texts(user.groups)})"
    listed = "\n".join(sorted({_compact_text(rule) for rule in _compact(missing)}))
    return f"{who} is attempting to grant RBAC permissions not currently held:\n{listed}"


def _missing(held: Sequence[Rule], granted: Iterable[Rule]) -> list[Rule]:
    return [part for rule in granted for part in _parts(rule) if not any(_covers(other, part) for other in held)]


def _parts(rule: Rule) -> Iterator[Rule]:
    """Yield a rule in parts with one verb, and one resource or path each."""
    verbs, names = rule.get("verbs") or (), rule.get("resourceNames") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                yield from ({**part, "resourceNames": [name]} for name in names)
                if not names:
                    yield part
    yield from (
        {"nonResourceURLs": [path], "verbs": [verb]} for path in rule.get("nonResourceURLs") or () for verb in verbs
    )


def _covers(held: Rule, part: Rule) -> bool:
    """Return whether a rule includes a part of another one."""
    names = held.get("resourceNames") or ()
    return (
        _includes(held, part, "verbs")
        and _includes(held, part, "apiGroups")
        and all(_has_resource(held.get("resources") or (), wanted) for wanted in part.get("resources") or ())
        and all(
            any(has_path(path, wanted) for path in held.get("nonResourceURLs") or ())
            for wanted in part.get("nonResourceURLs") or ()
        )
        and (not names or (bool(part.get("resourceNames")) and set(part["resourceNames"]) <= set(names)))
    )


def _includes(held: Rule, part: Rule, field: str) -> bool:
    values = held.get(field) or ()
    return ALL in values or set(part.get(field) or ()) <= set(values)


def _has_resource(held: Sequence[str], wanted: str) -> bool:
    _, _, subresource = wanted.partition("/")
    return ALL in held or wanted in held or bool(subresource and f"{ALL}/{subresource}" in held)


def _compact(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Yield parts with the verbs of one resource together."""
    verbs: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for rule in rules:
        if "resources" in rule:
            key = (rule["apiGroups"][0], rule["resources"][0], tuple(rule.get("resourceNames") or ()))
            verbs.setdefault(key, []).extend(rule["verbs"])
        else:
            yield rule
    for (group, resource, names), found in verbs.items():
        yield {"apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": found}


def _compact_text(rule: Rule) -> str:
    parts = [f"{shown}:{_texts(rule[name])}" for shown, name in _FIELDS if rule.get(name)]
    return f"{{{', '.join(parts)}}}"


def _texts(values: Iterable[str]) -> str:
    return f"[{' '.join(map(json.dumps, values))}]"
